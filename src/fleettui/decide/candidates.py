"""Tier and reject reasons of one engine that has the model."""

from __future__ import annotations

from fleettui.decide.matching import Match
from fleettui.decide.need import predict_need
from fleettui.model.machine import Machine
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.route import Rejection, RouteQuery, VramNeed
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import FreeVram, has_faulty_card, has_no_gpu

TIER_RESIDENT, TIER_BUSY, TIER_PARTLY, TIER_RELOAD, TIER_FITS, TIER_OFFLOAD = 0, 1, 2, 3, 4, 6


@dataclass(frozen=True, slots=True)
class Verdict:
    """What routing thinks of one engine: a tier with its reason, or reasons against it."""

    tier: int
    reason: str
    need: VramNeed | None
    rejections: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True)
class _Room:
    """Outcome of a comparison of free VRAM with what is wanted."""

    has_room: bool
    wanted_mib: int
    text: str


def judge_resident(snapshot: MachineSnapshot, match: Match, query: RouteQuery, free: FreeVram) -> Verdict:
    """A copy is loaded: X of `--min-free-vram` is headroom on top of it."""
    copy = match.copy
    assert copy is not None  # noqa: S101 - the caller asks only for matches with a copy
    rejections = []
    wanted = query.context
    is_fixed = match.engine.kind != "ollama"
    context = copy.context
    if wanted is not None and is_fixed and not isinstance(context, Unknown) and context < wanted:
        rejections.append(Rejection("ctx", f"ctx {context} < {wanted}, fixed when it was started"))
    running = match.engine.running
    is_busy = not isinstance(running, Unknown) and running > 0
    if is_busy and query.avoid_busy:
        rejections.append(Rejection("busy", f"busy: {running} running"))
    if query.min_free_vram_mib > 0:
        rejections += _headroom_rejections(snapshot, query, free)
    tier, reason = _resident_tier(copy, query, is_fixed, is_busy)
    return Verdict(tier, reason, None, tuple(rejections))


def _resident_tier(copy: LoadedModel, query: RouteQuery, is_fixed: bool, is_busy: bool) -> tuple[int, str]:
    context, percent, wanted = copy.context, copy.gpu_percent, query.context
    words = [] if isinstance(percent, Unknown) else [f"{percent} % GPU"]
    if not isinstance(context, Unknown):
        words.append(f"ctx {context}")
    if copy.state != "loaded":
        return TIER_RELOAD, ", ".join([copy.state if copy.state == "loading" else "asleep", *words])
    if wanted is not None and not is_fixed and context != wanted:
        known = "unknown" if isinstance(context, Unknown) else str(context)
        return TIER_RELOAD, f"resident with context {known}, reload for {wanted}"
    if not isinstance(percent, Unknown) and percent < 100:
        return TIER_PARTLY, ", ".join(["resident, partly in RAM" if percent else "resident in RAM", *words])
    return (TIER_BUSY if is_busy else TIER_RESIDENT), ", ".join(
        ["resident, busy" if is_busy else "resident", *words]
    )


def _scoped(free: FreeVram, query: RouteQuery) -> Maybe[int]:
    return free.sum_mib if query.free_scope == "host" else free.best_mib


def _headroom_rejections(snapshot: MachineSnapshot, query: RouteQuery, free: FreeVram) -> list[Rejection]:
    have, want = _scoped(free, query), query.min_free_vram_mib
    if isinstance(have, Unknown):
        return [_unknown_room(snapshot, have)]
    if have >= want:
        return []
    return _no_room(snapshot, _Room(False, want, f"{less(have, want)}{where(free, query)}"))


