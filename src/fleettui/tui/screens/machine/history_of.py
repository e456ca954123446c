"""The samples of one machine, as the graphs of `view` read them."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.fleet.history import FleetHistory, Series, gpu_key
from fleettui.model.gpu import GpuCard
from fleettui.model.unknown import Maybe


class HistoryOf:
    """A window on the fleet's history."""

    def __init__(self, history: FleetHistory, machine_name: str) -> None:
        self._history = history
        self._name = machine_name

    @property
    def step_s(self) -> float:
        """Seconds of one sample."""
        return self._history.step_s

    @property
    def span_s(self) -> float:
        """Seconds that are kept."""
        return self._history.span_s

    def values(
        self, series: Series, width: int, seconds: float, card: GpuCard | None
    ) -> Sequence[Maybe[float]]:
        """`width` means, the newest last, that reach back `seconds`."""
        return self._history.read(self._name, series, width, seconds, gpu=_key(card))

    def sum_up(
        self, series: Series, seconds: float, card: GpuCard | None
    ) -> tuple[Maybe[float], Maybe[float]]:
        """Mean and largest sample of that time."""
        return self._history.sum_up(self._name, series, seconds, gpu=_key(card))


def _key(card: GpuCard | None) -> str | None:
    return None if card is None else gpu_key(card)
