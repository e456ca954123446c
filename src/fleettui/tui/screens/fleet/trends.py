"""Utilisation of the last minutes, as the table's rows draw it: read from the history when a row is built."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.fleet.history import FleetHistory, gpu_key
from fleettui.model.gpu import GpuCard
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe

TREND_S = 300.0
"""What a trend reaches back: long enough to tell a pause between two answers from a card that nobody uses."""


class Trends:
    """Reads trends: of a card, or the mean over the cards of a machine."""

    def __init__(self, history: FleetHistory) -> None:
        self._history = history

    def __call__(self, snapshot: MachineSnapshot, card: GpuCard | None, count: int) -> Sequence[Maybe[float]]:
        """`count` values, the newest last."""
        if card is None:
            return self._history.read(snapshot.name, "gpus", count, TREND_S)
        return self._history.read(snapshot.name, "utilisation", count, TREND_S, gpu=gpu_key(card))
