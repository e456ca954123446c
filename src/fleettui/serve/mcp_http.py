"""MCP behind one address of the API: streamable HTTP without sessions, so that a restart loses nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from fleettui.serve.answers import ApiError
from fleettui.serve.guard import MAX_BODY_BYTES
from fleettui.serve.mcp_server import make_mcp_server

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import Receive, Scope, Send

    from fleettui.serve.door import Door

PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class McpOverHttp:
    """The address as an application. `Guard` stands in front; the SDK looks at Host and Origin once more."""

    def __init__(self, door: Door) -> None:
        self._trusted = TransportSecuritySettings(enable_dns_rebinding_protection=True)
        self._trust((*_LOOPBACK, *door.access.host_names))
        self._sessions = StreamableHTTPSessionManager(
            app=make_mcp_server(door),
            json_response=True,
            stateless=True,
            security_settings=self._trusted,
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
        server = scope.get("server")
        if server and server[1]:  # TCP; what it is asked at is an address of this machine
            self._trust((f"[{server[0]}]" if ":" in server[0] else server[0],))
        await self._sessions.handle_request(scope, receive, send)

    def _trust(self, hosts: Iterable[str]) -> None:
        trusted = self._trusted
        for host in hosts:
            if host not in trusted.allowed_hosts:
                trusted.allowed_hosts += [host, f"{host}:*"]
                for scheme in ("http", "https"):
                    trusted.allowed_origins += [f"{scheme}://{host}", f"{scheme}://{host}:*"]
