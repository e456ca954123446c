"""The part of a machine snapshot that routing reads, as a text of its own: decoded in a fifth of the time.

Whatever it leaves out comes back as never read. What a fleet has by the hundred is a bare list here; the rest
goes through the codec. A change of these lists needs a new number in `codec.FORMAT`.
"""

from __future__ import annotations

from operator import attrgetter, is_

from fleettui.model.gpu import GpuCard, GpuReading
from fleettui.model.machine import DeclaredGpu, Machine
from fleettui.model.ollama_settings import NOT_SET, OllamaSettings
from fleettui.model.readings import (
    CopyPlace,
    CopyUse,
    EngineLoad,
    EngineReading,
    EngineTraits,
    InstalledModel,
    LoadedModel,
    MemoryReading,
    ModelTraits,
    SystemReading,
)
from fleettui.model.snapshot import LinkStatus, MachineSnapshot, SourceStatus
from fleettui.model.sockets import ListeningPort, SocketsReading
from fleettui.model.unknown import NOT_READ, Unknown
from fleettui.store.codec import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_UNREAD_SOURCES = frozenset({"processes", "cpu", "memory", "disks", "net", "system"})
_A_GPU = DeclaredGpu("", NOT_READ)
"""Routing asks only whether a machine file declares any."""

_machine_values = attrgetter("name", "role", "hostname", "port", "models", "tags", "disabled_gpus", "engines")
_link_values = attrgetter("state", "stage", "error")
_memory_values = attrgetter(*(name for name in MemoryReading.__slots__ if name != "details"))
_status_values = attrgetter("state", "read_at", "since", "error")
_card_values = attrgetter(
    "index", "total_mib", "free_mib", "utilisation_percent", "is_unified", "fault", "mig", "is_mig",
    "busy_samples",
)  # fmt: skip
_engine_values = attrgetter("kind", "port", "state", "running", "waiting", "error")
_use_values = attrgetter("name", "used_at")
_place_values = attrgetter("port", "name", "cards")
_port_values = attrgetter("port", "is_loopback", "connections", "ours")
_loaded_values = attrgetter(
    "name", "engine", "digest", "size_bytes", "vram_bytes", "context", "state", "names", "expires_at",
    "is_pinned",
)  # fmt: skip
_installed_values = attrgetter("name", "engine", "digest", "size_bytes", "remote_host", "names")
_settings_values = attrgetter(*OllamaSettings.__slots__)
_flag_values = attrgetter("trust", "health", "last_seen", "maintenance", "drain", "seq")


def encode_for_routing(snapshot: MachineSnapshot) -> str:
    """Text of what routing reads of a machine."""
    return RoutingEncoder().encode(snapshot)


class RoutingEncoder:
    """Encodes machines one after another; what stays the same object is not encoded again.

    The declared machine and its engines' models are most of the text, and change once in a while.
    """

    __slots__ = ("_evidence", "_steady")

    def __init__(self) -> None:
        self._steady: dict[str, tuple[Machine, tuple[EngineReading, ...], str, str]] = {}
        self._evidence: dict[str, tuple[tuple[object, ...], str]] = {}

    def encode(self, snapshot: MachineSnapshot) -> str:
        """Text of what routing reads of a machine."""
        machine, gpu, memory = snapshot.machine, snapshot.gpu, snapshot.memory
        declared, engines = self._steady_texts(machine, snapshot.engines)
        moving = encode(
            (
                _flag_values(snapshot),
                None
                if gpu is None
                else ([*map(_card_values, gpu.cards)], gpu.faults, gpu.problem, gpu.is_stale),
                None if memory is None else _memory_values(memory),
                {
                    name: _status_values(status)
                    for name, status in snapshot.sources.items()
                    if name not in _UNREAD_SOURCES
                },
            )
        )
        return f"[{declared},{engines},{self._evidence_text(snapshot)},{moving}]"

    def forget(self, name: str) -> None:
        """Drops what is kept of a machine that is gone."""
        self._steady.pop(name, None)
        self._evidence.pop(name, None)

    def _evidence_text(self, snapshot: MachineSnapshot) -> str:
        """The link, how Ollama is set up, who is connected to engines, where copies lie, what there is to say
        of memory: read rarely."""
        sockets, places, system = snapshot.sockets, snapshot.places, snapshot.system
        details = None if snapshot.memory is None else snapshot.memory.details
        made_of = (snapshot.link, sockets, places, system, details, len(snapshot.engines))
        known = self._evidence.get(snapshot.name)
        if known is not None and all(map(is_, known[0], made_of)):
            return known[1]
        text = encode(
            (
                _link_values(snapshot.link),
                None if system is None else _bare_settings(system.ollama),
                _engine_ports(snapshot),
                None if places is None else [*map(_place_values, places)],
                details,
            )
        )
        self._evidence[snapshot.name] = (made_of, text)
        return text

    def _steady_texts(self, machine: Machine, engines: tuple[EngineReading, ...]) -> tuple[str, str]:
        known = self._steady.get(machine.name)
        if known is not None and known[0] is machine and _are_same(known[1], engines):
            return known[2], known[3]
        gpus = machine.gpus
        declared = encode((_machine_values(machine), None if gpus is None else len(gpus)))
        asked = encode(
            [
                (
                    (*_engine_values(engine), *_work_values(engine)),
                    _each(engine.loaded, _loaded_values),
                    _each(engine.installed, _installed_values),
                )
                for engine in engines
            ]
        )
        self._steady[machine.name] = (machine, engines, declared, asked)
        return declared, asked


