"""Tier and reject reasons of one engine that has the model loaded, and what cold ones share with them."""

from __future__ import annotations

from fleettui.decide.eta import READY, WAKE_S, Eta, estimate_load, not_known
from fleettui.decide.inquiry import Inquiry
from fleettui.decide.matching import Match
from fleettui.model.busy import BusySign, find_busy_signs, idle_s
from fleettui.model.clock import duration_words
from fleettui.model.machine import Machine
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import dataclass, replace
from fleettui.model.route import (
    TIER_BUSY,
    TIER_OFFLOAD,
    TIER_PARTLY,
    TIER_RELOAD,
    TIER_RESIDENT,
    Eviction,
    RejectCode,
    Rejection,
    RouteCandidate,
    RouteQuery,
    VramNeed,
)
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import NOT_READ, Maybe, Unknown
from fleettui.model.vram import FreeVram, has_faulty_card

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.model.route import Why


@dataclass(frozen=True, slots=True)
class Verdict:
    """What routing thinks of one engine: a tier with its reason, or reasons against it."""

    tier: int
    why: Why | str
    rejections: tuple[Rejection, ...] = ()
    eta: Eta = READY
    need: VramNeed | None = None
    evicts: tuple[Eviction, ...] = ()
    evict_cost_s: float = 0.0
    gpus: tuple[int, ...] = ()
    busy: tuple[str, ...] = ()
    idle_s: Maybe[float] = NOT_READ
    in_flight: int = 0


@dataclass(frozen=True, slots=True)
class ResidentWhy:
    """Why a copy that is loaded has its tier."""

    start: str
    gpu_percent: Maybe[int]
    context: Maybe[int]

    def words(self, candidate: RouteCandidate) -> str:
        """`resident, 100 % GPU, ctx 32768, idle 3 min`."""
        busy, unused_s = candidate.busy, candidate.idle_s
        copy = "" if isinstance(self.gpu_percent, Unknown) else f", {self.gpu_percent} % GPU"
        if not isinstance(self.context, Unknown):
            copy += f", ctx {self.context}"
        if busy:
            work = f", busy ({', '.join(busy)})"
            is_first = candidate.tier == TIER_BUSY
            return f"{self.start}{work}{copy}" if is_first else f"{self.start}{copy}{work}"
        idle = "" if isinstance(unused_s, Unknown) else f", idle {duration_words(unused_s)}"
        return f"{self.start}{copy}{idle}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Free VRAM against what is wanted, in words."""

    wanted_mib: int
    text: str


Option = tuple[MachineSnapshot, Match, FreeVram]
"""The model on one engine of a machine, with the machine's free VRAM."""


def judge_options(options: list[Option], inquiry: Inquiry) -> list[Verdict]:
    """What routing thinks of each of them, in their order."""
    at_once = [
        judge_resident(snapshot, match, inquiry, free)
        if match.copy is not None
        else _refuse_to_load(snapshot, match, inquiry, free)
        for snapshot, match, free in options
    ]
    cold = [option for option, verdict in zip(options, at_once, strict=True) if verdict is None]
    loads = iter(inquiry.cold.judge(cold) if cold else ())
    return [next(loads) if verdict is None else verdict for verdict in at_once]


def judge_resident(snapshot: MachineSnapshot, match: Match, inquiry: Inquiry, free: FreeVram) -> Verdict:
    """A copy is loaded: X of `--min-free-vram` is headroom on top of it."""
    copy, engine, query = match.copy, match.engine, inquiry.query
    assert copy is not None  # noqa: S101 - the caller asks only for matches with a copy
    rejections = []
    is_fixed = engine.kind != "ollama"
    wanted, context = query.context, copy.context
    if wanted is not None:
        if is_fixed and type(context) is not Unknown and context < wanted:
            rejections.append(Rejection("ctx", f"ctx {context} < {wanted}, fixed when it was started"))
        wanted = None if is_fixed else _at_most(wanted, copy, inquiry)
    signs = find_busy_signs(snapshot, engine, copy, inquiry.now)
    busy = busy_words(snapshot, engine, signs, inquiry)
    if busy and query.avoid_busy:
        rejections.append(Rejection("busy", f"busy: {', '.join(busy)}"))
    if query.min_free_vram_mib > 0:
        rejections += headroom_rejections(snapshot, query, free)
    unused_s = idle_s(snapshot, engine, copy, inquiry.now, signs)
    in_flight = count_in_flight(engine, busy) if busy else 0
    if wanted is not None and copy.state == "loaded" and context != wanted:
        verdict, words = inquiry.cold.judge_reload(snapshot, match, _reload_words(copy, wanted))
        return replace(
            verdict,
            why=ResidentWhy(words, NOT_READ, NOT_READ),
            rejections=tuple(rejections),
            busy=busy,
            idle_s=unused_s,
            in_flight=in_flight,
        )
    percent = copy.gpu_percent
    rate = inquiry.knowledge.load_rates.get(snapshot.machine.name)
    tier, start, eta = _judge_copy(engine, copy, percent, busy, rate)
    why = ResidentWhy(start, percent, context)
    return Verdict(tier, why, tuple(rejections), eta, None, (), 0.0, (), busy, unused_s, in_flight)


def _at_most(wanted: int, copy: LoadedModel, inquiry: Inquiry) -> int:
    """What Ollama makes of a context: no more than the model was made for."""
    shape = None if isinstance(copy.digest, Unknown) else inquiry.knowledge.shapes.get(copy.digest)
    most = wanted if shape is None else shape.max_context
    return wanted if isinstance(most, Unknown) else min(wanted, most)


