"""The dashboard on a real pseudo terminal: what it leaves behind, and what it never writes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from fleettui.tui.terminal import TERMINAL_GONE_EXIT

HERE = Path(__file__).parent
PROGRAM = """
import asyncio, logging, resource, sys, time
from tui_fleet import Clock, FakeService
from fleettui.tui.app import run_dashboard
from fleettui.tui.port import Look
logging.basicConfig(handlers=[logging.NullHandler()])
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
service = FakeService()
class Flags:
    async def set_maintenance(self, names, **how):
        return {}["broken"]
    class book:
        maintenance = {}
fault = sys.argv[1] if len(sys.argv) > 1 else ""
if fault == "action":
    service.poll_now = lambda name: {}["broken"]
elif fault == "painting":
    service.poll_now = lambda name: service.publish_exactly(({}["broken"] if name else object(),))
elif fault == "hanging":
    service.poll_now = lambda name: time.sleep(60)
elif fault == "work beside it":
    service.flags = Flags()
code = asyncio.run(run_dashboard(service, Look()))
print("running" if service.is_running else "stopped")
sys.exit(code)
"""


def run_on_terminal(
    *arguments: str, until: bytes, then: bytes, **environment: str
) -> tuple[bytes, bytes, int]:
    """Start the dashboard, wait for text on the screen, press keys; answers (terminal, stdout, exit code)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(slave)
    variables = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parents[1] / 'src'}", **environment}
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        env=variables,
        start_new_session=True,
    )
    written = bytearray()
    deadline = time.monotonic() + 60
    is_pressed = False
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            written += os.read(master, 1 << 16)
        elif child.poll() is not None:
            break
        if not is_pressed and until in written:
            os.write(master, then)
            is_pressed = True
    if child.poll() is None:
        child.kill()
    assert child.stdout is not None
    stdout = child.stdout.read()
    assert termios.tcgetattr(slave) == before
    os.close(slave)
    os.close(master)
    return bytes(written), stdout, child.wait()


def test_q_restores_the_terminal_and_stops_the_service() -> None:
    terminal, stdout, code = run_on_terminal(until=b"pve52", then=b"q")
    assert code == 0
    assert stdout == b"stopped\n"
    assert terminal.rindex(b"\x1b[?1049l") > terminal.index(b"\x1b[?1049h")
    assert modes_left(terminal) == {}
    assert b"Traceback" not in terminal


@pytest.mark.parametrize("is_hanging", [False, True])
def test_a_quit_signal_gives_the_terminal_back_and_ends_as_ever(is_hanging: bool) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(slave)
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *(["hanging"] if is_hanging else [])],
        stdin=slave,
        stdout=subprocess.DEVNULL,
        stderr=slave,
        env={**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parents[1] / 'src'}"},
        start_new_session=True,
    )
    written = b""
    try:
        while b"pve52" not in written:
            written += os.read(master, 1 << 16)
        if is_hanging:
            os.write(master, b"r")
        while select.select([master], [], [], 0.5)[0]:  # all of the screen is there, and the key is taken
            written += os.read(master, 1 << 16)
        child.send_signal(signal.SIGQUIT)
        assert child.wait(30) == -signal.SIGQUIT
        while select.select([master], [], [], 0)[0]:
            written += os.read(master, 1 << 16)
        assert modes_left(written) == {}
        assert termios.tcgetattr(slave) == before
    finally:
        child.kill()
        os.close(slave)
        os.close(master)


def test_ctrl_l_writes_all_of_the_screen_again() -> None:
    """Only cells that change are written: what another program left on the terminal would stay."""
    terminal, _, code = run_on_terminal(until=b"pve52", then=b"\x0cq")
    assert code == 0
    assert terminal.count(b"pve52") >= 2


@pytest.mark.parametrize("signals", [(), (signal.SIGTERM,)], ids=["by itself", "by SIGTERM"])
def test_a_terminal_that_is_gone_ends_the_dashboard(signals: tuple[signal.Signals, ...]) -> None:
    """Nobody sends SIGHUP here: the terminal is not the controlling one, as after setsid or nohup."""
    master, slave = pty.openpty()
    variables = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parents[1] / 'src'}"}
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        env=variables,
        start_new_session=True,
    )
    os.close(slave)
    try:
        written = b""
        while b"pve52" not in written:
            written += os.read(master, 1 << 16)
        os.close(master)
        for number in signals:
            child.send_signal(number)
        stdout, _ = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode in (TERMINAL_GONE_EXIT, -signal.SIGTERM)
    if not signals:
        assert stdout == b"stopped\n"


def test_no_color_writes_no_colors() -> None:
    terminal, _, code = run_on_terminal(until=b"pve52", then=b"q", NO_COLOR="1", COLORTERM="truecolor")
    assert code == 0
    codes = {code for match in re.findall(rb"\x1b\[([0-9;]*)m", terminal) for code in match.split(b";")}
    assert codes <= {b"", b"0", b"1", b"2", b"4", b"7", b"22", b"24", b"27", b"39", b"49"}
    assert b"\x1b[7" in terminal or b";7" in terminal  # the cursor is still seen


def modes_left(written: bytes) -> dict[bytes, bytes]:
    """Modes of the terminal that are not as they were: `h` on, `l` off."""
    last = {
        mode: way
        for modes, way in re.findall(rb"\x1b\[\?([\d;]+)([hl])", written)
        for mode in modes.split(b";")
    }
    assert last, "modes were set"
    return {mode: way for mode, way in last.items() if (way == b"h") != (mode in (b"25", b"7"))}


@pytest.mark.parametrize(("fault", "key"), [("action", b"r"), ("painting", b"r"), ("work beside it", b"m")])
def test_an_error_of_ours_is_a_sentence_not_a_traceback_and_gives_the_terminal_back(
    fault: str, key: bytes
) -> None:
    terminal, stdout, code = run_on_terminal(fault, until=b"pve52", then=key)
    last = terminal[terminal.rindex(b"\x1b[?1049l") :]
    assert code == 1
    assert stdout == b"stopped\n"
    assert b"the dashboard failed: " in last
    assert b"Traceback" not in terminal
    assert modes_left(terminal) == {}
    pushed = re.findall(rb"\x1b\[>\d+u", terminal)
    assert len(pushed) == terminal.count(b"\x1b[<u"), "the keyboard speaks as before"
