"""Enter on a machine: a lease on it, and its address in the clipboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleettui.fleet.route_desk import RouteDeskError
from fleettui.model.clock import hh_mm_ss
from fleettui.model.route import RouteCandidate
from fleettui.view.text import clean

if TYPE_CHECKING:
    from fleettui.model.lease import Lease
    from fleettui.tui.screens.route.screen import RouteScreen

TOLD_S = 10.0
"""How long the toast stays."""
NO_STATE = "not leased: leases are kept in the state folder, and there is none"
READONLY = "not leased: --readonly changes nothing"
THROUGH_SERVER = "not leased: the server is only asked, nothing is changed there"


class LeaseKeys:
    """Takes leases for the screen."""

    def __init__(self, screen: RouteScreen) -> None:
        self._screen = screen

    def take(self, candidate: RouteCandidate, canonical: str) -> None:
        """Copy the address at once; the lease follows as soon as it is written."""
        app = self._screen.fleet_app
        app.copy_to_clipboard(candidate.address)
        desk = app.service.routing
        if app.look.is_readonly or desk is None:
            here = READONLY if app.look.is_readonly else NO_STATE
            self._tell(candidate, THROUGH_SERVER if app.service.origin else here)
            return

        async def work() -> None:
            try:
                lease = await desk.take_lease(candidate, canonical)
            except RouteDeskError as error:
                self._tell(candidate, f"not leased: {error}", is_wrong=True)
                return
            self._tell(candidate, self._until(lease))
            app.painter.paint_now()

        app.run_worker(work(), group="leases")

    def _until(self, lease: Lease) -> str:
        offset_s = self._screen.fleet_app.look.utc_offset_s
        at = hh_mm_ss(lease.until + (offset_s or 0)) + ("" if offset_s is not None else " UTC")
        seconds = lease.until - lease.taken_at
        return f"leased until {at} ({seconds:.0f} s): who asks meanwhile is sent elsewhere first"

    def _tell(self, candidate: RouteCandidate, text: str, *, is_wrong: bool = False) -> None:
        app = self._screen.fleet_app
        app.clear_notifications()
        app.notify(
            clean(f"{candidate.address} of {candidate.machine}") + f"\n{clean(text)}",
            title="Copied",
            severity="warning" if is_wrong else "information",
            timeout=TOLD_S,
            markup=False,
        )
