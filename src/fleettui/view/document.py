"""JSON documents of the fleet: `status --json`, `GET /api/infrastructure`, `machines list --json`.

`_gb` is GiB with one decimal, times are ISO UTC, unknown is null. Shapes: docs/json.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.busy import count_others, find_busy_signs, idle_s
from fleettui.model.clock import iso_utc
from fleettui.model.contexts import longest_context
from fleettui.model.machine import ConfigProblem, Machine
from fleettui.model.readings import (
    EngineLoad,
    EngineReading,
    EngineTraits,
    InstalledModel,
    LoadedModel,
    ModelTraits,
)
from fleettui.model.residency import cards_of_copy, shares_of
from fleettui.model.snapshot import DrainFlag, FleetSnapshot, MachineSnapshot, MaintenanceFlag
from fleettui.model.sockets import FoundEngine
from fleettui.model.unknown import T, Unknown
from fleettui.view.figures import is_answering
from fleettui.view.host_document import host_document
from fleettui.view.json_values import GIB, Document, gib, known, rounded, tidy
from fleettui.view.telemetry_document import telemetry_document

SCHEMA = 1
_NO_MODEL_TRAITS, _NO_ENGINE_TRAITS, _NO_LOAD = ModelTraits(), EngineTraits(), EngineLoad()


def infrastructure_document(fleet: FleetSnapshot, now: float) -> Document:
    """The whole fleet. Keys of a machine's file are kept; computed ones win over equally named ones."""
    return {
        "schema": SCHEMA,
        "taken_at": iso_utc(fleet.taken_at),
        "interval_s": tidy(fleet.interval_s),
        "machines": [machine_document(snapshot, now) for snapshot in fleet.machines],
        "errors": [problem_document(problem) for problem in fleet.problems],
    }


def machine_document(snapshot: MachineSnapshot, now: float) -> Document:
    """Everything known of one machine."""
    machine = snapshot.machine
    is_online = is_answering(snapshot)
    # A copy that is stopping is listed under `loaded` with its state, but nobody may be sent to it.
    ready = [copy.name for copy in snapshot.loaded if copy.state != "stopping"]
    computed: Document = {
        "name": machine.name,
        "role": machine.role,
        "status": "online" if is_online else "offline",
        "health": snapshot.health if snapshot.trust == "approved" else snapshot.trust,
        "trust": snapshot.trust,
        "reasons": [reason.text for reason in snapshot.reasons],
        "network": _network(machine),
        "tags": list(machine.tags),
        "file": machine.document,
        "telemetry": telemetry_document(snapshot, is_online),
        "loaded_models": _engines_or(snapshot, is_online, ready),
        "loaded": _engines_or(snapshot, is_online, _loaded(snapshot, now)),
        "installed": _engines_or(snapshot, is_online, [_installed(model) for model in snapshot.installed]),
        "engines": [_engine(snapshot, engine, now) for engine in snapshot.engines],
        "found_engines": None if snapshot.found is None else [_found(item) for item in snapshot.found],
        "system": _system(snapshot),
        "maintenance": maintenance_document(snapshot.maintenance),
        "drain": drain_document(snapshot.drain),
        "last_seen": _time(snapshot.last_seen),
        "age_s": _age(snapshot.age_s(now)),
        "sources": {
            name: {"state": status.state, "age_s": _age(status.age_s(now)), "error": status.error}
            for name, status in snapshot.sources.items()
        },
        "error": snapshot.link.error if snapshot.link.state != "up" else None,
    }
    kept = {key: value for key, value in machine.document.items() if key not in computed}
    return {**computed, **kept}


def machines_document(machines: Sequence[Machine], problems: Sequence[ConfigProblem] = ()) -> Document:
    """The files as the operator wrote them, and what is wrong with them."""
    return {
        "schema": SCHEMA,
        "machines": [{**machine.document, "_config_file": machine.config_file} for machine in machines],
        "total": len(machines),
        "errors": [problem_document(problem) for problem in problems],
    }


def problem_document(problem: ConfigProblem) -> Document:
    """One thing wrong in a file."""
    return {"file": problem.file, "line": problem.line, "key": problem.key, "message": problem.message}


def _network(machine: Machine) -> Document:
    """`hostname` and `port` always, further keys of the file's `network` kept."""
    written = machine.document.get("network")
    kept = written if isinstance(written, dict) else {}
    return {**kept, "hostname": machine.hostname, "port": machine.port}


def _engines_or(snapshot: MachineSnapshot, is_online: bool, documents: list[T]) -> list[T] | None:
    """Null where no engine was ever read; empty all the same while the machine is online, as for `gpu`."""
    was_read = any(not isinstance(engine.loaded, Unknown) for engine in snapshot.engines)
    return documents if was_read or is_online else None


