"""`fleettui machines doctor`: checks each machine step by step, all of them side by side."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from fleettui.cli import diagnostics, output
from fleettui.cli.colors import paint
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_OK, EXIT_USAGE, CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.cli.live import LiveBlock
from fleettui.cli.names import folder_error, unknown_name
from fleettui.cli.polling import NEXT_STEPS
from fleettui.config.machine_folder import MachineFiles, load_machines
from fleettui.fleet.doctor.run import broken_checkups, doctor_settings, run_doctor
from fleettui.fleet.trust_book import TrustBook
from fleettui.fleet.trust_gate import TrustGate
from fleettui.model.doctor import Checkup
from fleettui.model.machine import Machine
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings
from fleettui.view.cells import Cells
from fleettui.view.doctor_document import doctor_document
from fleettui.view.doctor_progress import progress_lines
from fleettui.view.doctor_report import report_lines
from fleettui.view.glyphs import Glyphs, glyphs_of
from fleettui.view.problems import problem_line

DRAW_PERIOD_S = 0.2
_SAMPLE = "✓✗·→⠋"
"""What the report needs beyond ASCII."""


def doctor_command(arguments: Namespace) -> int:
    """Check the machines, print the report; the exit code is the verdict."""
    folders = resolve_folders(arguments)
    names = tuple(arguments.names)
    files = load_machines(folders.machines_dir)
    broken = broken_checkups(files.problems)
    _check_folder(files, folders)
    _check_names(files, broken, names, folders)
    machines = [machine for machine in files.machines if not names or machine.name in names]
    broken = tuple(item for item in broken if not names or _is_named(item, names))
    connector = Connector(doctor_settings(ConnectorSettings.from_environment()))
    gate = TrustGate(TrustBook(folders.state_dir, folders.machines_dir), connector, time.time)
    screen = _Screen(folders, is_drawn=not arguments.json and output.is_terminal())
    checkups = asyncio.run(_examine(machines, broken, (connector, gate), screen, arguments.deadline))
    notices = [problem_line(problem) for problem in connector.problems()]
    notices += [gate.book.error] if gate.book.error is not None else []
    if arguments.json:
        output.write_document(doctor_document(checkups, notices))
    else:
        screen.print_report(checkups, names, is_verbose=arguments.verbose)
        diagnostics.say_all(notices)
    if broken:
        return EXIT_USAGE
    return EXIT_NEGATIVE if any(checkup.verdict == "fail" for checkup in checkups) else EXIT_OK


async def _examine(
    machines: Sequence[Machine],
    broken: Sequence[Checkup],
    wire: tuple[Connector, TrustGate],
    screen: _Screen,
    deadline_s: float | None,
) -> tuple[Checkup, ...]:
    """All checkups: broken files first, then machines in order; drawn while they grow."""
    connector, gate = wire
    await gate.load()
    for checkup in broken:
        screen.take(checkup)
    drawing = asyncio.create_task(screen.keep_drawing())
    try:
        checkups = await run_doctor(machines, connector, gate.link_for, screen.take, deadline_s)
    finally:
        drawing.cancel()
        screen.erase()
    return (*broken, *checkups)


class _Screen:
    """Progress while the checks run, then the report, in the colours and signs of the settings."""

    def __init__(self, folders: Folders, *, is_drawn: bool) -> None:
        self._is_drawn = is_drawn
        self._has_color = is_drawn and folders.appearance.has_color
        has_signs = output.can_encode(_SAMPLE)
        self._glyphs: Glyphs = glyphs_of(folders.appearance.glyphs or "" if has_signs else "ascii")
        self._checkups: dict[str, Checkup] = {}
        self._block = LiveBlock()
        self._step = 0

    def take(self, checkup: Checkup) -> None:
        """A machine's checkup grew."""
        self._checkups[checkup.name] = checkup

    async def keep_drawing(self) -> None:
        """Draw again and again until cancelled."""
        while self._is_drawn:
            columns, lines = output.terminal_size()
            cells = progress_lines(tuple(self._checkups.values()), columns, lines, self._step, self._glyphs)
            self._block.draw(self._painted(cells))
            self._step += 1
            await asyncio.sleep(DRAW_PERIOD_S)

    def erase(self) -> None:
        """Make room for the report."""
        if self._is_drawn:
            self._block.erase()

    def print_report(self, checkups: Sequence[Checkup], names: Sequence[str], *, is_verbose: bool) -> None:
        """The finished report."""
        width = output.terminal_width() if self._is_drawn else None
        lines = report_lines(checkups, named=names, is_verbose=is_verbose, width=width, glyphs=self._glyphs)
        output.write_lines(self._painted(lines))

    def _painted(self, lines: Sequence[Cells]) -> list[str]:
        return [paint(cells, has_color=self._has_color) for cells in lines]


def _check_folder(files: MachineFiles, folders: Folders) -> None:
    """Raises CommandError where there is no file to look at."""
    unreadable = folder_error(files.problems, folders.machines_dir)
    if unreadable is not None:
        raise unreadable
    if not files.machines and not files.problems:
        raise CommandError(f"no machine file in {folders.machines_dir}", *NEXT_STEPS)


def _check_names(
    files: MachineFiles, broken: Sequence[Checkup], names: Sequence[str], folders: Folders
) -> None:
    """Raises CommandError with exit code 3 for the first unknown name."""
    for name in names:
        if files.find(name) is None and not any(_is_named(checkup, (name,)) for checkup in broken):
            also = [checkup.name for checkup in broken]
            raise unknown_name(name, files, folders.machines_dir, also)


def _is_named(broken: Checkup, names: Sequence[str]) -> bool:
    """A broken file goes by its own name, with or without `.yaml`."""
    return broken.name in names or Path(broken.name).stem in names
