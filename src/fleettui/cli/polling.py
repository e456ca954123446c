"""Polling the fleet for one-shot commands."""

from __future__ import annotations

from fleettui.cli import diagnostics
from fleettui.cli.errors import CommandError
from fleettui.cli.folders import Folders
from fleettui.cli.names import DEMO_STEP, folder_error
from fleettui.fleet.needs import Needs
from fleettui.fleet.oneshot import IsEnough, poll_fleet_once
from fleettui.fleet.service import FleetSettings
from fleettui.model.machine import ConfigProblem
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot

NEXT_STEPS = (
    "write a file for each machine (see docs/machines.md), or name another folder with --machines",
    DEMO_STEP,
)


def poll_once(
    folders: Folders,
    needs: Needs,
    deadline_s: float,
    only: tuple[str, ...] | None = None,
    *,
    is_told: bool = True,
    is_enough: IsEnough | None = None,
) -> FleetSnapshot:
    """One poll of all machines of the folder. `is_told`: broken files are named on stderr. `is_enough`: no
    further machine is waited for. Raises CommandError when there is no machine file at all."""
    settings = FleetSettings(
        folders.machines_dir,
        folders.interval_s,
        needs,
        only,
        folders.state_dir,
        catalog_dir=folders.catalog_dir,
    )
    fleet = poll_fleet_once(settings, deadline_s, is_enough=is_enough)
    if not fleet.machines and not _machine_problems(fleet) and only is None and is_told:
        raise CommandError(f"no machine file in {folders.machines_dir}", *NEXT_STEPS)
    if is_told:
        report_problems(fleet)
    return fleet


def check_folder(fleet: FleetSnapshot, folders: Folders) -> None:
    """Raises CommandError when the folder gave no machine: there is nothing to ask."""
    if fleet.machines:
        return
    unreadable = folder_error(fleet.problems, folders.machines_dir)
    if unreadable is not None:
        raise unreadable
    if not _machine_problems(fleet):
        raise CommandError(f"no machine file in {folders.machines_dir}", *NEXT_STEPS)
    raise CommandError(
        f"no usable machine file in {folders.machines_dir}", "correct the files named above", DEMO_STEP
    )


def check_machine_files(folders: Folders) -> None:
    """Broken files are named before anybody is asked. Raises CommandError when there is no machine."""
    from fleettui.config.machine_folder import load_machines

    files = load_machines(folders.machines_dir)
    machines = tuple(map(MachineSnapshot, files.machines))
    fleet = FleetSnapshot(0, 0.0, folders.interval_s, machines, files.problems, folders.machines_dir)
    report_broken_files(fleet, folders)
    check_folder(fleet, folders)


def report_broken_files(fleet: FleetSnapshot, folders: Folders) -> None:
    """stderr: the problems of files; that of the folder itself ends the command with its own text."""
    if fleet.machines or not any(problem.file == folders.machines_dir for problem in fleet.problems):
        report_problems(fleet)


def _machine_problems(fleet: FleetSnapshot) -> list[ConfigProblem]:
    return [problem for problem in fleet.problems if not problem.is_of_catalog]


def report_problems(fleet: FleetSnapshot) -> None:
    """Name every broken machine file, and a broken catalog, on stderr; the good ones go on working."""
    from fleettui.view.problems import problem_lines

    diagnostics.say_all(problem_lines(fleet.problems))
