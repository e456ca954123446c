"""MCP behind one address of the API: streamable HTTP without sessions, so that a restart loses nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from fleettui.serve.answers import ApiError
from fleettui.serve.guard import MAX_BODY_BYTES
from fleettui.serve.mcp_server import make_mcp_server

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from fleettui.serve.door import Door

PATH = "/mcp"


class McpOverHttp:
    """The address as an application. `Guard` stands in front and judges Host and Origin. The SDK's own check
    compares words: it would refuse an IPv4 address asked on a socket of IPv6, or a name in capitals."""

    def __init__(self, door: Door) -> None:
        self._sessions = StreamableHTTPSessionManager(
            app=make_mcp_server(door),
            json_response=True,
            stateless=True,
            max_request_body_size=MAX_BODY_BYTES,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Requests are answered within."""
        async with self._sessions.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises ApiError for anything but POST: no stream is kept, and there is no session to end."""
        if scope["method"] != "POST":
            raise ApiError(
                405, "method", f"{scope['method']} is not allowed", where=PATH,
                why="MCP is spoken by POST here, without sessions and without a stream",
                hint="point an MCP client at this address (docs/mcp.md)", headers={"allow": "POST"},
            )  # fmt: skip
        await self._sessions.handle_request(scope, receive, send)
