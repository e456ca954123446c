"""`s`: who gets a shell, who does not, and that nothing is weaker than the login of the dashboard itself."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from tui_fleet import Clock, FakeService

from fleettui.fleet.shell import ShellCommand
from fleettui.fleet.trust_words import TrustError
from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.widgets.cell_block import CellBlock


class FakeShells:
    """Hands out a command that leaves a trace."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        self.files = folder / "files"
        self.trace = folder / "trace"
        self.argv = ("sh", "-c", 'echo "$0" >>"$1"', "ran; $(touch no)", str(self.trace))
        self.error: TrustError | None = None

    async def prepare(self, name: str) -> ShellCommand:
        self.asked.append(name)
        if self.error is not None:
            raise self.error
        self.files.mkdir()
        return ShellCommand(self.argv, f"{name}:22", str(self.files))


class Rig:
    def __init__(self, app: FleetApp, shells: FakeShells, pilot: Pilot[None]) -> None:
        self.app, self.shells, self.pilot = app, shells, pilot

    @property
    def told(self) -> list[str]:
        return [item.message for item in self.app._notifications]

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()


@asynccontextmanager
async def dashboard(
    folder: Path, look: Look | None = None, *, has_terminal: bool = True
) -> AsyncIterator[Rig]:
    service, shells = FakeService(), FakeShells(folder)
    service.shells = shells  # type: ignore[assignment]
    app = FleetApp(service, look, clock=Clock())

    @contextmanager
    def suspend():  # type: ignore[no-untyped-def]
        yield  # a headless driver has no terminal to hand over

    if has_terminal:
        app.suspend = suspend  # type: ignore[method-assign]
    async with app.run_test(size=(160, 40)) as pilot:
        rig = Rig(app, shells, pilot)
        await rig.press()
        yield rig


@pytest.mark.parametrize("way", ["key", "command", "palette", "mouse", "machine"])
async def test_every_way_runs_the_command_and_takes_its_files_away(tmp_path: Path, way: str) -> None:
    async with dashboard(tmp_path) as rig:
        if way == "command":
            await rig.press("colon", *"ssh", "enter")
        elif way == "palette":
            await rig.press("ctrl+p", *"ssh")
            await rig.press("enter")
        elif way == "mouse":
            footer = rig.app.screen.query_one("#footer", CellBlock).text
            await rig.pilot.click("#footer", offset=(footer.index("s ssh"), 0))
            await rig.press()
        elif way == "machine":
            rig.app.open_machine("bora")
            await rig.press("s")
        else:
            await rig.press("s")
        assert rig.shells.asked == ["bora" if way == "machine" else "ada"]
        assert rig.shells.trace.read_text() == "ran; $(touch no)\n"
        assert not rig.shells.files.exists()
        assert rig.told == []


async def test_why_there_is_no_shell_is_told(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as rig:
        rig.shells.error = TrustError("not_shown", "ada", "ada: its host key is not approved")
        await rig.press("s")
        assert rig.told == ["ada: its host key is not approved"]
        rig.app.service.shells = None  # type: ignore[misc]
        await rig.press("s")
        assert "state folder" in rig.told[-1]


async def test_a_program_that_cannot_be_started_gives_the_screen_back(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as rig:
        rig.shells.argv = (str(tmp_path / "no such program"),)
        await rig.press("s")
        assert "no such program" in rig.told[-1]
        assert not rig.shells.files.exists()
        rig.shells.argv = ("true",)
        await rig.press("s")
        assert len(rig.shells.asked) == 2


async def test_where_the_terminal_cannot_be_handed_over_it_says_so(tmp_path: Path) -> None:
    async with dashboard(tmp_path, has_terminal=False) as rig:
        await rig.press("s")
        assert rig.told == ["This terminal cannot be handed to another program and taken back."]
        assert not rig.shells.trace.exists()
        assert not rig.shells.files.exists()


async def test_readonly_opens_no_shell(tmp_path: Path) -> None:
    async with dashboard(tmp_path, Look(is_readonly=True)) as rig:
        await rig.press("s")
        assert rig.shells.asked == []


KILLED = """
import os, signal, sys, tty
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.setpgid(0, 0)
os.tcsetpgrp(0, os.getpid())
tty.setraw(0)
os.kill(os.getpid(), signal.SIGKILL)
"""
GIVES_IT = """
import asyncio, os, sys, termios
from fleettui.tui.shell import run_on_terminal
os.close(os.open(os.ttyname(0), os.O_RDWR))  # a session's first terminal is the one that controls it
before = termios.tcgetattr(0)
code = asyncio.run(run_on_terminal((sys.executable, "-c", sys.argv[1])))
print(code, os.tcgetpgrp(0) == os.getpgrp(), termios.tcgetattr(0) == before)
"""


def test_a_shell_that_is_killed_leaves_the_terminal_as_it_was() -> None:
    ours, theirs = pty.openpty()
    try:
        ended = subprocess.run(
            [sys.executable, "-c", GIVES_IT, KILLED],
            stdin=theirs, capture_output=True, start_new_session=True, timeout=60, check=False, text=True,
        )  # fmt: skip
    finally:
        os.close(ours)
        os.close(theirs)
    assert ended.stdout.split() == ["-9", "True", "True"], ended.stderr
