"""What is said while drains go on, and what is checked before anything is asked of a machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress

from fleettui.cli import diagnostics, output
from fleettui.cli.colors import paint
from fleettui.cli.errors import CommandError
from fleettui.cli.folders import Folders
from fleettui.cli.names import unknown_name
from fleettui.config.machine_folder import load_machines
from fleettui.model.clock import hh_mm_ss
from fleettui.model.drain import CopyProgress
from fleettui.view.cells import Cells, fit_cells, width_of
from fleettui.view.drain_status import progress_text
from fleettui.view.glyphs import UNICODE, Glyphs, glyphs_of

LOOK_S = 1.0
NOTE_EACH_S = 10.0
"""How often a copy is told of again whose state stays."""
_SIGNS = f"{UNICODE.dash}{UNICODE.ellipsis}"


def refuse_readonly(folders: Folders, what: str) -> None:
    """Raises CommandError with --readonly."""
    if folders.is_readonly:
        raise CommandError(f"--readonly (or `readonly:` of the settings) refuses {what}")


def check_machines(names: Iterable[str], folders: Folders, also: Iterable[str] = ()) -> None:
    """Raises CommandError for the first name that neither a file declares nor `also` has."""
    files, known = load_machines(folders.machines_dir), set(also)
    for name in names:
        if files.find(name) is None and name not in known:
            raise unknown_name(name, files, folders.machines_dir, known, "nothing was done")


class DrainTalk:
    """What is said while drains go on: a line on stderr for each copy whose state changes."""

    def __init__(self, folders: Folders) -> None:
        self._has_color = folders.appearance.has_color
        told = folders.appearance.glyphs
        self.glyphs: Glyphs = glyphs_of(told or ("" if output.can_encode(_SIGNS) else "ascii"))
        self._has_news = asyncio.Event()
        self._told: dict[tuple[str, str, str, int, str], tuple[object, str, float]] = {}

    def print_lines(self, lines: Iterable[Cells]) -> None:
        """On stdout, with colours on a terminal."""
        has_color = output.is_terminal() and self._has_color
        output.write_lines(paint(line, has_color=has_color) for line in lines)

    def painted(self, lines: Iterable[Cells], width: int) -> list[str]:
        """For a block on the terminal: none wider than `width`."""
        return [
            paint(line if width_of(line) <= width else fit_cells(line, width), has_color=self._has_color)
            for line in lines
        ]

    def say_lines(self, lines: Iterable[Cells]) -> None:
        """On stderr, with colours on a terminal."""
        has_color = diagnostics.is_terminal() and self._has_color
        diagnostics.say(*(paint(line, has_color=has_color) for line in lines))

    def note(self, _: str = "") -> None:
        """Something went on."""
        self._has_news.set()

    async def wait(self) -> None:
        """Until something went on, or it is time to look all the same."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await self._has_news.wait()
        self._has_news.clear()

    def tell(self, name: str, copy: CopyProgress) -> None:
        """A line where its state is another one; where only its text is, not too often."""
        now, step = time.time(), (copy.state, copy.target)
        before = self._told.get((name, *copy.copy.key))
        if before is not None and before[0] == step:
            if before[1] == copy.text or now - before[2] < NOTE_EACH_S:
                return
        elif before is None and copy.state == "pending" and not copy.text:
            return
        self._told[(name, *copy.copy.key)] = (step, copy.text, now)
        moment = hh_mm_ss(now + time.localtime(now).tm_gmtoff)
        diagnostics.say(f"{moment} {progress_text(name, copy)}")
