"""Fleets for the tests of the Models screen: machines with copies, disks and declared models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from builders import (
    GIB,
    NOW,
    make_copy,
    make_engine,
    make_fleet,
    make_installed,
    make_machine,
    make_offline,
    make_pending,
    make_snapshot,
)
from fleettui.model.readings import InstalledModel, LoadedModel
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Unknown, known_or
from fleettui.view.model_matrix import ModelIndex, ModelLine

CLOUD = Unknown("cloud model, not on this disk")


def host(
    name: str,
    *loaded: LoadedModel,
    installed: Sequence[InstalledModel] = (),
    models: Sequence[str] = (),
    gpus: int | None = 2,
    **changes: Any,
) -> MachineSnapshot:
    """A machine that has on disk what it has loaded, `installed` too, and declares `models`."""
    disk = [
        make_installed(copy.name, gib=known_or(copy.size_bytes, 0) / GIB, digest=copy.digest)
        for copy in loaded
    ]
    return make_snapshot(
        name,
        machine=make_machine(name, gpus=gpus, models=tuple(models)),
        loaded=loaded,
        installed=[*disk, *installed],
        gpus=gpus,
        **changes,
    )


def mixed_fleet() -> FleetSnapshot:
    """Two copies of a model and an old one, a partly offloaded one, one in RAM, a missing one, a cloud entry,
    an alias, another digest, a machine that waits for approval and one that is offline."""
    ada = host(
        "ada",
        make_copy(),
        make_copy("nomic-embed-text:latest", gib=0.6, is_pinned=True),
        installed=[make_installed("qwen2.5:32b", gib=19.3)],
        models=["llama3.1:70b"],
    )
    app_host = host(
        "app-host",
        make_copy("phi3:mini", gib=2.2, vram_gib=0, expires_at=NOW + 60),
        installed=[make_installed("gpt-oss:120b-cloud", remote_host="https://ollama.com", size_bytes=CLOUD)],
        models=["phi3:mini", "llama3.1:70b"],
        gpus=0,
    )
    bora = host(
        "bora",
        make_copy("qwen2.5:32b", gib=19.3, vram_gib=16.0, is_pinned=True),
        models=["qwen2.5:32b", "mistral:7b"],
    )
    dora = host("dora", installed=[make_installed("qwen2.5:32b", gib=19.0, digest="f" * 64)])
    hopper = host(
        "hopper",
        make_copy(expires_at=NOW + 1740),
        make_copy("mixtral:8x22b", gib=74.0, expires_at=NOW + 3400),
        installed=[make_installed("llama3.1", gib=39.6, digest=make_copy().digest)],
        models=["llama3.1:70b", "mixtral:8x22b"],
    )
    kiosk = make_pending("kiosk", machine=make_machine("kiosk", models=("phi3:mini",)))
    pve52 = make_offline(
        "pve52",
        machine=make_machine("pve52", models=("llama3.1:70b",)),
        engines=(make_engine(loaded=[make_copy()]),),
    )
    return make_fleet(ada, app_host, bora, dora, hopper, kiosk, pve52)


def lines_of(*machines: MachineSnapshot) -> dict[str, ModelLine]:
    """Lines by name."""
    return {line.name: line for line in ModelIndex().lines_of(make_fleet(*machines), NOW)}


def renewed(machine: MachineSnapshot, seconds: float) -> MachineSnapshot:
    """The machine after requests that moved the end of every keep-alive."""
    (engine,) = machine.engines
    assert not isinstance(engine.loaded, Unknown)
    loaded = tuple(
        replace(copy, expires_at=NOW + known_or(copy.expires_at, NOW) - NOW + seconds)
        for copy in engine.loaded
    )
    return replace(machine, engines=(replace(engine, loaded=loaded),), seq=machine.seq + 1)


def crowd(count: int = 300, models: int = 40) -> tuple[MachineSnapshot, ...]:
    """So many machines with so many models each on disk, two of them loaded."""
    names = [f"model-{number}:{number}b" for number in range(models)]
    disk = tuple(make_installed(name) for name in names)
    copies = [make_copy(name, gib=5) for name in names]
    machines = []
    for number in range(count):
        loaded = (copies[number % models], copies[(number + 1) % models])
        machine = make_machine(f"gpu-{number:03}", models=tuple(names[:3]))
        engine = make_engine(loaded=loaded, installed=disk)
        machines.append(make_snapshot(machine=machine, engines=(engine,)))
    return tuple(machines)
