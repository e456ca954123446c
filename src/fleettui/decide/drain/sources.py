"""What is on a machine that is drained: copies with what can be done about them, and others on its GPUs."""

from __future__ import annotations

from fleettui.decide.engine_words import engine_title, engine_trouble
from fleettui.decide.filters import age_limit_s, data_age_s, data_rejection
from fleettui.model.drain import SourceCopy
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.gpu import GpuProcess
from fleettui.model.gpu_users import engine_kind_of, other_processes, undeclared_engines
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.route import RouteQuery
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.probes.clean import hide_secrets

MOVABLE = frozenset({"ollama", "llamacpp", "llamaswap"})
"""Engines that load a model when they are told to; of llama.cpp a router only."""
_MOST_COMMAND = 100


@dataclass(frozen=True, slots=True)
class Found:
    """A copy on a machine that is drained."""

    copy: SourceCopy
    snapshot: MachineSnapshot
    engine: EngineReading | None
    """None: nobody has it any more, or it is a process."""
    loaded: LoadedModel | None
    missing: str = ""
    """What is missing to unload it from here; empty: nothing."""


def find_copies(snapshot: MachineSnapshot) -> list[Found]:
    """Everything that is resident; what is stopping goes by itself, what sleeps holds no memory."""
    found = []
    for engine in snapshot.engines:
        for loaded in () if isinstance(engine.loaded, Unknown) else engine.loaded:
            if loaded.state not in ("stopping", "sleeping"):
                copy = _source_copy(snapshot, engine, loaded)
                found.append(Found(copy, snapshot, engine, loaded, _what_is_missing(snapshot, engine)))
    return found + find_strangers(snapshot)


def find_copy(snapshot: MachineSnapshot, copy: SourceCopy) -> Found:
    """That copy as its engine has it now."""
    for engine in snapshot.engines:
        if (engine.kind, engine.port) == (copy.engine, copy.port):
            missing = _what_is_missing(snapshot, engine)
            for loaded in () if isinstance(engine.loaded, Unknown) else engine.loaded:
                if loaded.name == copy.name:
                    return Found(copy, snapshot, engine, loaded, missing)
            return Found(copy, snapshot, engine, None, missing)
    return Found(copy, snapshot, None, None)


def _source_copy(snapshot: MachineSnapshot, engine: EngineReading, loaded: LoadedModel) -> SourceCopy:
    return SourceCopy(
        snapshot.machine.name,
        engine.kind,
        engine.port,
        loaded.name,
        loaded.digest,
        loaded.size_bytes,
        loaded.vram_bytes,
        loaded.context,
        loaded.expires_at,
        loaded.is_pinned,
    )


def is_movable(engine: EngineReading) -> bool:
    """It loads a model when it is told to."""
    if engine.kind == "llamacpp":
        return engine.traits is not None and engine.traits.is_router
    return engine.kind in MOVABLE


def _what_is_missing(snapshot: MachineSnapshot, engine: EngineReading) -> str:
    """What the operator has to configure before it can be unloaded from here."""
    endpoint = find_endpoint(snapshot, engine.kind, engine.port)
    if is_movable(engine) or (endpoint is not None and endpoint.stop is not None):
        return ""
    if engine.kind == "vllm" and engine.traits is not None and engine.traits.can_sleep is True:
        return ""
    file = snapshot.machine.config_file or "the machine file"
    process = next(iter(_processes_of(snapshot, engine.kind)), None)
    told = "" if process is None else f" ({_process_words(process)})"
    return (
        f"{engine_title(engine.kind, engine.port)} was started outside{told} and has no call that unloads; "
        f"missing: `stop:` of that engine in {file}"
    )


def find_endpoint(snapshot: MachineSnapshot | None, kind: str, port: int) -> EngineEndpoint | None:
    """That engine in the machine's file; None where the file does not name it."""
    declared = () if snapshot is None else snapshot.machine.engines
    return next((item for item in declared if (item.kind, item.port) == (kind, port)), None)


def _processes_of(snapshot: MachineSnapshot, kind: str) -> list[GpuProcess]:
    processes = () if snapshot.processes is None else snapshot.processes.processes
    return [process for process in processes if engine_kind_of(process) == kind]


def find_strangers(snapshot: MachineSnapshot) -> list[Found]:
    """GPU processes of no engine that is asked, one for each process, whatever the number of its cards."""
    ports = {item.kind: item.port for item in snapshot.found or ()}
    file = snapshot.machine.config_file or "the machine file"
    told: dict[int, Found] = {}
    for kind, processes in sorted(undeclared_engines(snapshot).items()):
        port = f":{ports[kind]}" if kind in ports else ""
        for process in processes:
            missing = f"an engine that the file does not name: add {kind}{port} to `engines:` of {file}, "
            missing += f"or end it; {_process_words(process)}"
            told.setdefault(process.pid, _stranger(snapshot, process, f"{kind}{port}", missing))
    for process in other_processes(snapshot):
        missing = f"no engine of ours: whoever started it has to end it; {_process_words(process)}"
        told.setdefault(process.pid, _stranger(snapshot, process, process.short_name, missing))
    return [told[pid] for pid in sorted(told)]


def _stranger(snapshot: MachineSnapshot, process: GpuProcess, what: str, missing: str) -> Found:
    used = process.used_mib
    vram = used if isinstance(used, Unknown) else used << 20
    copy = SourceCopy(snapshot.machine.name, "process", 0, f"{what} (pid {process.pid})", vram_bytes=vram)
    return Found(copy, snapshot, None, None, missing)


def _process_words(process: GpuProcess) -> str:
    """`pid 4711 of mia: vllm serve Qwen/Qwen2-VL --port 8001`."""
    user = "" if isinstance(process.user, Unknown) else f" of {process.user}"
    command = process.name if isinstance(process.command, Unknown) else process.command
    return f"pid {process.pid}{user}: {hide_secrets(command)[:_MOST_COMMAND]}"


def source_problem(fleet: FleetSnapshot, snapshot: MachineSnapshot, now: float) -> str:
    """Why nobody knows what is loaded there now; empty: it is known."""
    query, judged_at = RouteQuery(""), fleet.judged_at(now)
    age_s = data_age_s(snapshot, judged_at)
    missing = data_rejection(snapshot, query, age_s, judged_at, age_limit_s(query, fleet.interval_s))
    if missing is not None:
        return missing.text
    silent = [
        engine_trouble(engine)
        for engine in snapshot.engines
        if isinstance(engine.loaded, Unknown) and (engine.state != "down" or _is_mute(snapshot, engine))
    ]
    return "; ".join([*silent, *unheard_engines(snapshot)])


def _is_mute(snapshot: MachineSnapshot, engine: EngineReading) -> bool:
    """It does not answer, though something listens on its port."""
    endpoint = find_endpoint(snapshot, engine.kind, engine.port)
    is_here = endpoint is None or not endpoint.url
    return is_here and snapshot.sockets is not None and snapshot.sockets.find(engine.port) is not None


def unheard_engines(snapshot: MachineSnapshot) -> list[str]:
    """Engines that are asked and have never said anything: they may hold what they like."""
    heard = {name for item in snapshot.engines for name in (item.kind, f"{item.kind}:{item.port}")}
    told = []
    for name, status in snapshot.sources.items():
        kind, _, port = name.partition(":")
        if kind in ENGINE_TITLES and name not in heard:
            title = f"{ENGINE_TITLES[kind]} on port {port}" if port else ENGINE_TITLES[kind]
            told.append(f"{title} has not answered{f' ({status.error})' if status.error else ''}")
    return told
