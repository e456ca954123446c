"""What the newest snapshot shows of a copy of a drain: is it there, who serves it instead, is it at work."""

from __future__ import annotations

from collections.abc import Iterator

from fleettui.decide.drain.sources import find_copies, find_strangers, unheard_engines
from fleettui.decide.engine_reasons import engine_status
from fleettui.decide.engine_words import engine_title
from fleettui.model.busy import find_busy_signs
from fleettui.model.catalog import Catalog, find_in_catalog
from fleettui.model.drain import DrainOptions, PlannedCopy, SourceCopy
from fleettui.model.literal import Literal
from fleettui.model.machine import EngineKind
from fleettui.model.names import canonical_name
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import NOT_READ, Maybe, Unknown
from fleettui.model.vram import has_no_gpu

ALWAYS_LOADED = frozenset({"vllm", "sglang", "llamacpp"})
"""Engines that serve a model as long as they run."""
Presence = Literal["resident", "gone", "unknown"]


@dataclass(frozen=True, slots=True)
class Cover:
    """A resident copy of the same weights on a machine that is not drained."""

    machine: str
    engine: EngineKind
    port: int
    copy: LoadedModel


@dataclass(frozen=True, slots=True)
class Sight:
    """One copy of a drain, as the newest answers have it."""

    presence: Presence
    absent_polls: int = 0
    """Polls in a row in which its engine did not list it."""
    cover: Cover | None = None
    """Who serves it instead: never on a machine that is drained or in maintenance."""
    target_problem: str = ""
    """Why nothing can be loaded on the target any more; empty while it can."""
    work: tuple[str, ...] = ()
    """Signs that requests are in work."""
    is_stopping: bool = False
    """Its engine lists it on its way out."""
    kills_work: bool = False
    """Its engine breaks requests off when it unloads: only an idle copy is unloaded, however late."""
    refusal: str = ""
    """Why nobody can unload it from here; empty: it can be unloaded."""
    keep_text: str = ""
    """Why fewer resident copies are not allowed now; empty while they are."""
    coming_text: str = ""
    """Another drain brings the same weights elsewhere; empty: none does."""
    is_target_busy: str = ""
    """What is loaded on the target now; empty: nothing."""
    loads_text: str = ""
    """Loads still to come on the machine that serves it instead, any of which may evict that copy without a
    word; empty: none."""


def find_engine(machine: MachineSnapshot | None, kind: str, port: int) -> EngineReading | None:
    """That engine; None where the machine has none of it."""
    engines = () if machine is None else machine.engines
    return next((engine for engine in engines if engine.kind == kind and engine.port == port), None)


def lists_now(machine: MachineSnapshot, engine: EngineReading) -> bool:
    """What the engine lists is of now: it answers, and its last answer is not late."""
    status = engine_status(machine, engine)
    return (
        machine.link.state == "up"
        and engine.is_answering
        and not isinstance(engine.loaded, Unknown)
        and (status is None or status.state == "ok")
    )


def read_at(machine: MachineSnapshot, engine: EngineReading) -> float | None:
    """Epoch seconds of the engine's last good answer."""
    status = engine_status(machine, engine)
    return None if status is None else status.read_at


def find_copy(machine: MachineSnapshot | None, copy: SourceCopy) -> LoadedModel | None:
    """The copy as its engine lists it; None where it does not."""
    engine = find_engine(machine, copy.engine, copy.port)
    if engine is None or isinstance(engine.loaded, Unknown):
        return None
    return next((item for item in engine.loaded if item.name == copy.name and holds_memory(item)), None)


def holds_memory(copy: LoadedModel) -> bool:
    """A vLLM or llama.cpp that sleeps gave its memory back: nothing of it is lost by a reboot."""
    return copy.state != "sleeping"


def is_closed(machine: MachineSnapshot, engine: EngineReading) -> bool:
    """It does not answer, and nothing listens on its port any more: it holds nothing."""
    sockets, status = machine.sockets, machine.sources.get("sockets")
    if engine.state != "down" or sockets is None or sockets.is_cut or status is None or status.state != "ok":
        return False
    endpoints = [
        item for item in machine.machine.engines if (item.kind, item.port) == (engine.kind, engine.port)
    ]
    return not any(item.url for item in endpoints) and sockets.find(engine.port) is None


def presence_of(machine: MachineSnapshot | None, copy: SourceCopy) -> Presence:
    """Is it there? Unknown while its engine does not answer; an engine whose port is closed holds nothing."""
    if machine is None or machine.link.state != "up":
        return "unknown"
    if copy.engine == "process":
        return "resident" if any(found.copy.key == copy.key for found in find_copies(machine)) else "gone"
    engine = find_engine(machine, copy.engine, copy.port)
    if engine is None:
        return "unknown"
    if is_closed(machine, engine):
        return "gone"
    if not lists_now(machine, engine):
        return "unknown"
    return "gone" if find_copy(machine, copy) is None else "resident"


def is_same_model(copy: SourceCopy, there: LoadedModel, catalog: Catalog) -> bool:
    """The same weights by their digest; where one is not known, the same name on the same kind of engine, or
    one model of the catalog."""
    if not isinstance(copy.digest, Unknown) and not isinstance(there.digest, Unknown):
        return copy.digest == there.digest
    names = {there.name, *(name for group in there.names or () for name in group)}
    if copy.engine == there.engine:
        if copy.name in names:
            return True
        if copy.engine == "ollama" and canonical_name(copy.name) in map(canonical_name, names):
            return True
    ours = find_in_catalog(catalog, copy.name)
    return ours is not None and any(find_in_catalog(catalog, name) == ours for name in names)