def _are_same(before: tuple[EngineReading, ...], now: tuple[EngineReading, ...]) -> bool:
    return len(before) == len(now) and all(map(is_, before, now))


def decode_for_routing(text: str) -> MachineSnapshot | None:
    """The machine snapshot of `encode_for_routing`'s text; None for any other."""
    values = decode(text)
    try:
        (declared, gpu_count), engines, evidence, (flags, gpu, memory, sources) = values
        return _snapshot(declared, gpu_count, flags, gpu, memory, evidence, engines, sources)
    except (ValueError, TypeError, LookupError, AttributeError):
        return None


def _snapshot(
    declared: Any,
    gpu_count: Any,
    flags: Any,
    gpu: Any,
    memory: Any,
    evidence: Any,
    engines: Any,
    sources: Any,
) -> MachineSnapshot:
    name, role, hostname, port, models, tags, disabled_gpus, endpoints = declared
    trust, health, last_seen, maintenance, drain, seq = flags
    link, settings, ports, places, details = evidence
    return MachineSnapshot(
        Machine(
            name,
            role,
            hostname,
            port,
            gpus=None if gpu_count is None else (_A_GPU,) * gpu_count,
            models=tuple(models),
            tags=tuple(tags),
            disabled_gpus=tuple(disabled_gpus),
            engines=tuple(endpoints),
        ),
        trust,
        LinkStatus(*link),
        None if gpu is None else _gpu(*gpu),
        memory=None if memory is None else _memory(details, *memory),
        sockets=None if ports is None else SocketsReading(tuple([ListeningPort(*port) for port in ports])),
        system=None if settings is None else SystemReading(ollama=_settings(*settings)),
        engines=tuple([_engine(*engine) for engine in engines]),
        places=None
        if places is None
        else tuple([CopyPlace(port, copy, tuple(cards)) for port, copy, cards in places]),
        sources={source: _status(status) for source, status in sources.items()},
        health=health,
        last_seen=last_seen,
        maintenance=maintenance,
        drain=drain,
        seq=seq,
    )


def _memory(
    details: Any, total: Any, available: Any, swap: Any, free_swap: Any, is_low: Any, limits: Any
) -> MemoryReading:
    return MemoryReading(total, available, swap, free_swap, is_low, tuple(limits), details)


def _engine_ports(snapshot: MachineSnapshot) -> list[Any] | None:
    """Who is connected to the engines; other ports are nothing to routing."""
    if snapshot.sockets is None:
        return None
    found = (snapshot.sockets.find(engine.port) for engine in snapshot.engines)
    return [_port_values(port) for port in found if port is not None]


def _work_values(engine: EngineReading) -> tuple[Any, ...]:
    """Uses, requests in flight, whether 0 of them means none, and slots; None for what is not known."""
    traits, load = engine.traits, engine.load
    in_flight = None if load is None or isinstance(load.in_flight, Unknown) else load.in_flight
    slots = None if traits is None or isinstance(traits.slots, Unknown) else traits.slots
    counts = traits is not None and traits.counts_load
    return [*map(_use_values, engine.uses)], in_flight, counts, slots


