"""What is decided on the newest snapshot, whoever asks: where a model should be served, where it fits."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from fleettui.decide.fit_report import judge_fleet
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.routing import decide_route
from fleettui.fleet.route_knowledge import digests_of, knowledge_on_demand, load_knowledge
from fleettui.model.record import replace
from fleettui.store.database import Store, StoreError
from fleettui.store.leases import load_leases

if TYPE_CHECKING:
    from fleettui.model.fit import FitQuery, FitReport
    from fleettui.model.route import RouteDecision, RouteQuery
    from fleettui.model.snapshot import FleetSnapshot
    from fleettui.serve.door import Door

SHAPES_S = 5.0
"""What a model is made of is waited for so long."""


async def decide_now(door: Door, query: RouteQuery) -> RouteDecision:
    """With the leases of others in view; takes none."""
    await door.wait_until_ready()
    fleet = await door.fleet()
    decision = await asyncio.to_thread(_decide, door, fleet, query)
    door.decisions[decision.exit_code] += 1
    return decision


def _decide(door: Door, fleet: FleetSnapshot, query: RouteQuery) -> RouteDecision:
    """Takes as long as the disk does. What cannot be read is not known, as with `--route`."""
    now = time.time()
    known = RouteKnowledge(catalog=fleet.catalog)
    try:
        store = Store.open_readonly(door.state_dir)
        if store is not None:
            with store:
                known = knowledge_on_demand(store, door.state_dir, door.machines_dir, fleet)
                known = replace(known, leases=load_leases(store, door.machines_dir, now))
    except StoreError:
        pass  # told among the notices of /health: snapshots cannot be stored either
    return decide_route(fleet, query, now, known)


async def fit_now(door: Door, query: FitQuery) -> FitReport:
    """As `fleettui fit`; an engine is asked what the model is made of where nobody knows yet."""
    await door.wait_until_ready()
    fleet = await door.fleet()
    known = await asyncio.to_thread(_known, door, fleet, query.model)
    missing = {digest for digest in digests_of(fleet, query.model) if digest not in known.shapes}
    if missing and door.service.shapes is not None:
        with suppress(TimeoutError):
            async with asyncio.timeout(SHAPES_S):
                await door.service.shapes.ask_for(missing)
        known = await asyncio.to_thread(_known, door, fleet, query.model)
    return await asyncio.to_thread(judge_fleet, fleet, query, time.time(), known)


def _known(door: Door, fleet: FleetSnapshot, model: str) -> RouteKnowledge:
    try:
        store = Store.open_readonly(door.state_dir)
        if store is not None:
            with store:
                return load_knowledge(store, door.machines_dir, fleet, model)
    except StoreError:
        pass  # as above
    return RouteKnowledge(catalog=fleet.catalog)
