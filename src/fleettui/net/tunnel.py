"""GETs over kept streams: direct-tcpip channels of an SSH connection, or plain sockets on this machine.

One idle stream is kept per port; a second GET at the same time gets a stream of its own, so that a slow
`/api/tags` never delays `/api/ps`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from fleettui.net.errors import HttpFailure, HttpFailureKind
from fleettui.net.http1 import (
    MAX_BODY_BYTES,
    AnswerReader,
    HttpClosed,
    HttpProtocolError,
    HttpTooLarge,
    encode_get,
    encode_post,
)
from fleettui.net.link import GetCallback, Header, HttpAnswer

LOOPBACKS = ("127.0.0.1", "::1")
OWN_HOST_WAIT_S = 1.0
OWN_HOST_PERIOD_S = 30.0
COUNTED_AFTER_S = 3.0
"""A stream that ended may still be among the connections that the machine counted."""


class ByteTransport(Protocol):
    """What asyncio transports and SSH channels have in common."""

    def write(self, data: bytes) -> None: ...

    def abort(self) -> None: ...


HttpError = HttpProtocolError | HttpTooLarge
AnswerCallback = Callable[[AnswerReader | HttpError], None]

StreamOpener = Callable[[Callable[[], "HttpStream"], str, int], Awaitable[None]]
"""Opens a stream to (host, port) on the machine; raises HttpFailure."""


class HttpStream(asyncio.Protocol):
    """One stream that carries one GET at a time. Serves as asyncio protocol and as SSH session."""

    def __init__(self) -> None:
        self._transport: ByteTransport | None = None
        self._reader: AnswerReader | None = None
        self._on_done: AnswerCallback | None = None
        self.is_open = False
        self.ended_at = 0.0
        """By the monotonic clock, once it was open and is no more."""

    def start(self, request: bytes, on_done: AnswerCallback, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        """Send a request; `on_done` is called once, with the answer or why there is none."""
        if self._transport is None or not self.is_open:
            on_done(HttpClosed("closed"))
            return
        self._reader = AnswerReader(max_body_bytes)
        self._on_done = on_done
        try:
            self._transport.write(request)
        except OSError as error:
            self._finish(HttpClosed(str(error)))

    async def ask(self, request: bytes, max_body_bytes: int = MAX_BODY_BYTES) -> AnswerReader:
        """Send a request, wait for the whole answer. Raises HttpProtocolError, HttpTooLarge."""
        waiter: asyncio.Future[AnswerReader] = asyncio.get_running_loop().create_future()

        def settle(outcome: AnswerReader | HttpError) -> None:
            if waiter.done():
                return
            if isinstance(outcome, AnswerReader):
                waiter.set_result(outcome)
            else:
                waiter.set_exception(outcome)

        self.start(request, settle, max_body_bytes)
        try:
            return await waiter
        except asyncio.CancelledError:
            self.close()
            raise

    def close(self) -> None:
        """Drop the stream at once; a request on it gets no answer any more."""
        self._note_end()
        self._on_done = self._reader = None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.is_open = True

    def session_started(self) -> None:
        """Part of an SSH session's interface; nothing to do."""

    def data_received(self, data: bytes, datatype: Any = None) -> None:
        if self._on_done is None or self._reader is None:
            self.close()  # nobody asked: whatever it is, the stream is out of step
            return
        try:
            self._reader.receive_data(data)
        except (HttpProtocolError, HttpTooLarge) as error:
            self._finish(error)
            return
        if self._reader.is_complete:
            self._finish(self._reader)

    def eof_received(self) -> bool:
        self._end()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._transport = None

    def _note_end(self) -> None:
        if self.is_open:
            self.ended_at = time.monotonic()
        self.is_open = False

    def _end(self) -> None:
        self._note_end()
        if self._on_done is None or self._reader is None:
            self.close()
            return
        try:
            self._reader.receive_end()
        except HttpProtocolError as error:
            self._finish(error)
        else:
            self._finish(self._reader)

    def _finish(self, outcome: AnswerReader | HttpError) -> None:
        on_done, self._on_done, self._reader = self._on_done, None, None  # the answer may have megabytes
        if not (isinstance(outcome, AnswerReader) and outcome.can_reuse and self.is_open):
            self.close()
        if on_done is not None:
            on_done(outcome)


