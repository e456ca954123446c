"""`status` printed from what a running server knows."""

from __future__ import annotations

import time
from argparse import Namespace

from fleettui.cli import diagnostics, output
from fleettui.cli.folders import Folders
from fleettui.cli.names import check_names
from fleettui.cli.polling import report_problems
from fleettui.cli.server_errors import command_error
from fleettui.cli.status import filtered, print_fleet, print_once, tell_nothing_matched
from fleettui.config.machine_folder import MachineFiles
from fleettui.fleet.attached.reading import fetch_fleet
from fleettui.model.record import replace
from fleettui.model.server_place import ServerAccess
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.server_client import ServerError
from fleettui.view.filter_language import Filter


def read_fleet(access: ServerAccess) -> FleetSnapshot:
    """The server's newest snapshot. Raises CommandError."""
    try:
        return fetch_fleet(access)
    except ServerError as error:
        raise command_error(error) from None


def files_of(fleet: FleetSnapshot) -> MachineFiles:
    """The machine files as the server read them."""
    return MachineFiles(
        tuple(item.machine for item in fleet.machines),
        tuple(problem for problem in fleet.problems if not problem.is_of_catalog),
    )


def tell_server(access: ServerAccess) -> None:
    """stderr: who was asked."""
    diagnostics.say(f"via server {access.place.text}")


def status_there(arguments: Namespace, folders: Folders, access: ServerAccess, wanted: Filter) -> int:
    """Print it once, or with --watch at each interval."""
    names = tuple(getattr(arguments, "names", ()))
    is_json = getattr(arguments, "json", False)
    if getattr(arguments, "watch", False):
        return _watch(folders, access, names, wanted, is_json=is_json)
    fleet = _named(read_fleet(access), names)
    if not is_json:
        tell_server(access)
    return print_once(fleet, replace(folders, machines_dir=fleet.machines_dir), wanted, is_json=is_json)


def _named(fleet: FleetSnapshot, names: tuple[str, ...]) -> FleetSnapshot:
    """These machines alone. Raises CommandError for a name that none has."""
    if not names:
        return fleet
    if fleet.machines:
        check_names(names, files_of(fleet), fleet.machines_dir)
    return replace(fleet, machines=tuple(item for item in fleet.machines if item.name in names))


def _watch(
    folders: Folders, access: ServerAccess, names: tuple[str, ...], wanted: Filter, *, is_json: bool
) -> int:
    """Until interrupted; a server that goes away is asked again until it is back."""
    fleet = _named(read_fleet(access), names)
    if not is_json:
        tell_server(access)
    told: object = None
    was_empty = is_away = False
    while True:
        if not is_json and fleet.problems != told:
            told = fleet.problems
            report_problems(fleet)
        shown = filtered(fleet, wanted)
        print_fleet(shown, folders, is_json=is_json, is_compact=True)
        if not was_empty:
            tell_nothing_matched(fleet, shown, wanted)
        was_empty = not shown.machines
        if not is_json:
            output.write_lines([""])
        while True:
            time.sleep(fleet.interval_s)
            try:
                found = fetch_fleet(access)
            except ServerError as error:
                if not error.is_absent:
                    raise command_error(error) from None
                if not is_away:
                    diagnostics.say_error("status", error.text, "asked again until it is back")
                is_away = True
                continue
            break
        if is_away:
            diagnostics.say_error("status", f"the server {access.place.text} is back")
        is_away = False
        fleet = replace(
            found, machines=tuple(item for item in found.machines if not names or item.name in names)
        )