def _bare_settings(told: OllamaSettings | None) -> list[Any] | None:
    """Bare values, None for what is not set: each Unknown would be an object to decode."""
    if told is None:
        return None
    values = _settings_values(told)
    return [None if isinstance(value, Unknown) else value for value in values]


def _settings(*values: Any) -> OllamaSettings:
    known: list[Any] = [NOT_SET if value is None else value for value in values]
    return OllamaSettings(*known)


def _gpu(cards: Any, faults: Any, problem: Any, is_stale: Any) -> GpuReading:
    return GpuReading(tuple(map(_card, cards)), tuple(faults), problem=problem, is_stale=is_stale)


def _engine(values: Any, loaded: Any, installed: Any) -> EngineReading:
    kind, port, state, running, waiting, error, uses, in_flight, counts_load, slots = values
    traits = None
    if counts_load or slots is not None:
        traits = EngineTraits(slots=NOT_READ if slots is None else slots, counts_load=counts_load)
    return EngineReading(
        kind,
        port,
        state,
        loaded=_all(loaded, _loaded),
        installed=_all(installed, _installed),
        running=running,
        waiting=waiting,
        error=error,
        traits=traits,
        load=None if in_flight is None else EngineLoad(in_flight),
        uses=tuple([CopyUse(*use) for use in uses]),
    )


def _each(models: Any, values_of: Callable[[Any], object]) -> Any:
    return models if isinstance(models, Unknown) else [*map(values_of, models)]


def _all(models: Any, make: Callable[[Any], object]) -> Any:
    return models if isinstance(models, Unknown) else tuple(map(make, models))


# A fleet has hundreds of these. Filling an open class of the same slots by plain stores, which then becomes
# the record's, takes a sixth of the time of `__init__`, and nothing is compiled for it.
_new = object.__new__


def _open_class(record: Any) -> Any:
    return type(record.__name__, (), {"__slots__": record.__slots__})


_OpenCard, _OpenStatus = _open_class(GpuCard), _open_class(SourceStatus)
_OpenLoaded, _OpenInstalled = _open_class(LoadedModel), _open_class(InstalledModel)


def _card(values: Any) -> GpuCard:
    card: Any = _new(_OpenCard)
    card.index, card.total_mib, card.free_mib, card.utilisation_percent = values[:4]
    card.is_unified, card.fault, mig, card.is_mig, card.busy_samples = values[4:]
    card.uuid = card.name = card.driver = card.bus_id = card.pstate = card.used_mib = NOT_READ
    card.temperature_c = card.power_w = card.power_limit_w = card.fan_percent = NOT_READ
    card.suspect, card.mig, card.vendor = (), tuple(mig), "nvidia"
    card.__class__ = GpuCard
    made: GpuCard = card
    return made


def _status(values: Any) -> SourceStatus:
    status: Any = _new(_OpenStatus)
    status.state, status.read_at, status.since, status.error = values
    status.__class__ = SourceStatus
    made: SourceStatus = status
    return made


def _loaded(values: Any) -> LoadedModel:
    copy: Any = _new(_OpenLoaded)
    copy.name, copy.engine, copy.digest, copy.size_bytes, copy.vram_bytes, copy.context = values[:6]
    copy.state, names, copy.expires_at, copy.is_pinned = values[6:]
    copy.traits = None if names is None else _names_only(*names)
    copy.parameter_size = copy.quantization = NOT_READ
    copy.__class__ = LoadedModel
    made: LoadedModel = copy
    return made


def _installed(values: Any) -> InstalledModel:
    model: Any = _new(_OpenInstalled)
    model.name, model.engine, model.digest, model.size_bytes, model.remote_host, names = values
    model.traits = None if names is None else _names_only(*names)
    model.family = model.parameter_size = model.quantization = NOT_READ
    model.__class__ = InstalledModel
    made: InstalledModel = model
    return made


def _names_only(aliases: Any, adapters: Any) -> ModelTraits:
    return ModelTraits(tuple(aliases), tuple(adapters))
