"""Where in a fleet a model fits: verdicts of each machine, order, exit codes, text and document."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    GIB,
    NOW,
    digest_of,
    make_card,
    make_copy,
    make_engine,
    make_fleet,
    make_installed,
    make_machine,
    make_offline,
    make_pending,
    make_snapshot,
)
from fleettui.decide.fit_report import judge_fleet
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.model_need import SeenCopy
from fleettui.model.catalog import Catalog, CatalogModel
from fleettui.model.fit import FitQuery, FitReport
from fleettui.model.gpu import GpuReading
from fleettui.model.model_shape import AttentionShape, ModelShape, TensorSums
from fleettui.model.ollama_settings import OllamaSettings
from fleettui.model.readings import MemoryReading, SystemReading
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot, MaintenanceFlag
from fleettui.model.unknown import Unknown
from fleettui.view.cells import text_of
from fleettui.view.fit_document import fit_document
from fleettui.view.fit_text import conclusion, fit_lines
from fleettui.view.glyphs import ASCII
from fleettui.view.text import cell_width

CODER = "qwen3-coder:30b"
SHAPE = ModelShape(
    architecture="qwen3moe",
    layers=48,
    embedding_length=2048,
    max_context=262144,
    vocabulary=151936,
    attention=AttentionShape(heads=(32,), kv_heads=(4,), key_length=128, value_length=128),
    tensors=TensorSums(18 * GIB, has_output=True, count=579),
    capabilities=("completion",),
)
"""Weights 18 + cache 3 GiB at 32768 tokens; 0.83 GiB more on each card: 21.8 GiB on one."""
KNOWN = RouteKnowledge(shapes={digest_of(CODER): SHAPE})
ON_DISK = make_installed(CODER, gib=18)


def machine(name: str, *free_gib: float, loaded: tuple[Any, ...] = (), **more: Any) -> MachineSnapshot:
    """A machine with the model on its disk; its cards have as much free."""
    cards = tuple(make_card(at, free_gib=gib, total_gib=max(24.0, gib)) for at, gib in enumerate(free_gib))
    installed = more.pop("installed", (ON_DISK,))
    settings = more.pop("settings", OllamaSettings())
    whole = make_snapshot(
        name,
        machine=make_machine(name, gpus=len(cards)),
        gpu=GpuReading(cards) if cards else None,
        engines=(make_engine(loaded=loaded, installed=installed),),
        memory=MemoryReading(64 << 20, more.pop("ram_gib", 48) << 20),
        system=SystemReading(ollama=settings),
    )
    return replace(whole, **more)


def report_of(*machines: MachineSnapshot, knowledge: RouteKnowledge = KNOWN, **asked: Any) -> FitReport:
    query = FitQuery(**{"model": CODER, "context": 32768, **asked})
    return judge_fleet(make_fleet(*machines), query, NOW, knowledge)


def verdicts(report: FitReport) -> dict[str, str]:
    return {item.machine: item.verdict for item in report.machines}


IDLE = make_copy("qwen3:8b", gib=10, expires_at=NOW + 60)


def test_each_way_to_fit_best_first() -> None:
    report = report_of(
        machine("none", 6, ram_gib=8),
        machine("offload", 12),
        machine("cpu"),
        machine("evicts", 14, loaded=(IDLE,)),
        machine("two", 12, 16),
        machine("one", 23),
        machine("roomy", 40),
        make_offline(),
        make_pending(),
    )
    assert [(item.machine, item.verdict) for item in report.machines][:7] == [
        ("roomy", "one_gpu"),
        ("one", "one_gpu"),
        ("two", "several_gpus"),
        ("evicts", "evictions"),
        ("offload", "cpu_offload"),
        ("cpu", "cpu_offload"),
        ("none", "no"),
    ]
    assert all(not item.has_data and item.verdict == "unknown" for item in report.machines[7:])
    found = {item.machine: item for item in report.machines}
    assert found["evicts"].evicted == ("qwen3:8b",)
    assert found["two"].gpus == (0, 1)
    assert 9.6 < found["offload"].ram_bytes / GIB < 10
    assert report.exit_code == 0


@pytest.mark.parametrize(
    ("machines", "asked", "exit_code"),
    [
        ((machine("one", 23),), {}, 0),
        ((machine("none", 6, ram_gib=8),), {}, 1),
        ((machine("one", 23),), {"model": "nope"}, 3),
        ((make_offline(), make_pending()), {}, 4),
        ((), {}, 4),
    ],
)
def test_exit_codes(machines: tuple[MachineSnapshot, ...], asked: dict[str, Any], exit_code: int) -> None:
    assert report_of(*machines, **asked).exit_code == exit_code


def test_a_model_that_nobody_has_is_judged_by_the_catalog() -> None:
    catalog = Catalog((CatalogModel("big", vram_gib=20.0, names=(("ollama", ("big:20b",)),)),))
    report = report_of(
        machine("one", 23, installed=()),
        machine("small", 12, installed=(), ram_gib=6),
        model="big:20b",
        knowledge=RouteKnowledge(catalog=catalog),
    )
    assert verdicts(report) == {"one": "one_gpu", "small": "no"}
    need = report.machines[0].need
    assert getattr(need, "basis", None) == "catalog"
    assert not report.machines[0].is_installed


def test_a_machine_without_it_is_judged_by_the_weights_of_the_others() -> None:
    report = report_of(machine("has", 23), machine("lacks", 23, installed=()))
    assert [item.is_installed for item in sorted(report.machines, key=lambda item: item.machine)] == [
        True,
        False,
    ]
    assert report.machines[0].need == report.machines[1].need
    assert report.digest == digest_of(CODER)


def test_each_machine_counts_with_its_own_weights_and_settings() -> None:
    other = replace(ON_DISK, digest="ff" * 32, size_bytes=30 * GIB)
    report = report_of(
        machine("ada", 40),
        machine("bora", 40),
        machine("odd", 40, installed=(other,)),
        machine("set", 40, settings=OllamaSettings(parallel=4, cache_type="q8_0")),
    )
    assert report.has_drift
    found = {item.machine: item for item in report.machines}
    bases = {name: getattr(item.need, "basis", None) for name, item in found.items()}
    assert bases == {"ada": "tensors", "bora": "tensors", "odd": "file size", "set": "tensors"}
    assert getattr(found["ada"].need, "kv_bytes", 0) == 3 * GIB
    assert getattr(found["set"].need, "kv_bytes", 0) == 4 * 3 * GIB * 34 // 64


def test_what_is_asked_for_counts_before_the_settings() -> None:
    told = OllamaSettings(parallel=4, cache_type="q8_0", context=8192)
    report = report_of(machine("ada", 40, settings=told))
    assert report.machines[0].use is not None
    assert report.machines[0].use.parallel == 4
    asked = report_of(machine("ada", 40, settings=told), parallel=1, cache_type="f16")
    assert getattr(asked.machines[0].need, "kv_bytes", 0) == 3 * GIB
    own = report_of(machine("ada", 40, settings=told), context=None)
    assert own.machines[0].use is not None
    assert (own.machines[0].use.context, own.machines[0].use.context_basis) == (
        8192,
        "OLLAMA_CONTEXT_LENGTH",
    )


def test_parallel_that_cannot_be_read_is_said() -> None:
    assert report_of(machine("ada", 40, settings=None)).machines[0].notes == ("assumes 1 request at a time",)
    assert report_of(machine("ada", 40)).machines[0].notes == ()


def test_a_resident_copy_takes_its_own_place() -> None:
    copy = make_copy(CODER, gib=21.5, context=16384)
    report = report_of(machine("ada", 2, loaded=(copy,)), context=None)
    found = report.machines[0]
    assert (found.verdict, found.resident_context, found.evicted) == ("one_gpu", 16384, ())
    assert found.use is not None
    assert found.use.context_basis == "as it is resident"


def test_a_copy_that_works_is_never_evicted() -> None:
    engine = make_engine(loaded=(IDLE,), installed=(ON_DISK,))
    busy = replace(machine("ada", 14), engines=(replace(engine, running=2),))
    assert verdicts(report_of(busy)) == {"ada": "cpu_offload"}


def test_other_engines_serve_other_weights() -> None:
    vllm = make_engine(
        loaded=(make_copy(CODER, engine="vllm", gib=20, digest=Unknown("none")),), kind="vllm", port=8000
    )
    served = machine("ada", 40)
    report = report_of(replace(served, engines=(*served.engines, vllm)), machine("bora", 40, installed=()))
    assert not report.has_drift
    found = {item.machine: item for item in report.machines}
    assert found["ada"].resident_context is None
    assert "vLLM serves it there; this is about a copy in Ollama" in found["ada"].notes
    alone = replace(machine("cleo", 40), engines=(vllm,))
    only = report_of(alone, knowledge=RouteKnowledge())
    assert (only.exit_code, only.machines[0].verdict, only.machines[0].is_installed) == (1, "unknown", False)


def test_maintenance_is_told_and_does_not_hide_the_verdict() -> None:
    flag = MaintenanceFlag("fan swap", "mia", NOW - 60)
    found = report_of(machine("ada", 40, maintenance=flag)).machines[0]
    assert found.verdict == "one_gpu"
    assert any("fan swap" in note for note in found.notes)


def test_what_a_load_of_ours_took_counts_first() -> None:
    seen = SeenCopy(25 * GIB, 32768, 1, where="bora")
    known = replace(KNOWN, measured={digest_of(CODER): (seen,)})
    report = report_of(machine("ada", 24), machine("bora", 40), knowledge=known)
    assert verdicts(report) == {"ada": "cpu_offload", "bora": "one_gpu"}
    assert "25.0 GiB measured on bora" in getattr(report.machines[0].need, "text", "")


def test_only_the_machines_that_were_asked_for() -> None:
    assert set(verdicts(report_of(machine("ada", 40), machine("bora", 40), machines=("bora",)))) == {"bora"}
    assert set(verdicts(report_of(machine("ada", 40), tags=("gpu",)))) == {"ada"}
    assert report_of(machine("ada", 40), tags=("edge",)).machines == ()


@given(st.permutations(["ada", "bora", "cleo", "dora"]))
def test_the_order_of_the_machines_never_matters(names: list[str]) -> None:
    free = {"ada": 40, "bora": 40, "cleo": 12, "dora": 3}
    report = report_of(*(machine(name, free[name]) for name in names))
    assert [item.machine for item in report.machines] == ["ada", "bora", "cleo", "dora"]


def whole() -> FitReport:
    return report_of(
        machine("a-machine-with-a-very-long-name", 14, loaded=(IDLE,), settings=None),
        machine("two", 12, 16, settings=OllamaSettings(context=32768)),
        machine("cpu"),
        machine("none", 6, ram_gib=8),
        machine("flagged", 40, maintenance=MaintenanceFlag("fan \x1b[2J swap", "mia", NOW - 60)),
        make_offline(),
        context=None,
    )


@pytest.mark.parametrize("width", [40, 60, 72, 80, 100, 120, 200, None])
def test_no_line_is_wider_than_the_terminal(width: int | None) -> None:
    lines = [text_of(line) for line in fit_lines(whole(), width)]
    assert max(cell_width(line.rstrip()) for line in lines) <= max(width or 120, 60)
    assert not any("\x1b" in line for line in lines)
    text = " ".join(" ".join(lines).split())
    for words in ("on 2 GPUs", "with evictions", "on the CPU only", "evicts qwen3:8b", "weights 18.0"):
        assert words in text
    assert "assumes 1 request at a time" in text


def test_text_in_ascii() -> None:
    assert all(text_of(line).isascii() for line in fit_lines(whole(), 80, ASCII))


def test_rows_of_the_text() -> None:
    lines = [
        text_of(line).rstrip() for line in fit_lines(report_of(machine("one", 23), machine("two", 12, 16)))
    ]
    assert lines[2:5] == [
        "  MACHINE  FITS                NEED    FREE  OLLAMA  HOW  (GiB)",
        "● one      on one GPU          21.8    23.0    19.5  GPU 0",
        "● two      on 2 GPUs           23.1    28.0    19.5  GPUs 0, 1",
    ]
    assert "need" in lines
    assert any(line.startswith("  file 18.0 + f16 cache 1.5 GiB; where") for line in lines)


def test_words_for_a_failure() -> None:
    assert conclusion(report_of(machine("one", 23))) == ""
    unknown = conclusion(report_of(machine("one", 23), model="qwen3-codr:30b"))
    assert "nothing is known of 'qwen3-codr:30b'" in unknown
    assert "nearest: qwen3-coder:30b" in unknown
    assert conclusion(report_of(make_offline())).startswith("no machine gave usable data")
    assert conclusion(report_of(machine("none", 6, ram_gib=8))) == f"'{CODER}' fits on no machine now"


def test_the_document_has_every_figure() -> None:
    document = json.loads(json.dumps(fit_document(whole(), took_ms=1.234), allow_nan=False))
    assert (document["schema"], document["took_ms"], document["exit_code"]) == (1, 1.2, 0)
    assert document["model"]["digest"] == digest_of(CODER)
    found = {item["name"]: item for item in document["machines"]}
    two = found["two"]
    assert (two["verdict"], two["gpus"], two["evicts"]) == ("several_gpus", [0, 1], [])
    assert two["need"]["basis"] == "tensors"
    assert two["need"]["shared_bytes"] + 2 * two["need"]["per_gpu_bytes"] <= two["needed_bytes"]
    assert two["ollama"]["predicted_bytes"] > 18 * GIB
    assert two["use"]["is_parallel_known"]
    assert found[make_offline().name]["need"] is None


def test_a_fleet_that_knows_nothing_of_the_model() -> None:
    bare = FleetSnapshot(1, NOW, 2.0)
    report = judge_fleet(bare, FitQuery(CODER), NOW, RouteKnowledge())
    assert (report.exit_code, report.machines) == (4, ())
    assert fit_lines(report, 80)
