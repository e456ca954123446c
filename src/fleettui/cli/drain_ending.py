"""`fleettui drain cancel` and `fleettui undrain`."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Callable, Coroutine
from typing import Any

from fleettui.cli import diagnostics, output
from fleettui.cli.drain_desk import command_error, opened_desk, wait_for_answers
from fleettui.cli.drain_status import load_statuses
from fleettui.cli.drain_talk import DrainTalk, check_machines, refuse_readonly
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_OK
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.cli.serving import run_serving
from fleettui.fleet.drain.desk import DrainDesk, DrainError
from fleettui.model.drain import CopyProgress, DrainStatus
from fleettui.model.record import replace
from fleettui.view.drain_document import off_document, one_status_document, progress_document, status_document
from fleettui.view.drain_status import moved_text
from fleettui.view.json_values import Document
from fleettui.view.text import clean


def cancel_command(arguments: Namespace) -> int:
    """End the work; the flag stays unless --eligible."""
    folders, names = _changing(arguments, "drain cancel")

    async def work() -> int:
        async with opened_desk(folders, "drain cancel", is_polling=False) as (_, desk):
            return await _cancel(desk, names, arguments)

    return _run(work, folders)


def undrain_command(arguments: Namespace) -> int:
    """Take the flag away, and with --return bring back what was moved."""
    folders, names = _changing(arguments, "undrain")

    async def work() -> int:
        async with opened_desk(folders, "undrain", is_polling=arguments.returns) as (service, desk):
            if arguments.returns:
                await wait_for_answers(service)
            return await _undrain(desk, names, arguments, DrainTalk(folders))

    return _run(work, folders)


def _changing(arguments: Namespace, what: str) -> tuple[Folders, tuple[str, ...]]:
    folders = resolve_folders(arguments)
    refuse_readonly(folders, what)
    names = tuple(dict.fromkeys(arguments.names))
    flagged = [name for name, status in load_statuses(folders) if status is not None]
    check_machines(names, folders, flagged)
    return folders, names


def _run(work: Callable[[], Coroutine[Any, Any, int]], folders: Folders) -> int:
    try:
        return run_serving(work())
    except DrainError as error:
        raise command_error(error, folders, "nothing was done") from None


async def _cancel(desk: DrainDesk, names: tuple[str, ...], arguments: Namespace) -> int:
    code, machines, lines = EXIT_OK, [], []
    for name in names:
        before = await desk.status(name)
        if before is None:
            code = EXIT_NEGATIVE
            machines.append(off_document(name))
            lines.append(f"{clean(name)}: has no drain to cancel")
            continue
        await desk.cancel(name, aborts_load=arguments.now, is_eligible=arguments.eligible)
        status = await desk.status(name)
        machines.append(off_document(name) if status is None else one_status_document(status))
        lines.append(_cancelled_text(before if status is None else status, is_off=status is None))
    _print(machines, lines, arguments, code)
    return code


def _cancelled_text(status: DrainStatus, *, is_off: bool) -> str:
    name, state = clean(status.drain.machine), status.drain.state
    what = f"{state} already, nothing to cancel" if state in ("drained", "failed") else "cancelled"
    after = "it takes requests again" if is_off else f"it takes no requests until: fleettui undrain {name}"
    return f"{name}: {what}; {moved_text(status.copies)}; {after}"


async def _undrain(desk: DrainDesk, names: tuple[str, ...], arguments: Namespace, talk: DrainTalk) -> int:
    code, machines, lines = EXIT_OK, [], []
    for name in names:
        before = await desk.status(name)
        if before is None:
            machines.append(off_document(name))
            lines.append(f"{clean(name)}: not draining; unchanged")
            continue
        await desk.undrain(name, returns=arguments.returns)
        text = f"{clean(name)}: takes requests again; it was {before.drain.state}"
        text += f': "{clean(before.drain.reason)}"' if before.drain.reason else ""
        document: Document = off_document(name)
        if arguments.returns:
            back = await _bring_back(desk, name, talk)
            document["returned"] = [progress_document(copy) for copy in back]
            if any(copy.state in ("blocked", "failed") for copy in back):
                code = EXIT_NEGATIVE
            text += f"; {_returned_text(back)}"
        machines.append(document)
        lines.append(text)
    _print(machines, lines, arguments, code)
    return code


async def _bring_back(desk: DrainDesk, name: str, talk: DrainTalk) -> tuple[CopyProgress, ...]:
    """Until each copy is back, or cannot be."""
    leave = desk.subscribe(talk.note)
    ended = asyncio.ensure_future(desk.wait(name))
    try:
        while not ended.done():
            _tell_returning(desk, name, talk)
            await talk.wait()
        await ended
    except asyncio.CancelledError:
        diagnostics.say(
            f"left as it stands: {clean(name)} takes requests; what is not back stays where it went"
        )
        raise
    finally:
        ended.cancel()
        leave()
    _tell_returning(desk, name, talk)
    return desk.returning(name)


def _tell_returning(desk: DrainDesk, name: str, talk: DrainTalk) -> None:
    """The copies' targets are where they went; here they are loaded where they were."""
    for copy in desk.returning(name):
        talk.tell(name, replace(copy, target=name))


def _returned_text(copies: tuple[CopyProgress, ...]) -> str:
    if not copies:
        return "nothing had been moved away"
    back = [clean(copy.copy.name) for copy in copies if copy.state not in ("blocked", "failed", "skipped")]
    stuck = [
        f"{clean(copy.copy.name)} ({clean(copy.text)})"
        for copy in copies
        if clean(copy.copy.name) not in back
    ]
    parts = [f"back: {', '.join(back)}" if back else "", f"not back: {', '.join(stuck)}" if stuck else ""]
    return "; ".join(part for part in parts if part)


def _print(machines: list[Document], lines: list[str], arguments: Namespace, code: int) -> None:
    if arguments.json:
        document = status_document((), time.time(), exit_code=code)
        document["machines"] = machines
        output.write_document(document)
    else:
        output.write_lines(lines)
