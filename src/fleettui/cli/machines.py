"""`fleettui machines list|check`."""

from __future__ import annotations

from argparse import Namespace

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import EXIT_OK, EXIT_USAGE
from fleettui.cli.folders import resolve_folders
from fleettui.config.machine_folder import load_machines
from fleettui.view.document import machines_document
from fleettui.view.problems import check_lines, machine_lines, problem_lines


def machines_command(arguments: Namespace) -> int:
    """List the declared machines, or check their files."""
    folders = resolve_folders(arguments)
    files = load_machines(folders.machines_dir)
    if arguments.verb == "check":
        if arguments.json:
            output.write_document(machines_document(files.machines, files.problems))
        else:
            output.write_lines(check_lines(files.machines, files.problems, folders.machines_dir))
        return EXIT_USAGE if files.problems else EXIT_OK
    is_unreadable = any(problem.file == folders.machines_dir for problem in files.problems)
    if arguments.json:
        output.write_document(machines_document(files.machines, files.problems))
    else:
        diagnostics.say_all(problem_lines(files.problems))
        if files.machines or not is_unreadable:
            output.write_lines(machine_lines(files.machines))
    return EXIT_USAGE if is_unreadable else EXIT_OK
