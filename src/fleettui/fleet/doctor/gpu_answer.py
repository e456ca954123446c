"""What a machine's GPU tool answered to the doctor."""

from __future__ import annotations

from fleettui.model.gpu import GpuReading
from fleettui.model.record import dataclass


@dataclass(frozen=True, slots=True)
class GpuAnswer:
    """One look for the tool and one question to it."""

    path: str
    """Where it was found; empty: nowhere."""
    reading: GpuReading | None = None
    """None: it was not asked, or did not answer in time."""
    took_s: float = 0.0
    """From the question to the answer, the way there and back included."""
    is_late: bool = False
    """It did not answer within the limit and was ended."""


@dataclass(frozen=True, slots=True)
class AmdAnswer:
    """What the kernel and the tool say of AMD cards."""

    cards: int = 0
    """With the amdgpu driver."""
    unbound: tuple[str, ...] = ()
    """Bus ids of cards without a driver."""
    tool: str = ""
    """Path of amd-smi or rocm-smi; empty: neither is there."""
    exit_code: int = 0
    said: str = ""
    """The tool's own text where it failed."""
    took_s: float = 0.0
    is_late: bool = False

    @property
    def has_cards(self) -> bool:
        return self.cards > 0 or bool(self.unbound)
