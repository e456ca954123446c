"""When to paint: the newest snapshot only, at most four times a second, no more than the terminal takes."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Protocol

from textual.timer import Timer

MIN_GAP_S = 0.25
"""Between two paints. Faster than the eye compares numbers, slow enough for a terminal over SSH."""
SLOW_SHARE = 2.0
"""A terminal that needs a second for a frame gets one every two: the other is for what the operator does."""


class Terminal(Protocol):
    """How the terminal keeps up."""

    @property
    def is_terminal_behind(self) -> bool:
        """True while it has not taken the last frame."""

    @property
    def terminal_frame_s(self) -> float:
        """Seconds that the last frame took."""


class Painter:
    """Calls `paint` for any number of requests, never twice within the gap, and never forgets the last."""

    def __init__(
        self,
        paint: Callable[[], None],
        call_later: Callable[[float, Callable[[], None]], Timer],
        clock: Callable[[], float] = monotonic,
        terminal: Terminal | None = None,
    ) -> None:
        self._paint = paint
        self._call_later = call_later
        self._clock = clock
        self._terminal = terminal
        self._painted_at = -MIN_GAP_S
        self._pending: Timer | None = None
        self.count = 0
        """Paints so far."""

    def request(self) -> None:
        """Something changed: paint now, or as soon as the gap has passed and the terminal is ready."""
        if self._pending is not None:
            return
        wait_s = self._wait_s()
        if wait_s > 0:
            self._pending = self._call_later(wait_s, self._ask_again)
        else:
            self.paint_now()

    def paint_now(self) -> None:
        """Paint without asking for the gap: the operator did something and looks at it."""
        if self._pending is not None:
            self._pending.stop()
            self._pending = None
        self._painted_at = self._clock()
        self.count += 1
        self._paint()

    def _ask_again(self) -> None:
        self._pending = None
        self.request()

    def _wait_s(self) -> float:
        gap_s = MIN_GAP_S
        if self._terminal is not None:
            if self._terminal.is_terminal_behind:
                return MIN_GAP_S
            gap_s = max(gap_s, SLOW_SHARE * self._terminal.terminal_frame_s)
        return self._painted_at + gap_s - self._clock()
