"""The thread that writes to the terminal, so that nothing else ever waits for it."""

from __future__ import annotations

import os
import select
import termios
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import NamedTuple

PIECE = 4096
"""Bytes written at once: between two of them the rest may be given up."""
PATIENCE_S = 1.0
"""How long the end waits for the terminal to take what it was sent."""
LOOK_S = 1.0
"""How often a writer without work looks whether the terminal is still there."""
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
        self._fd = fd
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

    def stop(self) -> None:
        """Write what is queued, for a bounded time. A terminal that takes nothing loses its frames, so that
        what restores it is the next that it reads."""
        self._queue.put(None)
        self.join(PATIENCE_S)
        if self.is_alive():
            self._is_giving_up = True
            try:
                termios.tcflush(self._fd, termios.TCOFLUSH)
            except termios.error:
                return
            self.join(PATIENCE_S)

    def run(self) -> None:
        """The thread."""
        while (piece := self._next()) is not None:
            self._write(piece)
            if piece.is_frame:
                self._last_frame_s = monotonic() - piece.handed_at
                self._frames_written += 1
                self._on_frame_written()

    def _next(self) -> _Piece | None:
        ears = select.poll()
        ears.register(self._fd, 0)  # a hang-up is always reported
        while True:
            try:
                return self._queue.get(timeout=None if self._is_lost else LOOK_S)
            except Empty:
                if ears.poll(0):
                    self._lose()

    def _lose(self) -> None:
        self._is_lost = True
        self._on_lost()

    def _write(self, piece: _Piece) -> None:
        rest = memoryview(piece.text)
        while rest and not self._is_lost:
            if self._is_giving_up and piece.is_frame:
                rest = memoryview(_ABANDON)
                piece = piece._replace(is_frame=False)
            try:
                count = os.write(self._fd, rest[:PIECE])
            except BlockingIOError:  # another process made the terminal non-blocking, for all of us
                select.select([], [self._fd], [], PATIENCE_S)
            except OSError:
                self._lose()
            else:
                self.bytes_written += count
                rest = rest[count:]
