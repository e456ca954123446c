"""`/api/attach/lease`: a routed answer with its lease, as `fleettui route` prints it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from fleettui.model.clock import iso_utc
from fleettui.serve.action import Action
from fleettui.serve.attach_routes import printed_answer
from fleettui.serve.endpoint import Parameter, Values, positive_seconds
from fleettui.serve.lease_actions import leased_now, no_state
from fleettui.serve.route_routes import ENDPOINTS as ROUTE_ENDPOINTS
from fleettui.serve.route_routes import query_of
from fleettui.store.database import StoreError

if TYPE_CHECKING:
    from starlette.responses import Response

    from fleettui.serve.door import Door
    from fleettui.serve.permission import Caller


async def take_lease(door: Door, caller: Caller, name: str, values: Values) -> Response:
    """Decided and written in one step."""
    began = time.perf_counter()
    await door.wait_until_ready()
    fleet, query = await door.fleet(), query_of({**values, "no_lease": False})
    try:
        found = await asyncio.to_thread(leased_now, door, fleet, query, values["hold"], caller.name)
    except StoreError as error:
        raise no_state(error) from None
    door.decisions[found.decision.exit_code] += 1
    lease = found.lease
    told = None if lease is None else {"id": lease.id, "until": iso_utc(lease.until)}
    more = []
    if lease is not None:
        more.append(f"lease {lease.id} on {lease.machine} for {lease.until - time.time():.0f} s")
    return await asyncio.to_thread(printed_answer, found.decision, values["format"], began, told, more)


ACTIONS = (
    Action(
        "/api/attach/lease",
        "lease",
        "For fleettui: a routed answer with its lease, as `fleettui route` prints it.",
        take_lease,
        parameters=(
            *(item for item in ROUTE_ENDPOINTS[0].parameters if item.name != "no_lease"),
            Parameter("hold", "how long the lease holds: 30s, 5m", "number", positive_seconds),
        ),
        answers={503: "the state file cannot be written"},
    ),
)
