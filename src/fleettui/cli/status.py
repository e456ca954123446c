"""`fleettui status`: the fleet, printed once or again at each interval."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import EXIT_NO_TELEMETRY, EXIT_OK, CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.cli.names import check_names
from fleettui.cli.polling import check_folder, poll_once, report_broken_files, report_problems
from fleettui.fleet.needs import EVERYTHING
from fleettui.model.record import replace
from fleettui.model.snapshot import FleetSnapshot
from fleettui.view.document import infrastructure_document
from fleettui.view.filter_language import Filter, FilterError, caret_lines, parse_filter
from fleettui.view.glyphs import glyphs_of
from fleettui.view.oneshot import status_lines
from fleettui.view.text import clean
from fleettui.view.units import count


def status_command(arguments: Namespace) -> int:
    """Poll every machine once and print it, or keep printing with --watch."""
    folders = resolve_folders(arguments)
    names = tuple(getattr(arguments, "names", ()))
    is_json = getattr(arguments, "json", False)
    wanted = _read_filter(getattr(arguments, "filter", ""))
    if folders.server is not None:
        from fleettui.cli.attached_status import status_there

        return status_there(arguments, folders, folders.server, wanted)
    if getattr(arguments, "watch", False):
        from fleettui.cli.serving import run_serving

        return run_serving(_watch(folders, names, wanted, is_json))
    _check_names(folders, names)
    deadline_s = getattr(arguments, "deadline", 10.0)
    fleet = poll_once(folders, EVERYTHING, deadline_s, names or None, is_told=False)
    return print_once(fleet, folders, wanted, is_json=is_json)


def print_once(fleet: FleetSnapshot, folders: Folders, wanted: Filter, *, is_json: bool) -> int:
    """The whole answer; the exit code."""
    if is_json:  # its document names broken files itself, and is printed on failure too
        shown = filtered(fleet, wanted)
        print_fleet(shown, folders, is_json=True, is_compact=False)
        check_folder(fleet, folders)
    else:
        report_broken_files(fleet, folders)
        check_folder(fleet, folders)
        shown = filtered(fleet, wanted)
        print_fleet(shown, folders, is_json=False, is_compact=False)
    tell_nothing_matched(fleet, shown, wanted)
    return exit_code_of(fleet)


def _read_filter(text: str) -> Filter:
    """The filter of `--filter`. Raises CommandError with carets below the wrong place."""
    parsed = parse_filter(text)
    if isinstance(parsed, FilterError):
        raise CommandError(
            f"--filter: {parsed.text}", "see docs/filter.md", drawing=caret_lines(text, parsed)
        )
    return parsed


def filtered(fleet: FleetSnapshot, wanted: Filter) -> FleetSnapshot:
    """The machines that match."""
    return fleet if wanted.is_empty else replace(fleet, machines=wanted.select(fleet, time.time()))


def tell_nothing_matched(fleet: FleetSnapshot, shown: FleetSnapshot, wanted: Filter) -> None:
    """stderr: that an empty fleet is the answer."""
    if fleet.machines and not shown.machines:
        asked = count(len(fleet.machines), "machine was", "machines were")
        diagnostics.say_error(
            "status", f"no machine matches --filter '{clean(wanted.text)}'; {asked} looked at"
        )


def _check_names(folders: Folders, names: tuple[str, ...]) -> None:
    if not names:
        return
    from fleettui.config.machine_folder import load_machines

    files = load_machines(folders.machines_dir)
    if files.machines:  # else the poll finds out why, and says so
        check_names(names, files, folders.machines_dir)


def print_fleet(fleet: FleetSnapshot, folders: Folders, *, is_json: bool, is_compact: bool) -> None:
    """stdout: text or the document."""
    now = time.time()
    if is_json:
        output.write_document(infrastructure_document(fleet, now), is_compact=is_compact)
    else:
        glyphs = glyphs_of(folders.appearance.glyphs or "")
        output.write_lines(status_lines(fleet, now, output.terminal_width(), glyphs))


def exit_code_of(fleet: FleetSnapshot) -> int:
    """Told on stderr where no machine answered."""
    if not fleet.machines or any(machine.last_seen is not None for machine in fleet.machines):
        return EXIT_OK
    diagnostics.say_error("status", "no machine answered", "see the reasons above; check the network and ssh")
    return EXIT_NO_TELEMETRY


async def _watch(folders: Folders, names: tuple[str, ...], wanted: Filter, is_json: bool) -> int:
    """Print at each interval until interrupted; stores snapshots for `--route` meanwhile."""
    from fleettui.cli.serving import make_service

    _check_names(folders, names)
    service = make_service(folders, "status --watch")
    await service.start()
    try:
        told: object = None
        was_empty = False
        while True:
            if not is_json and service.snapshot.problems != told:
                told = service.snapshot.problems
                report_problems(service.snapshot)
            await asyncio.sleep(service.interval_s)
            fleet = service.snapshot
            if names:
                fleet = replace(fleet, machines=tuple(m for m in fleet.machines if m.name in names))
            shown = filtered(fleet, wanted)
            print_fleet(shown, folders, is_json=is_json, is_compact=True)
            if not was_empty:  # told once, not at each interval
                tell_nothing_matched(fleet, shown, wanted)
            was_empty = not shown.machines
            if not is_json:
                output.write_lines([""])
    finally:
        await service.stop()
