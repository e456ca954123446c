"""What a plan is made from: the catalog, machines as they are or as profiles have them, files of plans."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fleettui.cli import diagnostics
from fleettui.cli.errors import EXIT_NO_TELEMETRY, EXIT_UNKNOWN_NAME, CommandError
from fleettui.cli.folders import Folders
from fleettui.config.catalog_folder import load_catalog_files
from fleettui.config.inventory_file import load_inventory
from fleettui.decide.placement.what_if import with_nodes, without_parts
from fleettui.decide.plan_nodes import NO_PROFILE, node_of_profile, plan_nodes, plan_notes, profile_notes
from fleettui.model.catalog import Catalog
from fleettui.model.placement import PlacementPlan, PlanNode
from fleettui.model.profile import Profile
from fleettui.model.record import dataclass, replace
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.store.database import Store, StoreError
from fleettui.view.placement_document import read_plan
from fleettui.view.problems import problem_line
from fleettui.view.units import count

if TYPE_CHECKING:
    from fleettui.cli.attached_plan import ServedPlan

MAX_PLAN_BYTES = 64 << 20
_MORE = "catalog and roles: docs/catalog.md"


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """Nodes to plan on, and where they come from."""

    nodes: tuple[PlanNode, ...]
    notes: tuple[str, ...] = ()
    """For the warnings of the plan."""
    fleet: FleetSnapshot | None = None
    """None: no machine was asked."""


def load_plan_catalog(folders: Folders) -> Catalog:
    """Models and roles. Raises CommandError with every error of the catalog at once, or without roles."""
    folder = folders.catalog_dir or ""
    told = load_catalog_files(folder)
    if told.problems:
        errors = count(len(told.problems), "error")
        lines = (problem_line(problem) for problem in told.problems)
        raise CommandError(f"{errors} in the catalog", *lines, _MORE, problems=told.problems)
    if not told.catalog.roles_file:
        raise CommandError(f"no roles.yaml in {folder}, so there is nothing to plan", _MORE, _NAME_ANOTHER)
    return told.catalog


_NAME_ANOTHER = "or name the folder with --catalog DIR or $FLEETTUI_CATALOG"


def read_inputs(arguments: Namespace, folders: Folders, served: ServedPlan | None = None) -> PlanInputs:
    """Nodes of the source that the command line names, with its what-if. Raises CommandError."""
    if arguments.inventory:
        inputs = _inventory_inputs(arguments.inventory)
    elif served is not None:
        inputs = _inputs_of(served.fleet, served.profiles)
    else:
        inputs = _fleet_inputs(arguments, folders)
    nodes, notes = inputs.nodes, inputs.notes
    for path in arguments.more:
        more = _inventory_inputs(path)
        nodes = with_nodes(nodes, more.nodes)
        replaced = {node.name for node in more.nodes}
        notes = (*(note for note in notes if note.partition(":")[0] not in replaced), *more.notes)
    try:
        nodes = without_parts(nodes, arguments.disable, arguments.without)
    except LookupError as error:
        raise CommandError(str(error.args[0]), exit_code=EXIT_UNKNOWN_NAME) from None
    names = {node.name for node in nodes}
    return replace(inputs, nodes=nodes, notes=tuple(n for n in notes if n.partition(":")[0] in names))


def _inventory_inputs(path: str) -> PlanInputs:
    inventory, problems = load_inventory(path)
    if problems:
        text = f"{path}: {count(len(problems), 'error')} in the inventory"
        raise CommandError(text, *map(problem_line, problems), problems=problems)
    if inventory is None:
        raise CommandError(f"{path}: there is no such file", "make one: fleettui inventory collect -o FILE")
    notes = tuple(note for profile in inventory.profiles for note in profile_notes(profile))
    return PlanInputs(tuple(map(node_of_profile, inventory.profiles)), notes)


# -- the fleet --------------------------------------------------------------------------------------


def _fleet_inputs(arguments: Namespace, folders: Folders) -> PlanInputs:
    profiles, last = _stored(folders)
    if arguments.stored:
        fleet = _unasked_fleet(folders)
    else:
        now = time.time()
        fleet = _fresh_fleet(folders, arguments.max_age, now, last) or _polled_fleet(arguments, folders)
        fleet = _with_last_readings(fleet, last)
    return _inputs_of(fleet, profiles)


def _inputs_of(fleet: FleetSnapshot, profiles: Mapping[str, Profile]) -> PlanInputs:
    notes = [note for machine in fleet.machines for note in plan_notes(machine, profiles.get(machine.name))]
    nodes = plan_nodes(fleet.machines, profiles)
    if nodes and all(node.unavailable == NO_PROFILE for node in nodes):
        raise CommandError(
            "no machine gave usable data, and none has a stored profile",
            "why: fleettui machines doctor",
            "or plan by an inventory: --inventory FILE",
            exit_code=EXIT_NO_TELEMETRY,
        )
    return PlanInputs(nodes, tuple(notes), fleet)


def _stored(folders: Folders) -> tuple[dict[str, Profile], FleetSnapshot | None]:
    """Profiles by name, and the last snapshot, however old."""
    from fleettui.store.profiles import load_profiles
    from fleettui.store.snapshots import load_snapshot

    try:
        store = Store.open_readonly(folders.state_dir)
        if store is None:
            return {}, None
        with store:
            whole = load_snapshot(store, folders.machines_dir)
            return load_profiles(store, folders.machines_dir), None if whole is None else whole.fleet
    except StoreError as error:
        diagnostics.say_error("placement", f"{error}; stored profiles are not known")
        return {}, None


def _fresh_fleet(
    folders: Folders, max_age_s: float | None, now: float, whole: FleetSnapshot | None
) -> FleetSnapshot | None:
    """What a running dashboard or `status --watch` stored, when it is fresh enough."""
    if max_age_s == 0 or whole is None:
        return None
    from fleettui.store.flags import load_fresh_fleet

    try:
        store = Store.open_readonly(folders.state_dir)
        if store is None:
            return None
        with store:
            fleet = load_fresh_fleet(store, folders.machines_dir, max_age_s, now)
    except StoreError as error:
        diagnostics.say_error("placement", f"{error}; polling instead")
        return None
    if fleet is None:
        return None
    known = {machine.name: machine for machine in whole.machines}
    return replace(fleet, machines=tuple(_whole(one, known.get(one.name)) for one in fleet.machines))


def _whole(machine: MachineSnapshot, stored: MachineSnapshot | None) -> MachineSnapshot:
    """State and engines as they are now; what a machine is made of is stored less often, and will do."""
    if stored is None:
        return machine
    return replace(
        machine,
        machine=stored.machine,
        gpu=stored.gpu,
        memory=stored.memory,
        processes=stored.processes,
        places=machine.places or stored.places,
    )


def _polled_fleet(arguments: Namespace, folders: Folders) -> FleetSnapshot:
    from fleettui.cli.polling import check_folder, poll_once, report_broken_files
    from fleettui.fleet.needs import PLANNING, PLANNING_CHANGES

    needs = PLANNING_CHANGES if arguments.diff_loaded else PLANNING
    fleet = poll_once(folders, needs, arguments.deadline, is_told=False)
    machine_problems = tuple(problem for problem in fleet.problems if not problem.is_of_catalog)
    fleet = replace(fleet, problems=machine_problems)
    report_broken_files(fleet, folders)
    check_folder(fleet, folders)
    return fleet


def _unasked_fleet(folders: Folders) -> FleetSnapshot:
    """Machines as their files declare them, with the operator's flags."""
    from fleettui.cli.polling import check_folder, report_broken_files
    from fleettui.config.machine_folder import load_machines
    from fleettui.store.flags import with_present_flags

    files = load_machines(folders.machines_dir)
    machines = tuple(map(MachineSnapshot, files.machines))
    fleet = FleetSnapshot(0, 0.0, folders.interval_s, machines, files.problems, folders.machines_dir)
    report_broken_files(fleet, folders)
    check_folder(fleet, folders)
    try:
        store = Store.open_readonly(folders.state_dir)
        if store is not None:
            with store:
                return with_present_flags(store, folders.machines_dir, fleet)
    except StoreError as error:
        diagnostics.say_error("placement", f"{error}; flags of machines are not known")
    return fleet


