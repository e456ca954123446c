"""What `placement plan` is made from where a running server has the fleet."""

from __future__ import annotations

from argparse import Namespace

from fleettui.cli.errors import CommandError
from fleettui.cli.folders import Folders
from fleettui.cli.placement_inputs import load_plan_catalog
from fleettui.cli.polling import check_folder, report_broken_files
from fleettui.model.catalog import Catalog
from fleettui.model.profile import Profile
from fleettui.model.record import dataclass, replace
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.view.problems import problem_line
from fleettui.view.units import count


@dataclass(frozen=True, slots=True)
class ServedPlan:
    """Machines, profiles and rates of the server."""

    fleet: FleetSnapshot
    profiles: dict[str, Profile]
    rates: dict[str, float]
    """How fast machines were measured to load, in bytes a second."""


def read_served(arguments: Namespace, folders: Folders) -> ServedPlan | None:
    """None where no server is asked. Raises CommandError."""
    access = folders.server
    if access is None:
        return None
    if arguments.inventory:
        if getattr(arguments, "server", None):
            raise CommandError("--inventory asks nobody, and --server names somebody: leave out one of them")
        return None
    if arguments.max_age == 0:
        raise CommandError(
            "--max-age 0 polls now, and a server polls at its own pace", "ask from here: --standalone"
        )
    from fleettui.cli.attached_status import read_fleet, tell_server
    from fleettui.cli.server_errors import command_error
    from fleettui.fleet.attached.reading import fetch_plan_inputs
    from fleettui.net.server_client import ServerError

    fleet = read_fleet(access)
    try:
        found = fetch_plan_inputs(access)
    except ServerError as error:
        raise command_error(error) from None
    if not (arguments.json or arguments.yaml):
        tell_server(access)
    if arguments.stored:
        fleet = replace(fleet, machines=tuple(map(_unasked, fleet.machines)))
    there = replace(folders, machines_dir=fleet.machines_dir)
    only_machines = tuple(problem for problem in fleet.problems if not problem.is_of_catalog)
    report_broken_files(replace(fleet, problems=only_machines), there)
    check_folder(fleet, there)
    return ServedPlan(fleet, found.profiles, found.rates)


def served_catalog(arguments: Namespace, folders: Folders, served: ServedPlan) -> Catalog:
    """The server's catalog, unless the command line names one. Raises CommandError."""
    if getattr(arguments, "catalog", None):
        return load_plan_catalog(folders)
    problems = tuple(problem for problem in served.fleet.problems if problem.is_of_catalog)
    more = "catalog and roles: docs/catalog.md"
    if problems:
        errors = count(len(problems), "error")
        lines = map(problem_line, problems)
        raise CommandError(f"{errors} in the catalog of the server", *lines, more, problems=problems)
    catalog = served.fleet.catalog
    if not catalog.roles_file:
        raise CommandError(
            "the server has no roles.yaml, so there is nothing to plan",
            more,
            "or name a folder: --catalog DIR",
        )
    return catalog


def _unasked(machine: MachineSnapshot) -> MachineSnapshot:
    """As its file declares it, with the operator's flags."""
    return replace(MachineSnapshot(machine.machine), maintenance=machine.maintenance, drain=machine.drain)
