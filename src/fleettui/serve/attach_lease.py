"""`/api/attach/lease`: a routed answer with its lease, as `fleettui route` prints it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from fleettui.serve.action import Action
from fleettui.serve.attach_routes import printed_answer
from fleettui.serve.endpoint import Values
from fleettui.serve.lease_actions import HOLD, route_with_lease
from fleettui.serve.route_routes import ENDPOINTS as ROUTE_ENDPOINTS

if TYPE_CHECKING:
    from starlette.responses import Response

    from fleettui.serve.door import Door
    from fleettui.serve.permission import Caller


async def take_lease(door: Door, caller: Caller, name: str, values: Values) -> Response:
    """Decided and written in one step."""
    began = time.perf_counter()
    found = await route_with_lease(door, caller, values)
    return await asyncio.to_thread(printed_answer, found.decision, values["format"], began, found.lease)


ACTIONS = (
    Action(
        "/api/attach/lease",
        "lease",
        "For fleettui: a routed answer with its lease, as `fleettui route` prints it.",
        take_lease,
        parameters=(
            *(item for item in ROUTE_ENDPOINTS[0].parameters if item.name != "no_lease"),
            HOLD,
        ),
        answers={503: "the state file cannot be written"},
    ),
)
