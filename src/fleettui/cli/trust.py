"""What the verbs that decide about machines share: the desk, exit codes, results on stdout."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import (
    EXIT_NEGATIVE,
    EXIT_NO_TELEMETRY,
    EXIT_OK,
    EXIT_UNKNOWN_NAME,
    EXIT_USAGE,
    CommandError,
)
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.config.machine_folder import MachineFiles, load_machines
from fleettui.fleet.trust_book import TrustBook
from fleettui.fleet.trust_desk import TrustDesk
from fleettui.fleet.trust_words import TrustError, TrustResult
from fleettui.net.connector import Connector
from fleettui.view.text import clean

Result = TypeVar("Result")
_EXIT_CODES = {"unknown_name": EXIT_UNKNOWN_NAME, "no_contact": EXIT_NO_TELEMETRY, "state": EXIT_USAGE}


class MustAsk(TrustError):
    """There is nobody to ask: a terminal or an option is needed."""


def make_desk(folders: Folders) -> TrustDesk:
    """Decides for this folder of machines; no running fleettui is needed, one that runs follows."""
    book = TrustBook(folders.state_dir, folders.machines_dir)
    return TrustDesk(book, Connector(), _once(lambda: load_machines(folders.machines_dir)), time.time)


def run(desk: TrustDesk, work: Coroutine[Any, Any, Result]) -> Result:
    """Run a decision to its end; connections to jump hosts are closed with it."""

    async def work_and_close() -> Result:
        try:
            return await work
        finally:
            desk.connector.close()

    return asyncio.run(work_and_close())


def changing_folders(arguments: Namespace) -> Folders:
    """The folders, for a command that changes something. Raises CommandError with --readonly."""
    folders = resolve_folders(arguments)
    if folders.is_readonly:
        raise CommandError(f"--readonly (or `readonly:` of the settings) refuses machines {arguments.verb}")
    return folders


def finish(arguments: Namespace, results: Sequence[TrustResult], failures: Sequence[TrustError]) -> int:
    """Print what was decided and what was not; returns the exit code."""
    exit_code = _exit_code(failures)
    if arguments.json:
        output.write_document(_document(results, failures, exit_code))
    else:
        output.write_lines(clean(result.text) for result in results)
    for failure in failures:
        diagnostics.say_error(f"machines {arguments.verb}", clean(failure.text))
    return exit_code


def _exit_code(failures: Sequence[TrustError]) -> int:
    """Of one kind of failure its own code, of several 1."""
    codes = {
        EXIT_USAGE if isinstance(failure, MustAsk) else _EXIT_CODES.get(failure.kind, EXIT_NEGATIVE)
        for failure in failures
    }
    return EXIT_OK if not codes else codes.pop() if len(codes) == 1 else EXIT_NEGATIVE


def _document(
    results: Iterable[TrustResult], failures: Iterable[TrustError], exit_code: int
) -> dict[str, Any]:
    return {
        "schema": 1,
        "machines": [result.document() for result in results],
        "errors": [_error(failure) for failure in failures],
        "exit_code": exit_code,
    }


def _error(failure: TrustError) -> dict[str, Any]:
    offer = failure.offer
    shown = (
        None
        if offer is None
        else {"key_type": offer.key_type, "fingerprint": offer.fingerprint, "code": offer.code}
    )
    return {
        "file": None,
        "line": None,
        "key": None,
        "message": failure.text,
        "name": failure.name or None,
        "reason": failure.kind,
        "offered": shown,
        "expected": list(failure.expected),
    }


def _once(load: Callable[[], MachineFiles]) -> Callable[[], MachineFiles]:
    """The files as they were at first: a command sees one state of the folder."""
    kept: list[MachineFiles] = []

    def files() -> MachineFiles:
        if not kept:
            kept.append(load())
        return kept[0]

    return files
