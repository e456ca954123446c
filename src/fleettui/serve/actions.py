"""Every address that changes something, and `/api/access`, which says beforehand whether one may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fleettui.serve import attach_lease, drain_actions, lease_actions, machine_actions
from fleettui.serve.action import Action
from fleettui.serve.answers import SCHEMA, ApiError, json_answer
from fleettui.serve.endpoint import Endpoint, Values
from fleettui.serve.fleet_routes import answer_machine
from fleettui.serve.permission import caller_of

if TYPE_CHECKING:
    from fleettui.serve.door import Door

ACTIONS: tuple[Action, ...] = (
    *machine_actions.ACTIONS,
    *drain_actions.ACTIONS,
    *lease_actions.ACTIONS,
    *attach_lease.ACTIONS,
)
_MACHINES = "/api/machines/"


async def answer_access(door: Door, request: Request, values: Values) -> Response:
    """Who the server takes the caller for, and what that caller may do."""
    caller = caller_of(request.scope)
    return json_answer(
        {
            "schema": SCHEMA,
            "caller": caller.name,
            "may_act": caller.may_act,
            "why_not": caller.why_not or None,
            "actions_allowed": door.access.allows_actions,
        }
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    *machine_actions.ENDPOINTS,
    *drain_actions.ENDPOINTS,
    Endpoint(
        "/api/access", "Who you are to this server, and whether you may change something.", answer_access
    ),
)


def action_routes(door: Door) -> list[Route]:
    """To stand in front of the others: their addresses begin like those of machines."""
    routes = []
    for action in ACTIONS:
        is_below_machines = action.path.startswith(_MACHINES)
        methods = [action.method, "GET"] if is_below_machines else [action.method]
        routes.append(Route(action.path, _handle(door, action), methods=methods))
    return routes


def _handle(door: Door, action: Action) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        if request.method == action.method:
            return await action.answer(door, request)
        return await _read_instead(door, action, request)

    return handle


async def _read_instead(door: Door, action: Action, request: Request) -> Response:
    """A machine may be called `ada/drain`; a GET of an action is refused otherwise."""
    name = str(request.scope["path"]).removeprefix(_MACHINES)
    if (await door.fleet()).find(name) is None:
        raise ApiError(
            405, "method", f"{request.method} is not allowed", where=request.url.path[:300],
            why="what changes the fleet is asked by POST", hint="all addresses: GET /api/openapi.json",
            headers={"allow": action.method},
        )  # fmt: skip
    request.path_params["name"] = name
    return await answer_machine(door, request, {})
