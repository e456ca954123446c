"""What may go wrong with an engine's copies when a test wants it to, and a record of what was resident."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal, get_args

FaultKind = Literal[
    "oom",  # the runner dies while it loads
    "stall",  # the load makes no progress until the engine gives it up
    "cpu",  # half of the layers end in main memory, whatever the room
    "context",  # half of the context that was to be had, 4096 tokens at most
    "evict",  # another idle copy goes, although there was room
    "hang",  # it stays in the list after its unload, past its expiry
    "pull",  # its download breaks off
]
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
ANY_MODEL = "*"
OOM_TEXT = "llama runner process has terminated: cudaMalloc failed: out of memory"
"""As Ollama 0.33 puts it; status 500."""
STALL_TEXT = "timed out waiting for llama runner to start - progress 0.00 - "
STALL_LIMIT_S = 300.0
"""OLLAMA_LOAD_TIMEOUT: without progress for so long a load is given up."""
LOST_TEXT = "an error was encountered while running the model: unexpected EOF"
"""What a request hears whose runner died."""
HISTORY_KEPT = 2000


@dataclass(slots=True)
class LoadFault:
    """One fault of one model."""

    kind: FaultKind
    times: int
    """How often it still happens; below 0: always."""


@dataclass(slots=True)
class EngineFaults:
    """Faults by model; empty in a fleet that nobody disturbs."""

    by_model: dict[str, list[LoadFault]] = field(default_factory=dict)

    def add(self, model: str, kind: FaultKind, times: int = -1) -> None:
        """`model`: its full name, or ANY_MODEL."""
        self.by_model.setdefault(model, []).append(LoadFault(kind, times))

    def take(self, model: str, *kinds: FaultKind) -> FaultKind | None:
        """The fault of one of these kinds that happens now to the model; it counts as used."""
        if not self.by_model:
            return None
        faults = [*self.by_model.get(model, []), *self.by_model.get(ANY_MODEL, [])]
        for fault in faults:
            if fault.kind in kinds and fault.times:
                fault.times -= 1
                return fault.kind
        return None

    def clear(self) -> None:
        self.by_model.clear()


@dataclass(frozen=True, slots=True)
class Residency:
    """A copy became ready to answer, or is gone."""

    at: float
    """Simulated seconds."""
    model: str
    is_resident: bool


def new_history() -> deque[Residency]:
    """What the scheduler writes down; the oldest entries make room."""
    return deque(maxlen=HISTORY_KEPT)
