"""When a machine counts as silent, and when this computer slept: both by the event loop's clock.

That clock stands still while the computer sleeps and never jumps, so neither sleep nor a set clock can pass
for a machine's silence.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LATE_S = 1.0
"""A timer that fires this much too late tells that we were stopped, not that the machine was silent."""

LOOK_PERIOD_S = 1.0
JUMP_S = 3.0
"""Clocks that drift apart by this much within one look: this computer slept, or its clock was set."""


class SilenceWatch:
    """Calls `on_silence` when a channel with an unanswered question gave no byte for `limit_s`.

    Counted from the last byte; a question after a pause gets `limit_s - interval_s` of its own, the first of
    a connection all of it. One timer, moved only when it fires, so that a poll costs no timer.
    """

    def __init__(self, on_silence: Callable[[], None]) -> None:
        self._on_silence = on_silence
        self._limit_s = self._grace_s = 0.0
        self._heard_at: float | None = None
        self._asked_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set_limit(self, limit_s: float, interval_s: float) -> None:
        """From now on; a running watch goes by it at once."""
        if (limit_s, limit_s - interval_s) == (self._limit_s, self._grace_s):
            return
        self._limit_s, self._grace_s = limit_s, limit_s - interval_s
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._arm()

    def begin(self) -> None:
        """A new channel, or one that gets all its time again: nothing was heard, whatever is asked is new."""
        self._heard_at = None
        if self._asked_at is not None:
            self._asked_at = asyncio.get_running_loop().time()

    def ask(self) -> None:
        """A question went out."""
        self._asked_at = asyncio.get_running_loop().time()
        if self._timer is None:
            self._arm()

    def hear(self) -> None:
        """Bytes came."""
        self._heard_at = asyncio.get_running_loop().time()

    def answer(self) -> None:
        """The question is answered; silence is nothing to complain of until the next one."""
        self._asked_at = None

    def stop(self) -> None:
        """The channel is gone."""
        self._asked_at = self._heard_at = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due_at(self) -> float | None:
        if self._asked_at is None:
            return None
        if self._heard_at is None:
            return self._asked_at + self._limit_s
        return max(self._heard_at + self._limit_s, self._asked_at + self._grace_s)

    def _arm(self) -> None:
        due_at = self._due_at()
        if due_at is not None:
            self._timer = asyncio.get_running_loop().call_at(due_at, self._look, due_at)

    def _look(self, planned_at: float) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        if now - planned_at > LATE_S:
            self.begin()
        due_at = self._due_at()
        if due_at is not None and due_at <= now:
            self._on_silence()
        else:
            self._arm()


class SleepWatch:
    """Notices that this computer slept, that we were stopped, or that its clock was set."""

    def __init__(self, on_wake: Callable[[], None], clock: Callable[[], float] = time.time) -> None:
        self._on_wake = on_wake
        self._clock = clock
        self._looked_at = (0.0, 0.0)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look once a second from now on."""
        loop = asyncio.get_running_loop()
        self._looked_at = (loop.time(), self._clock())
        self._timer = loop.call_later(LOOK_PERIOD_S, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        loop_before, clock_before = self._looked_at
        self.start()
        loop_s, clock_s = self._looked_at[0] - loop_before, self._looked_at[1] - clock_before
        if abs(clock_s - loop_s) > JUMP_S or loop_s > LOOK_PERIOD_S + JUMP_S:
            self._on_wake()
