"""May an asker stop waiting? Only where none of the machines that have not answered could be better."""

from __future__ import annotations

from operator import attrgetter

from fleettui.decide.knowledge import NOTHING_KNOWN, RouteKnowledge
from fleettui.decide.ranking import order_key
from fleettui.decide.routing import decide_route
from fleettui.model.record import replace
from fleettui.model.route import TIER_RESIDENT, RouteDecision
from fleettui.model.snapshot import FleetSnapshot

_declared_values = attrgetter("role", "hostname", "port", "models", "tags", "disabled_gpus", "engines")
"""What routing reads of a machine file; no more of it is in a snapshot that was stored for routing."""


def cannot_be_beaten(
    fleet: FleetSnapshot,
    decision: RouteDecision,
    last_known: FleetSnapshot | None,
    knowledge: RouteKnowledge = NOTHING_KNOWN,
) -> bool:
    """True when a machine of tier 0 answered, and by its last known state no other one is better.

    `decision` is that of `fleet` so far, with the same knowledge. A machine of which nothing is known might
    be better; one that has something else against it already, a flag or the caller's wishes, is not waited
    for.
    """
    chosen, query = decision.chosen, decision.query
    if chosen is None or chosen.tier != TIER_RESIDENT:
        return False
    waiting = {item.machine for item in decision.rejected if item.codes == ("timeout",)}
    if not waiting:
        return True
    if query.is_strict or query.sticky is not None or query.top > 1 or last_known is None:
        return False
    now_of = {item.name: item for item in fleet.machines}
    machines = [
        replace(item, trust="approved", maintenance=None, drain=None)  # none speaks against it now
        for item in last_known.machines
        if item.name in waiting
    ]
    if len(machines) < len(waiting) or any(
        _declared_values(item.machine) != _declared_values(now_of[item.name].machine) for item in machines
    ):
        return False
    by_last = replace(last_known, machines=tuple(machines))
    # Nothing that has to be loaded first could be better.
    resident = replace(query, max_age_s=float("inf"), require_loaded=True, takes_lease=True)
    last = decide_route(by_last, resident, decision.decided_at, knowledge)
    return all(order_key(candidate) > order_key(chosen) for candidate in last.candidates)
