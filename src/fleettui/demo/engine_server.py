"""HTTP/1.1 in front of the engines' stand-ins: keep-alive, one answer after the other on a connection."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from email.utils import formatdate

from fleettui.demo.clock import DemoClock
from fleettui.demo.engine_api import EngineApi
from fleettui.demo.listeners import BACKLOG, LoopbackPort
from fleettui.demo.machine import SimulatedMachine
from fleettui.demo.replies import NDJSON_TYPE, Answer, Reply, StreamedReply
from fleettui.demo.side_api import SideApi

REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 500: "Internal Server Error",
           502: "Bad Gateway", 503: "Service Unavailable"}  # fmt: skip
MAX_BODY = 8 << 20
MAX_HEAD = 32 << 10


def response_head(status: int, content_type: str, date_s: float, length: int | None) -> bytes:
    """Status line and headers; without a length the body comes in chunks."""
    body = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return (
        f"HTTP/1.1 {status} {REASONS.get(status, 'Error')}\r\nContent-Type: {content_type}\r\n"
        f"Date: {formatdate(date_s, usegmt=True)}\r\n{body}\r\n\r\n"
    ).encode("ascii")


def whole_answer(reply: Reply, date_s: float) -> bytes:
    """A complete HTTP answer."""
    return response_head(reply.status, reply.content_type, date_s, len(reply.body)) + reply.body


class EngineConnection(asyncio.Protocol):
    """One connection to an engine."""

    def __init__(self, engine: EngineServer):
        self._engine = engine
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self.is_observer = False
        """It says so: a test that looks on, and is no client."""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 (create_server gives nothing else)
        self.transport = transport
        self._engine.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone: what it waited for ends, as in Ollama."""
        self._engine.connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._serve_next()

    def _serve_next(self) -> None:
        """Serves complete requests until one has to wait."""
        while self._task is None and self.transport is not None and not self.transport.is_closing():
            request = self._take_request()
            if request is None:
                return
            method, path, body, is_last = request
            answer = self._engine.api.answer(method, path, body)
            if isinstance(answer, Reply):
                self._send(answer, method == "HEAD")
                if is_last:
                    self.transport.close()
            else:
                self._task = asyncio.ensure_future(self._serve_later(answer, is_last))

    def _take_request(self) -> tuple[str, str, bytes, bool] | None:
        """Method, path, body and whether the connection ends with it; None: not there yet."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                self._refuse()
            return None
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines[1:])
        }
        self.is_observer = "x-observer" in headers
        length = headers.get("content-length", "0")
        if (
            len(words) != 3
            or not length.isdigit()
            or int(length) > MAX_BODY
            or "transfer-encoding" in headers
        ):
            self._refuse()
            return None
        until = end + 4 + int(length)
        if len(self._buffer) < until:
            return None
        body = bytes(self._buffer[end + 4 : until])
        del self._buffer[:until]
        is_last = headers.get("connection", "").lower() == "close" or words[2] == "HTTP/1.0"
        return words[0], words[1], body, is_last

    def _refuse(self) -> None:
        self._buffer.clear()
        if self.transport is not None:
            self._send(Reply(b"400 Bad Request", 400, "text/plain; charset=utf-8"), False)
            self.transport.close()

    def _send(self, reply: Reply, is_head_only: bool) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        date_s = self._engine.date_s()
        if is_head_only:
            self.transport.write(response_head(reply.status, reply.content_type, date_s, len(reply.body)))
        else:
            self.transport.write(whole_answer(reply, date_s))

    async def _serve_later(self, answer: object, is_last: bool) -> None:
        """An answer that has to wait for a model, or comes in pieces."""
        result: Answer = await answer if inspect.isawaitable(answer) else answer  # type: ignore[assignment]
        if isinstance(result, StreamedReply):
            await self._stream(result.lines)
        else:
            self._send(result, False)
        self._task = None
        if is_last and self.transport is not None:
            self.transport.close()
        self._serve_next()

    async def _stream(self, lines: AsyncIterator[bytes]) -> None:
        if self.transport is None:
            return
        self.transport.write(response_head(200, NDJSON_TYPE, self._engine.date_s(), None))
        async for line in lines:
            self.transport.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.transport.write(b"0\r\n\r\n")


class EngineServer:
    """The port of one engine of a machine."""

    def __init__(self, machine: SimulatedMachine, clock: DemoClock, api: EngineApi | SideApi | None = None):
        self.machine = machine
        self.clock = clock
        self.api = api or EngineApi(machine, clock)
        self.port = LoopbackPort()
        self.connections: set[EngineConnection] = set()
        self._server: asyncio.Server | None = None

    @property
    def client_count(self) -> int:
        """Connections that the machine's list of sockets shows."""
        return sum(not connection.is_observer for connection in self.connections)

    def date_s(self) -> float:
        """The machine's clock."""
        return self.clock.wall_at(self.clock.now())

    async def open(self) -> None:
        """Listens."""
        sock = self.port.open_socket()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: EngineConnection(self), sock=sock, backlog=BACKLOG)

    def close(self, *, is_silent: bool = False, keep_port: bool = True) -> None:
        """Stops listening. Silent: clients keep their connections and hear nothing more."""
        if keep_port:
            self.port.keep(is_silent)
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self.connections):
            if connection.transport is None:
                continue
            if is_silent:
                connection.transport.pause_reading()
            else:
                connection.transport.abort()

    def resume(self) -> None:
        """Silent connections are answered again."""
        for connection in self.connections:
            if connection.transport is not None:
                connection.transport.resume_reading()
