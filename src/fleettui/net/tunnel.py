"""GETs over kept streams: direct-tcpip channels of an SSH connection, or plain sockets on this machine.

One idle stream is kept per port; a second GET at the same time gets a stream of its own, so that a slow
`/api/tags` never delays `/api/ps`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from fleettui.net.errors import HttpFailure
from fleettui.net.http1 import AnswerReader, HttpClosed, HttpProtocolError, HttpTooLarge, encode_get
from fleettui.net.link import Header, HttpAnswer

LOOPBACKS = ("127.0.0.1", "::1")


class ByteTransport(Protocol):
    """What asyncio transports and SSH channels have in common."""

    def write(self, data: bytes) -> None: ...

    def abort(self) -> None: ...


StreamOpener = Callable[[Callable[[], "HttpStream"], str, int], Awaitable[None]]
"""Opens a stream to (host, port) on the machine; raises HttpFailure."""


class HttpStream(asyncio.Protocol):
    """One stream that carries one GET at a time. Serves as asyncio protocol and as SSH session."""

    def __init__(self) -> None:
        self._transport: ByteTransport | None = None
        self._reader: AnswerReader | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.is_open = False

    async def ask(self, request: bytes) -> AnswerReader:
        """Send a request, wait for the whole answer. Raises HttpProtocolError, HttpTooLarge."""
        if self._transport is None or not self.is_open:
            raise HttpClosed("closed")
        reader = self._reader = AnswerReader()
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        try:
            self._transport.write(request)
            await waiter
        except OSError as error:
            raise HttpClosed(str(error)) from None
        finally:
            self._waiter = None
            if not (reader.is_complete and reader.can_reuse and self.is_open):
                self.close()
        return reader

    def close(self) -> None:
        """Drop the stream at once."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.is_open = True

    def session_started(self) -> None:
        """Part of an SSH session's interface; nothing to do."""

    def data_received(self, data: bytes, datatype: Any = None) -> None:
        waiter = self._waiter
        if waiter is None or self._reader is None or waiter.done():
            self.close()  # nobody asked: whatever it is, the stream is out of step
            return
        try:
            self._reader.receive_data(data)
        except (HttpProtocolError, HttpTooLarge) as error:
            waiter.set_exception(error)
            return
        if self._reader.is_complete:
            waiter.set_result(None)

    def eof_received(self) -> bool:
        self._end()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._transport = None

    def _end(self) -> None:
        self.is_open = False
        waiter = self._waiter
        if waiter is None or self._reader is None or waiter.done():
            self.close()
            return
        try:
            self._reader.receive_end()
        except HttpProtocolError as error:
            waiter.set_exception(error)
        else:
            waiter.set_result(None)


class KeptHttp:
    """GETs on one machine's loopback."""

    def __init__(self, opener: StreamOpener, where: str) -> None:
        self._opener = opener
        self._where = where
        """Machine's name in messages."""
        self._idle: dict[int, HttpStream] = {}
        self._is_closed = False
        self._hosts: dict[int, str] = {}
        """Loopback address that answered, per port."""

    async def get(self, port: int, path: str, headers: Sequence[Header], timeout_s: float) -> HttpAnswer:
        """One GET; raises HttpFailure."""
        try:
            async with asyncio.timeout(timeout_s):
                reader = await self._ask(port, path, headers)
        except TimeoutError:
            raise HttpFailure(
                "timeout", f"{self._where}:{port}{path}: no answer within {timeout_s:g} s"
            ) from None
        except HttpTooLarge as error:
            raise HttpFailure("too_large", f"{self._where}:{port}{path}: {error}") from None
        except HttpClosed as error:
            raise HttpFailure("lost", f"{self._where}:{port}{path}: {error}") from None
        except HttpProtocolError as error:
            raise HttpFailure("protocol", f"{self._where}:{port}{path}: {error}") from None
        return HttpAnswer(reader.status, reader.headers, reader.body, time.time())

    def close(self) -> None:
        """Drop every kept stream."""
        self._is_closed = True
        for stream in self._idle.values():
            stream.close()
        self._idle.clear()

    async def _ask(self, port: int, path: str, headers: Sequence[Header]) -> AnswerReader:
        request = encode_get(port, path, headers)
        kept = self._idle.pop(port, None)
        if kept is not None and kept.is_open:
            try:
                return await self._ask_on(kept, port, request)
            except HttpClosed:
                # The engine may close a kept stream just as we write (vLLM: after 5 s idle). A GET may be
                # sent again.
                pass
        return await self._ask_on(await self._open(port), port, request)

    async def _ask_on(self, stream: HttpStream, port: int, request: bytes) -> AnswerReader:
        reader = await stream.ask(request)
        if stream.is_open:
            spare = self._idle.get(port)
            if self._is_closed or (spare is not None and spare.is_open):
                stream.close()
            else:
                self._idle[port] = stream
        return reader

    async def _open(self, port: int) -> HttpStream:
        """A stream to the port: IPv4 loopback first, then IPv6, the one that worked first the next time."""
        known = self._hosts.get(port)
        order = LOOPBACKS if known != LOOPBACKS[1] else LOOPBACKS[::-1]
        failure = HttpFailure("refused", f"{self._where}: nothing listens on port {port}")
        for host in order:
            stream = HttpStream()
            try:
                await self._opener(lambda stream=stream: stream, host, port)  # type: ignore[misc]
            except HttpFailure as error:
                if error.kind != "refused":
                    raise
                failure = error
            else:
                self._hosts[port] = host
                return stream
        raise failure
