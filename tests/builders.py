"""Builders of machines, cards, copies and snapshots for tests of every room.

Everything is healthy and read just now unless a test says otherwise; `NOW` is the usual moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fleettui.model.gpu import GpuCard, GpuProcess, GpuReading, ProcessesReading
from fleettui.model.machine import DeclaredGpu, Machine
from fleettui.model.profile import Profile
from fleettui.model.readings import (
    CpuReading,
    DisksReading,
    DiskUse,
    EngineKind,
    EngineReading,
    InstalledModel,
    LoadedModel,
    MemoryReading,
    NetInterface,
    NetReading,
    SystemReading,
)
from fleettui.model.snapshot import FleetSnapshot, HostKeyOffer, LinkStatus, MachineSnapshot, SourceStatus
from fleettui.model.unknown import Unknown

NOW = 1_796_047_392.0
"""2026-11-30T14:03:12Z."""
GIB = 1 << 30
MIB = 1 << 20


def make_machine(name: str = "ada", *, gpus: int | None = 2, **changes: Any) -> Machine:
    """A declared machine with `gpus` cards of 24 GiB (0: CPU-only, None: not declared)."""
    declared = None if gpus is None else tuple(DeclaredGpu("RTX 4090", 24.0) for _ in range(gpus))
    hardware: dict[str, Any] = {"cpu": "16-core x86_64", "ram_gb": 128}
    if gpus is not None:
        hardware["gpu"] = [{"model": "RTX 4090", "vram_gb": 24} for _ in range(gpus)]
    role = "cpu-host" if gpus == 0 else "gpu-host"
    document = {
        "name": name,
        "role": role,
        "hardware": hardware,
        "storage_gb": 8000,
        "network": {"hostname": f"{name}.lan", "port": 11434},
        "models": [],
        "tags": ["gpu"] if gpus else ["cpu"],
    }
    machine = Machine(
        name=name,
        role=role,
        hostname=f"{name}.lan",
        cpu="16-core x86_64",
        ram_gb=128.0,
        gpus=declared,
        storage_gb=8000.0,
        tags=("gpu",) if gpus else ("cpu",),
        document=document,
        config_file=f"machines/{name}.yaml",
    )
    return replace(machine, **changes)


def make_card(
    index: int = 0, *, free_gib: float | None = 24.0, total_gib: float | None = 24.0, **changes: Any
) -> GpuCard:
    """An idle RTX 4090; None stands for memory that is not reported."""
    total = Unknown("[N/A]") if total_gib is None else round(total_gib * 1024)
    free = Unknown("[N/A]") if free_gib is None else round(free_gib * 1024)
    used = Unknown("[N/A]") if isinstance(total, Unknown) or isinstance(free, Unknown) else total - free
    card = GpuCard(
        index=index,
        uuid=f"GPU-000000a{index}-0000-4000-8000-0000000000a{index}",
        name="NVIDIA GeForce RTX 4090",
        driver="580.126.09",
        total_mib=total,
        used_mib=used,
        free_mib=free,
        utilisation_percent=0,
        temperature_c=38,
        power_w=31.0,
        power_limit_w=450.0,
        fan_percent=30,
        pstate="P8",
        bus_id=f"00000000:0{index + 1}:00.0",
    )
    return replace(card, **changes)


def make_copy(
    name: str = "llama3.1:70b",
    *,
    gib: float = 39.6,
    vram_gib: float | None = None,
    engine: EngineKind = "ollama",
    **changes: Any,
) -> LoadedModel:
    """A resident copy, all of it on the GPU unless `vram_gib` says less; it expires in four minutes."""
    copy = LoadedModel(
        name=name,
        engine=engine,
        digest=digest_of(name),
        size_bytes=round(gib * GIB),
        vram_bytes=round((gib if vram_gib is None else vram_gib) * GIB),
        context=32768,
        expires_at=NOW + 240,
    )
    return replace(copy, **changes)


def make_installed(
    name: str = "llama3.1:70b", *, gib: float = 39.6, engine: EngineKind = "ollama", **changes: Any
) -> InstalledModel:
    """A model on the disk."""
    return replace(InstalledModel(name, engine, digest_of(name), round(gib * GIB)), **changes)


def digest_of(name: str) -> str:
    """64 hexadecimal digits that stand for the weights of a name."""
    return name.encode().hex().ljust(64, "0")[:64]


def make_engine(
    *,
    loaded: Sequence[LoadedModel] = (),
    installed: Sequence[InstalledModel] | None = None,
    kind: EngineKind = "ollama",
    port: int = 11434,
    **changes: Any,
) -> EngineReading:
    """An engine that answers; without `installed` it has exactly what is loaded."""
    if installed is None:
        installed = [InstalledModel(copy.name, kind, copy.digest, copy.size_bytes) for copy in loaded]
    reading = EngineReading(
        kind, port, "ok", version="0.33.0", loaded=tuple(loaded), installed=tuple(installed)
    )
    return replace(reading, **changes)


def make_process(index: int = 0, *, pid: int = 4242, gib: float = 22.1, **changes: Any) -> GpuProcess:
    """A runner of Ollama on card `index`."""
    process = GpuProcess(
        gpu_uuid=f"GPU-000000a{index}-0000-4000-8000-0000000000a{index}",
        pid=pid,
        name="/usr/local/bin/ollama",
        used_mib=round(gib * 1024),
        user="ollama",
        command="/usr/local/bin/ollama runner --model /var/lib/ollama/blobs/sha256-00 --port 41234",
    )
    return replace(process, **changes)


def make_snapshot(
    name: str = "ada",
    *,
    cards: Sequence[GpuCard] | None = None,
    loaded: Sequence[LoadedModel] = (),
    installed: Sequence[InstalledModel] | None = None,
    processes: Sequence[GpuProcess] = (),
    gpus: int | None = 2,
    age_s: float = 1.0,
    machine: Machine | None = None,
    **changes: Any,
) -> MachineSnapshot:
    """An approved, healthy machine, every source read `age_s` before NOW. Cards default to idle ones."""
    machine = machine if machine is not None else make_machine(name, gpus=gpus)
    if cards is None:
        cards = [make_card(index) for index in range(len(machine.gpus or ()))]
    read_at = NOW - age_s
    status = SourceStatus("ok", read_at=read_at, since=NOW - 3600)
    names = ["cpu", "memory", "disks", "net", "system", "ollama"]
    if not machine.is_cpu_only:
        names[:0] = ["gpu", "processes"]
    snapshot = MachineSnapshot(
        machine=machine,
        link=LinkStatus("up", since=NOW - 3600, address=f"{machine.hostname}:22"),
        gpu=None if machine.is_cpu_only else GpuReading(cards=tuple(cards)),
        processes=None if machine.is_cpu_only else ProcessesReading(tuple(processes)),
        cpu=CpuReading(12.4, (1.2, 1.0, 0.8), 864000.0),
        memory=MemoryReading(128 * 1024 * 1024, 90 * 1024 * 1024, 0, 0),
        disks=DisksReading((DiskUse("/", "/dev/nvme0n1p2", 975_000_000, 222_298_112, 703_000_000),)),
        net=NetReading((NetInterface("eno1", 400_000.0, 1_100_000.0),)),
        system=SystemReading("Ubuntu 24.04.2 LTS", "6.8.0-60-generic", "x86_64", "AMD Ryzen 9 7950X", 32),
        engines=(make_engine(loaded=loaded, installed=installed),),
        sources=dict.fromkeys(names, status),
        health="healthy",
        last_seen=read_at,
        seq=1,
    )
    return replace(snapshot, **changes)


def make_offline(name: str = "pve52", *, next_try_s: float = 12.0, **changes: Any) -> MachineSnapshot:
    """A machine whose port does not answer since four minutes; it never answered before."""
    from fleettui.decide.health import judge_health

    link = LinkStatus(
        "failed",
        stage="connect",
        error="no answer on port 22 (timeout)",
        since=NOW - 240,
        next_try_at=NOW + next_try_s,
        address=f"{name}.lan:22",
    )
    snapshot = replace(MachineSnapshot(machine=make_machine(name), link=link, last_seen=NOW - 240), **changes)
    health, reasons = judge_health(snapshot, NOW, 2.0)
    return replace(snapshot, health=health, reasons=reasons)


def make_pending(name: str = "kiosk", **changes: Any) -> MachineSnapshot:
    """A machine whose host key nobody approved yet."""
    offer = HostKeyOffer("ED25519", "SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo", "KXO6-CY5H")
    link = LinkStatus("failed", stage="host key", since=NOW - 30, address=f"{name}.lan:22", offer=offer)
    return replace(MachineSnapshot(machine=make_machine(name), trust="pending", link=link), **changes)


def judged(
    snapshot: MachineSnapshot, now: float = NOW, interval_s: float = 2.0, profile: Profile | None = None
) -> MachineSnapshot:
    """The snapshot with health and reasons as the core would set them."""
    from fleettui.decide.health import judge_health

    health, reasons = judge_health(snapshot, now, interval_s, profile=profile)
    return replace(snapshot, health=health, reasons=reasons)


def make_fleet(*machines: MachineSnapshot, **changes: Any) -> FleetSnapshot:
    """A fleet at NOW with an interval of 2 s."""
    fleet = FleetSnapshot(
        seq=1, taken_at=NOW, interval_s=2.0, machines=tuple(machines), machines_dir="machines"
    )
    return replace(fleet, **changes)
