"""The whole program on a real terminal: demo servers, SSH, polling, screen, and out again."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from little_terminal import LittleTerminal

SRC = str(Path(__file__).resolve().parents[2] / "src")


class Terminal:
    """A program on a pseudo terminal of 140x40."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        self._main, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fleettui", *arguments],
            stdin=child, stdout=child, stderr=child, start_new_session=True,
            env={**os.environ, "PYTHONPATH": SRC, **variables},
        )  # fmt: skip
        os.close(child)
        self.seen = ""
        self.screen = LittleTerminal(140, 40)

    def wait_for(self, text: str, timeout_s: float = 30.0) -> None:
        """Read until the text is on the screen."""
        deadline = time.monotonic() + timeout_s
        while text not in self.screen.text:
            assert time.monotonic() < deadline, f"{text!r} not drawn:\n{self.screen.text}"
            assert self._read(0.2) or self.process.poll() is None, f"ended: {self.seen[-600:]!r}"

    def wait_until_gone(self, text: str, timeout_s: float = 30.0) -> None:
        """Read until the text is no longer on the screen."""
        deadline = time.monotonic() + timeout_s
        while text in self.screen.text:
            assert time.monotonic() < deadline, f"{text!r} still there:\n{self.screen.text}"
            self._read(0.2)

    def send(self, keys: str) -> None:
        self.seen = ""
        os.write(self._main, keys.encode())

    def wait_for_end(self, timeout_s: float = 20.0) -> int:
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.1)
        return self.process.wait(1)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._main)

    def _read(self, timeout_s: float) -> bool:
        if not select.select([self._main], [], [], timeout_s)[0]:
            return False
        try:
            data = os.read(self._main, 65536)
        except OSError:
            return False
        self.seen += data.decode("utf-8", "replace")
        self.screen.feed(data)
        return bool(data)


@pytest.fixture
def demo() -> Iterator[Terminal]:
    terminal = Terminal("demo", "--machines", "4")
    yield terminal
    terminal.close()


def test_from_start_to_quit(demo: Terminal) -> None:
    demo.wait_for("4/4 up")
    demo.wait_for("llama3.1:70b")
    servers = psutil.Process(demo.process.pid).children(recursive=True)
    assert servers, "the simulated machines run in a process of their own"
    demo.send("\r")
    demo.wait_for("RTX 4090")
    demo.wait_for("GPU history")
    demo.send("\x1b")
    demo.wait_for("4/4 up")
    demo.send("?")
    demo.wait_for("Esc closes")
    demo.send("\x1b")
    demo.wait_until_gone("Esc closes")
    demo.send("q")
    assert demo.wait_for_end() == 0
    assert "\x1b[?1049l" in demo.seen, "the terminal is given back"
    assert not psutil.wait_procs(servers, timeout=10)[1], "nothing of the demo is left running"


def is_stored(state_dir: Path) -> bool:
    """A snapshot is in the state file; the file itself is there from the start."""
    connection = sqlite3.connect(state_dir / "state.db")
    try:
        return connection.execute("SELECT 1 FROM fleet_snapshots").fetchone() is not None
    finally:
        connection.close()


def test_a_dashboard_serves_route_from_its_snapshot(tmp_path: Path) -> None:
    from fleettui.demo.launcher import DemoFleet

    with DemoFleet(machines=4, is_calm=True) as fleet:
        variables = {**fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path / "state")}
        terminal = Terminal("--interval", "1", **variables)
        try:
            terminal.wait_for("4/4 up")
            deadline = time.monotonic() + 20
            while not is_stored(tmp_path / "state"):
                assert time.monotonic() < deadline
                terminal._read(0.1)
            command = ["-m", "fleettui", "--route", "llama3.1:70b", "--json", "-q"]
            done = subprocess.run(
                [sys.executable, "-X", "importtime", *command],
                env={**os.environ, "PYTHONPATH": SRC, **variables},
                capture_output=True,
                text=True,
                check=True,
            )
            assert json.loads(done.stdout)["chosen"]["name"] in ("ada", "bora")
            assert "asyncssh" not in done.stderr
            terminal.send("q")
            assert terminal.wait_for_end() == 0
        finally:
            terminal.close()


def taken_at(state_dir: Path) -> float:
    """When the newest stored snapshot was taken."""
    connection = sqlite3.connect(state_dir / "state.db")
    try:
        return float(connection.execute("SELECT taken_at FROM fleet_snapshots").fetchone()[0])
    finally:
        connection.close()


def test_a_terminal_that_stands_still_does_not_stop_the_polls(tmp_path: Path) -> None:
    """As after Ctrl+S, or in a multiplexer whose client hangs: nobody reads, however much is pressed."""
    from fleettui.demo.launcher import DemoFleet

    with DemoFleet(machines=4, is_calm=True) as fleet:
        variables = {**fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path / "state")}
        terminal = Terminal("--interval", "1", **variables)
        try:
            terminal.wait_for("4/4 up")
            for _ in range(60):  # far more than a terminal holds
                for key in b"jk":
                    os.write(terminal._main, bytes((key,)))
                    time.sleep(0.03)
            stood_still = time.time()
            deadline = time.monotonic() + 30
            while taken_at(tmp_path / "state") < stood_still + 3:
                assert time.monotonic() < deadline, "no snapshot while the terminal stands still"
                time.sleep(0.2)
            terminal.send("?")
            terminal.wait_for("Esc closes")
            terminal.send("\x1b")
            terminal.wait_until_gone("Esc closes")
            terminal.wait_for("4/4 up")
            terminal.send("q")
            assert terminal.wait_for_end() == 0
        finally:
            terminal.close()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_hung_up_or_terminated_demo_leaves_nothing_behind(demo: Terminal, number: signal.Signals) -> None:
    demo.wait_for("4/4 up")
    servers = psutil.Process(demo.process.pid).children(recursive=True)
    demo.process.send_signal(number)
    demo.wait_for_end()
    assert not psutil.wait_procs(servers, timeout=10)[1]
