"""Utilisation of the last minutes, as the table's rows draw it: read from the history when a row is built."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.fleet.history import FleetHistory, gpu_key
from fleettui.model.gpu import GpuCard
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown

TREND_S = 300.0
"""What a trend reaches back: long enough to tell a pause between two answers from a card that nobody uses."""


class Trends:
    """Reads trends: of a card, or the mean over the cards of a machine."""

    def __init__(self, history: FleetHistory) -> None:
        self._history = history
        self._read_for: tuple[MachineSnapshot, int] | None = None
        self._series: dict[str, list[Maybe[float]]] = {}
        """Of the machine whose rows are being built: its cards are asked for alone and for the mean."""

    def __call__(self, snapshot: MachineSnapshot, card: GpuCard | None, count: int) -> Sequence[Maybe[float]]:
        """`count` values, the newest last. The first row of a machine asks for the mean and reads anew."""
        if card is not None:
            return self._read(snapshot, card, count)
        self._read_for = None
        cards = snapshot.gpu.cards if snapshot.gpu is not None else ()
        series = [self._read(snapshot, item, count) for item in cards]
        if len(series) == 1:
            return series[0]
        return [_mean(values) for values in zip(*series, strict=True)]

    def _read(self, snapshot: MachineSnapshot, card: GpuCard, count: int) -> list[Maybe[float]]:
        wanted = self._read_for
        if wanted is None or wanted[0] is not snapshot or wanted[1] != count:
            self._read_for = (snapshot, count)
            self._series = {}
        key = gpu_key(card)
        if key not in self._series:
            self._series[key] = self._history.read(snapshot.name, "utilisation", count, TREND_S, gpu=key)
        return self._series[key]


def _mean(values: Sequence[Maybe[float]]) -> Maybe[float]:
    known = [value for value in values if not isinstance(value, Unknown)]
    return sum(known) / len(known) if known else Unknown("no sample")
