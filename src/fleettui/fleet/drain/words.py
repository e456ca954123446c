"""Why nothing was done, and what is needed of a running service."""

from __future__ import annotations

from typing import Protocol

from fleettui.fleet.maintenance import FlagOperations
from fleettui.fleet.warm_up import WarmFleet
from fleettui.model.literal import Literal

DrainFailure = Literal[
    "unknown_name",
    "reason",  # missing, or too long
    "until",  # not ahead
    "no_drain",  # the machine has none
    "changed_meanwhile",  # somebody else changed it after us
    "no_data",  # the machine does not answer, so what is loaded there is not known
    "state",  # the state database
]


class DrainError(Exception):
    """Nothing was done. `text`: what, where, why, what to do next."""

    def __init__(self, kind: DrainFailure, name: str, text: str) -> None:
        super().__init__(text)
        self.kind: DrainFailure = kind
        self.name = name
        """Of the machine; empty where it is about none."""
        self.text = text


class DrainFleet(WarmFleet, Protocol):
    """What is needed of a running service."""

    @property
    def flags(self) -> FlagOperations | None:
        """The flags that its snapshots show."""
