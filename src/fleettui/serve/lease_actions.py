"""Leases by POST: a route that keeps others away for a moment, and its end."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.routing import decide_route
from fleettui.fleet.leasing import LeasedRoute, decide_with_lease
from fleettui.fleet.route_knowledge import knowledge_on_demand
from fleettui.model.record import replace
from fleettui.serve.action import Action
from fleettui.serve.answers import SCHEMA, ApiError, json_answer
from fleettui.serve.endpoint import Parameter, Values, positive_seconds
from fleettui.serve.route_routes import ENDPOINTS as ROUTE_ENDPOINTS
from fleettui.serve.route_routes import answer_decision, query_of
from fleettui.store.database import Store, StoreError
from fleettui.store.leases import LOCK_WAIT_S, release_lease

if TYPE_CHECKING:
    from starlette.responses import Response

    from fleettui.model.lease import Lease
    from fleettui.model.route import RouteDecision, RouteQuery
    from fleettui.model.snapshot import FleetSnapshot
    from fleettui.serve.door import Door
    from fleettui.serve.permission import Caller

WHERE = "/api/leases"


async def take_lease(door: Door, caller: Caller, name: str, values: Values) -> Response:
    """As `fleettui route MODEL --json`."""
    began = time.perf_counter()
    found = await route_with_lease(door, caller, values)
    return answer_decision(found.decision, began, found.lease)


async def route_with_lease(door: Door, caller: Caller, values: Values) -> LeasedRoute:
    """Decided and written in one step. Raises ApiError."""
    await door.wait_until_ready()
    fleet, query = await door.fleet(), query_of({**values, "no_lease": False})
    try:
        found = await asyncio.to_thread(_leased_now, door, fleet, query, values["hold"], caller.name)
    except StoreError as error:
        raise _no_state(error) from None
    door.decisions[found.decision.exit_code] += 1
    return found


def _leased_now(
    door: Door, fleet: FleetSnapshot, query: RouteQuery, hold_s: float | None, owner: str
) -> LeasedRoute:
    """The decision and its lease. Takes as long as the disk does. Raises StoreError."""
    with Store.open(door.state_dir, busy_timeout_s=LOCK_WAIT_S) as store:
        known: RouteKnowledge = knowledge_on_demand(store, door.state_dir, door.machines_dir, fleet)

        def decide(leases: tuple[Lease, ...], now: float) -> RouteDecision:
            return decide_route(fleet, query, now, replace(known, leases=leases))

        return decide_with_lease(store, door.machines_dir, decide, hold_s, owner)


async def release(door: Door, caller: Caller, name: str, values: Values) -> Response:
    """As `fleettui route --release LEASE`."""
    lease_id = name.strip().lower()
    try:
        is_released = await asyncio.to_thread(_release, door, lease_id)
    except StoreError as error:
        raise _no_state(error) from None
    if not is_released:
        raise ApiError(
            404, "no_lease", f"no lease {lease_id[:40]!r} holds", where=WHERE,
            why="it was released before, its time is over, or a poll showed its effect",
            hint="nothing is left to do",
        )  # fmt: skip
    return json_answer({"schema": SCHEMA, "released": lease_id})


def _release(door: Door, lease_id: str) -> bool:
    with Store.open(door.state_dir, busy_timeout_s=LOCK_WAIT_S) as store:
        return release_lease(store, door.machines_dir, lease_id)


def _no_state(error: StoreError) -> ApiError:
    """503."""
    return ApiError(
        503, "state", "leases cannot be written", where=WHERE, why=str(error),
        hint="check the disk and the rights of the state folder: fleettui config path",
    )  # fmt: skip


_GONE = {404: "no such lease holds", 503: "the state file cannot be written"}
_LEFT_OUT = ("no_lease", "format", "top")
HOLD = Parameter("hold", "how long the lease holds: 30s, 5m", "number", positive_seconds)

ACTIONS = (
    Action(
        WHERE, "lease", "Route a model and take a lease: who asks next is sent elsewhere.", take_lease,
        parameters=(
            *(item for item in ROUTE_ENDPOINTS[0].parameters if item.name not in _LEFT_OUT),
            HOLD,
        ),
        answers={
            404: "no machine knows the model",
            503: "nobody is eligible now, no machine gave usable data, or the state file cannot be written",
        },
    ),
    Action(f"{WHERE}/{{name}}", "release", "End a lease.", release, answers=_GONE, method="DELETE"),
    Action(f"{WHERE}/{{name}}/release", "release", "End a lease.", release, answers=_GONE),
)  # fmt: skip
