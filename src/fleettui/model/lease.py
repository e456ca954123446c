"""A lease: one choice of routing that no poll has shown the effect of yet."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.machine import EngineKind
from fleettui.model.record import dataclass

LeaseKind = Literal["resident", "cold"]


@dataclass(frozen=True, slots=True)
class Lease:
    """One asker was sent to a machine. It rejects nothing: it sorts that machine later."""

    id: str
    machine: str
    port: int
    """Of the engine."""
    engine: EngineKind
    model: str
    """Canonical name."""
    kind: LeaseKind
    taken_at: float
    """Epoch seconds."""
    until: float
    """Epoch seconds; from then on it counts for nothing."""
    vram_mib: int = 0
    """Reserved for a cold copy; 0 for a resident one."""
    gpu: int | None = None
    """The card it is expected on; None: several, or not known."""
    digest: str | None = None
    pid: int = 0
    """Of the asker; it has mostly ended by now."""
    owner: str = ""
    """Login user of the asker."""
