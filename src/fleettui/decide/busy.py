"""Is an engine, or one copy on it, at work? Signs of it in words; never a number where none was read."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown

BusyCode = Literal["running", "waiting", "connections", "gpu", "expiry"]


@dataclass(frozen=True, slots=True)
class BusySign:
    """One sign that requests are in work."""

    code: BusyCode
    text: str


def find_busy_signs(
    snapshot: MachineSnapshot, engine: EngineReading, copy: LoadedModel | None, now: float
) -> tuple[BusySign, ...]:
    """All signs that `copy` (None: anything on the engine) works now; empty: none was seen."""
    found = []
    if not isinstance(engine.running, Unknown) and engine.running > 0:
        found.append(BusySign("running", f"{engine.running} running"))
    if not isinstance(engine.waiting, Unknown) and engine.waiting > 0:
        found.append(BusySign("waiting", f"{engine.waiting} waiting"))
    return tuple(found)
