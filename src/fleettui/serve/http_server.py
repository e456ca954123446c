"""uvicorn in an event loop that is ours: no signal handlers, no log lines, limits for slow clients."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from fleettui.fleet.pace import be_quick
from fleettui.serve.guard import MAX_HEADER_BYTES
from fleettui.serve.listening import read_address
from fleettui.serve.permission import PEER

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from fleettui.serve.tls import TlsFiles

MAX_CONNECTIONS = 1024
MAX_OF_ONE_ADDRESS = 128
"""Beyond loopback: one client must not take all places."""
REQUEST_S = 10.0
"""A request, with headers and body, must be there by then, and so must a TLS handshake."""
TLS_AGAIN_TICKS = 600
"""Of 0.1 s: how often certificates are looked at again."""
UNREAD_S = 60.0
"""A client that takes nothing for so long is gone, or keeps memory on purpose."""
IDLE_S = 30.0
GRACE_S = 2.0


class PatientProtocol(H11Protocol):
    """Ends connections that hold a place and do nothing."""

    _asking: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        uid = peer_uid(transport)
        if uid is not None:
            self.app_state = {**self.app_state, PEER: uid}
        elif self._is_one_too_many():
            transport.abort()
            return
        be_quick(self.loop)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        be_quick(self.loop)
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._expect_request()
        elif self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(UNREAD_S, self._abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_unread()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_unread()
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None
        super().connection_lost(exc)

    def _is_one_too_many(self) -> bool:
        host = self.client[0] if self.client else ""
        address = read_address(host)
        if address is None or address.is_loopback:  # many users, and tunnels
            return False
        return sum(_host_of(other) == host for other in self.connections) > MAX_OF_ONE_ADDRESS

    def _expect_request(self) -> None:
        if self._asking is None:
            self._asking = self.loop.call_later(REQUEST_S, self._abort)

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _abort(self) -> None:
        self.transport.abort()  # close() would wait for the client to read


def _host_of(protocol: object) -> str | None:
    client = getattr(protocol, "client", None)
    return client[0] if client else None


def peer_uid(transport: asyncio.BaseTransport) -> int | None:
    """The user at the other end of a Unix socket, as the kernel says; None: it is no Unix socket."""
    ours = transport.get_extra_info("socket")
    if ours is None or ours.family != socket.AF_UNIX:
        return None
    _, uid, _ = struct.unpack("3i", ours.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)


class OwnServer(Server):
    """Signals are for whoever runs the event loop; TLS is on TCP alone."""

    def __init__(self, config: Config, tls: TlsFiles | None = None) -> None:
        super().__init__(config)
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does it for sockets that listen already, each with what belongs to it."""
        loop, config = asyncio.get_running_loop(), self.config
        self.servers = []
        for listener in sockets or []:
            tls: dict[str, Any] = {}
            if self._tls is not None and listener.family != socket.AF_UNIX:
                tls = {"ssl": self._tls.context, "ssl_handshake_timeout": REQUEST_S}
            made = await loop.create_server(self._make_protocol, sock=listener, backlog=config.backlog, **tls)
            self.servers.append(made)
        self.started = True

    def _make_protocol(self) -> asyncio.Protocol:
        return PatientProtocol(self.config, self.server_state, self.lifespan.state)

    async def on_tick(self, counter: int) -> bool:
        if self._tls is not None and counter % TLS_AGAIN_TICKS == 0:
            self._tls.follow()
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_http_server(app: ASGIApp, tls: TlsFiles | None = None) -> OwnServer:
    """A server for sockets that listen already: `await server.serve(sockets=[…])`."""
    # What it has to say belongs to clients, each of whom could fill a log: bad requests, broken connections.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    options: dict[str, Any] = {
        "http": PatientProtocol,
        "ws": "none",
        "lifespan": "off",
        "log_config": None,
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        "limit_concurrency": MAX_CONNECTIONS,
        "timeout_keep_alive": int(IDLE_S),
        "timeout_graceful_shutdown": int(GRACE_S),
        "h11_max_incomplete_event_size": MAX_HEADER_BYTES,
    }
    return OwnServer(Config(app, **options), tls)
