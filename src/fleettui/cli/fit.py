"""`fleettui fit MODEL`: where in the fleet a model fits, and how."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Collection
from typing import TYPE_CHECKING

from fleettui.cli import diagnostics, output
from fleettui.cli.catalog import with_own_catalog
from fleettui.cli.colors import paint
from fleettui.cli.errors import CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.cli.names import check_names
from fleettui.decide.fit_report import judge_fleet
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.fleet.route_knowledge import digests_of, load_knowledge
from fleettui.model.fit import FitQuery, FitReport
from fleettui.model.record import replace
from fleettui.model.snapshot import FleetSnapshot
from fleettui.store.database import Store, StoreError
from fleettui.view.fit_document import fit_document
from fleettui.view.fit_text import conclusion, fit_lines
from fleettui.view.glyphs import glyphs_of

if TYPE_CHECKING:
    from fleettui.fleet.needs import Needs
    from fleettui.fleet.service import FleetSettings


def fit_command(arguments: Namespace) -> int:
    """Judge the stored fleet where it is fresh, else poll; print the answer."""
    started_at = time.time()
    folders = resolve_folders(arguments)
    query = _query_of(arguments)
    _check_names(folders, query)
    fleet = _stored_fleet(folders, arguments.max_age, started_at)
    if fleet is None:
        fleet = _polled_fleet(folders, query, arguments.deadline)
        query = replace(query, max_age_s=arguments.deadline)
    knowledge = _known(folders, fleet, query.model)
    missing = _digests_unknown(fleet, query, knowledge)
    if missing and _ask_shapes(folders, fleet, missing, arguments.deadline):
        knowledge = _known(folders, fleet, query.model)
    report = judge_fleet(fleet, query, time.time(), knowledge)
    if arguments.json:
        output.write_document(fit_document(report, took_ms=(time.time() - started_at) * 1000.0))
    else:
        _print(report, folders)
    words = conclusion(report)
    if words:
        diagnostics.say_error("fit", words)
    return report.exit_code


def _query_of(arguments: Namespace) -> FitQuery:
    if not arguments.model.strip():
        raise CommandError("the model's name is empty", "see: fleettui fit --help")
    return FitQuery(
        arguments.model,
        arguments.context,
        arguments.parallel,
        arguments.cache_type,
        tuple(arguments.names),
        tuple(arguments.tag),
        arguments.max_age or None,
        arguments.deadline,
    )


def _check_names(folders: Folders, query: FitQuery) -> None:
    if query.machines:
        from fleettui.config.machine_folder import load_machines

        files = load_machines(folders.machines_dir)
        if files.machines:  # else the poll finds out why, and says so
            check_names(query.machines, files, folders.machines_dir)


def _print(report: FitReport, folders: Folders) -> None:
    has_color = output.is_terminal() and folders.appearance.has_color
    lines = fit_lines(report, output.terminal_width(), glyphs_of(folders.appearance.glyphs or ""))
    output.write_lines(paint(line, has_color=has_color) for line in lines)


# -- the fleet --------------------------------------------------------------------------------------


def _stored_fleet(folders: Folders, max_age_s: float | None, now: float) -> FleetSnapshot | None:
    """What a running dashboard or `status --watch` stored, when it is fresh enough."""
    if max_age_s == 0:
        return None
    from fleettui.store.flags import load_fresh_fleet
    from fleettui.store.snapshots import load_snapshot

    try:
        store = Store.open_readonly(folders.state_dir)
        if store is None:
            return None
        with store:
            fleet = load_fresh_fleet(store, folders.machines_dir, max_age_s, now)
            if fleet is None:
                return None
            fleet = with_own_catalog(fleet, folders)
            whole = load_snapshot(store, folders.machines_dir)
            return fleet if whole is None else _with_processes(fleet, whole.fleet)
    except StoreError as error:
        diagnostics.say_error("fit", f"{error}; polling instead")
        return None


def _with_processes(fleet: FleetSnapshot, whole: FleetSnapshot) -> FleetSnapshot:
    """What is stored for routing is of now and lacks processes; those stored with all the rest will do."""
    known = {machine.name: machine for machine in whole.machines}
    machines = [
        replace(machine, processes=known[machine.name].processes) if machine.name in known else machine
        for machine in fleet.machines
    ]
    return replace(fleet, machines=tuple(machines))


def _polled_fleet(folders: Folders, query: FitQuery, deadline_s: float) -> FleetSnapshot:
    """Every machine: copies on others are a basis too. Models nobody knows yet are asked for meanwhile."""
    from fleettui.cli.polling import check_folder, report_broken_files
    from fleettui.fleet.needs import FITTING
    from fleettui.fleet.oneshot import poll_fleet_once
    from fleettui.fleet.service import FleetService

    async def ask_shapes(service: FleetService) -> None:
        if service.shapes is not None:
            await service.shapes.ask_for(digests_of(service.snapshot, query.model))

    fleet = poll_fleet_once(_settings(folders, FITTING), deadline_s, then=ask_shapes)
    report_broken_files(fleet, folders)
    check_folder(fleet, folders)
    return fleet


def _settings(folders: Folders, needs: Needs, only: tuple[str, ...] | None = None) -> FleetSettings:
    from fleettui.fleet.service import FleetSettings

    return FleetSettings(
        folders.machines_dir,
        folders.interval_s,
        needs,
        only,
        folders.state_dir,
        catalog_dir=folders.catalog_dir,
    )


# -- what is known of the model ---------------------------------------------------------------------


def _known(folders: Folders, fleet: FleetSnapshot, model: str) -> RouteKnowledge:
    try:
        store = Store.open_readonly(folders.state_dir)
        if store is not None:
            with store:
                return load_knowledge(store, folders.machines_dir, fleet, model)
    except StoreError as error:
        diagnostics.say_error("fit", f"{error}; what was measured and asked before is not known")
    return RouteKnowledge(catalog=fleet.catalog)


def _digests_unknown(fleet: FleetSnapshot, query: FitQuery, knowledge: RouteKnowledge) -> set[str]:
    return {digest for digest in digests_of(fleet, query.model) if digest not in knowledge.shapes}


def _ask_shapes(folders: Folders, fleet: FleetSnapshot, digests: Collection[str], deadline_s: float) -> bool:
    """Ask the machines that have these weights; one of each is enough. False: none can be asked.

    The fleet was stored by a process that has not come to these yet.
    """
    names = _holders(fleet, digests)
    if not names:
        return False
    from fleettui.fleet.needs import ENGINES
    from fleettui.fleet.oneshot import poll_fleet_once
    from fleettui.fleet.service import FleetService

    async def ask(service: FleetService) -> None:
        if service.shapes is not None:
            await service.shapes.ask_for(digests)

    poll_fleet_once(_settings(folders, ENGINES, tuple(names)), deadline_s, then=ask)
    return True


def _holders(fleet: FleetSnapshot, digests: Collection[str]) -> list[str]:
    """For each digest a machine that answers and has it."""
    names: dict[str, None] = {}
    for digest in digests:
        for machine in fleet.machines:
            if machine.link.state == "up" and any(model.digest == digest for model in machine.installed):
                names[machine.name] = None
                break
    return list(names)
