"""`fleettui route MODEL`, also spelled `fleettui --route MODEL`."""

from __future__ import annotations

import gc
import time

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.decide.routing import decide_route
from fleettui.decide.sizes import parse_vram_mib
from fleettui.model.record import replace
from fleettui.model.route import RouteDecision, RouteQuery
from fleettui.view.route_text import format_answer, route_document, route_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from fleettui.model.snapshot import FleetSnapshot


def route_command(arguments: Namespace) -> int:
    """Decide from a fresh stored snapshot where there is one, else poll; print the answer."""
    started_at = time.time()
    is_json = arguments.json or arguments.format == "json"
    query = _query_of(arguments)
    folders = resolve_folders(arguments)
    fleet = _stored_fleet(folders, arguments.max_age, started_at)
    if fleet is None:
        fleet = _polled_fleet(folders, arguments)
        # Polled this moment: the fastest answer may be as old as the slowest machine was slow.
        query = replace(query, max_age_s=arguments.deadline)
    decision = decide_route(fleet, query, time.time())
    if is_json:
        output.write_document(route_document(decision, took_ms=(time.time() - started_at) * 1000.0))
    elif decision.chosen is not None:
        output.write_lines([format_answer(decision, arguments.format)])
    if not arguments.quiet:
        _explain(decision)
    return decision.exit_code


def _query_of(arguments: Namespace) -> RouteQuery:
    try:
        min_free_mib = 0 if arguments.min_free_vram is None else parse_vram_mib(arguments.min_free_vram)
    except ValueError as error:
        raise CommandError(f"--min-free-vram: {error}", "write for example 4, 4GiB or 4000MiB") from None
    if not arguments.model.strip():
        raise CommandError("the model's name is empty", "see: fleettui route --help")
    return RouteQuery(
        model=arguments.model,
        min_free_vram_mib=min_free_mib,
        free_scope=arguments.free_scope,
        require_loaded=arguments.require_loaded,
        tags=tuple(arguments.tag),
        exclude=tuple(arguments.exclude),
        max_age_s=arguments.max_age or None,
        deadline_s=arguments.deadline,
        takes_lease=not arguments.no_lease,
    )


def _explain(decision: RouteDecision) -> None:
    diagnostics.say_all(route_lines(decision))


def _stored_fleet(folders: Folders, max_age_s: float | None, now: float) -> FleetSnapshot | None:
    """What a running dashboard or `status --watch` stored, when it is fresh enough."""
    if max_age_s == 0:
        return None
    from fleettui.store.database import Store, StoreError
    from fleettui.store.flags import with_present_flags
    from fleettui.store.snapshots import load_for_routing

    try:
        store = Store.open_readonly(folders.state_dir)
        if store is None:
            return None
        with store:
            stored = load_for_routing(store, folders.machines_dir)
            if stored is None or not stored.is_fresh(now, max_age_s):
                return None
            return with_present_flags(store, folders.machines_dir, stored.fleet)
    except StoreError as error:
        diagnostics.say_error("route", f"{error}; polling instead")
        return None


def _polled_fleet(folders: Folders, arguments: Namespace) -> FleetSnapshot:
    gc.enable()
    from fleettui.cli.polling import check_folder, poll_once, report_broken_files
    from fleettui.fleet.needs import ROUTING

    fleet = poll_once(folders, ROUTING, arguments.deadline, is_told=False)
    report_broken_files(fleet, folders)
    check_folder(fleet, folders)
    return fleet
