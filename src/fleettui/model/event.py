"""Events: what happened in the fleet, as the operator would tell it."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.record import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

EventKind = Literal[
    "health",  # from one health to another, neither of them offline
    "offline",  # the connection failed, or nothing is heard any more
    "poll_failed",  # still offline, for another reason than before
    "back",  # answers again
    "engine_down",
    "engine_up",
    "loaded",
    "unloaded",
    "expired",  # its keep-alive was over
    "evicted",  # it had to go for another copy
    "moved",  # another share of it lies on the GPU
    "trust",  # a key waits, has changed, or somebody decided about it
    "maintenance",
    "drain",
    "action",  # what a running server was asked to change: done, or refused
    "file",  # a machine file was added, edited, removed, broken, mended
    "unseen",  # what is different since anybody last looked
]
EVENT_KINDS: tuple[EventKind, ...] = EventKind.__args__  # type: ignore[attr-defined]

EventSeverity = Literal["good", "note", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    at: float
    """Epoch seconds."""
    machine: str
    """Its name; empty where it is about no machine, such as a file that declares none."""
    kind: EventKind
    severity: EventSeverity
    text: str
    """One sentence without the machine's name."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Figures and names of the text, JSON-ready."""
    by: str | None = None
    """`user@host` of a decision."""
    subject: str = ""
    """What it is about within its kind: equal kind and subject of a machine are the same thing again."""
    count: int = 1
    """How often it happened: repetitions are joined."""
    last_at: float | None = None
    """Epoch seconds of the last repetition; None: it happened once."""

    @property
    def ended_at(self) -> float:
        """When it happened last."""
        return self.at if self.last_at is None else self.last_at