def judge_cold(snapshot: MachineSnapshot, match: Match, query: RouteQuery, free: FreeVram) -> Verdict:
    """The model lies on the disk: X is compared with free - predicted need, a span of cards with the sum."""
    assert match.installed is not None  # noqa: S101 - the caller asks only for installed models
    if match.installed.remote_host is not None:
        host = match.installed.remote_host.split("://", 1)[-1]
        text = f"remote_model ({host}), never local"
        return Verdict(TIER_OFFLOAD, "remote", None, (Rejection("remote_model", text),))
    rejections = []
    if query.require_loaded:
        rejections.append(Rejection("not_loaded", "not_loaded (installed)"))
        if query.min_free_vram_mib > 0:
            rejections += _headroom_rejections(snapshot, query, free)
        return Verdict(TIER_OFFLOAD, "installed", None, tuple(rejections))
    need = predict_need(snapshot, match.installed, query.context)
    best, summed = free.best_mib, free.sum_mib
    if isinstance(best, Unknown) or isinstance(summed, Unknown):
        unknown = best if isinstance(best, Unknown) else Unknown()
        return Verdict(TIER_OFFLOAD, "installed", None, (_unknown_room(snapshot, unknown),))
    if isinstance(need, Unknown):
        if query.min_free_vram_mib > 0:
            rejections.append(Rejection("free_vram", f"free_vram: need unknown, {need.reason}"))
        return Verdict(TIER_OFFLOAD, f"installed, need unknown: {need.reason}", None, tuple(rejections))
    is_spanning = need.mib > best or query.free_scope == "host"
    have = summed if is_spanning else best
    if query.min_free_vram_mib > 0 and have - need.mib < query.min_free_vram_mib:
        wanted = need.mib + query.min_free_vram_mib
        text = f"{less(have, wanted)}{where(free, query, is_spanning)}"
        text += f" ({gib(need.mib)} for the model + {gib(query.min_free_vram_mib)})"
        rejections += _no_room(snapshot, _Room(False, wanted, text))
    if need.mib <= have:
        span = ", on several GPUs" if need.mib > best else ""
        reason = f"installed, cold, needs {gib(need.mib)} GiB = {need.basis}{span}"
        return Verdict(TIER_FITS, reason, need, tuple(rejections))
    if has_no_gpu(snapshot):
        return Verdict(TIER_OFFLOAD, "installed, cold, CPU only", need, tuple(rejections))
    reason = f"installed, cold, partly in RAM: needs {gib(need.mib)} GiB = {need.basis}, more than is free"
    return Verdict(TIER_OFFLOAD, reason, need, tuple(rejections))


def _no_room(snapshot: MachineSnapshot, room: _Room) -> list[Rejection]:
    """`free_vram`, and `gpu_fault` beside it when a faulty card would have had the room."""
    found = [Rejection("free_vram", f"free_vram {room.text}")]
    if has_faulty_card(snapshot) and snapshot.gpu is not None:
        fault = next((c for c in snapshot.gpu.cards if c.fault is not None), None)
        if fault is None:
            found.append(Rejection("gpu_fault", f"gpu_fault: {snapshot.gpu.faults[0].text}"))
        elif isinstance(fault.total_mib, Unknown) or fault.total_mib >= room.wanted_mib:
            text = fault.fault.text if fault.fault is not None else ""
            found.append(Rejection("gpu_fault", f"gpu_fault: GPU {fault.index}: {text}"))
    return found


def _unknown_room(snapshot: MachineSnapshot, unknown: Unknown) -> Rejection:
    """The choice needs free VRAM and there is no figure."""
    gpu = snapshot.gpu
    if gpu is not None and has_faulty_card(snapshot):
        texts = [card.fault.text for card in gpu.cards if card.fault is not None]
        texts += [fault.text for fault in gpu.faults]
        return Rejection("gpu_fault", f"gpu_fault: no GPU in order: {texts[0]}")
    status = snapshot.sources.get("gpu")
    why = unknown.reason
    if status is not None and status.state == "error" and status.error:
        why = status.error
    return Rejection("gpu_unknown", f"gpu_unknown: {why}")


def where(free: FreeVram, query: RouteQuery, is_spanning: bool = False) -> str:
    """` on GPU 1`, ` on all GPUs`, or nothing on a machine without GPU."""
    if free.best_index is None:
        return ""
    if free.is_unified:
        return " of shared memory"
    if query.free_scope == "host" or is_spanning:
        return " on all GPUs"
    return f" on GPU {free.best_index}"


def gib(mib: int) -> str:
    """GiB with one decimal."""
    return f"{mib / 1024:.1f}"


def less(have: int, want: int) -> str:
    """`6.1 < 43.9 GiB`; in MiB where one decimal would show the same figure twice."""
    if gib(have) == gib(want):
        return f"{have} < {want} MiB"
    return f"{gib(have)} < {gib(want)} GiB"


def engine_address(machine: Machine, engine: EngineReading) -> tuple[str, int, str]:
    """(host, port, base URL) under which a caller reaches the engine."""
    for endpoint in machine.engines:
        if endpoint.kind == engine.kind and endpoint.port == engine.port and endpoint.url:
            host, port = _split_url(endpoint.url, endpoint.port)
            return host, port, endpoint.url.rstrip("/")
    host = machine.hostname
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return host, engine.port, f"http://{shown}:{engine.port}"


def _split_url(url: str, default_port: int) -> tuple[str, int]:
    """Host and port of a base URL, without urllib (this path must start fast)."""
    rest = url.split("://", 1)[-1].split("/", 1)[0].rsplit("@", 1)[-1]
    if rest.startswith("["):
        host, _, tail = rest[1:].partition("]")
        port = tail.lstrip(":")
    else:
        host, _, port = rest.partition(":")
    if port.isdecimal():
        return host, int(port)
    return host, 443 if url.startswith("https://") else 80 if "://" in url else default_port
