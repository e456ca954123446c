"""What the commands about drains share: the desk over a running service, words on stderr, exit codes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from fleettui.cli import diagnostics, output
from fleettui.cli.colors import paint
from fleettui.cli.errors import (
    EXIT_NEGATIVE,
    EXIT_NO_TELEMETRY,
    EXIT_OK,
    EXIT_UNKNOWN_NAME,
    EXIT_USAGE,
    CommandError,
)
from fleettui.cli.folders import Folders
from fleettui.cli.names import unknown_name
from fleettui.cli.serving import make_service
from fleettui.config.machine_folder import load_machines
from fleettui.fleet.drain.desk import DrainDesk, DrainError
from fleettui.fleet.service import FleetService
from fleettui.fleet.until import parse_until
from fleettui.model.clock import hh_mm_ss
from fleettui.model.drain import CopyProgress, DrainStatus
from fleettui.view.cells import Cells, fit_cells, width_of
from fleettui.view.drain_document import off_document, one_status_document, status_document
from fleettui.view.drain_status import ended_text, progress_text
from fleettui.view.glyphs import UNICODE, Glyphs, glyphs_of
from fleettui.view.text import clean
from fleettui.view.units import count

ANSWERS_S = 10.0
"""How long machines are waited for before a drain is planned by what is known."""
LOOK_S = 1.0
NOTE_EACH_S = 10.0
"""How often a copy is told of again whose state stays."""
_EXIT_CODES = {
    "unknown_name": EXIT_UNKNOWN_NAME,
    "no_data": EXIT_NO_TELEMETRY,
    "no_drain": EXIT_NEGATIVE,
    "changed_meanwhile": EXIT_NEGATIVE,
}
_SIGNS = f"{UNICODE.dash}{UNICODE.ellipsis}"


@asynccontextmanager
async def opened_desk(
    folders: Folders, writer: str, *, is_polling: bool = True
) -> AsyncIterator[tuple[FleetService, DrainDesk]]:
    """The fleet and the desk; both are closed with it, drains stay as they are. `is_polling`: machines are
    asked, which whoever only writes a decision down does not need."""
    service = make_service(folders, writer)
    desk = DrainDesk(service, folders.state_dir, folders.machines_dir)
    try:
        if is_polling:
            await service.start()
        yield service, desk
    finally:
        await desk.close()
        await service.stop()


async def wait_for_answers(service: FleetService) -> None:
    """Until every machine answered or failed; those that do neither in time are told."""

    def is_settled() -> bool:
        return bool(service.pollers) and all(poller.is_settled for poller in service.pollers)

    has_news = asyncio.Event()
    leave = service.subscribe(lambda _: has_news.set())
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWERS_S):
                while not is_settled():
                    has_news.clear()
                    await has_news.wait()
    finally:
        leave()
    late = [clean(poller.record.machine.name) for poller in service.pollers if not poller.is_settled]
    if late:
        told = count(len(late), "machine has", "machines have")
        diagnostics.say(f"{told} not answered within {ANSWERS_S:g} s: {', '.join(late)}")


def read_until(text: str | None, now: float) -> float | None:
    """`--until` in epoch seconds. Raises CommandError."""
    if text is None:
        return None
    try:
        return parse_until(text, now)
    except ValueError as error:
        raise CommandError(f"--until: {error}") from None


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


def command_error(error: DrainError, folders: Folders, note: str) -> CommandError:
    """What the desk refused, with its exit code."""
    if error.kind == "unknown_name":
        return unknown_name(error.name, load_machines(folders.machines_dir), folders.machines_dir, note=note)
    return CommandError(error.text, exit_code=_EXIT_CODES.get(error.kind, EXIT_USAGE))


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

    async def follow(self, desk: DrainDesk, names: Sequence[str]) -> None:
        """Tell changes until it is cancelled."""
        while True:
            await self.tell_changes(desk, names)
            await self.wait()

    async def tell_changes(self, desk: DrainDesk, names: Sequence[str]) -> None:
        """What is new since the last call. A desk that cannot be read now is asked again later."""
        for name in names:
            with suppress(DrainError):
                status = await desk.status(name)
                for copy in status.copies if status is not None else ():
                    self.tell(name, copy)

    def tell(self, name: str, copy: CopyProgress) -> None:
        """A line where its state is another one; where only its text is, not too often."""
        now, step = time.time(), (copy.state, copy.target, copy.since)
        before = self._told.get((name, *copy.copy.key))
        if before is not None and before[0] == step:
            if before[1] == copy.text or now - before[2] < NOTE_EACH_S:
                return
        elif before is None and copy.state == "pending" and not copy.text:
            return
        self._told[(name, *copy.copy.key)] = (step, copy.text, now)
        moment = hh_mm_ss(now + time.localtime(now).tm_gmtoff)
        diagnostics.say(f"{moment} {progress_text(name, copy)}")


def finish(names: Sequence[str], ended: Sequence[DrainStatus | None], *, is_json: bool) -> int:
    """Print how each drain stands; 0 when every machine is drained."""
    is_good = all(status is not None and status.drain.state == "drained" for status in ended)
    code = EXIT_OK if is_good else EXIT_NEGATIVE
    if is_json:
        document = status_document((), time.time(), exit_code=code)
        document["machines"] = [
            off_document(name) if status is None else one_status_document(status)
            for name, status in zip(names, ended, strict=True)
        ]
        output.write_document(document)
        return code
    for name, status in zip(names, ended, strict=True):
        if status is None:
            output.write_lines([f"{clean(name)}: the drain was ended meanwhile (undrain)"])
        else:
            output.write_lines([ended_text(status.drain)])
    return code
