"""What is wrong with the engines of a machine and with the copies they hold."""

from __future__ import annotations

from fleettui.decide.engine_words import engine_title, engine_trouble
from fleettui.decide.lateness import LATE_LIMIT_S
from fleettui.decide.stall import stall_text
from fleettui.model.clock import day_and_time
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.gpu_users import engine_kind_of
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.snapshot import MachineSnapshot, Reason, SourceStatus
from fleettui.model.unknown import Unknown
from fleettui.model.vram import has_no_gpu

_OTHER_SOURCES = frozenset({"gpu", "amd", "processes", "cpu", "memory", "disks", "net", "sockets", "system"})
_GIB = 1 << 30


def engine_status(snapshot: MachineSnapshot, engine: EngineReading) -> SourceStatus | None:
    """State of the source of one engine: `ollama`, or `ollama:11435` for a second one of its kind."""
    exact = snapshot.sources.get(f"{engine.kind}:{engine.port}")
    return exact if exact is not None else snapshot.sources.get(engine.kind)


def engine_reasons(snapshot: MachineSnapshot, now: float, utc_offset_s: int | None = None) -> list[Reason]:
    """Engines that do not answer, refuse us, or are something else."""
    reasons: list[Reason] = []
    seen: set[str] = set()
    for engine in snapshot.engines:
        seen |= {engine.kind, f"{engine.kind}:{engine.port}"}
        reason = _state_reason(snapshot, engine, now)
        if reason is None:
            status = engine_status(snapshot, engine)
            reason = _status_reason(engine_title(engine.kind, engine.port), status, now, utc_offset_s)
        if reason is not None:
            reasons.append(reason)
    for name, status in snapshot.sources.items():
        if name in _OTHER_SOURCES or name in seen:
            continue
        kind, _, port = name.partition(":")
        title = ENGINE_TITLES.get(kind, kind) + (f" on port {port}" if port else "")
        reason = _status_reason(title, status, now, utc_offset_s)
        if reason is not None:
            reasons.append(reason)
    return reasons


def _state_reason(snapshot: MachineSnapshot, engine: EngineReading, now: float) -> Reason | None:
    if engine.state == "ok":
        stall = stall_text(engine, now)
        if stall:
            return Reason("note", "engine_stuck", f"{engine_title(engine.kind, engine.port)}: {stall}")
        if engine.error is None:
            return None
        return Reason("note", "engine_partly", f"{engine_title(engine.kind, engine.port)}: {engine.error}")
    if engine.state == "busy":
        return Reason("note", "engine_busy", engine_trouble(engine))
    if engine.state == "loading":
        return Reason("note", "engine_loading", engine_trouble(engine))
    text = engine_trouble(engine)
    if engine.state == "down":
        text += _process_text(snapshot, engine)
    return Reason("degraded", f"engine_{engine.state}", text)


def _process_text(snapshot: MachineSnapshot, engine: EngineReading) -> str:
    """What its processes hold meanwhile: a large model takes minutes to load before the port opens."""
    others = [other for other in snapshot.engines if other.kind == engine.kind and other is not engine]
    if snapshot.processes is None or any(other.is_answering for other in others):
        return ""  # they may be the other's
    mine = [one for one in snapshot.processes.processes if engine_kind_of(one) == engine.kind]
    held = [one.used_mib for one in mine if not isinstance(one.used_mib, Unknown)]
    if not held or not sum(held):
        return ""
    pids = ", ".join(str(pid) for pid in dict.fromkeys(one.pid for one in mine))
    return f"; process {pids} holds {sum(held) / 1024:.1f} GiB of VRAM: starting, or down"


def _status_reason(
    title: str, status: SourceStatus | None, now: float, utc_offset_s: int | None
) -> Reason | None:
    if status is None:
        return None
    if status.state == "error":
        return Reason("degraded", "engine_error", f"{title}: {status.error or 'no usable answer'}")
    since = status.read_at if status.read_at is not None else status.since
    if status.state == "late" and since is not None and now - since >= LATE_LIMIT_S:
        text = f"{title} does not answer since {day_and_time(since, now, utc_offset_s)}"
        return Reason("degraded", "engine_late", text)
    return None


def copy_reasons(snapshot: MachineSnapshot, now: float, utc_offset_s: int | None = None) -> list[Reason]:
    """Notes on copies that are slow or about to go: partly in RAM, on the CPU, stopping."""
    reasons = []
    no_gpu = has_no_gpu(snapshot)
    for copy in snapshot.loaded:
        if copy.state == "stopping":
            reasons.append(Reason("note", "copy_stopping", _stopping_text(copy, now, utc_offset_s)))
            continue
        percent = copy.gpu_percent
        if no_gpu or isinstance(percent, Unknown) or copy.vram_bytes == copy.size_bytes:
            continue
        if copy.vram_bytes == 0:
            text = f"{copy.name} fell back to the CPU although the machine has a GPU: restart the engine"
            reasons.append(Reason("note", "copy_on_cpu", text))
        elif percent < 100:
            text = f"{copy.name} is only {percent} % on the GPU, the rest in RAM: slow"
            reasons.append(Reason("note", "copy_offloaded", text))
    return reasons


def _stopping_text(copy: LoadedModel, now: float, utc_offset_s: int | None) -> str:
    text = f"{copy.name} is stopping"
    if not isinstance(copy.expires_at, Unknown):
        text += f" since {day_and_time(copy.expires_at, now, utc_offset_s)}"
    if not isinstance(copy.vram_bytes, Unknown) and copy.vram_bytes > 0:
        text += f" and still holds {copy.vram_bytes / _GIB:.1f} GiB of VRAM"
    return text