def busy_words(
    snapshot: MachineSnapshot, engine: EngineReading, signs: tuple[BusySign, ...], inquiry: Inquiry
) -> tuple[str, ...]:
    """Signs that requests are in work there, askers included who were sent there and fill it up."""
    words = tuple([sign.text for sign in signs]) if signs else ()
    if engine.traits is None:
        return words
    held = inquiry.leases.get(snapshot.machine.name)
    if not held:
        return words
    slots = engine.traits.slots
    if not isinstance(slots, Unknown) and not isinstance(engine.running, Unknown):
        sent = sum(1 for lease in held if lease.port == engine.port)
        if sent and engine.running + sent >= slots:
            words = (*words, f"{slots} slots, {engine.running} at work and {sent} sent there")
    return words


def count_in_flight(engine: EngineReading, busy: tuple[str, ...]) -> int:
    """Requests in work and queued where the engine counts them, else how many signs of work there are."""
    if isinstance(engine.running, Unknown):
        return len(busy)
    return engine.running + (0 if isinstance(engine.waiting, Unknown) else engine.waiting)


def _queue(engine: EngineReading) -> Eta:
    """When an engine at work takes one more request."""
    running, waiting = engine.running, engine.waiting
    slots = Unknown() if engine.traits is None else engine.traits.slots
    if not isinstance(running, Unknown) and waiting == 0:
        if not isinstance(slots, Unknown) and running < slots:
            return READY
        if engine.kind in ("vllm", "sglang"):  # requests join the batch in work
            return READY
    return not_known("nobody can count its queue")


def _judge_copy(
    engine: EngineReading,
    copy: LoadedModel,
    percent: Maybe[int],
    busy: tuple[str, ...],
    rate_bytes_s: float | None,
) -> tuple[int, str, Eta]:
    """Tier, how its reason begins, and seconds of a copy whose context will do."""
    if copy.state == "loading":
        eta = estimate_load(copy.size_bytes, rate_bytes_s)
        if type(eta.seconds) is not Unknown:
            eta = Eta(eta.seconds, eta.basis, f"at most, {eta.text}")
        return TIER_RELOAD, "loading", eta
    if copy.state != "loaded":
        eta = estimate_load(copy.size_bytes, rate_bytes_s, is_cached=True)
        if copy.engine == "vllm":
            eta = Eta(WAKE_S, "assumed", "wake of level 1 assumed")
        return TIER_RELOAD, "asleep", eta
    if type(percent) is not Unknown and percent < 100:
        return TIER_PARTLY, "resident, partly in RAM" if percent else "resident in RAM", READY
    if busy:
        return TIER_BUSY, "resident", _queue(engine)
    return TIER_RESIDENT, "resident", READY


def _reload_words(copy: LoadedModel, wanted: int) -> str:
    """Ollama loads the copy anew for another context."""
    known = "unknown" if isinstance(copy.context, Unknown) else str(copy.context)
    return f"resident with context {known}, reload for {wanted}"


def _refuse_to_load(
    snapshot: MachineSnapshot, match: Match, inquiry: Inquiry, free: FreeVram
) -> Verdict | None:
    """The model runs in a cloud, or the caller wants a loaded copy; None: it may be loaded."""
    installed, query = match.installed, inquiry.query
    if installed is not None and installed.remote_host is not None:
        host = installed.remote_host.split("://", 1)[-1]
        text = f"remote_model ({host}), never local"
        return Verdict(TIER_OFFLOAD, "remote", (Rejection("remote_model", text),))
    if query.require_loaded:
        rejections = [Rejection("not_loaded", "not_loaded (installed)")]
        if query.min_free_vram_mib > 0:
            rejections += headroom_rejections(snapshot, query, free)
        return Verdict(TIER_OFFLOAD, "installed", tuple(rejections))
    return None


def headroom_rejections(snapshot: MachineSnapshot, query: RouteQuery, free: FreeVram) -> list[Rejection]:
    """Free VRAM as it is against `--min-free-vram`."""
    have, want = free.sum_mib if query.free_scope == "host" else free.best_mib, query.min_free_vram_mib
    if isinstance(have, Unknown):
        return [unknown_room(snapshot, have)]
    if have >= want:
        return []
    return no_room(snapshot, "free_vram", Wanted(want, f"{less(have, want)}{where(free, query)}"))


def no_room(snapshot: MachineSnapshot, code: RejectCode, room: Wanted) -> list[Rejection]:
    """`free_vram` or `no_fit`, and `gpu_fault` beside it when a faulty card would have had the room."""
    found = [Rejection(code, f"{code} {room.text}")]
    if has_faulty_card(snapshot) and snapshot.gpu is not None:
        fault = next((c for c in snapshot.gpu.cards if c.fault is not None), None)
        if fault is None:
            found.append(Rejection("gpu_fault", f"gpu_fault: {snapshot.gpu.faults[0].text}"))
        elif isinstance(fault.total_mib, Unknown) or fault.total_mib >= room.wanted_mib:
            text = fault.fault.text if fault.fault is not None else ""
            found.append(Rejection("gpu_fault", f"gpu_fault: GPU {fault.index}: {text}"))
    return found


def unknown_room(snapshot: MachineSnapshot, unknown: Unknown) -> Rejection:
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
        if endpoint.url and endpoint.port == engine.port and endpoint.kind == engine.kind:
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
