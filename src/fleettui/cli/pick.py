"""`fleettui pick [MODEL]`: a list on the terminal, the answer alone on stdout."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_OK, CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.model.route import RouteCandidate, RouteQuery

if TYPE_CHECKING:
    from fleettui.fleet.service import FleetService
    from fleettui.view.picking import PickAnswer


def pick_command(arguments: Namespace) -> int:
    """Draw the list, print what was picked."""
    if arguments.model is not None and not arguments.model.strip():
        raise CommandError("the model's name is empty", "see: fleettui pick --help")
    folders = resolve_folders(arguments)
    return _pick(folders, None if arguments.model is None else RouteQuery(arguments.model), arguments.format)


def _pick(folders: Folders, query: RouteQuery | None, form: str) -> int:
    from fleettui.cli.dashboard import log_to_file
    from fleettui.cli.look import look_of
    from fleettui.cli.polling import check_machine_files
    from fleettui.cli.serving import run_serving
    from fleettui.fleet.latest import LatestFleet
    from fleettui.fleet.route_desk import RouteDesk
    from fleettui.fleet.ui_state import UiState
    from fleettui.tui.pick.app import run_picker
    from fleettui.tui.pick.question import Picked, PickQuestion
    from fleettui.tui.pick.terminal import find_terminal
    from fleettui.tui.remembering import recall_theme
    from fleettui.view.picking import failure_lines
    from fleettui.view.route_text import format_one

    source = LatestFleet(folders.machines_dir, folders.state_dir, lambda: _make_service(folders))
    if not source.is_stored_fresh:
        check_machine_files(folders)
    look, terminal = look_of(folders), find_terminal()
    if terminal is None:
        raise CommandError(
            "there is no terminal to draw on: neither stderr nor /dev/tty is one",
            "in a script: fleettui route MODEL",
        )
    log_to_file(folders)
    desk = None
    if query is not None:
        desk = RouteDesk(lambda: source.snapshot, folders.state_dir, folders.machines_dir)
    picked = Picked()

    async def work() -> int:
        nonlocal picked
        theme = await recall_theme(UiState(folders.state_dir, folders.machines_dir))
        picked = await run_picker(source, PickQuestion(query, form, desk), look, terminal, theme)
        return picked.return_code

    exit_code = run_serving(work())
    if exit_code != EXIT_OK:
        return exit_code
    if picked.answer is not None:
        if query is not None and not folders.is_readonly:
            _take_lease(folders, picked.answer, query)
        output.write_lines([format_one(picked.answer, form)])
        return EXIT_OK
    if source.error is not None:
        diagnostics.say_error("pick", source.error)
    if picked.failure is not None:
        diagnostics.say_all(failure_lines(picked.failure))
        return picked.failure.exit_code
    return EXIT_NEGATIVE


def _take_lease(folders: Folders, answer: PickAnswer, query: RouteQuery) -> None:
    """As `route` does, so that who asks meanwhile is sent elsewhere; without one the answer holds too."""
    from fleettui.fleet.leasing import lease_candidate
    from fleettui.model.names import canonical_name
    from fleettui.store.database import StoreError

    if isinstance(answer, RouteCandidate):
        try:
            lease_candidate(folders.state_dir, folders.machines_dir, answer, canonical_name(query.model))
        except StoreError as error:
            diagnostics.say_all([f"note: no lease: {error}"])


def _make_service(folders: Folders) -> FleetService:
    """Asks the machines what one chooses by, and stores nothing."""
    from fleettui.cli.serving import make_connector
    from fleettui.fleet.needs import CHOOSING
    from fleettui.fleet.service import FleetService, FleetSettings

    settings = FleetSettings(
        folders.machines_dir,
        folders.interval_s,
        CHOOSING,
        state_dir=folders.state_dir,
        catalog_dir=folders.catalog_dir,
    )
    return FleetService(settings, make_connector(folders))
