"""`fleettui route MODEL`, answered from what is stored or polled here."""

from __future__ import annotations

import gc
import time

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import CommandError
from fleettui.cli.route_choice import read_min_free
from fleettui.cli.route_state import RouteState
from fleettui.model.record import replace
from fleettui.model.route import EXIT_NO_DATA, EXIT_NONE_ELIGIBLE, RouteQuery
from fleettui.view.route_text import excluded_lines, format_answer, lease_line, route_document, route_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from fleettui.cli.folders import Folders
    from fleettui.fleet.leasing import LeasedRoute
    from fleettui.model.snapshot import FleetSnapshot

LOADED_TIERS = range(3)
"""Resident and ready, busy or not: `--warm` has nothing to do."""


def route_here(arguments: Namespace, folders: Folders, started_at: float) -> int:
    """Decide from a fresh stored snapshot where there is one, else poll; print the answer."""
    if arguments.release is not None:
        from fleettui.cli.route_release import release_command

        return release_command(folders, arguments)
    if arguments.warm and folders.is_readonly:
        raise CommandError("--warm loads a model, and this fleettui is --readonly")
    query = _query_of(arguments)
    takes_lease = query.takes_lease and not folders.is_readonly
    state = RouteState(folders, takes_lease=takes_lease, hold_s=arguments.hold)
    if query.takes_lease and not takes_lease:
        state.lease_error = "this fleettui is --readonly"
    try:
        found = _find(state, query, arguments, started_at)
        chosen = found.decision.chosen
        if arguments.warm and chosen is not None and chosen.tier not in LOADED_TIERS:
            from fleettui.cli.route_warm import warm_chosen

            if not arguments.quiet:
                diagnostics.say_all(route_lines(found.decision))
            found = warm_chosen(state, found, is_quiet=arguments.quiet)
            _print(found, arguments, started_at)
        else:
            _print(found, arguments, started_at)
            if not arguments.quiet:
                diagnostics.say_all(route_lines(found.decision))
        if not arguments.quiet:
            diagnostics.say_all(excluded_lines(found.decision))
            _tell_lease(state, found)
        return found.decision.exit_code
    finally:
        state.close()


def _query_of(arguments: Namespace) -> RouteQuery:
    return RouteQuery(
        model=arguments.model,
        min_free_vram_mib=read_min_free(arguments),
        free_scope=arguments.free_scope,
        context=arguments.context,
        require_loaded=arguments.require_loaded,
        avoid_busy=arguments.avoid_busy,
        tags=tuple(arguments.tag),
        exclude=tuple(arguments.exclude),
        max_age_s=arguments.max_age or None,
        deadline_s=arguments.deadline,
        top=arguments.top,
        allow_pull=arguments.allow_pull,
        sticky=arguments.sticky,
        takes_lease=not arguments.no_lease,
    )


def _find(state: RouteState, query: RouteQuery, arguments: Namespace, started_at: float) -> LeasedRoute:
    """The decision, with `--wait` the first that chooses a machine, or the last in its time."""
    fleet = state.load_fleet(arguments.max_age, started_at)
    if fleet is None and arguments.wait is None:
        # Polled this moment: the fastest answer may be as old as the slowest machine was slow.
        query = replace(query, max_age_s=arguments.deadline)
        fleet, is_whole = _polled_fleet(state, query, arguments)
        if not is_whole:
            query = replace(query, deadline_s=None)  # nobody missed it
    if fleet is not None:
        found = _decide(state, fleet, query, arguments)
        may_change = found.decision.exit_code in (EXIT_NONE_ELIGIBLE, EXIT_NO_DATA)
        if arguments.wait is None or not may_change:
            return found
    gc.enable()
    from fleettui.cli.route_wait import wait_for_machine

    until = started_at + arguments.wait
    query = replace(query, deadline_s=None)  # `until` is the one
    return wait_for_machine(
        state,
        query,
        lambda seen: _decide(state, seen, query, arguments),
        until,
        is_quiet=arguments.quiet,
        follows=arguments.max_age != 0,
    )


def _decide(state: RouteState, fleet: FleetSnapshot, query: RouteQuery, arguments: Namespace) -> LeasedRoute:
    if not arguments.check_reachable:
        return state.decide(fleet, query)
    from fleettui.cli.route_reach import decide_reachable

    return decide_reachable(state, fleet, query)


def _polled_fleet(state: RouteState, query: RouteQuery, arguments: Namespace) -> tuple[FleetSnapshot, bool]:
    """What the machines say now; False: enough of them to decide, the rest was not waited for."""
    gc.enable()
    from fleettui.cli.polling import check_folder, poll_once, report_broken_files
    from fleettui.fleet.needs import AVOIDING_BUSY, ROUTING

    was_enough = False

    def is_enough(seen: FleetSnapshot) -> bool:
        nonlocal was_enough
        was_enough = state.is_enough(seen, query)
        return was_enough

    may_end_early = (
        state.last_fleet is not None and not arguments.exhaustive and not arguments.check_reachable
    )
    fleet = poll_once(
        state.folders,
        AVOIDING_BUSY if query.avoid_busy else ROUTING,
        arguments.deadline,
        is_told=False,
        is_enough=is_enough if may_end_early else None,
    )
    report_broken_files(fleet, state.folders)
    check_folder(fleet, state.folders)
    return fleet, not was_enough


def _print(found: LeasedRoute, arguments: Namespace, started_at: float) -> None:
    if arguments.json or arguments.format == "json":
        took_ms = (time.time() - started_at) * 1000.0
        output.write_document(route_document(found.decision, took_ms=took_ms, lease=found.lease))
    elif found.decision.chosen is not None:
        output.write_lines([format_answer(found.decision, arguments.format)])


def _tell_lease(state: RouteState, found: LeasedRoute) -> None:
    lease = found.lease
    if lease is not None:
        diagnostics.say(lease_line(lease, time.time()))
    elif state.lease_error is not None and found.decision.chosen is not None:
        diagnostics.say(f"note: no lease was taken: {state.lease_error}")
