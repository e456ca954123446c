"""`fleettui maintenance on|off`."""

from __future__ import annotations

import time
from argparse import Namespace

from fleettui.cli import output
from fleettui.cli.errors import EXIT_OK, CommandError
from fleettui.cli.folders import resolve_folders
from fleettui.cli.names import unknown_name
from fleettui.config.machine_folder import MachineFiles, load_machines
from fleettui.fleet.flags import FlagBook
from fleettui.fleet.maintenance import FlagError, set_maintenance
from fleettui.fleet.until import parse_until
from fleettui.view.maintenance_text import change_document, change_lines


def maintenance_command(arguments: Namespace) -> int:
    """Set or clear the flag of all named machines, or of none; no machine is contacted."""
    folders = resolve_folders(arguments)
    if folders.is_readonly:
        raise CommandError(
            f"--readonly (or `readonly:` of the settings) refuses maintenance {arguments.verb}"
        )
    now = time.time()
    until = _until(getattr(arguments, "until", None), now)
    files = load_machines(folders.machines_dir)
    book = FlagBook(folders.state_dir, folders.machines_dir)
    try:
        change = set_maintenance(
            book,
            [machine.name for machine in files.machines],
            arguments.names,
            is_on=arguments.verb == "on",
            now=now,
            reason=getattr(arguments, "reason", None),
            until=until,
        )
    except FlagError as error:
        raise _command_error(error, files, book) from None
    if arguments.json:
        output.write_document(change_document(change, now))
    else:
        output.write_lines(change_lines(change, now, time.localtime(now).tm_gmtoff))
    return EXIT_OK


def _until(text: str | None, now: float) -> float | None:
    if text is None:
        return None
    try:
        return parse_until(text, now)
    except ValueError as error:
        raise CommandError(f"--until: {error}") from None


def _command_error(error: FlagError, files: MachineFiles, book: FlagBook) -> CommandError:
    if error.kind != "unknown_name":
        return CommandError(f"--reason: {error.text}" if error.kind == "reason" else error.text)
    return unknown_name(error.name, files, book.machines_dir, book.maintenance, "no flag was changed")
