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
