"""The thread that writes to the terminal, so that nothing else ever waits for it."""

from __future__ import annotations

import asyncio
import os
import select
import termios
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import NamedTuple

PIECE = 4096
"""Bytes written at once: between two of them the rest may be given up."""
PATIENCE_S = 1.0
"""How long the end waits for the terminal to take what it was sent."""
LITTLE_PATIENCE_S = 0.1
"""The same for one that took nothing in that time."""
LOOK_S = 1.0
"""How often a writer without work looks whether the terminal is still there."""
BLOCKED_LOOK_S = 0.1
"""How often one that waits for room looks whether it should give up."""
_ABANDON = b"\x18\x1b[0m"
"""Ends a sequence that was cut, and its colours."""


class _Piece(NamedTuple):
    text: bytes
    is_frame: bool
    handed_at: float


class TerminalWriter(Thread):
    """Takes text at any time and never blocks the one who hands it over."""

    def __init__(self, fd: int, on_frame_written: Callable[[], None], on_lost: Callable[[], None]) -> None:
        super().__init__(name="terminal-writer", daemon=True)
        self._fd = _open_again(fd)
        self._on_frame_written = on_frame_written
        self._on_lost = on_lost
        self._queue: SimpleQueue[_Piece | None] = SimpleQueue()
        self._frames_handed = 0
        self._frames_written = 0
        self._handed_at = 0.0
        self._last_frame_s = 0.0
        self._is_lost = False
        self._is_giving_up = False
        self.bytes_written = 0

    @property
    def is_behind(self) -> bool:
        """True while a frame is not written."""
        return self._frames_handed != self._frames_written

    @property
    def frame_s(self) -> float:
        """How long the last frame took to be written; of one under way, how long it takes already."""
        return monotonic() - self._handed_at if self.is_behind else self._last_frame_s

    def write(self, text: str) -> None:
        """Queue what has to be written, whatever comes."""
        self._queue.put(_Piece(text.encode("utf-8", "replace"), False, monotonic()))

    def write_frame(self, text: str) -> None:
        """Queue what the screen shows. Called by one thread only."""
        self._handed_at = monotonic()
        self._frames_handed += 1
        self._queue.put(_Piece(text.encode("utf-8", "replace"), True, self._handed_at))

    async def settle(self) -> None:
        """Wait, as `stop` does, until no frame is under way, without holding up the event loop: `stop` then
        has little to wait for."""
        await _until(lambda: not self.is_behind)
        if self.is_behind:
            self._is_giving_up = True
            await _until(lambda: not self.is_behind)

    def stop(self) -> None:
        """Write what is queued, for a bounded time. A terminal that takes nothing loses its frames, so that
        what gives it back is the next that it reads."""
        self._queue.put(None)
        self.join(LITTLE_PATIENCE_S if self._is_giving_up else PATIENCE_S)
        if self.is_alive():
            patience_s = LITTLE_PATIENCE_S if self._is_giving_up else PATIENCE_S
            self._is_giving_up = True
            self.join(patience_s)

    def run(self) -> None:
        """The thread."""
        while (piece := self._next()) is not None:
            self._write(piece)
            if piece.is_frame:
                self._last_frame_s = monotonic() - piece.handed_at
                self._frames_written += 1
                self._on_frame_written()
        os.close(self._fd)

    def _next(self) -> _Piece | None:
        while True:
            try:
                return self._queue.get(timeout=None if self._is_lost else LOOK_S)
            except Empty:
                if self._polled(0, 0.0):  # a hang-up is reported whatever was asked for
                    self._lose()

    def _write(self, piece: _Piece) -> None:
        rest, is_frame = memoryview(piece.text), piece.is_frame
        while rest and not self._is_lost:
            if self._is_giving_up and is_frame:
                rest, is_frame = memoryview(_ABANDON), False
                with suppress(termios.error):
                    termios.tcflush(self._fd, termios.TCOFLUSH)
            try:
                count = os.write(self._fd, rest[:PIECE])
            except BlockingIOError:
                if not self._polled(select.POLLOUT, BLOCKED_LOOK_S) and self._is_giving_up and not is_frame:
                    return
            except OSError:
                self._lose()
            else:
                self.bytes_written += count
                rest = rest[count:]

    def _polled(self, events: int, timeout_s: float) -> bool:
        poll = select.poll()
        poll.register(self._fd, events)
        return bool(poll.poll(timeout_s * 1000))

    def _lose(self) -> None:
        self._is_lost = True
        self._on_lost()


async def _until(condition: Callable[[], bool]) -> None:
    """Until it holds, or patience ends."""
    deadline = monotonic() + PATIENCE_S
    while not condition() and monotonic() < deadline:  # noqa: ASYNC110 (the thread tells by its counters)
        await asyncio.sleep(0.01)


def _open_again(fd: int) -> int:
    """The same terminal, not blocking for us alone: the standard streams are shared with other programs.

    A terminal of another user cannot be opened; its writes block the thread."""
    try:
        return os.open(os.ttyname(fd), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return os.dup(fd)