def _loaded(snapshot: MachineSnapshot, now: float) -> list[Document]:
    shares = shares_of(snapshot)
    return [
        {**_copy(engine, copy, list(cards_of_copy(shares, copy))), **_work(snapshot, engine, copy, now)}
        for engine in snapshot.engines
        if not isinstance(engine.loaded, Unknown)
        for copy in engine.loaded
    ]


def _work(snapshot: MachineSnapshot, engine: EngineReading, copy: LoadedModel, now: float) -> Document:
    """Signs that it works, and how long it is idle; null where nothing tells."""
    return {
        "busy": [sign.text for sign in find_busy_signs(snapshot, engine, copy, now)],
        "idle_s": rounded(idle_s(snapshot, engine, copy, now)),
    }


def _copy(engine: EngineReading, copy: LoadedModel, gpus: list[int]) -> Document:
    document: Document = {
        "name": copy.name,
        "engine": copy.engine,
        "digest": known(copy.digest),
        "size_gb": gib(copy.size_bytes, GIB),
        "vram_gb": gib(copy.vram_bytes, GIB),
        "gpu_percent": known(copy.gpu_percent),
        "context": known(copy.context),
        **_traits(copy.traits),
        "max_context": known(longest_context(engine, copy)),
        "expires_at": None if copy.is_pinned else _time(known(copy.expires_at)),
        "pinned": copy.is_pinned,
        "state": copy.state,
        "gpus": gpus,
    }
    return document


def _installed(model: InstalledModel) -> Document:
    return {
        "name": model.name,
        "engine": model.engine,
        "digest": known(model.digest),
        "size_gb": gib(model.size_bytes, GIB),
        **_traits(model.traits),
        "remote": model.remote_host is not None,
    }


def _traits(traits: ModelTraits | None) -> Document:
    traits = traits or _NO_MODEL_TRAITS
    return {
        "max_context": known(traits.max_context),
        "aliases": list(traits.aliases),
        "adapters": list(traits.adapters),
        "capabilities": list(traits.capabilities),
    }


def _engine(snapshot: MachineSnapshot, engine: EngineReading, now: float) -> Document:
    traits, load = engine.traits or _NO_ENGINE_TRAITS, engine.load or _NO_LOAD
    port = None if snapshot.sockets is None else snapshot.sockets.find(engine.port)
    return {
        "kind": engine.kind,
        "port": engine.port,
        "state": engine.state,
        "version": known(engine.version),
        "running": known(engine.running),
        "waiting": known(engine.waiting),
        "kv_percent": rounded(engine.kv_percent),
        "sleeping": known(engine.is_sleeping),
        "in_flight": known(load.in_flight),
        "prompt_tokens_s": rounded(load.prompt_tokens_s),
        "generated_tokens_s": rounded(load.generated_tokens_s),
        "slots": known(traits.slots),
        "cache_tokens": known(traits.cache_tokens),
        "router": traits.is_router,
        "needs_key": traits.needs_key,
        "connections": known(count_others(snapshot, engine, now)),
        "loopback": None if port is None else port.is_loopback,
        "error": engine.error,
    }


def _found(engine: FoundEngine) -> Document:
    return {
        "kind": engine.kind,
        "port": engine.port,
        "loopback": engine.is_loopback,
        "polled": engine.is_polled,
    }


def _system(snapshot: MachineSnapshot) -> Document | None:
    """Null until read. The container runtime joins when a source reads it."""
    system = snapshot.system
    if system is None:
        return None
    cards = snapshot.gpu.cards if snapshot.gpu is not None else ()
    condition = None if snapshot.gpu is None else snapshot.gpu.condition
    return {
        **host_document(system),
        "driver": next((card.driver for card in cards if not isinstance(card.driver, Unknown)), None),
        "cuda": None if condition is None else known(condition.cuda),
        "interfaces": [] if snapshot.net is None else [item.name for item in snapshot.net.interfaces],
    }


def maintenance_document(flag: MaintenanceFlag | None) -> Document:
    """The `maintenance` of a machine; `on` stays true past `until`."""
    if flag is None:
        return {"on": False, "reason": None, "by": None, "since": None, "until": None}
    return {
        "on": True,
        "reason": flag.reason,
        "by": flag.by,
        "since": _time(flag.since),
        "until": _time(flag.until),
    }


def drain_document(flag: DrainFlag | None) -> Document:
    """The `drain` of a machine; `off` without a flag."""
    if flag is None:
        return {"state": "off", "reason": None, "by": None, "since": None, "until": None, "text": None}
    return {
        "state": flag.state,
        "reason": flag.reason,
        "by": flag.by,
        "since": _time(flag.since),
        "until": _time(flag.until),
        "text": flag.text or None,
    }


def _time(epoch_s: float | None) -> str | None:
    return None if epoch_s is None else iso_utc(epoch_s)


def _age(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
