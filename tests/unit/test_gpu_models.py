"""Declared cards against measured ones: names that may mean the same, and notes on those that do not."""

from __future__ import annotations

import pytest

from fleettui.decide.gpu_models import model_reasons
from fleettui.demo import hardware
from fleettui.model.gpu import GpuCard, GpuReading
from fleettui.model.machine import DeclaredGpu, Machine
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.probes.gpu_names import is_same_gpu_model, may_be_gpu_model, strip_maker

SAME = [
    ("GeForce RTX 3090", "NVIDIA GeForce RTX 3090"),
    ("geforce rtx 3090", "NVIDIA GeForce RTX 3090"),
    ("RTX 4090", "NVIDIA GeForce RTX 4090"),
    ("4090", "NVIDIA GeForce RTX 4090"),
    ("RTX4090 24GB", "NVIDIA GeForce RTX 4090"),
    ("2x RTX 4090", "NVIDIA GeForce RTX 4090"),
    ("rtx 4070ti super", "NVIDIA GeForce RTX 4070 Ti SUPER"),
    ("A100 80GB", "NVIDIA A100-SXM4-80GB"),
    ("H100 SXM5 80 GB", "NVIDIA H100 80GB HBM3"),
    ("V100 32GB", "Tesla V100-SXM2-32GB"),
    ("T4", "Tesla T4"),
    ("RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation"),
    ("GB10 (unified)", "NVIDIA GB10"),
    ("A40", "NVIDIA A40-48Q"),
    ("GRID A100-10C", "GRID A100-10C"),
    ("RX 7900 XTX", "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]"),
    ("Radeon RX 6600", "Navi 23 [Radeon RX 6600/6600 XT"),
    ("Instinct MI300X", "AMD Instinct MI300X OAM"),
    ("MI210", "0x740f"),
    ("24GB consumer GPU", "NVIDIA GeForce RTX 3090"),
    ("Jetson AGX Orin 64GB", "Orin (nvgpu)"),
    ("RX 7900 XT", "AMD GPU (memory only)"),
    ("", "NVIDIA GeForce RTX 3090"),
]
OTHER = [
    ("RTX 4090", "NVIDIA GeForce RTX 3090"),
    ("RTX 4070", "NVIDIA GeForce RTX 4070 Ti"),
    ("RTX 4070 Ti", "NVIDIA GeForce RTX 4070"),
    ("RTX 4000", "NVIDIA RTX A4000"),
    ("L40", "NVIDIA L40S"),
    ("H200", "NVIDIA H100 80GB HBM3"),
    ("A40", "NVIDIA A16-16Q"),
    ("RX 6800", "Navi 23 [Radeon RX 6600/6600 XT"),
    ("MI250X", "AMD Instinct MI300X"),
]


@pytest.mark.parametrize(("declared", "measured"), SAME)
def test_names_that_may_be_the_same(declared: str, measured: str) -> None:
    assert may_be_gpu_model(declared, measured)


@pytest.mark.parametrize(("declared", "measured"), OTHER)
def test_names_of_other_models(declared: str, measured: str) -> None:
    assert not may_be_gpu_model(declared, measured)


def test_the_prefix_and_case_do_not_count() -> None:
    assert is_same_gpu_model("GeForce RTX 3090", "NVIDIA GeForce RTX 3090")
    assert is_same_gpu_model("nvidia geforce rtx 3090", "GEFORCE RTX 3090")
    assert not is_same_gpu_model("GeForce RTX 3090", "NVIDIA GeForce RTX 3090 Ti")
    assert [strip_maker(name) for name in ("NVIDIA GeForce RTX 4090", "Tesla T4", "NVIDIA ", "MI300X")] == [
        "RTX 4090", "T4", "NVIDIA ", "MI300X",
    ]  # fmt: skip


def notes(declared: list[tuple[str, float | None]], *cards: GpuCard) -> list[str]:
    gpus = tuple(DeclaredGpu(model, Unknown() if vram is None else vram) for model, vram in declared)
    snapshot = MachineSnapshot(Machine("ada", "gpu-host", "ada.lan", gpus=gpus))
    reasons = model_reasons(snapshot, GpuReading(tuple(cards)))
    assert {(reason.severity, reason.code) for reason in reasons} <= {("note", "gpu_model_differs")}
    return [reason.text for reason in reasons]


def card(index: int, name: str, gib: float | None = 24, *, is_unified: bool = False) -> GpuCard:
    total = Unknown("[N/A]") if gib is None else int(gib * 1024)
    return GpuCard(index, name=name, total_mib=total, is_unified=is_unified)


OLD, NEW = "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 4090"


def test_another_model() -> None:
    assert notes([("RTX 4090", 24), ("RTX 4090", 24)], card(0, NEW), card(1, OLD)) == [
        "GPU 1 is an RTX 3090, the file declares RTX 4090: correct hardware.gpu"
    ]
    assert notes([("RTX 4090", None)] * 3, *(card(index, "Tesla T4", 15) for index in range(3))) == [
        "GPU 0, 1, 2 are T4, the file declares RTX 4090: correct hardware.gpu"
    ]
    assert notes([("L4", None)], card(0, "Tesla T4", 15))[0].startswith("GPU 0 is a T4, ")


def test_the_order_in_the_file_means_nothing() -> None:
    assert notes([("RTX 4090", 24), ("RTX 3090", 24)], card(0, OLD), card(1, NEW)) == []
    two = [("RTX 6000", 48), ("RTX 6000", 24)]
    assert notes(two, card(0, "Quadro RTX 6000", 24), card(1, "NVIDIA RTX 6000 Ada Generation", 48)) == []


def test_another_amount_of_memory() -> None:
    assert notes([("A100", 80)], card(0, "NVIDIA A100-SXM4-40GB", 40)) == [
        "GPU 0 has 40 GiB of VRAM, the file declares 80: correct hardware.gpu"
    ]
    assert notes([("A10G", 24)], card(0, "NVIDIA A10G", 22.2)) == []
    assert notes([("T4", 16)], card(0, "Tesla T4", 15)) == []
    assert notes([("A10G", 24)], card(0, "NVIDIA A10G", 21.5)) != []


def test_what_is_not_known_is_no_difference() -> None:
    assert notes([("RTX 3090", 24)], card(0, OLD, None)) == []
    assert notes([("GB10", 128)], card(0, "NVIDIA GB10", 119, is_unified=True)) == []
    assert notes([("RTX 3090", 24)], GpuCard(0)) == []
    assert notes([], card(0, OLD)) == []


def test_missing_and_further_cards_are_told_elsewhere() -> None:
    assert notes([("RTX 4090", 24), ("RTX 3090", 24)], card(1, OLD)) == []
    assert notes([("RTX 3090", 24)], card(0, NEW), card(1, OLD)) == []


def test_the_simulated_machines_declare_what_they_have() -> None:
    kinds = [kind for kind in vars(hardware).values() if isinstance(kind, hardware.CardKind)]
    assert len(kinds) >= 9
    for kind in kinds:
        gib = kind.total_mib / 1024 if kind.total_mib else None
        made = card(0, kind.name, gib, is_unified=kind.is_unified)
        assert notes([(kind.label, kind.vram_gb)], made) == [], kind
