"""How far behind a terminal is that lies beyond a network: asked after each frame, it answers in order.

Between us and the terminal, sshd and both kernels hold up to megabytes; writing stays quick while the screen
of the operator falls minutes behind. A terminal that says what it can (mode 2026, which Textual asks for at
the start) is asked the same again at the end of each frame; what is unanswered is under way."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import NamedTuple

ASK = "\x1b[?2026$p"
WINDOW = 8192
"""Characters under way when a frame begins, at most: half a second at 16 kB/s, enough for several keys."""
LIMIT_S = 3.0
"""What is not answered by then is lost, or stuck in a network: go on, a window at a time."""


class _Frame(NamedTuple):
    size: int
    sent_at: float


class Answers:
    """The account of frames sent and answered."""

    def __init__(self) -> None:
        self.can_ask = False
        """True once the terminal has answered."""
        self._frames: deque[_Frame] = deque()
        self._under_way = 0
        self._least_s = LIMIT_S
        self._last_s = 0.0

    @property
    def is_full(self) -> bool:
        """True while the next frame has to wait."""
        return self._under_way >= WINDOW

    @property
    def room(self) -> int:
        """Characters that the next frame may have on a slow line."""
        return max(WINDOW // 4, WINDOW - self._under_way)

    @property
    def lag_s(self) -> float:
        """Seconds that the last answered frame took, beyond what the line takes for the smallest."""
        return max(0.0, self._last_s - self._least_s)

    def note_sent(self, size: int) -> None:
        """A frame with a question at its end is on its way."""
        self._frames.append(_Frame(size, monotonic()))
        self._under_way += size

    def note_answer(self) -> None:
        """An answer came; the first one says that the terminal answers at all."""
        self.can_ask = True
        if self._frames:
            frame = self._frames.popleft()
            self._under_way -= frame.size
            self._last_s = monotonic() - frame.sent_at
            self._least_s = min(self._last_s, 1.05 * self._least_s)  # a line may become longer

    def give_up_old(self) -> None:
        """Forget frames that were never answered."""
        limit = monotonic() - LIMIT_S
        while self._frames and self._frames[0].sent_at <= limit:
            self._under_way -= self._frames.popleft().size
