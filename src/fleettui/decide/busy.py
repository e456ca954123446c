"""Is an engine, or one copy on it, at work? Signs of it in words; never a number where none was read."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown

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


def idle_s(snapshot: MachineSnapshot, engine: EngineReading, copy: LoadedModel, now: float) -> Maybe[float]:
    """Seconds since the last use of a copy that is known; 0 while it works, Unknown where nothing tells."""
    if any(sign.code in ("running", "waiting") for sign in find_busy_signs(snapshot, engine, copy, now)):
        return 0.0
    for use in engine.uses:
        if use.name == copy.name:
            return max(0.0, now - use.used_at)
    return Unknown("no use of it was seen")
