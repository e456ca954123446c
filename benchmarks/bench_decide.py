"""CPU of one decision of routing over a fleet in memory: filters, fit, order, every machine explained."""

from __future__ import annotations

import time

from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.routing import decide_route
from fleettui.model.gpu import GpuCard, GpuReading
from fleettui.model.lease import Lease
from fleettui.model.machine import DeclaredGpu, EngineEndpoint, Machine
from fleettui.model.model_shape import AttentionShape, ModelShape, TensorSums
from fleettui.model.ollama_settings import OllamaSettings
from fleettui.model.readings import (
    CopyPlace,
    CopyUse,
    EngineReading,
    InstalledModel,
    LoadedModel,
    MemoryReading,
    SystemReading,
)
from fleettui.model.route import RouteQuery
from fleettui.model.snapshot import FleetSnapshot, LinkStatus, MachineSnapshot, SourceStatus
from fleettui.model.sockets import ListeningPort, SocketsReading
from measure import Report

NOW = 1_800_000_000.0
GIB = 1 << 30
MACHINES, MODELS, CARDS = 256, 20, 2
ASKED = "llama3.1:70b"
GOAL_MS = 5.0
REPEAT = 60
KINDS = ("resident", "fits", "evicts", "offload", "not installed", "offline")
MIXED = ("resident", "fits", "fits", "fits", "evicts", "offload", "not installed", "offline")
"""One eighth of the fleet each."""


def digest_of(name: str) -> str:
    """64 hexadecimal digits."""
    return name.encode().hex().ljust(64, "0")[:64]


def make_machine(number: int, kind: str) -> MachineSnapshot:
    """A machine of two cards with twenty models on its disk, one of them loaded, and what a poll reads."""
    name = f"gpu{number}"
    gpus, engines = (DeclaredGpu("RTX 6000", 48.0),) * CARDS, (EngineEndpoint("ollama", 11434),)
    machine = Machine(name, "gpu-host", f"{name}.lan", gpus=gpus, engines=engines)
    if kind == "offline":
        return MachineSnapshot(machine, link=LinkStatus("failed", error="no answer on port 22 (timeout)"))
    free_gib = {"resident": 4, "fits": 44, "evicts": 14}.get(kind, 6)
    free_mib = free_gib * 1024 + number
    cards = [
        GpuCard(
            index, f"GPU-{number}-{index}", "RTX 6000", "580.126.09", total_mib=48 * 1024, free_mib=free_mib,
            used_mib=48 * 1024 - free_mib, utilisation_percent=0, temperature_c=40, power_w=30.0,
            power_limit_w=300.0, fan_percent=30, pstate="P8", bus_id=f"00000000:0{index + 1}:00.0",
        )
        for index in range(CARDS)
    ]  # fmt: skip
    names = [f"model{other}:8b" for other in range(MODELS - 1)]
    names.append("model99:8b" if kind == "not installed" else ASKED)
    loaded = ASKED if kind == "resident" else names[0]
    gib = 40 if kind in ("resident", "evicts") else 5
    copy = LoadedModel(
        loaded, "ollama", digest_of(loaded), gib * GIB, gib * GIB, 32768, expires_at=NOW + 200.0 + number
    )
    engine = EngineReading(
        "ollama",
        11434,
        "ok",
        loaded=(copy,),
        installed=tuple(InstalledModel(item, "ollama", digest_of(item), 36 * GIB) for item in names),
        uses=(CopyUse(loaded, NOW - number),),
    )
    status = SourceStatus("ok", read_at=NOW - 0.5, since=NOW - 3600)
    return MachineSnapshot(
        machine,
        link=LinkStatus("up"),
        gpu=GpuReading(tuple(cards)),
        memory=MemoryReading(256 << 20, 200 << 20),
        sockets=SocketsReading((ListeningPort(22, False), ListeningPort(11434, True, 1, 1))),
        system=SystemReading(ollama=OllamaSettings()),
        engines=(engine,),
        places=(CopyPlace(11434, loaded, (0, 1)),),
        sources=dict.fromkeys(("gpu", "memory", "sockets", "ollama"), status),
        health="healthy",
        last_seen=NOW - 0.5,
    )


def make_fleet(kinds: tuple[str, ...]) -> FleetSnapshot:
    """256 machines, the kinds in turn."""
    machines = tuple(make_machine(number, kinds[number % len(kinds)]) for number in range(MACHINES))
    return FleetSnapshot(1, NOW, 2.0, machines, machines_dir="machines")


def make_knowledge() -> RouteKnowledge:
    """What the model is made of, and leases on every fourth machine."""
    shape = ModelShape(
        "llama",
        layers=80,
        embedding_length=8192,
        max_context=131072,
        vocabulary=128256,
        attention=AttentionShape(heads=(64,), kv_heads=(8,), key_length=128, value_length=128),
        tensors=TensorSums(36 * GIB, embedding_bytes=GIB),
        capabilities=("completion",),
    )
    leases = tuple(
        Lease(str(number), f"gpu{number}", 11434, "ollama", ASKED, "resident", NOW - 1, NOW + 9)
        for number in range(0, MACHINES, 4)
    )
    return RouteKnowledge(leases, shapes={digest_of(ASKED): shape})


def least_ms(fleet: FleetSnapshot, knowledge: RouteKnowledge) -> tuple[float, str]:
    """CPU milliseconds of the quickest of many decisions, and how many machines are in each tier."""
    query = RouteQuery(ASKED, context=32768)
    least, tiers = float("inf"), ""
    for _ in range(REPEAT):
        started = time.process_time()
        decision = decide_route(fleet, query, NOW, knowledge)
        least = min(least, time.process_time() - started)
        counts: dict[str, int] = {}
        for item in decision.candidates:
            counts[f"tier {item.tier}"] = counts.get(f"tier {item.tier}", 0) + 1
        tiers = ", ".join(f"{count} in {tier}" for tier, count in counts.items())
        tiers += f", {len(decision.rejected)} rejected"
    return least * 1e3, tiers.removeprefix(", ")


def main() -> None:
    """Mixed fleet beside the goal; fleets of one kind say what is dear."""
    report = Report(f"Decision of routing ({MACHINES} machines, {MODELS} models on each disk)")
    knowledge = make_knowledge()
    value, note = least_ms(make_fleet(MIXED), knowledge)
    report.add("mixed fleet", value, "ms", GOAL_MS, note)
    for kind in KINDS:
        value, note = least_ms(make_fleet((kind,)), knowledge)
        report.add(f"all {kind}", value, "ms", None, note)
    report.finish()


if __name__ == "__main__":
    main()
