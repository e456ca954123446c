"""What became of the copies of an engine between two of its readings."""

from __future__ import annotations

from fleettui.model.event import Event
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import replace
from fleettui.model.unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from fleettui.model.event import EventKind, EventSeverity

MOVED_PERCENT = 5
"""Smaller differences of the GPU's share are rounding and context."""
CLOCK_SLACK_S = 1.0
"""An engine unloads on its own clock, and says the end of keep-alive in whole seconds."""
_GIB = 1 << 30


def copy_events(machine: str, before: EngineReading, after: EngineReading, now: float) -> list[Event]:
    """Copies that came, went or moved; nothing where either reading does not know its copies."""
    if isinstance(before.loaded, Unknown) or isinstance(after.loaded, Unknown):
        return []
    if before.loaded is after.loaded:
        return []
    old = {copy.name: copy for copy in before.loaded}
    new = {copy.name: copy for copy in after.loaded}
    came = [_loaded(machine, after, copy, now) for name, copy in new.items() if name not in old]
    gone = [_gone(machine, after, copy, now) for name, copy in old.items() if name not in new]
    moved = [_moved(machine, after, old[name], copy, now) for name, copy in new.items() if name in old]
    return [*join_evictions(gone, came), *came, *(event for event in moved if event is not None)]


def join_evictions(gone: Iterable[Event], came: Sequence[Event]) -> list[Event]:
    """The events of copies that went, as evictions where another was loaded on the same engine."""
    return [_as_eviction(event, came) for event in gone]


def _as_eviction(event: Event, came: Sequence[Event]) -> Event:
    if event.kind != "unloaded":
        return event
    engine = (event.details["engine"], event.details["port"])
    models = [
        str(other.details["model"])
        for other in came
        if (other.details["engine"], other.details["port"]) == engine
        and other.details["model"] != event.details["model"]
    ]
    if not models:
        return event
    return replace(
        event,
        kind="evicted",
        severity="warn",
        text=f"{event.details['model']} evicted for {', '.join(models)}",
        details={**event.details, "for": models},
    )


def _loaded(machine: str, engine: EngineReading, copy: LoadedModel, now: float) -> Event:
    known = []
    if not isinstance(copy.size_bytes, Unknown):
        known.append(f"{copy.size_bytes / _GIB:.1f} GiB")
    share = copy.gpu_percent
    if not isinstance(share, Unknown) and share < 100:
        known.append(f"{share} % on the GPU")
    if copy.is_pinned:
        known.append("pinned")
    told = f" ({', '.join(known)})" if known else ""
    word = "is loading" if copy.state == "loading" else "loaded"
    return _event(machine, engine, copy, now, "loaded", "note", f"{copy.name} {word}{told}")


def _gone(machine: str, engine: EngineReading, copy: LoadedModel, now: float) -> Event:
    is_over = not isinstance(copy.expires_at, Unknown) and copy.expires_at <= now + CLOCK_SLACK_S
    if is_over and not copy.is_pinned:
        text = f"{copy.name} expired, its keep-alive was over"
        return _event(machine, engine, copy, now, "expired", "note", text)
    return _event(machine, engine, copy, now, "unloaded", "note", f"{copy.name} unloaded")


def _moved(
    machine: str, engine: EngineReading, old: LoadedModel, new: LoadedModel, now: float
) -> Event | None:
    if old is new or old.state != "loaded" or new.state != "loaded":
        return None
    if (old.vram_bytes, old.size_bytes) == (new.vram_bytes, new.size_bytes):
        return None
    was, now_is = old.gpu_percent, new.gpu_percent
    if isinstance(was, Unknown) or isinstance(now_is, Unknown) or was == now_is:
        return None
    if abs(was - now_is) < MOVED_PERCENT and 100 not in (was, now_is) and 0 not in (was, now_is):
        return None
    text = f"{new.name} moved: {now_is} % on the GPU, was {was} %"
    severity: EventSeverity = "warn" if now_is < was else "good"
    return _event(machine, engine, new, now, "moved", severity, text, was_gpu_percent=was)


def _event(
    machine: str,
    engine: EngineReading,
    copy: LoadedModel,
    now: float,
    kind: EventKind,
    severity: EventSeverity,
    text: str,
    **more: Any,
) -> Event:
    size, share = copy.size_bytes, copy.gpu_percent
    details = {
        "model": copy.name,
        "engine": engine.kind,
        "port": engine.port,
        "size_gb": None if isinstance(size, Unknown) else round(size / _GIB, 1),
        "gpu_percent": None if isinstance(share, Unknown) else share,
        **more,
    }
    return Event(
        now, machine, kind, severity, text, details, subject=f"{engine.kind}:{engine.port} {copy.name}"
    )
