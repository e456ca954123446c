"""Random fleets to drain, for tests and benchmarks; a seed gives the same one for ever."""

from __future__ import annotations

import random
from dataclasses import dataclass

from fleettui.model.gpu import GpuCard, GpuReading
from fleettui.model.machine import DeclaredGpu, Machine
from fleettui.model.ollama_settings import OllamaSettings
from fleettui.model.readings import (
    CopyUse,
    EngineReading,
    InstalledModel,
    LoadedModel,
    MemoryReading,
    SystemReading,
)
from fleettui.model.snapshot import FleetSnapshot, LinkStatus, MachineSnapshot, SourceStatus

NOW = 1_800_000_000.0
GIB = 1 << 30
MIB = 1 << 20
CUDA_GIB = 0.5


@dataclass(frozen=True)
class Idle:
    """A copy on a target that may go."""

    name: str
    gib: float


@dataclass(frozen=True)
class Host:
    """A target: free GiB of each card, idle copies, names of models on its disk."""

    name: str
    free_gib: tuple[float, ...]
    disk: frozenset[str]
    idle: tuple[Idle, ...] = ()


@dataclass(frozen=True)
class Problem:
    """Copies on the machine `source`, GiB of each by its name, and the other machines."""

    copies: dict[str, float]
    hosts: tuple[Host, ...]
    ram_gib: float = 0.0
    """Main memory of each target."""


def random_problem(
    seed: int,
    *,
    hosts: int,
    copies: int,
    cards: int = 1,
    idle: int = 0,
    spread: float = 0.8,
    fill: float = 0.9,
) -> Problem:
    """A tight fleet: the copies take about `fill` of what is free. `spread`: how many disks have a model."""
    chance = random.Random(seed)
    names = [f"m{number:02}:1b" for number in range(copies)]
    weights = [chance.choice((1.0, 2.0, 4.0, 8.0, 16.0)) * chance.uniform(0.7, 1.4) for _ in names]
    frees = [[chance.choice((8.0, 16.0, 24.0, 48.0)) * chance.uniform(0.5, 1.0) for _ in range(cards)]
             for _ in range(hosts)]  # fmt: skip
    factor = fill * sum(map(sum, frees)) / sum(weights)
    sizes = {name: round(max(0.3, weight * factor), 2) for name, weight in zip(names, weights, strict=True)}
    targets = []
    for number, free in enumerate(frees):
        disk = frozenset(name for name in names if chance.random() < spread)
        count = chance.randint(0, idle)
        victims = tuple(Idle(f"idle{number}-{n}:1b", round(chance.uniform(1, 12), 1)) for n in range(count))
        targets.append(Host(f"host{number:02}", tuple(round(gib, 1) for gib in free), disk, victims))
    return Problem(sizes, tuple(targets))


def digest_of(name: str) -> str:
    return name.encode().hex().ljust(64, "0")[:64]


def make_host(
    name: str,
    free_gib: tuple[float, ...],
    loaded: tuple[tuple[str, float], ...],
    disk: tuple[str, ...],
    ram_gib: float = 0.0,
) -> MachineSnapshot:
    """A machine with an Ollama that keeps any number of copies, every source read just now."""
    cards = tuple(
        GpuCard(
            index, f"GPU-{name}-{index}", "RTX 6000", "580.126.09", total_mib=96 * 1024,
            free_mib=round(gib * 1024), used_mib=96 * 1024 - round(gib * 1024), utilisation_percent=0,
        )
        for index, gib in enumerate(free_gib)
    )  # fmt: skip
    machine = Machine(name, "gpu-host", f"{name}.lan", gpus=(DeclaredGpu("RTX 6000", 96.0),) * len(cards))
    copies = tuple(
        LoadedModel(
            copy, "ollama", digest_of(copy), round(gib * GIB), round(gib * GIB), 32768, expires_at=NOW + 200
        )
        for copy, gib in loaded
    )
    names = dict.fromkeys([*(copy for copy, _ in loaded), *disk])
    files = tuple(InstalledModel(item, "ollama", digest_of(item), GIB) for item in names)
    uses = tuple(CopyUse(copy, NOW - 100) for copy, _ in loaded)
    status = SourceStatus("ok", read_at=NOW - 0.5, since=NOW - 3600)
    return MachineSnapshot(
        machine,
        link=LinkStatus("up"),
        gpu=GpuReading(cards),
        memory=MemoryReading(256 << 20, round(ram_gib * (1 << 20))),
        system=SystemReading(ollama=OllamaSettings(port=11434, context=32768, max_loaded=99)),
        engines=(EngineReading("ollama", 11434, "ok", loaded=copies, installed=files, uses=uses),),
        sources=dict.fromkeys(("gpu", "memory", "ollama", "system"), status),
        health="healthy",
        last_seen=NOW - 0.5,
    )


def make_fleet(problem: Problem) -> FleetSnapshot:
    """The fleet of a problem. Nothing but the VRAM at the source tells what a model needs."""
    source = make_host("source", (1.0,), tuple(problem.copies.items()), ())
    targets = [
        make_host(
            host.name, host.free_gib, tuple((one.name, one.gib) for one in host.idle),
            tuple(sorted(host.disk)), problem.ram_gib,
        )
        for host in problem.hosts
    ]  # fmt: skip
    return FleetSnapshot(1, NOW, 2.0, (source, *targets), machines_dir="machines")
