"""Polling the fleet for one-shot commands."""

from __future__ import annotations

from fleettui.cli import diagnostics
from fleettui.cli.errors import CommandError
from fleettui.cli.folders import Folders
from fleettui.fleet.needs import Needs
from fleettui.fleet.oneshot import poll_fleet_once
from fleettui.fleet.service import FleetSettings
from fleettui.model.snapshot import FleetSnapshot


def poll_once(
    folders: Folders, needs: Needs, deadline_s: float, only: tuple[str, ...] | None = None
) -> FleetSnapshot:
    """One poll of all machines of the folder. Raises CommandError when there is nothing to poll."""
    settings = FleetSettings(folders.machines_dir, folders.interval_s, needs, only)
    fleet = poll_fleet_once(settings, deadline_s)
    report_problems(fleet)
    if not fleet.machines and not fleet.problems and only is None:
        raise CommandError(
            f"no machine files in {folders.machines_dir}",
            "write one file for each machine (see docs/machines.md), or look at the demo: fleettui demo",
        )
    return fleet


def report_problems(fleet: FleetSnapshot) -> None:
    """Name every broken machine file on stderr; the good ones go on working."""
    from fleettui.view.problems import problem_lines

    diagnostics.say_all(problem_lines(fleet.problems))
