"""What the commands about drains share: the desk over a running service, words on stderr, exit codes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from fleettui.cli import diagnostics, output
from fleettui.cli.drain_talk import DrainTalk
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
from fleettui.model.drain import DrainStatus
from fleettui.view.drain_document import off_document, one_status_document, status_document
from fleettui.view.drain_status import ended_text
from fleettui.view.text import clean
from fleettui.view.units import count

ANSWERS_S = 10.0
"""How long machines are waited for before a drain is planned by what is known."""
_EXIT_CODES = {
    "unknown_name": EXIT_UNKNOWN_NAME,
    "no_data": EXIT_NO_TELEMETRY,
    "no_drain": EXIT_NEGATIVE,
    "changed_meanwhile": EXIT_NEGATIVE,
}


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


def command_error(error: DrainError, folders: Folders, note: str) -> CommandError:
    """What the desk refused, with its exit code."""
    if error.kind == "unknown_name":
        return unknown_name(error.name, load_machines(folders.machines_dir), folders.machines_dir, note=note)
    return CommandError(error.text, exit_code=_EXIT_CODES.get(error.kind, EXIT_USAGE))


async def follow(desk: DrainDesk, names: Sequence[str], talk: DrainTalk) -> None:
    """Tell changes until it is cancelled."""
    while True:
        await tell_changes(desk, names, talk)
        await talk.wait()


async def tell_changes(desk: DrainDesk, names: Sequence[str], talk: DrainTalk) -> None:
    """What is new since the last call. A desk that cannot be read now is asked again later."""
    for name in names:
        with suppress(DrainError):
            status = await desk.status(name)
            for copy in status.copies if status is not None else ():
                talk.tell(name, copy)


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
