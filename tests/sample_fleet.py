"""A fleet with one machine of every sort, for tests that look at whole outputs."""

from __future__ import annotations

from dataclasses import replace

from builders import (
    NOW,
    judged,
    make_card,
    make_copy,
    make_fleet,
    make_installed,
    make_machine,
    make_offline,
    make_pending,
    make_process,
    make_snapshot,
)
from fleettui.model.gpu import GpuProblem, GpuReading
from fleettui.model.machine import ConfigProblem, DeclaredGpu
from fleettui.model.readings import MemoryReading
from fleettui.model.snapshot import (
    FleetSnapshot,
    HostKeyOffer,
    LinkStatus,
    MachineSnapshot,
    MaintenanceFlag,
    SourceStatus,
)
from fleettui.model.unknown import Unknown


def sample_fleet() -> FleetSnapshot:
    """Eleven machines, judged, in natural order."""
    machines = (
        _ada(),
        _app_host(),
        _bora(),
        _cleo(),
        _dora(),
        _enno(),
        _gina(),
        make_pending(),
        make_offline(),
    )
    return make_fleet(
        *(judged(machine) for machine in (*machines, _spark(), _zoe())),
        problems=(ConfigProblem("machines/x.yaml", 3, "network.hostname", "required key is missing"),),
    )


def _ada() -> MachineSnapshot:
    """Two busy cards, one copy on both, proven by processes."""
    cards = [
        make_card(0, free_gib=1.1, utilisation_percent=97, temperature_c=79, power_w=212.0),
        make_card(1, free_gib=5.7, utilisation_percent=30, power_w=190.0),
    ]
    return make_snapshot(
        "ada",
        cards=cards,
        loaded=[make_copy()],
        installed=[make_installed(), make_installed("qwen3:8b", gib=5.2)],
        processes=[make_process(0, gib=22.1), make_process(1, gib=18.2)],
        machine=make_machine("ada", models=("llama3.1:70b", "qwen2.5:32b")),
    )


def _app_host() -> MachineSnapshot:
    """CPU-only."""
    return make_snapshot(
        "app-host", gpus=0, loaded=[make_copy("phi3:mini", gib=2.2, vram_gib=0, expires_at=NOW + 70)]
    )


def _bora() -> MachineSnapshot:
    """A card is missing, a copy is partly in RAM, the memory of somebody else's process is in the way."""
    return make_snapshot(
        "bora",
        cards=[make_card(0, free_gib=7.9, utilisation_percent=4)],
        loaded=[make_copy("qwen2.5:32b", gib=16.4, vram_gib=13.6, is_pinned=True)],
        processes=[
            make_process(0, gib=13.6),
            make_process(
                0, pid=99, gib=2.0, name="/usr/bin/python3.11", user="mia", command="python3 train.py"
            ),
        ],
    )


def _cleo() -> MachineSnapshot:
    return make_snapshot("cleo", gpus=1, maintenance=MaintenanceFlag("fan swap", "mia", NOW - 7200))


def _dora() -> MachineSnapshot:
    """nvidia-smi hangs; the engine goes on."""
    cards = [
        make_card(
            index,
            free_gib=3 + index,
            total_gib=80,
            name="NVIDIA H100 80GB HBM3",
            utilisation_percent=40 * index,
            power_w=300.0 + index,
            power_limit_w=700.0,
        )
        for index in range(2)
    ]
    snapshot = make_snapshot(
        "dora",
        cards=cards,
        loaded=[
            make_copy("deepseek-r1:70b-llama-distill-q4_K_M", gib=140),
            make_copy("nomic-embed-text:latest", gib=0.6, is_pinned=True),
            make_copy("qwen3:8b", gib=6, state="stopping", expires_at=NOW - 300),
        ],
    )
    late = SourceStatus("late", read_at=NOW - 300, since=NOW - 298)
    machine = replace(snapshot.machine, gpus=(DeclaredGpu("H100", 80.0),) * 2)
    return replace(snapshot, machine=machine, sources={**snapshot.sources, "gpu": late})


def _enno() -> MachineSnapshot:
    problem = GpuProblem(
        "version_mismatch", "NVIDIA driver/library version mismatch: reboot or reload the driver"
    )
    return replace(make_snapshot("enno", gpus=1, cards=[]), gpu=GpuReading(problem=problem))


def _gina() -> MachineSnapshot:
    """Another host key than the approved one."""
    offer = HostKeyOffer(
        "ED25519",
        "SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo",
        "KXO6-CY5H",
        ("SHA256:Lq9sT5bXw1nV7cZ3pR8kM2dF6gH4jQ0yA1eU5iO9tBw",),
    )
    return replace(
        make_pending("gina"), trust="key_changed", link=LinkStatus("failed", stage="host key", offer=offer)
    )


def _spark() -> MachineSnapshot:
    """Unified memory."""
    card = make_card(
        free_gib=None,
        total_gib=None,
        name="NVIDIA GB10",
        is_unified=True,
        power_limit_w=Unknown("[N/A]"),
        fan_percent=Unknown("[N/A]"),
        temperature_c=35,
        power_w=11.2,
    )
    declared = make_machine("spark", gpus=1)
    return make_snapshot(
        machine=replace(declared, gpus=(DeclaredGpu("GB10", Unknown("not declared")),)),
        cards=[card],
        loaded=[make_copy("gpt-oss:120b", gib=38.1, expires_at=NOW + 29 * 60)],
        processes=[make_process(gib=38.1)],
        memory=MemoryReading(127_600_748, 82_566_368, 0, 0),
    )


def _zoe() -> MachineSnapshot:
    """Asked for the first time."""
    return MachineSnapshot(make_machine("zoe"), link=LinkStatus("connecting", address="192.0.2.9:22"))
