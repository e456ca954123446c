"""What a machine's GPU tools answered to the doctor."""

from __future__ import annotations

from fleettui.model.gpu import GpuCard, GpuProblem, GpuReading
from fleettui.model.record import dataclass


@dataclass(frozen=True, slots=True)
class GpuAnswer:
    """One look for nvidia-smi and one question to it."""

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

    cards: tuple[GpuCard, ...] = ()
    """Those that count, as the dashboard shows them."""
    problem: GpuProblem | None = None
    """Why there are none, where some are to be expected."""
    tool: str = ""
    """Path of amd-smi or rocm-smi; empty: neither is there."""
    tool_problem: GpuProblem | None = None
    """Why the tool told nothing."""
    took_s: float = 0.0
    is_late: bool = False
    is_alone: bool = True
    """No other vendor's cards are there."""
