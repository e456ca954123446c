"""JSON documents of the fleet: `status --json`, `GET /api/infrastructure`, `machines list --json`.

`_gb` is GiB with one decimal, times are ISO UTC, unknown is null. Shapes: docs/json.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fleettui.model.clock import iso_utc
from fleettui.model.machine import ConfigProblem, Machine
from fleettui.model.readings import EngineReading, GpuCard, GpuProcess, InstalledModel, LoadedModel
from fleettui.model.residency import cards_of_copy, shares_of
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, T, Unknown
from fleettui.model.vram import card_memory, gib_of_mib, has_no_gpu

SCHEMA = 1
_GIB = 1 << 30
_KIB_IN_GIB = 1 << 20
_ONLINE = frozenset({"healthy", "degraded", "unhealthy"})

Document = dict[str, Any]


def infrastructure_document(fleet: FleetSnapshot, now: float) -> Document:
    """The whole fleet. Keys of a machine's file are kept; computed ones win over equally named ones."""
    return {
        "schema": SCHEMA,
        "taken_at": iso_utc(fleet.taken_at),
        "interval_s": _tidy(fleet.interval_s),
        "machines": [machine_document(snapshot, now) for snapshot in fleet.machines],
        "errors": [problem_document(problem) for problem in fleet.problems],
    }


def machine_document(snapshot: MachineSnapshot, now: float) -> Document:
    """Everything known of one machine."""
    machine = snapshot.machine
    is_online = snapshot.trust == "approved" and snapshot.health in _ONLINE
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
        "telemetry": _telemetry(snapshot, is_online),
        "loaded_models": _engines_or(snapshot, is_online, ready),
        "loaded": _engines_or(snapshot, is_online, _loaded(snapshot)),
        "installed": _engines_or(snapshot, is_online, [_installed(model) for model in snapshot.installed]),
        "engines": [_engine(engine) for engine in snapshot.engines],
        "system": _system(snapshot),
        "maintenance": _maintenance(snapshot),
        "drain": _drain(snapshot),
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


def _telemetry(snapshot: MachineSnapshot, is_online: bool) -> Document:
    """Readings of the machine; `gpu` is absent on CPU-only machines."""
    cpu, memory, disks, net = snapshot.cpu, snapshot.memory, snapshot.disks, snapshot.net
    load = None if cpu is None or isinstance(cpu.load, Unknown) else [_tidy(value) for value in cpu.load]
    telemetry: Document = {
        "cpu_percent": None if cpu is None else _rounded(cpu.busy_percent),
        "load": load,
        "uptime_s": None if cpu is None else _rounded(cpu.uptime_s),
        "ram_used_gb": None if memory is None else _gib(memory.used_kib, _KIB_IN_GIB),
        "ram_total_gb": None if memory is None else _gib(memory.total_kib, _KIB_IN_GIB),
        "disks": None
        if disks is None
        else [
            {
                "mount": disk.mount,
                "used_gb": _gib(disk.used_kib, _KIB_IN_GIB),
                "free_gb": _gib(disk.free_kib, _KIB_IN_GIB),
                "total_gb": _gib(disk.total_kib, _KIB_IN_GIB),
            }
            for disk in disks.disks
        ],
        "net": None
        if net is None
        else [
            {
                "name": interface.name,
                "rx_mb_s": _megabytes(interface.rx_bytes_s),
                "tx_mb_s": _megabytes(interface.tx_bytes_s),
            }
            for interface in net.interfaces
        ],
    }
    if has_no_gpu(snapshot):
        return telemetry
    if snapshot.gpu is not None:
        telemetry["gpu"] = [_card(snapshot, card) for card in snapshot.gpu.cards]
    else:
        # A client that walks the cards of machines that are online must not meet null there.
        telemetry["gpu"] = [] if is_online else None
    return telemetry


def _card(snapshot: MachineSnapshot, card: GpuCard) -> Document:
    memory = card_memory(snapshot, card)
    processes = snapshot.processes
    return {
        "index": card.index,
        "uuid": _known(card.uuid),
        "name": _known(card.name),
        "vram_total_gb": gib_of_mib(memory.total_mib),
        "vram_used_gb": gib_of_mib(memory.used_mib),
        "vram_free_gb": gib_of_mib(memory.free_mib),
        "utilisation": _known(card.utilisation_percent),
        "temperature_c": _known(card.temperature_c),
        "power_w": _rounded(card.power_w),
        "power_limit_w": _rounded(card.power_limit_w),
        "fan_percent": _known(card.fan_percent),
        "pstate": _known(card.pstate),
        "unified": card.is_unified,
        "disabled": card.index in snapshot.machine.disabled_gpus,
        "fault": None if card.fault is None else card.fault.text,
        "mig": [
            {
                "profile": part.profile,
                "uuid": _known(part.uuid),
                "vram_total_gb": gib_of_mib(part.total_mib),
                "vram_used_gb": gib_of_mib(part.used_mib),
                "vram_free_gb": gib_of_mib(part.free_mib),
            }
            for part in card.mig
        ],
        "processes": None
        if processes is None
        else [_process(process) for process in processes.processes if process.gpu_uuid == card.uuid],
    }


