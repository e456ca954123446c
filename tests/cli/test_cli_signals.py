"""A kill or a closed terminal ends the commands that stay as Ctrl+C does."""

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
from pathlib import Path

import pytest
from cli_runner import SRC, write_machine

SIGNALS = [signal.SIGTERM, signal.SIGHUP]


def start(machines: Path, state: Path, *arguments: str, terminal: int | None = None) -> subprocess.Popen[str]:
    write_machine(machines, "ada", ssh="local")
    return subprocess.Popen(
        [sys.executable, "-m", "fleettui", *arguments, f"--machines={machines}", f"--state-dir={state}"],
        env={**os.environ, "PYTHONPATH": SRC, "TERM": "xterm-256color"},
        stdin=terminal or subprocess.DEVNULL, stdout=terminal or subprocess.PIPE,
        stderr=terminal or subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.parametrize("number", SIGNALS)
def test_watch_closes_its_state_file_and_says_nothing(
    machines_dir: Path, tmp_path: Path, number: signal.Signals
) -> None:
    state = tmp_path / "state"
    process = start(machines_dir, state, "status", "--watch", "--json", "--interval", "0.5")
    assert process.stdout is not None
    while not (state / "state.db-wal").exists():
        assert process.stdout.readline().startswith("{")
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (128 + number, "")
    assert [path.name for path in state.iterdir()] == ["state.db"]


def test_watch_under_nohup_outlives_the_terminal(machines_dir: Path, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = start(machines_dir, tmp_path / "state", "status", "--watch", "--json", "--interval", "0.5")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    assert all(process.stdout.readline().startswith("{") for _ in range(3))
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


def read_until(master: int, what: bytes | None, process: subprocess.Popen[str]) -> bytes:
    """What the dashboard writes until the text comes, or to its end."""
    written, deadline = bytearray(), time.monotonic() + 60
    while time.monotonic() < deadline and (what is None or what not in written):
        if select.select([master], [], [], 0.1)[0]:
            written += os.read(master, 1 << 16)
        elif process.poll() is not None:
            break
    return bytes(written)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_killed_dashboard_gives_the_terminal_back(
    machines_dir: Path, tmp_path: Path, number: signal.Signals
) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(slave)
    process = start(machines_dir, tmp_path / "state", terminal=slave)
    read_until(master, b"ada", process)
    process.send_signal(number)
    terminal = read_until(master, None, process)
    assert process.wait(timeout=30) == 128 + number
    assert termios.tcgetattr(slave) == before
    assert b"\x1b[?1049l" in terminal  # the alternate screen
    assert b"\x1b[?1000l" in terminal  # mouse reports
    assert b"\x1b[?25h" in terminal  # the cursor
    assert b"Traceback" not in terminal
    os.close(slave)
    os.close(master)


def test_a_dashboard_whose_terminal_is_gone_ends(machines_dir: Path, tmp_path: Path) -> None:
    master, slave = pty.openpty()
    process = start(machines_dir, tmp_path / "state", terminal=slave)
    os.close(slave)
    read_until(master, b"ada", process)
    os.close(master)
    process.send_signal(signal.SIGHUP)  # what the kernel sends to the foreground of a closed terminal
    assert process.wait(timeout=30) == 128 + signal.SIGHUP


def test_one_ctrl_c_ends_a_question(machines_dir: Path, tmp_path: Path) -> None:
    """Also one that is asked while an event loop runs, whose own handler waits for the loop's next turn."""
    write_machine(machines_dir, "bora", ssh=f"{{host_key: 'SHA256:{'a' * 43}'}}")
    master, slave = pty.openpty()
    process = start(machines_dir, tmp_path / "state", "machines", "reject", "bora", terminal=slave)
    os.close(slave)
    try:
        read_until(master, b"[y/N]", process)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.parametrize("stream", ["stdin", "stderr"])
def test_a_dashboard_that_nobody_sees_or_types_into_is_refused(
    machines_dir: Path, tmp_path: Path, stream: str
) -> None:
    write_machine(machines_dir, "ada", ssh="local")
    master, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "fleettui", f"--machines={machines_dir}", f"--state-dir={tmp_path}"],
            env={**os.environ, "PYTHONPATH": SRC, "TERM": "xterm-256color"},
            stdin=subprocess.DEVNULL if stream == "stdin" else terminal,
            stdout=terminal,
            stderr=subprocess.PIPE if stream == "stderr" else terminal,
            text=True,
        )  # fmt: skip
        _, errors = process.communicate(timeout=30)
        said = errors if stream == "stderr" else os.read(master, 4096).decode()
    finally:
        os.close(master)
        os.close(terminal)
    assert process.returncode == 2
    assert f"{stream}, " in said
    assert "is no terminal" in said
    assert "fleettui status" in said
    assert "\x1b[?1049h" not in said
