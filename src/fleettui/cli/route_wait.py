"""`--wait`: look again until a machine is eligible: at what another process stores, or by polling here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fleettui.cli import diagnostics
from fleettui.cli.folders import Folders
from fleettui.cli.polling import check_machine_files
from fleettui.cli.serving import make_connector, run_serving
from fleettui.fleet.latest import LatestFleet
from fleettui.fleet.needs import AVOIDING_BUSY, ROUTING, Needs
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.route import EXIT_NO_DATA, EXIT_NONE_ELIGIBLE

if TYPE_CHECKING:
    from fleettui.cli.route_state import RouteState
    from fleettui.fleet.leasing import LeasedRoute
    from fleettui.model.route import RouteQuery
    from fleettui.model.snapshot import FleetSnapshot

LOOK_S = 1.0
"""Between two looks where nothing new comes: leases, flags and ages change by time."""
WORD_S = 30.0
"""Between two words that the waiting goes on."""

Decide = Callable[["FleetSnapshot"], "LeasedRoute"]


def wait_for_machine(
    state: RouteState, query: RouteQuery, decide: Decide, until: float, *, is_quiet: bool, follows: bool
) -> LeasedRoute:
    """The first decision that chooses a machine, or that no waiting helps; at `until` the last one.

    `follows`: what another process stores will do.
    """
    found: list[LeasedRoute] = []

    async def work() -> int:
        found.append(await _wait(state.folders, query, decide, until, is_quiet=is_quiet, follows=follows))
        return 0

    code = run_serving(work())
    if not found:
        raise SystemExit(code)  # ended by a signal
    return found[0]


async def _wait(
    folders: Folders, query: RouteQuery, decide: Decide, until: float, *, is_quiet: bool, follows: bool
) -> LeasedRoute:
    needs = AVOIDING_BUSY if query.avoid_busy else ROUTING
    source = LatestFleet(
        folders.machines_dir, folders.state_dir, lambda: _make_service(folders, needs), follows=follows
    )
    has_news = asyncio.Event()
    source.subscribe(lambda _: has_news.set())
    word_at = time.time()
    last: LeasedRoute | None = None
    if not source.is_stored_fresh:
        check_machine_files(folders)
    await source.start()
    try:
        while True:
            left_s = until - time.time()
            try:
                async with asyncio.timeout(max(0.0, min(LOOK_S, left_s))):
                    await has_news.wait()
            except TimeoutError:
                pass
            has_news.clear()
            if not source.is_settled and left_s > 0:
                continue
            if not source.is_settled and last is not None:
                return last  # whoever stored has fallen silent, and our own asking had no time to answer
            found = decide(source.snapshot)
            if last is None or found.decision.exit_code != EXIT_NO_DATA:
                last = found
            may_change = found.decision.exit_code in (EXIT_NONE_ELIGIBLE, EXIT_NO_DATA)
            if not may_change or left_s <= 0:
                return found
            if not is_quiet and time.time() >= word_at:
                word_at = time.time() + WORD_S
                diagnostics.say(
                    f"no machine is eligible for {query.model!r} yet; waiting up to {left_s:.0f} s"
                )
            await asyncio.sleep(min(LOOK_S / 4, max(0.0, until - time.time())))
    finally:
        await source.stop()


def _make_service(folders: Folders, needs: Needs) -> FleetService:
    """Asks the machines what routing needs, and stores nothing."""
    settings = FleetSettings(
        folders.machines_dir,
        folders.interval_s,
        needs,
        state_dir=folders.state_dir,
        catalog_dir=folders.catalog_dir,
    )
    return FleetService(settings, make_connector(folders))