class KeptHttp:
    """GETs on one machine's loopback."""

    def __init__(self, opener: StreamOpener, where: str, own_host: str = "") -> None:
        self._opener = opener
        self._where = where
        """Machine's name in messages."""
        self._idle: dict[int, HttpStream] = {}
        self._deadlines: dict[HttpStream, tuple[float, Callable[[], None]]] = {}
        """Of GETs in flight that have no task."""
        self._timer: asyncio.TimerHandle | None = None
        self._requests: dict[tuple[int, str], bytes] = {}
        self._is_closed = False
        self._hosts: dict[int, str] = {}
        """Address that answered, per port."""
        self._own_host = own_host
        """The machine's own name or address, for an engine that is bound to that alone; "": none to try."""
        self._own_host_due: dict[int, float] = {}
        self._streams: dict[int, list[HttpStream]] = {}
        """Opened to each port; those that ended are swept out now and then."""

    async def get(self, port: int, path: str, headers: Sequence[Header], timeout_s: float) -> HttpAnswer:
        """One GET; raises HttpFailure."""
        try:
            async with asyncio.timeout(timeout_s):
                reader = await self._ask(port, path, headers)
        except TimeoutError:
            raise self._explain_timeout(port, path, timeout_s) from None
        except (HttpProtocolError, HttpTooLarge) as error:
            raise self._explain(port, path, error) from None
        return _answer_of(reader)

    async def post(
        self,
        port: int,
        path: str,
        body: bytes,
        headers: Sequence[Header],
        timeout_s: float,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> HttpAnswer:
        """One POST of JSON on a stream of its own, never sent twice; raises HttpFailure."""
        request = encode_post(port, path, body, (("Connection", "close"), *headers))
        try:
            async with asyncio.timeout(timeout_s):
                stream = await self._open(port)
                try:
                    reader = await stream.ask(request, max_body_bytes)
                finally:
                    stream.close()
        except TimeoutError:
            raise self._explain_timeout(port, path, timeout_s) from None
        except (HttpProtocolError, HttpTooLarge) as error:
            raise self._explain(port, path, error) from None
        return _answer_of(reader)

    def start_get(
        self,
        port: int,
        path: str,
        on_answer: GetCallback,
        timeout_s: float,
        headers: Sequence[Header] = (),
    ) -> bool:
        """One GET on the kept stream, without a task: a tenth of a poll's CPU less. False when none is idle.

        `on_answer` is called once, unless everything is closed before; failure `lost` may be the stream's
        own end, so that a `get` may still succeed.
        """
        stream = self._idle.pop(port, None)
        if stream is None or not stream.is_open:
            return False

        def expire() -> None:
            stream.close()
            on_answer(self._explain_timeout(port, path, timeout_s))

        def finish(outcome: AnswerReader | HttpError) -> None:
            del self._deadlines[stream]
            if not isinstance(outcome, AnswerReader):
                on_answer(self._explain(port, path, outcome))
                return
            self._keep(port, stream)
            on_answer(_answer_of(outcome))

        self._deadlines[stream] = (asyncio.get_running_loop().time() + timeout_s, expire)
        if self._timer is None:
            self._arm()
        request = encode_get(port, path, headers) if headers else self._request_for(port, path)
        stream.start(request, finish)
        return True

    def _arm(self) -> None:
        """One timer for all, moved when it fires, so that a GET costs none."""
        due_at = min((due_at for due_at, _ in self._deadlines.values()), default=None)
        loop = asyncio.get_running_loop()
        self._timer = None if due_at is None else loop.call_at(due_at, self._expire)

    def _expire(self) -> None:
        now = asyncio.get_running_loop().time()
        for stream, (due_at, expire) in tuple(self._deadlines.items()):
            if due_at <= now and stream in self._deadlines:  # the one before may have closed all
                del self._deadlines[stream]
                expire()
        self._arm()

    def _request_for(self, port: int, path: str) -> bytes:
        request = self._requests.get((port, path))
        if request is None:
            request = self._requests[port, path] = encode_get(port, path)
        return request

    def _explain_timeout(self, port: int, path: str, timeout_s: float) -> HttpFailure:
        return HttpFailure("timeout", f"{self._where}:{port}{path}: no answer within {timeout_s:g} s")

    def _explain(self, port: int, path: str, error: HttpError) -> HttpFailure:
        kind: HttpFailureKind = "protocol"
        if isinstance(error, HttpTooLarge):
            kind = "too_large"
        elif isinstance(error, HttpClosed):
            kind = "lost"
        return HttpFailure(kind, f"{self._where}:{port}{path}: {error}")

    def count_streams(self, port: int) -> int:
        """Streams to that port that are open, or were a moment ago: the machine counts before we read it."""
        return len(self._recent_streams(port))

    def _recent_streams(self, port: int) -> list[HttpStream]:
        since = time.monotonic() - COUNTED_AFTER_S
        return [item for item in self._streams.get(port, ()) if item.is_open or item.ended_at >= since]

    def close(self) -> None:
        """Drop every stream, the ones with a GET under way too: what hangs there has no deadline any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for stream in (*self._idle.values(), *self._deadlines):
            stream.close()
        self._idle.clear()
        self._deadlines.clear()

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
        self._keep(port, stream)
        return reader

    def _keep(self, port: int, stream: HttpStream) -> None:
        if not stream.is_open:
            return
        spare = self._idle.get(port)
        if self._is_closed or (spare is not None and spare.is_open):
            stream.close()
        else:
            self._idle[port] = stream

    async def _open(self, port: int) -> HttpStream:
        """A stream to the port: IPv4 loopback, IPv6, the machine's own address; first what worked before."""
        known = self._hosts.get(port)
        failure = HttpFailure("refused", f"{self._where}: nothing listens on port {port}")
        for host in sorted(LOOPBACKS, key=lambda host: host != known):
            try:
                return await self._open_at(host, port)
            except HttpFailure as error:
                if error.kind != "refused":
                    raise
                failure = error
        if self._is_own_host_due(port):
            # Bound to one address only. Whatever goes wrong there, the loopback's refusal is the answer.
            with suppress(HttpFailure, TimeoutError):
                async with asyncio.timeout(OWN_HOST_WAIT_S):
                    return await self._open_at(self._own_host, port)
        raise failure

    def _is_own_host_due(self, port: int) -> bool:
        """Each time where it worked last, else rarely: an engine that is down is asked again and again."""
        if not self._own_host:
            return False
        now = asyncio.get_running_loop().time()
        is_due = self._hosts.get(port) == self._own_host or now >= self._own_host_due.get(port, 0.0)
        if is_due:
            self._own_host_due[port] = now + OWN_HOST_PERIOD_S
        return is_due

    async def _open_at(self, host: str, port: int) -> HttpStream:
        stream = HttpStream()
        await self._opener(lambda: stream, host, port)
        self._hosts[port] = host
        self._streams[port] = [*self._recent_streams(port), stream]
        return stream


class LoopbackHttp:
    """The part of a Link that speaks HTTP on the machine's loopback."""

    _http: KeptHttp

    async def get(
        self, port: int, path: str, *, headers: Sequence[Header] = (), timeout_s: float
    ) -> HttpAnswer:
        return await self._http.get(port, path, headers, timeout_s)

    async def post(
        self,
        port: int,
        path: str,
        body: bytes,
        *,
        headers: Sequence[Header] = (),
        timeout_s: float,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> HttpAnswer:
        return await self._http.post(port, path, body, headers, timeout_s, max_body_bytes)

    def start_get(
        self,
        port: int,
        path: str,
        on_answer: GetCallback,
        timeout_s: float,
        headers: Sequence[Header] = (),
    ) -> bool:
        return self._http.start_get(port, path, on_answer, timeout_s, headers)

    def count_streams(self, port: int) -> int:
        return self._http.count_streams(port)


def _answer_of(reader: AnswerReader) -> HttpAnswer:
    return HttpAnswer(reader.status, reader.headers, reader.body, time.time())
