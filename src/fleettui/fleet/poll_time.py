"""How long a machine takes to answer: counted since the poller began, over all its connections."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic


class PollTime:
    """Of one loop of one machine."""

    __slots__ = ("_asked_at", "_clock", "answers", "sum_s")

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._asked_at: float | None = None
        self.answers = 0
        self.sum_s = 0.0
        """Of all answers, each from its question on."""

    def ask(self) -> None:
        """A question goes out."""
        self._asked_at = self._clock()

    def answer(self) -> None:
        """It is answered; what comes without a question counts for nothing."""
        if self._asked_at is not None:
            self.sum_s += self._clock() - self._asked_at
            self.answers += 1
            self._asked_at = None

    def give_up(self) -> None:
        """Nobody waits for that answer any more."""
        self._asked_at = None
