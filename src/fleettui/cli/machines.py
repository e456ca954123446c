"""`fleettui machines VERB`: list and check here, the other verbs in modules of their own."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import EXIT_OK, EXIT_USAGE
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.config.machine_folder import MachineFiles, load_machines
from fleettui.model.snapshot import DrainFlag, MaintenanceFlag
from fleettui.view.document import machines_document
from fleettui.view.problems import check_lines, machine_lines, problem_lines


def machines_command(arguments: Namespace) -> int:
    """Run the verb; each loads only what it needs."""
    if arguments.verb in {"approve", "reject"}:
        from fleettui.cli.approve import approve_command, reject_command

        return approve_command(arguments) if arguments.verb == "approve" else reject_command(arguments)
    if arguments.verb == "remove":
        from fleettui.cli.remove import remove_command

        return remove_command(arguments)
    if arguments.verb == "add":
        from fleettui.cli.add import add_command

        return add_command(arguments)
    folders = resolve_folders(arguments)
    if folders.server is not None:
        from fleettui.cli.attached_machines import list_there

        return list_there(arguments, folders.server)
    files = load_machines(folders.machines_dir)
    return (
        _check(arguments, folders, files) if arguments.verb == "check" else _list(arguments, folders, files)
    )


def _check(arguments: Namespace, folders: Folders, files: MachineFiles) -> int:
    """Machine files and the catalog."""
    from fleettui.config.catalog_folder import CatalogFiles, load_catalog_files

    told = CatalogFiles() if folders.catalog_dir is None else load_catalog_files(folders.catalog_dir)
    problems = (*files.problems, *told.problems)
    if arguments.json:
        output.write_document(machines_document(files.machines, problems))
    else:
        output.write_lines(check_lines(files.machines, problems, folders.machines_dir, told.catalog))
    return EXIT_USAGE if problems else EXIT_OK


def _list(arguments: Namespace, folders: Folders, files: MachineFiles) -> int:
    is_unreadable = any(problem.file == folders.machines_dir for problem in files.problems)
    if arguments.json and not arguments.pending:
        output.write_document(machines_document(files.machines, files.problems))
        return EXIT_USAGE if is_unreadable else EXIT_OK
    if not arguments.json:
        diagnostics.say_all(problem_lines(files.problems))
    if arguments.pending:
        _list_pending(arguments, folders, files)
    elif files.machines or not is_unreadable:
        from fleettui.cli.trust import make_desk
        from fleettui.fleet.trust_listing import list_trust

        desk = make_desk(folders)
        listed = list_trust(desk)
        if desk.book.error is not None:
            diagnostics.say_error("machines list", desk.book.error)
        output.write_lines(machine_lines(files.machines, listed, _flag_words(folders)))
    return EXIT_USAGE if is_unreadable else EXIT_OK


def _flag_words(folders: Folders) -> dict[str, str]:
    """Of each flagged machine; what cannot be read is told on stderr."""
    from fleettui.fleet.flags import FlagBook

    book = FlagBook(folders.state_dir, folders.machines_dir)
    book.refresh()
    if book.error is not None:
        diagnostics.say_error("machines list", book.error)
    return flag_words(book.maintenance, book.drains)


def flag_words(maintenance: Mapping[str, MaintenanceFlag], drains: Mapping[str, DrainFlag]) -> dict[str, str]:
    """`maintenance "fan swap" by mia since 12:03; drained …` by machine."""
    from fleettui.model.flag_words import drain_words, maintenance_words

    now = time.time()
    offset_s = time.localtime(now).tm_gmtoff
    words = {name: [maintenance_words(flag, now, offset_s)] for name, flag in maintenance.items()}
    for name, drain in drains.items():
        words.setdefault(name, []).append(drain_words(drain, now, offset_s))
    return {name: "; ".join(texts) for name, texts in words.items()}


def _list_pending(arguments: Namespace, folders: Folders, files: MachineFiles) -> None:
    """Machines whose host key waits for a decision. Raises CommandError where nobody can tell."""
    from fleettui.cli.errors import CommandError
    from fleettui.cli.trust import make_desk
    from fleettui.fleet.trust_listing import list_trust
    from fleettui.view.trust_list import pending_document, pending_lines

    desk = make_desk(folders)
    listed = {name: item for name, item in list_trust(desk).items() if item.waits}
    if desk.book.error is not None:
        raise CommandError(desk.book.error)
    if arguments.json:
        output.write_document(pending_document(files.machines, listed, files.problems, time.time()))
    else:
        output.write_lines(pending_lines(tuple(listed.values()), time.time()))
