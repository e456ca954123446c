"""uvicorn in an event loop that is ours: no signal handlers, no log lines, limits for slow clients."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from fleettui.fleet.pace import be_quick
from fleettui.serve.guard import MAX_HEADER_BYTES

if TYPE_CHECKING:
    from starlette.types import ASGIApp

MAX_CONNECTIONS = 1024
REQUEST_S = 10.0
"""A request line and headers must be there by then."""
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
        be_quick(self.loop)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        be_quick(self.loop)
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
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

    def _expect_request(self) -> None:
        if self._asking is None:
            self._asking = self.loop.call_later(REQUEST_S, self._abort)

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _abort(self) -> None:
        self.transport.abort()  # close() would wait for the client to read


class OwnServer(Server):
    """Signals are for whoever runs the event loop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_http_server(app: ASGIApp) -> OwnServer:
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
    return OwnServer(Config(app, **options))
