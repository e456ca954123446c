"""What `/api/stream` sends, made once for all readers. A slow reader is one that comes back late: what it
missed is replayed from here, or replaced by a whole snapshot; nothing is kept for it alone."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from fleettui.model.record import dataclass
from fleettui.serve.stream_form import AttachForm, DocumentForm, StreamForm

if TYPE_CHECKING:
    from fleettui.fleet.service import FleetService
    from fleettui.model.event import Event
    from fleettui.model.snapshot import FleetSnapshot

PACE_S = 0.5
"""Machines that change meanwhile come together."""
KEPT_MESSAGES = 512
KEPT_BYTES = 16 << 20
LINGER_S = 60.0
"""After the last reader has gone messages are made for those that come back."""
HEARTBEAT_S = 15.0
LATE_S = 5.0
"""A removal is told some seconds after it happened: a reader that missed messages hears of these again."""

_ID = re.compile(r"([0-9a-f]{8})-(\d{1,15})-(\d{1,15})", re.ASCII)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Message:
    number: int
    at: float
    """Epoch seconds."""
    data: bytes


class StreamHub:
    """Subscribes to the service while somebody reads."""

    def __init__(
        self,
        service: FleetService,
        clock: Callable[[], float] = time.time,
        form: StreamForm | None = None,
    ) -> None:
        """`form`: of the messages; without one JSON documents."""
        self._service = service
        self._clock = clock
        self._form: StreamForm = DocumentForm() if form is None else form
        self.run_id = secrets.token_hex(4)
        """Numbers of another run mean nothing."""
        self.readers = 0
        self._is_closed = False
        self._number = 0
        self._messages: deque[_Message] = deque()
        self._bytes = 0
        self._fleet = service.snapshot
        """As the messages so far have told it."""
        self._has_changes = asyncio.Event()
        self._news = asyncio.Event()
        """Set and replaced with each message."""
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe: list[Callable[[], None]] = []
        self._ending: asyncio.TimerHandle | None = None
        self._attached: StreamHub | None = None
        self._whole: tuple[FleetSnapshot, int, asyncio.Task[bytes]] | None = None

    @property
    def for_attached(self) -> StreamHub:
        """The same for dashboards elsewhere; ends with this one."""
        if self._attached is None:
            self._attached = StreamHub(self._service, self._clock, AttachForm(self._service))
            self._attached._is_closed = self._is_closed
        return self._attached

    async def read(self, last_id: str) -> AsyncIterator[bytes]:
        """The messages for one reader, until it goes or the server ends."""
        self._join()
        try:
            yield b"retry: 2000\n\n"
            cursor, seen_at = self._resume(last_id)
            while not self._is_closed:
                news = self._news
                messages = None if cursor is None else self._after(cursor)
                if messages is None:
                    cursor, pages = await self._start_over(seen_at)
                    seen_at = self._clock()
                    for data in pages:
                        yield data
                    continue
                for message in messages:
                    yield message.data
                    cursor, seen_at = message.number, message.at
                if not messages:
                    try:
                        async with asyncio.timeout(HEARTBEAT_S):
                            await news.wait()
                    except TimeoutError:
                        yield b": nothing new\n\n"
        finally:
            self._leave()

    def close(self) -> None:
        """End every stream."""
        self._is_closed = True
        self._wake()
        self._stop()
        if self._attached is not None:
            self._attached.close()

    # -- readers ------------------------------------------------------------------------------------

    def _join(self) -> None:
        self.readers += 1
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        if self._task is None and not self._is_closed:
            self._messages.clear()
            self._bytes = 0
            self._number += 1  # a gap: whoever was here before starts over
            self._fleet = self._service.snapshot
            self._unsubscribe = [
                self._service.subscribe(lambda _: self._has_changes.set()),
                self._service.events.subscribe(self._take_events),
            ]
            self._task = asyncio.create_task(self._run(), name="stream")

    def _leave(self) -> None:
        self.readers -= 1
        if not self.readers and not self._is_closed:
            self._ending = asyncio.get_running_loop().call_later(LINGER_S, self._stop)

    def _resume(self, last_id: str) -> tuple[int | None, float | None]:
        """How far the reader was: the number, None in another run; when, None for a new reader."""
        found = _ID.fullmatch(last_id)
        if found is None:
            return None, None
        return int(found[2]) if found[1] == self.run_id else None, int(found[3]) / 1000

    def _after(self, number: int) -> list[_Message] | None:
        """The messages since; None where some are not kept any more, or that number never was."""
        if number == self._number:
            return []
        first = self._messages[0].number if self._messages else self._number + 1
        if not first - 1 <= number < self._number:
            return None
        return [message for message in self._messages if message.number > number]

    async def _start_over(self, seen_at: float | None) -> tuple[int, list[bytes]]:
        """The whole fleet, then the events that a reader missed who was here before, unless it has them."""
        fleet, number = self._fleet, self._number
        mark = number if self._form.has_events else 0
        if self._whole is None or self._whole[0] is not fleet or self._whole[1] != mark:
            encoding = asyncio.create_task(asyncio.to_thread(self._form.whole, fleet, self._clock()))
            self._whole = fleet, mark, encoding
        made = self._whole[2]
        missed: list[Event] = []
        if seen_at is not None and not self._form.has_events:
            missed = [event for event in self._service.events.events if event.ended_at > seen_at - LATE_S]
        body = await asyncio.shield(made)
        pages = [self._frame("snapshot", body, number, self._clock())]
        if missed:  # 2,000 take 50 ms
            pages += await asyncio.to_thread(
                lambda: [self._event_frame(event, number, event.ended_at) for event in missed]
            )
        return number, pages

    # -- messages -----------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            await self._has_changes.wait()
            self._has_changes.clear()
            try:
                await self._tell_changes()
            except Exception:
                log.exception("changes of the fleet cannot be told")  # a defect of ours; the next may be told
            await asyncio.sleep(PACE_S)

    async def _tell_changes(self) -> None:
        before, fleet = self._fleet, self._service.snapshot
        known = {machine.name: machine for machine in before.machines}
        changed = [machine for machine in fleet.machines if known.pop(machine.name, None) is not machine]
        needs_whole = self._form.needs_whole(before, fleet)
        if not changed and not known and not needs_whole:
            return
        if needs_whole:
            body, kind = await asyncio.to_thread(self._form.whole, fleet, self._clock()), "snapshot"
        else:
            gone = list(known)
            body = await asyncio.to_thread(self._form.changes, fleet, changed, gone, self._clock())
            kind = "machines"
        self._fleet = fleet
        self._add(kind, body)

    def _take_events(self, events: Sequence[Event]) -> None:
        for event in events:
            self._number += 1
            now = self._clock()
            self._keep(_Message(self._number, now, self._event_frame(event, self._number, now)))

    def _add(self, kind: str, body: bytes) -> None:
        self._number += 1
        now = self._clock()
        self._keep(_Message(self._number, now, self._frame(kind, body, self._number, now)))

    def _keep(self, message: _Message) -> None:
        self._messages.append(message)
        self._bytes += len(message.data)
        while len(self._messages) > KEPT_MESSAGES or (self._bytes > KEPT_BYTES and len(self._messages) > 1):
            self._bytes -= len(self._messages.popleft().data)
        self._wake()

    def _frame(self, kind: str, body: bytes, number: int, at: float) -> bytes:
        head = f"id: {self.run_id}-{number}-{int(at * 1000)}\nevent: {kind}\ndata: "
        return head.encode() + body + b"\n\n"

    def _event_frame(self, event: Event, number: int, at: float) -> bytes:
        return self._frame("event", self._form.event(event), number, at)

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _stop(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe = []
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._messages.clear()
        self._bytes = 0
        self._whole = None
