"""`fleettui demo`: everything on a simulated fleet of real SSH and HTTP servers on loopback."""

from __future__ import annotations

import signal
import time
from argparse import Namespace

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import EXIT_OK, CommandError
from fleettui.cli.folders import Folders, demo_folders
from fleettui.demo.launcher import DemoError, DemoFleet

FIRST_MACHINE = "ada"
"""Of every demo fleet, whatever its size."""


def demo_command(arguments: Namespace) -> int:
    """Start the fleet, then the dashboard on it; without a terminal print it once with one routed answer."""
    try:
        pending = ("--pending", FIRST_MACHINE) if arguments.pending else ()
        with DemoFleet(
            arguments.machine_count, arguments.seed, is_calm=arguments.calm, arguments=pending
        ) as demo:
            folders = demo_folders(str(demo.machines_dir), str(demo.state_dir), arguments)
            if arguments.serve_only:
                return _serve_only(demo)
            if not output.is_terminal():
                return _print_once(folders)
            from fleettui.cli.dashboard import run_dashboard

            return run_dashboard(folders)
    except DemoError as error:
        raise CommandError(f"the simulated fleet did not start: {error}", exit_code=1) from None


def _serve_only(demo: DemoFleet) -> int:
    output.write_lines([f"export {name}={value}" for name, value in demo.environment.items()])
    diagnostics.say(
        "The simulated fleet is up. In another terminal run the lines above, then for example:",
        "  fleettui",
        "  fleettui status",
        "  fleettui --route llama3.1:70b",
        "Ctrl+C here ends it.",
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        demo.wait()
    except KeyboardInterrupt:
        return EXIT_OK
    raise CommandError("the simulated fleet ended by itself", exit_code=1)


def _print_once(folders: Folders) -> int:
    """The fleet once and one routed answer, for people who look at it through a pipe."""
    from fleettui.cli.polling import poll_once
    from fleettui.decide.routing import decide_route
    from fleettui.fleet.needs import EVERYTHING
    from fleettui.model.route import RouteQuery
    from fleettui.view.oneshot import status_lines
    from fleettui.view.route_text import format_answer, route_lines

    fleet = poll_once(folders, EVERYTHING, deadline_s=15.0)
    now = time.time()
    output.write_lines(status_lines(fleet, now, output.terminal_width()))
    model = next((copy.name for machine in fleet.machines for copy in machine.loaded), "llama3.1:8b")
    decision = decide_route(fleet, RouteQuery(model=model), now)
    output.write_lines(["", f"$ fleettui --route {model}"])
    output.write_lines(route_lines(decision))
    if decision.chosen is not None:
        output.write_lines([format_answer(decision, "address")])
    return decision.exit_code
