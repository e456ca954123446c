"""How far back a graph reaches, and what it reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from fleettui.model.gpu import GpuCard
from fleettui.model.unknown import Maybe, Unknown

SPANS_S = tuple(60.0 * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440))
"""What a graph may reach back: the shortest that shows all there is."""
_REACH_VALUES = 60
_LEAST_FILLED = 2 / 3

Series = Literal["cpu", "ram", "rx", "tx", "disk", "utilisation", "vram", "temperature", "power"]
"""As the history calls them; the last four are of a card."""


class History(Protocol):
    """The samples of one machine."""

    @property
    def step_s(self) -> float:
        """Seconds of one sample."""

    @property
    def span_s(self) -> float:
        """Seconds that are kept."""

    def values(
        self, series: Series, width: int, seconds: float, card: GpuCard | None
    ) -> Sequence[Maybe[float]]:
        """`width` means, the newest last, that reach back `seconds`."""

    def sum_up(
        self, series: Series, seconds: float, card: GpuCard | None
    ) -> tuple[Maybe[float], Maybe[float]]:
        """Mean and largest sample of that time."""


class Span(NamedTuple):
    """The time that graphs of one width show."""

    length: int
    """Values."""
    share: int
    """Samples of a value."""
    step_s: float

    @property
    def seconds(self) -> float:
        """From the first value to now."""
        return self.length * self.share * self.step_s

    @property
    def text(self) -> str:
        """`last 60 min`; a column that is not whole changes nothing."""
        seconds = next((span for span in SPANS_S if 0.96 * span <= self.seconds <= 1.04 * span), self.seconds)
        return f"last {seconds / 60:.0f} min" if seconds >= 90 else f"last {seconds:.0f} s"


def choose_span(reach_s: float, kept_s: float, step_s: float, room: int) -> Span:
    """A span for graphs with room for so many values: the shortest that shows all there is and fills two
    thirds of the width, as each value is the mean of a whole number of samples."""
    wanted = max(min(reach_s, kept_s), room * step_s * _LEAST_FILLED)
    spans = [_span_of(span, step_s, room) for span in SPANS_S if wanted <= span < kept_s]
    whole = _span_of(kept_s, step_s, room)
    return next((span for span in spans if span.length >= room * _LEAST_FILLED), whole)


def _span_of(seconds: float, step_s: float, room: int) -> Span:
    slots = max(1, int(seconds / step_s + 0.5))
    share = math.ceil(slots / max(1, room))
    return Span(math.ceil(slots / share), share, step_s)


def reach_of(history: History, card: GpuCard | None) -> float:
    """Seconds that samples reach back."""
    series: Series = "cpu" if card is None else "utilisation"
    values = history.values(series, _REACH_VALUES, history.span_s, card)
    known = [index for index, value in enumerate(values) if not isinstance(value, Unknown)]
    return (len(values) - known[0]) * history.span_s / _REACH_VALUES if known else 0.0
