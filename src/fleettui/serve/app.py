"""The application: every address, what is in front of them, and running it beside the pollers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import cache
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fleettui.fleet.own_machine import OwnMachine
from fleettui.serve import attach_routes, event_routes, fleet_routes, plan_routes, route_routes
from fleettui.serve.actions import ACTIONS, action_routes
from fleettui.serve.actions import ENDPOINTS as ACTION_ENDPOINTS
from fleettui.serve.answers import ApiError, bytes_answer, encode_document
from fleettui.serve.door import Door
from fleettui.serve.endpoint import Endpoint, Values
from fleettui.serve.guard import Guard, defect_answer
from fleettui.serve.http_server import GRACE_S, make_http_server
from fleettui.serve.metrics import routes as metrics_routes
from fleettui.serve.openapi import describe
from fleettui.serve.stream_hub import StreamHub

if TYPE_CHECKING:
    from fleettui.fleet.service import FleetService
    from fleettui.serve.mcp_http import McpOverHttp
    from fleettui.serve.terms import Entrance


async def answer_openapi(door: Door, request: Request, values: Values) -> Response:
    """The description of all addresses."""
    return bytes_answer(_description())


@cache
def _description() -> bytes:
    return encode_document(describe(ENDPOINTS, ACTIONS)) + b"\n"


ENDPOINTS: tuple[Endpoint, ...] = (
    *fleet_routes.ENDPOINTS,
    *route_routes.ENDPOINTS,
    *plan_routes.ENDPOINTS,
    *event_routes.ENDPOINTS,
    *attach_routes.ENDPOINTS,
    *metrics_routes.ENDPOINTS,
    *ACTION_ENDPOINTS,
    Endpoint("/api/openapi.json", "This description.", answer_openapi),
)


def make_app(door: Door, mcp: McpOverHttp | None = None) -> Guard:
    """The whole application, for any ASGI server. `mcp`: it is running, and has an address."""
    tools = [] if mcp is None else [Route("/mcp", endpoint=mcp)]
    app = Starlette(
        routes=[
            *tools,
            *action_routes(door),
            *(Route(item.path, _handle(door, item), methods=["GET"]) for item in ENDPOINTS),
        ],
        exception_handlers={
            ApiError: _answer_api_error,
            HTTPException: _answer_http_error,
            Exception: _answer_defect,
        },
    )
    app.router.redirect_slashes = False
    return Guard(app, door.access, door.audit)


def _handle(door: Door, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        return await endpoint.handler(door, request, endpoint.read(request))

    return handle


async def _answer_api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)  # noqa: S101 - Starlette chose by its class
    return error.answer()


async def _answer_defect(request: Request, error: Exception) -> Response:
    """Starlette raises it again behind the answer, and `Guard` logs it."""
    return defect_answer(error, request.url.path).answer()


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - Starlette chose by its class
    where = request.url.path[:300]
    if error.status_code == 405:
        told = ApiError(
            405, "method", f"{request.method} is not allowed", where=where,
            why=f"this address takes {(error.headers or {}).get('Allow', 'GET')}",
            hint="all addresses: GET /api/openapi.json", headers=error.headers,
        )  # fmt: skip
    else:
        hint = "all addresses: GET /api/openapi.json"
        told = ApiError(
            error.status_code, "not_found", "there is nothing at this address", where=where,
            why="no address of the API is called so", hint=hint,
        )  # fmt: skip
    return told.answer()


async def serve_fleet(
    service: FleetService,
    state_dir: str,
    entrance: Entrance,
    when_ready: Callable[[], None],
    *,
    has_mcp: bool = False,
) -> int:
    """Poll and answer until cancelled; then streams, requests and connections end, in that order."""
    own, hub = OwnMachine(service), StreamHub(service)
    door = Door(service, state_dir, service.settings.machines_dir, own, hub, entrance.access)
    running, mcp = AsyncExitStack(), None
    if has_mcp:
        from fleettui.serve.mcp_http import McpOverHttp

        mcp = McpOverHttp(door)
    server = make_http_server(make_app(door, mcp), entrance.tls)
    serving: asyncio.Task[None] | None = None
    try:
        await service.start()
        if mcp is not None:
            await running.enter_async_context(mcp.running())
        serving = asyncio.create_task(server.serve(sockets=[*entrance.listeners]), name="http server")
        when_ready()
        await asyncio.wait([serving])
        serving.result()
        return 1  # it never ends by itself
    finally:
        hub.close()
        server.should_exit = True
        if serving is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([serving], timeout=2 * GRACE_S + 1)
        await running.aclose()
        entrance.close()
        await own.close()
        await service.stop()
