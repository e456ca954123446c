"""The dashboard itself, on a real terminal, while its server is killed and comes back."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from served import SRC, Served

from fleettui.demo.launcher import DemoFleet
from little_terminal import LittleTerminal

PATIENCE_S = 60.0


class Dashboard:
    """A program on a pseudo terminal of 140x40."""

    def __init__(self, process: subprocess.Popen[bytes], main: int) -> None:
        self.process = process
        self._main = main
        self.screen = LittleTerminal(140, 40)

    def press(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def wait_for(self, text: str, *, is_gone: bool = False) -> None:
        """Read until the text is on the screen, or no longer there."""
        deadline = time.monotonic() + PATIENCE_S
        while (text in self.screen.text) == is_gone:
            assert time.monotonic() < deadline, f"{text!r}:\n{self.screen.text}"
            self._read(0.2)

    def end(self) -> int:
        """Read until it has ended; its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self._read(0.2)
        return self.process.returncode

    def _read(self, timeout_s: float) -> None:
        if select.select([self._main], [], [], timeout_s)[0]:
            try:
                self.screen.feed(os.read(self._main, 65_536))
            except OSError:  # the other side is closed
                time.sleep(0.05)


@contextmanager
def dashboard(*arguments: str, **variables: str) -> Iterator[Dashboard]:
    main, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "fleettui", *arguments],
        stdin=child, stdout=child, stderr=child, start_new_session=True, cwd="/",
        env={**os.environ, "PYTHONPATH": SRC, **variables},
    )  # fmt: skip
    os.close(child)
    try:
        yield Dashboard(process, main)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(main)


def test_a_dashboard_through_a_server(fleet: DemoFleet, tmp_path: Path) -> None:
    """It has no machine file; what it shows is the server's, before, while and after that is away."""
    nothing = {"FLEETTUI_MACHINES": str(tmp_path / "none"), "FLEETTUI_STATE_DIR": str(tmp_path / "state")}
    own = {**fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path / "server")}
    with Served(tmp_path / "first", own) as served:
        url = f"http://127.0.0.1:{served.port}"
        with dashboard("--server", url, **nothing) as screen:
            screen.wait_for("8/8 up")
            screen.wait_for("via server")
            screen.wait_for(f"{url}: nothing is changed through it")
            assert "m maintenance" not in screen.screen.text
            screen.press("?")
            screen.wait_for("Ctrl+P finds every command")
            assert "Stop asking" not in screen.screen.text
            assert "out of routing" not in screen.screen.text
            screen.press("\x1b")
            screen.wait_for("Ctrl+P finds every command", is_gone=True)
            screen.press("5")  # the timeline is the server's
            screen.wait_for("8/8 up", is_gone=True)
            screen.wait_for("via server")
            screen.press("1")
            screen.wait_for("8/8 up")

            served.process.send_signal(signal.SIGKILL)
            screen.wait_for("server away")
            screen.wait_for("there are no machine files here")
            screen.wait_for("spark")
            with Served(tmp_path / "second", own, listen=f"127.0.0.1:{served.port}"):
                screen.wait_for("server away", is_gone=True)
                screen.wait_for("via server")
                screen.wait_for("8/8 up")
                screen.press("q")
                assert screen.end() == 0
    assert not (tmp_path / "none").exists()
