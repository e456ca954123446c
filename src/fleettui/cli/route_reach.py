"""`--check-reachable`: the best addresses are tried from here before one of them is the answer."""

from __future__ import annotations

from fleettui.fleet.reach import find_unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.cli.route_state import RouteState
    from fleettui.fleet.leasing import LeasedRoute
    from fleettui.model.route import RouteQuery
    from fleettui.model.snapshot import FleetSnapshot

TRIED_AT_ONCE = 16
"""Of the best; more only where all of these fail."""


def decide_reachable(state: RouteState, fleet: FleetSnapshot, query: RouteQuery) -> LeasedRoute:
    """The decision among machines whose address takes a connection from here."""
    unreachable: dict[str, str] = {}
    tried: set[str] = set()
    while True:
        best = state.preview(fleet, query, unreachable).candidates[: max(TRIED_AT_ONCE, query.top)]
        untried = [candidate for candidate in best if candidate.machine not in tried]
        if untried:
            failures = find_unreachable([(item.hostname, item.port) for item in untried])
            for item in untried:
                tried.add(item.machine)
                why = failures.get((item.hostname, item.port))
                if why is not None:
                    unreachable[item.machine] = why
            continue
        found = state.decide(fleet, query, unreachable)
        chosen = found.decision.chosen
        if chosen is None or chosen.machine in tried:
            return found
        if found.lease is not None:  # somebody else's lease brought another one to the top meanwhile
            state.give_back(found.lease)