def _with_last_readings(fleet: FleetSnapshot, last: FleetSnapshot | None) -> FleetSnapshot:
    """A machine that does not answer is made of what it was made of when it last did."""
    known = {} if last is None else {machine.name: machine for machine in last.machines}
    machines = []
    for machine in fleet.machines:
        before = known.get(machine.name)
        is_silent = machine.link.state != "up" and machine.gpu is None
        machines.append(
            replace(machine, gpu=before.gpu, memory=machine.memory or before.memory)
            if before is not None and is_silent
            else machine
        )
    return replace(fleet, machines=tuple(machines))


# -- files and rates --------------------------------------------------------------------------------


def read_plan_file(path: str) -> PlacementPlan:
    """A plan that `--json` or `--yaml` wrote. Raises CommandError."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_PLAN_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", "a plan: fleettui placement plan --json") from None
    try:
        return read_plan(_document(data))
    except ValueError as error:
        raise CommandError(f"{path}: no plan: {error}", "a plan: fleettui placement plan --json") from None


def _document(data: bytes) -> object:
    """JSON of any size; else YAML. Raises ValueError."""
    if len(data) > MAX_PLAN_BYTES:
        raise ValueError("it is larger than 64 MiB")
    if data.lstrip()[:1] == b"{":
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            pass  # YAML in flow style
    from fleettui.config.yaml_document import read_yaml

    document = read_yaml(data)
    if document.problems:
        first = document.problems[0]
        raise ValueError(f"line {first.line}: {first.message}" if first.line else first.message)
    return document.value


def load_rates(folders: Folders) -> dict[str, float]:
    """How fast machines were measured to load, in bytes a second, by name."""
    from fleettui.store.load_rates import load_load_rates

    try:
        store = Store.open_readonly(folders.state_dir)
        if store is None:
            return {}
        with store:
            return load_load_rates(store, folders.machines_dir)
    except StoreError as error:
        diagnostics.say_error("placement", f"{error}; rates of loading are not known")
        return {}
