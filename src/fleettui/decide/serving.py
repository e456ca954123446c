"""Which engines of the fleet take requests now, whatever the model: routing's filters without a name."""

from __future__ import annotations

from fleettui.decide.candidates import engine_address
from fleettui.decide.filters import NO_DATA_CODES, age_limit_s, data_age_s, data_rejection, trust_rejection
from fleettui.decide.matching import is_usable_engine
from fleettui.decide.routing import engine_down, operator_rejections
from fleettui.model.route import (
    EXIT_NO_DATA,
    EXIT_NONE_ELIGIBLE,
    EXIT_ROUTED,
    RejectedMachine,
    Rejection,
    RouteQuery,
    ServingEngine,
    ServingList,
)
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot


def list_serving(fleet: FleetSnapshot, now: float) -> ServingList:
    """Every engine that a caller may be sent to. A machine has all reasons that speak against it."""
    query = RouteQuery("")
    limit_s = age_limit_s(query, fleet.interval_s)
    engines: list[ServingEngine] = []
    rejected = []
    for snapshot in fleet.machines:
        machine, age_s = snapshot.machine, data_age_s(snapshot, now)
        rejections = _rejections(snapshot, query, age_s, now, limit_s)
        if rejections:
            rejected.append(RejectedMachine(machine.name, tuple(rejections), age_s))
            continue
        for engine in filter(is_usable_engine, snapshot.engines):
            host, port, url = engine_address(machine, engine)
            engines.append(ServingEngine(machine.name, host, port, url, engine.kind))
    exit_code = EXIT_ROUTED
    if not engines:
        has_no_data = all(NO_DATA_CODES.intersection(item.codes) for item in rejected)
        exit_code = EXIT_NO_DATA if has_no_data else EXIT_NONE_ELIGIBLE
    return ServingList(tuple(engines), tuple(rejected), exit_code)


def _rejections(
    snapshot: MachineSnapshot, query: RouteQuery, age_s: float | None, now: float, limit_s: float
) -> list[Rejection]:
    against = operator_rejections(snapshot, query, now)
    distrust = trust_rejection(snapshot)
    if distrust is not None:
        return [distrust, *against]
    missing = data_rejection(snapshot, query, age_s, now, limit_s)
    if missing is not None:
        return [missing, *against]
    if not any(map(is_usable_engine, snapshot.engines)):
        return [*against, engine_down(snapshot)]
    return against
