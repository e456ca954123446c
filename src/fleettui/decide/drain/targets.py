"""Machines as targets of a drain: which are none and why, and what room each has."""

from __future__ import annotations

from collections.abc import Collection

from fleettui.decide.drain.bay import Bay, EngineBay, Rank
from fleettui.decide.engine_words import engine_trouble
from fleettui.decide.filters import age_limit_s, data_age_s, data_rejection, flag_rejections, trust_rejection
from fleettui.decide.held_back import hold_back
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.matching import is_usable_engine
from fleettui.decide.natural import natural_key
from fleettui.decide.room import IdleCopy, eviction_order, find_room, last_uses
from fleettui.model.busy import find_busy_signs
from fleettui.model.drain import DrainOptions
from fleettui.model.gpu import condition_of
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.route import RejectedMachine, Rejection, RouteQuery
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import vram_sum
from fleettui.probes.profile import parse_capability

Kept = Collection[tuple[str, int, str]]
"""(machine, port, name) of copies that must not go."""


@dataclass(frozen=True, slots=True)
class Target:
    """A machine that may take copies, or serve them already."""

    snapshot: MachineSnapshot
    """Without what leases on it hold back."""
    engines: tuple[EngineReading, ...]
    """Those that answer."""
    age_s: float | None
    total_mib: Maybe[int]
    """VRAM of all cards, which Ollama's own context depends on."""
    best_capability: tuple[int, int] | None
    """Of its cards; None: not known."""
    room_problem: Rejection | None = None
    """Nothing can be loaded there; what is resident may still cover."""

    @property
    def name(self) -> str:
        return self.snapshot.machine.name


def find_targets(
    fleet: FleetSnapshot,
    sources: Collection[str],
    knowledge: RouteKnowledge,
    options: DrainOptions,
    now: float,
) -> tuple[tuple[Target, ...], tuple[RejectedMachine, ...]]:
    """Machines beside the sources, by name; those that are a target for nothing, with every reason."""
    query = RouteQuery("", max_age_s=None)
    limit_s = age_limit_s(query, fleet.interval_s)
    judged_at = fleet.judged_at(now)
    targets: list[Target] = []
    excluded: list[RejectedMachine] = []
    for snapshot in sorted(fleet.machines, key=lambda item: natural_key(item.machine.name)):
        name = snapshot.machine.name
        if name in sources:
            continue
        age_s = data_age_s(snapshot, judged_at)
        reasons = flag_rejections(snapshot, now)
        distrust = trust_rejection(snapshot)
        if distrust is not None:
            reasons.append(distrust)
        else:
            missing = data_rejection(snapshot, query, age_s, judged_at, limit_s)
            engines = tuple([engine for engine in snapshot.engines if is_usable_engine(engine)])
            if missing is not None:
                reasons.append(missing)
            elif not engines:
                reasons.append(_engines_down(snapshot))
        if reasons:
            excluded.append(RejectedMachine(name, tuple(reasons), age_s))
            continue
        held = [lease for lease in knowledge.leases if lease.machine == name and lease.until > now]
        targets.append(_target(hold_back(snapshot, held) if held else snapshot, engines, age_s, options))
    return tuple(targets), tuple(excluded)


def _engines_down(snapshot: MachineSnapshot) -> Rejection:
    told = "; ".join(map(engine_trouble, snapshot.engines)) or "no engine answered"
    return Rejection("engine_down", f"engine_down: {told}")


def _target(
    snapshot: MachineSnapshot, engines: tuple[EngineReading, ...], age_s: float | None, options: DrainOptions
) -> Target:
    problem = None
    if options.targets and snapshot.machine.name not in options.targets:
        problem = Rejection("excluded", f"excluded (--to {', '.join(options.targets)})")
    total = vram_sum(snapshot).total_mib
    return Target(snapshot, engines, age_s, total, _best_capability(snapshot), problem)


def _best_capability(snapshot: MachineSnapshot) -> tuple[int, int] | None:
    if snapshot.gpu is None or snapshot.gpu.condition is None:
        return None
    found = []
    for card in snapshot.gpu.cards:
        condition = condition_of(snapshot.gpu, card)
        if condition is not None and not isinstance(condition.compute_cap, Unknown):
            capability = parse_capability(condition.compute_cap)
            if not isinstance(capability, Unknown):
                found.append(capability)
    return max(found, default=None)


def make_bay(target: Target, kept: Kept, now: float) -> Bay | Rejection:
    """The room of a target; why there is none where no free VRAM is known. `kept`: copies that must stay."""
    if target.room_problem is not None:
        return target.room_problem
    snapshot = target.snapshot
    room = find_room(snapshot)
    if isinstance(room, Unknown):
        return Rejection("gpu_unknown", f"gpu_unknown: {room.reason}")
    by_card = {copy.name: copy.by_card for copy in room.idle}
    engines = tuple([_engine_bay(snapshot, engine, by_card, kept, now) for engine in target.engines])
    return Bay(room.cards, room.ram_bytes, engines)


def _engine_bay(
    snapshot: MachineSnapshot,
    engine: EngineReading,
    by_card: dict[str, tuple[tuple[int, int], ...]],
    kept: Kept,
    now: float,
) -> EngineBay:
    """What may go for a new copy, in Ollama's order. No other engine makes room by itself."""
    copies = copies_on(engine)
    if not copies or engine.kind != "ollama":
        return EngineBay((), len(copies))
    used = last_uses((engine,))
    idle: list[tuple[Rank, IdleCopy]] = []
    staying = ""
    ranked = [(eviction_order(copy, used.get(copy.name, now)), copy) for copy in copies]
    ranked.sort(key=lambda one: one[0])
    # Ollama takes the first of this order that is at rest: one at work is passed over, and so is what loads.
    for rank, copy in ranked:
        if copy.state != "loaded" or find_busy_signs(snapshot, engine, copy, now):
            staying = staying or f"{copy.name} (at work)"
            continue
        if (snapshot.machine.name, engine.port, copy.name) in kept:
            staying = f"{copy.name} (needed there)"
            break
        if isinstance(copy.vram_bytes, Unknown):
            staying = f"{copy.name} (its VRAM is not known)"
            break
        idle.append((rank, IdleCopy(copy.name, copy.vram_bytes, by_card.get(copy.name, ()))))
    return EngineBay(tuple(idle), len(copies), staying)


def copies_on(engine: EngineReading) -> tuple[LoadedModel, ...]:
    """Copies that count: one that is stopping goes by itself, one that sleeps holds no memory."""
    if isinstance(engine.loaded, Unknown):
        return ()
    return tuple([copy for copy in engine.loaded if copy.state not in ("stopping", "sleeping")])