def _process(process: GpuProcess) -> Document:
    return {
        "pid": process.pid,
        "name": process.short_name,
        "user": _known(process.user),
        "command": _known(process.command),
        "vram_gb": gib_of_mib(process.used_mib),
    }


def _engines_or(snapshot: MachineSnapshot, is_online: bool, documents: list[T]) -> list[T] | None:
    """Null where no engine was ever read; empty all the same while the machine is online, as for `gpu`."""
    was_read = any(not isinstance(engine.loaded, Unknown) for engine in snapshot.engines)
    return documents if was_read or is_online else None


def _loaded(snapshot: MachineSnapshot) -> list[Document]:
    shares = shares_of(snapshot)
    return [_copy(copy, list(cards_of_copy(shares, copy))) for copy in snapshot.loaded]


def _copy(copy: LoadedModel, gpus: list[int]) -> Document:
    document: Document = {
        "name": copy.name,
        "engine": copy.engine,
        "digest": _known(copy.digest),
        "size_gb": _gib(copy.size_bytes, _GIB),
        "vram_gb": _gib(copy.vram_bytes, _GIB),
        "gpu_percent": _known(copy.gpu_percent),
        "context": _known(copy.context),
        "expires_at": None if copy.is_pinned else _time(_known(copy.expires_at)),
        "pinned": copy.is_pinned,
        "state": copy.state,
        "gpus": gpus,
    }
    return document


def _installed(model: InstalledModel) -> Document:
    return {
        "name": model.name,
        "engine": model.engine,
        "digest": _known(model.digest),
        "size_gb": _gib(model.size_bytes, _GIB),
        "remote": model.remote_host is not None,
    }


def _engine(engine: EngineReading) -> Document:
    return {
        "kind": engine.kind,
        "port": engine.port,
        "state": engine.state,
        "version": _known(engine.version),
        "running": _known(engine.running),
        "waiting": _known(engine.waiting),
        "kv_percent": _rounded(engine.kv_percent),
        "sleeping": _known(engine.is_sleeping),
        "error": engine.error,
    }


def _system(snapshot: MachineSnapshot) -> Document | None:
    """Null until read. CUDA, container runtime and interfaces join when a source reads them."""
    system = snapshot.system
    if system is None:
        return None
    cards = snapshot.gpu.cards if snapshot.gpu is not None else ()
    return {
        "os": _known(system.os),
        "kernel": _known(system.kernel),
        "arch": _known(system.arch),
        "cpu": _known(system.cpu_model),
        "cores": _known(system.cores),
        "driver": next((card.driver for card in cards if not isinstance(card.driver, Unknown)), None),
        "cuda": None,
        "container_runtime": None,
        "interfaces": [] if snapshot.net is None else [item.name for item in snapshot.net.interfaces],
    }


def _maintenance(snapshot: MachineSnapshot) -> Document:
    flag = snapshot.maintenance
    if flag is None:
        return {"on": False, "reason": None, "by": None, "since": None, "until": None}
    return {
        "on": True,
        "reason": flag.reason,
        "by": flag.by,
        "since": _time(flag.since),
        "until": _time(flag.until),
    }


def _drain(snapshot: MachineSnapshot) -> Document:
    flag = snapshot.drain
    if flag is None:
        return {"state": "off", "reason": None, "by": None, "since": None}
    return {"state": flag.state, "reason": flag.reason, "by": flag.by, "since": _time(flag.since)}


def _known(value: Maybe[T]) -> T | None:
    return None if isinstance(value, Unknown) else value


def _time(epoch_s: float | None) -> str | None:
    return None if epoch_s is None else iso_utc(epoch_s)


def _age(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _rounded(value: Maybe[float]) -> float | None:
    return None if isinstance(value, Unknown) else round(float(value), 1)


def _gib(value: Maybe[int], unit: int) -> float | None:
    return None if isinstance(value, Unknown) else round(value / unit, 1)


def _megabytes(bytes_s: Maybe[float]) -> float | None:
    return None if isinstance(bytes_s, Unknown) else round(bytes_s / 1e6, 1)


def _tidy(value: float) -> float | int:
    """2.0 as 2, 0.5 as it is."""
    return int(value) if value == int(value) else value