def shortfall_of(
    copy: SourceCopy, there: LoadedModel, options: DrainOptions, planned: Maybe[int] = NOT_READ
) -> str:
    """What a copy elsewhere lacks to stand for this one; empty: nothing. `planned`: tokens that the preview
    said it will have."""
    if there.state != "loaded":
        return f"it is {there.state}"
    if options.accept_degraded:
        return ""
    if not isinstance(copy.context, Unknown) and not isinstance(there.context, Unknown):
        wanted = copy.context if isinstance(planned, Unknown) else min(copy.context, planned)
        if there.context < wanted:
            return f"its context is {there.context} of {copy.context}"
    percent = there.gpu_percent
    if not isinstance(percent, Unknown) and percent < _percent_of(copy):
        return f"only {percent} % of it is on the GPU"
    return ""


def _percent_of(copy: SourceCopy) -> int:
    """Share on the GPU, as of a copy that an engine lists; 100 where that is not known."""
    size, vram = copy.size_bytes, copy.vram_bytes
    if isinstance(size, Unknown) or isinstance(vram, Unknown) or size <= 0:
        return 100
    return 100 - round(max(0, size - vram) / size * 100)


def is_out_of_service(machine: MachineSnapshot) -> bool:
    """Routing sends nobody there: in maintenance, drained or on the way to it, or not approved."""
    return machine.maintenance is not None or machine.drain is not None or machine.trust != "approved"


def find_cover(
    fleet: FleetSnapshot, line: PlannedCopy, preferred: str | None, options: DrainOptions
) -> Cover | None:
    """Who serves it instead: the preferred machine, the planned one, any other."""
    planned = None if line.target is None else line.target.machine
    for machine in sorted(
        fleet.machines, key=lambda item: (item.name != preferred, item.name != planned)
    ):  # sorted keeps the fleet's order within each group
        if machine.name == line.copy.machine or is_out_of_service(machine):
            continue
        context = planned_context(line, machine.name)
        for cover in _copies_of(machine, line.copy, fleet.catalog):
            # Clients speak the API of their engine: one of another kind serves none of them.
            if cover.engine == line.copy.engine and not shortfall_of(line.copy, cover.copy, options, context):
                return cover
    return None


def planned_context(line: PlannedCopy, machine: str) -> Maybe[int]:
    """Tokens that the preview showed for that machine, and not as degraded; Unknown: it showed none."""
    is_shown = line.drain_class in ("move", "move_evicts", "pull", "covered")
    is_target = line.target is not None and line.target.machine == machine
    return line.context_there if is_shown and is_target else NOT_READ


def _copies_of(machine: MachineSnapshot, copy: SourceCopy, catalog: Catalog) -> Iterator[Cover]:
    for engine in machine.engines:
        if isinstance(engine.loaded, Unknown) or not lists_now(machine, engine):
            continue
        for there in engine.loaded:
            if is_same_model(copy, there, catalog):
                yield Cover(machine.name, engine.kind, engine.port, there)


def target_problem(fleet: FleetSnapshot, name: str) -> str:
    """Why nothing can be loaded on that machine now; empty: nothing speaks against it."""
    machine = fleet.find(name)
    if machine is None:
        return f"{name} is not declared any more"
    if machine.link.state != "up":
        return f"{name} is not connected"
    if machine.maintenance is not None:
        return f"{name} is in maintenance"
    if machine.drain is not None:
        return f"{name} is drained itself"
    return "" if machine.trust == "approved" else f"{name} is not approved"


def work_of(machine: MachineSnapshot, copy: SourceCopy, now: float) -> tuple[str, ...]:
    """Signs that requests are in work at the copy; empty: none was seen."""
    engine, there = find_engine(machine, copy.engine, copy.port), find_copy(machine, copy)
    if engine is None or there is None:
        return ()
    return tuple([sign.text for sign in find_busy_signs(machine, engine, there, now)])


def is_empty(machine: MachineSnapshot) -> Maybe[bool]:
    """Nothing is loaded on any of its engines, and nobody else is on its GPUs; Unknown while one does not
    tell. A sleeping copy holds no memory, a stopping one still does."""
    if machine.link.state != "up":
        return Unknown("not connected")
    held, unknown = _what_is_there(machine)
    if held:
        return False
    return Unknown("; ".join(unknown)) if unknown else True


def what_holds(machine: MachineSnapshot) -> str:
    """Why nobody can say that it is empty; empty: it is."""
    held, unknown = _what_is_there(machine)
    return "; ".join([*unknown, *held])


def _what_is_there(machine: MachineSnapshot) -> tuple[list[str], list[str]]:
    """(what it holds, what is not known to hold nothing)."""
    held, unknown = [], []
    for engine in machine.engines:
        if is_closed(machine, engine):
            continue
        title = engine_title(engine.kind, engine.port)
        if not lists_now(machine, engine) or isinstance(engine.loaded, Unknown):
            why = f" ({engine.error})" if engine.error else ""
            unknown.append(f"{title} does not answer{why}, so what it holds is not known")
        else:
            held += [
                f"{copy.name} on {title} is {copy.state}" for copy in engine.loaded if holds_memory(copy)
            ]
    unknown += [f"{words}, so what it holds is not known" for words in unheard_engines(machine)]
    for item in machine.found or ():
        if not item.is_polled and item.kind in ALWAYS_LOADED:
            title = engine_title(item.kind, item.port)
            unknown.append(f"{title} was found and is not asked, so what it holds is not known")
    held += [f"{found.copy.name} is on its GPUs" for found in find_strangers(machine)]
    status = machine.sources.get("processes")
    is_told = machine.processes is not None or (status is not None and status.state == "unsupported")
    if not is_told and not has_no_gpu(machine):
        why = f" ({status.error})" if status is not None and status.error else ""
        unknown.append(f"who else is on its GPUs is not known{why}")
    return held, unknown
