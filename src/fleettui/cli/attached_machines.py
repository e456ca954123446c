"""`machines list` printed from what a running server knows."""

from __future__ import annotations

from argparse import Namespace

from fleettui.cli import diagnostics, output
from fleettui.cli.attached_status import files_of, read_fleet, tell_server
from fleettui.cli.errors import EXIT_OK, EXIT_USAGE
from fleettui.cli.machines import flag_words
from fleettui.model.server_place import ServerAccess
from fleettui.model.trust import ListedTrust
from fleettui.view.document import machines_document
from fleettui.view.problems import machine_lines, problem_lines


def list_there(arguments: Namespace, access: ServerAccess) -> int:
    """The machine files of the server, with what was decided there."""
    fleet = read_fleet(access)
    files = files_of(fleet)
    is_unreadable = any(problem.file == fleet.machines_dir for problem in files.problems)
    if arguments.json:
        output.write_document(machines_document(files.machines, files.problems))
        return EXIT_USAGE if is_unreadable else EXIT_OK
    tell_server(access)
    diagnostics.say_all(problem_lines(files.problems))
    if files.machines or not is_unreadable:
        listed = {item.name: ListedTrust(item.name, "", item.trust) for item in fleet.machines}
        maintenance = {item.name: item.maintenance for item in fleet.machines if item.maintenance is not None}
        drains = {item.name: item.drain for item in fleet.machines if item.drain is not None}
        output.write_lines(machine_lines(files.machines, listed, flag_words(maintenance, drains)))
    return EXIT_USAGE if is_unreadable else EXIT_OK
