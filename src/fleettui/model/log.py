"""Lines of a machine's log."""

from __future__ import annotations

from typing import Final

from fleettui.model.literal import Literal
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe

LogGroup = Literal["gpu", "kernel", "engine", "other"]
"""gpu: the kernel's NVIDIA driver (NVRM, Xid) and NVIDIA's own services; engine: servers of models."""

DEFAULT_SINCE_S: Final = 900


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, clean and of bounded length."""

    at: Maybe[float]
    """Epoch seconds by the machine's own clock; Unknown in files whose form we do not know."""
    source: str
    """Who wrote it: `kernel`, `ollama`; of a file its name."""
    text: str
    group: LogGroup
