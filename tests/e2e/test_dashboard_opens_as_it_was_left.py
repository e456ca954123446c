"""Filter, sort and what was typed outlast the dashboard, on a real terminal and a real state file."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_dashboard_on_the_demo import Terminal

NAMES = ("ada", "bora", "cleo")
MACHINE = """\
name: {name}
role: cpu-host
hardware: {{}}
network: {{hostname: 127.0.0.1, port: 9}}
models: []
ssh: {{port: 9}}
tags: [{tag}]
"""
"""Nobody answers there."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "machines"
    folder.mkdir()
    for name in NAMES:
        tag = "lab" if name != "cleo" else "desk"
        (folder / f"{name}.yaml").write_text(MACHINE.format(name=name, tag=tag), encoding="utf-8")
    return folder


@contextmanager
def dashboard(folder: Path, *more: str) -> Iterator[Terminal]:
    state = folder.parent / "state"
    terminal = Terminal("--machines", str(folder), "--state-dir", str(state), *more)
    try:
        terminal.wait_for("0/3 up")
        yield terminal
    finally:
        terminal.close()


def remembered(folder: Path) -> str:
    """All that is stored of screens."""
    connection = sqlite3.connect(folder.parent / "state" / "state.db")
    try:
        rows = connection.execute("SELECT contents FROM ui_state ORDER BY part").fetchall()
    finally:
        connection.close()
    return " ".join(contents for (contents,) in rows)


def wait_until(is_so: Callable[[], bool], terminal: Terminal) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline, terminal.screen.text
        terminal._read(0.1)


def test_the_next_run_shows_the_same(folder: Path) -> None:
    with dashboard(folder) as terminal:
        terminal.send("/tag:lab\r")
        terminal.wait_for("2 of 3 machines")
        terminal.send("O")
        terminal.wait_for("machine ▾")
        terminal.send("q")
        assert terminal.wait_for_end() == 0
    with dashboard(folder, "--readonly") as terminal:
        terminal.wait_for("filter tag:lab · 2 of 3 machines")
        terminal.wait_for("machine ▾")
        terminal.send("\x1b")
        terminal.wait_for("cleo")
        terminal.send("q")
        assert terminal.wait_for_end() == 0
    with dashboard(folder) as terminal:
        terminal.wait_for("cleo")
        terminal.send("/\x1b[A")
        terminal.wait_for("/ tag:lab")
        terminal.send("\x1b")
        terminal.wait_until_gone("/ tag:lab")


def test_a_terminal_that_dies_takes_little_with_it(folder: Path) -> None:
    with dashboard(folder) as terminal:
        terminal.send("/tag:lab\r")
        terminal.wait_for("2 of 3 machines")
        wait_until(lambda: "tag:lab" in remembered(folder), terminal)
        terminal.process.send_signal(signal.SIGKILL)
    with dashboard(folder) as terminal:
        terminal.wait_for("filter tag:lab")
        terminal.send("O")
        terminal.wait_for("machine ▾")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.wait_for_end() == 128 + signal.SIGTERM
    assert '"descending":true' in remembered(folder), "a kill that asks first is an end in order"


def test_a_state_file_that_cannot_be_used_is_a_notice(folder: Path) -> None:
    state = folder.parent / "state"
    state.mkdir(mode=0o700)
    (state / "state.db").write_bytes(b"this is no database " * 200)
    with dashboard(folder) as terminal:
        terminal.wait_for("state.db")
        terminal.send("/tag:lab\r")
        terminal.wait_for("2 of 3 machines")
        terminal.send("q")
        assert terminal.wait_for_end() == 0
        assert "Traceback" not in terminal.seen
