"""What `/metrics` is made of: hostile text, values that are not known, how the library reads it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from builders import (
    NOW,
    make_card,
    make_copy,
    make_engine,
    make_fleet,
    make_machine,
    make_offline,
    make_snapshot,
)
from fleettui.model.gpu import CardCondition, GpuCondition, GpuReading
from fleettui.model.lease import Lease
from fleettui.model.readings import EngineLoad
from fleettui.model.record import replace
from fleettui.model.snapshot import (
    DrainFlag,
    DrainState,
    FleetSnapshot,
    Health,
    MachineSnapshot,
    MaintenanceFlag,
    SourceStatus,
    Trust,
)
from fleettui.model.unknown import Unknown
from fleettui.serve.metrics import engines, machines
from fleettui.serve.metrics.exposition import METRICS, Exposition, Form, choose_form, make_sheet
from fleettui.serve.metrics.server import ServerFacts
from fleettui.serve.metrics.sheet import LABEL_CHARS, Sheet, write_openmetrics, write_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
FACTS = ServerFacts(True, 1, 2, {0: 5, 3: 1}, (("ada", "facts", 0.5, 4), ("ada", "gpu", 1.25, 3)))
LEASE = Lease("l1", "ada", 11434, "ollama", "llama3.1:70b", "cold", NOW - 5, NOW + 60)


def sheet_of(*snapshots: MachineSnapshot, leases: tuple[Lease, ...] | None = ()) -> Sheet:
    return make_sheet(make_fleet(*snapshots), FACTS, leases, NOW)


def families_of(sheet: Sheet) -> dict[str, Family]:
    """As Prometheus's own parser reads the text."""
    return {family.name: family for family in parse_text(write_text(sheet, METRICS))}


def values_of(
    *snapshots: MachineSnapshot, leases: tuple[Lease, ...] | None = ()
) -> dict[tuple[str, ...], float]:
    """(name of the sample, label values) -> value."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families_of(sheet_of(*snapshots, leases=leases)).values()
        for sample in family.samples
    }


def rich_fleet() -> tuple[MachineSnapshot, ...]:
    """Every metric has a sample on one of them."""
    condition = GpuCondition(
        (CardCondition(0, make_card().uuid, throttle=("thermal",), ecc_uncorrected=2, ecc_corrected=7),)
    )
    vllm = make_engine(
        kind="vllm", port=8000, loaded=[make_copy("meta/llama", engine="vllm", is_pinned=True)],
        running=3, waiting=1, kv_percent=12.5, load=EngineLoad(prompt_tokens=100, generated_tokens=200),
    )  # fmt: skip
    ada = make_snapshot("ada", loaded=[make_copy()])
    status = ada.sources["gpu"]
    return (
        replace(
            ada,
            gpu=GpuReading((make_card(0), make_card(1)), condition=condition),
            engines=(*ada.engines, vllm),
            sources={**ada.sources, "vllm": status},
            maintenance=MaintenanceFlag("psu", "mia", NOW - 60, NOW + 3600),
        ),
        make_snapshot("cpu", gpus=0, loaded=[make_copy("phi3:mini")]),
        make_offline("bora"),
    )  # fmt: skip


class Collected:
    """A collector of the library, made of families that it has read."""

    def __init__(self, families: Iterable[Family]) -> None:
        self.families = list(families)

    def describe(self) -> list[Family]:
        return []

    def collect(self) -> list[Family]:
        return self.families


def heads(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


@pytest.mark.parametrize(
    ("write", "parse", "generate"),
    [(write_text, parse_text, generate_latest), (write_openmetrics, parse_openmetrics, generate_openmetrics)],
    ids=["text", "openmetrics"],
)
def test_the_library_reads_it_and_would_write_the_same(write: Any, parse: Any, generate: Any) -> None:
    text = write(sheet_of(*rich_fleet(), leases=(LEASE,)), METRICS)
    end = "# EOF\n" if write is write_openmetrics else ""
    families = list(parse(text + end))
    assert len(families) == len(METRICS)
    assert all(family.samples for family in families), [f.name for f in families if not f.samples]
    registry = CollectorRegistry()
    registry.register(Collected(families))
    told = generate(registry).decode()
    assert heads(told) == heads(text + end)
    assert list(parse(told)) == families


def test_samples_are_in_base_units() -> None:
    values = values_of(*rich_fleet(), leases=(LEASE, LEASE))
    assert values["fleettui_gpu_memory_total_bytes", "ada", "0"] == 24 * 2**30
    assert values["fleettui_machine_memory_used_bytes", "ada"] == 38 * 2**30
    assert values["fleettui_machine_cpu_utilisation_ratio", "ada"] == pytest.approx(0.124)
    assert values["fleettui_engine_kv_cache_ratio", "ada", "vllm", "8000"] == 0.125
    assert values["fleettui_copy_vram_bytes", "ada", "ollama", "11434", "llama3.1:70b"] == round(39.6 * 2**30)
    assert values["fleettui_disk_total_bytes", "ada", "/"] == 975_000_000 * 1024
    assert values["fleettui_source_age_seconds", "ada", "cpu"] == 1.0
    assert values["fleettui_poll_duration_seconds_sum", "ada", "gpu"] == 1.25
    assert values["fleettui_poll_duration_seconds_count", "ada", "gpu"] == 3
    assert values["fleettui_route_decisions_total", "routed"] == 5
    assert values["fleettui_route_decisions_total", "none_eligible"] == 0
    assert values["fleettui_leases", "ada", "cold"] == 2
    assert values["fleettui_leases", "cpu", "resident"] == 0
    assert values["fleettui_gpu_throttled", "ada", "0"] == 1
    assert values["fleettui_gpu_ecc_errors_total", "ada", "0", "uncorrected"] == 2
    assert ("fleettui_copy_expires_timestamp_seconds", "ada", "vllm", "8000", "meta/llama") not in values


def test_each_state_is_told_and_one_of_them_is_the_present_one() -> None:
    drained = replace(make_snapshot("bora"), drain=DrainFlag("drained", "psu", "mia", NOW - 60))
    values = values_of(*rich_fleet()[:1], drained)
    for health in Health.__args__:  # type: ignore[attr-defined]
        assert values["fleettui_machine_health", "ada", health] == (health == "healthy")
    for trust in Trust.__args__:  # type: ignore[attr-defined]
        assert values["fleettui_machine_trust", "ada", trust] == (trust == "approved")
    for state in DrainState.__args__:  # type: ignore[attr-defined]
        assert values["fleettui_machine_drain", "bora", state] == (state == "drained")
        assert values["fleettui_machine_drain", "ada", state] == 0
    assert (
        values["fleettui_machine_maintenance", "ada"] == values["fleettui_machine_out_of_service", "ada"] == 1
    )
    assert values["fleettui_machine_out_of_service", "bora"] == 1
    assert values["fleettui_machine_maintenance_until_timestamp_seconds", "ada"] == NOW + 3600


# -- what is not known -----------------------------------------------------------------------------------


def names_of(values: dict[tuple[str, ...], float], *labels: str) -> set[str]:
    return {name for name, *given in values if tuple(given[: len(labels)]) == labels}


def test_an_unknown_value_is_no_sample() -> None:
    silent = make_card(
        1, free_gib=None, total_gib=None, utilisation_percent=Unknown(), temperature_c=Unknown(),
        power_w=Unknown(), power_limit_w=Unknown(), fan_percent=Unknown(), name=Unknown(),
    )  # fmt: skip
    odd = make_card(2, power_w=9000.0, suspect=("power_w",))
    copy = make_copy("x:1b", vram_bytes=Unknown(), context=Unknown(), expires_at=float("inf"))
    values = values_of(make_snapshot(cards=[make_card(0), silent, odd], loaded=[copy]))
    assert names_of(values, "ada", "1") == {
        "fleettui_gpu_info", "fleettui_gpu_fault", "fleettui_gpu_disabled",
    }  # fmt: skip
    assert "fleettui_gpu_power_watts" not in names_of(values, "ada", "2")
    assert names_of(values, "ada", "ollama", "11434", "x:1b") == {
        "fleettui_copy_info", "fleettui_copy_size_bytes", "fleettui_copy_pinned", "fleettui_copy_busy",
    }  # fmt: skip


def test_a_machine_that_does_not_answer_tells_nothing_but_that() -> None:
    before = make_snapshot("bora", loaded=[make_copy()])
    values = values_of(replace(before, health="offline"))
    assert {name.removeprefix("fleettui_") for name in names_of(values, "bora")} == {
        "machine_info", "machine_up", "machine_connected", "machine_health", "machine_trust",
        "machine_maintenance", "machine_drain", "machine_out_of_service", "machine_age_seconds",
        "source_age_seconds", "leases",
    }  # fmt: skip
    assert values["fleettui_machine_up", "bora"] == 0
    assert values["fleettui_machine_health", "bora", "offline"] == 1


@pytest.mark.parametrize(
    ("state", "age_s", "is_told", "is_ok"),
    [
        ("ok", 900.0, True, 1),
        ("late", machines.LATE_KEPT_S - 1, True, 0),
        ("late", machines.LATE_KEPT_S + 1, False, 0),
        ("error", 3.0, False, 0),
        ("never", 3.0, False, None),
        ("unsupported", 3.0, False, None),
    ],
)
def test_what_a_source_said_counts_while_it_answers(
    state: Any, age_s: float, is_told: bool, is_ok: int | None
) -> None:
    snapshot = make_snapshot(loaded=[make_copy()])
    status = SourceStatus(state, NOW - age_s, NOW - 900)
    values = values_of(replace(snapshot, sources=dict.fromkeys(snapshot.sources, status)))
    for name in (
        "machine_load1",
        "machine_memory_used_bytes",
        "gpu_memory_free_bytes",
        "copy_size_bytes",
        "disk_free_bytes",
    ):
        assert any(key[0] == f"fleettui_{name}" for key in values) == is_told, name
    assert values.get(("fleettui_source_ok", "ada", "gpu")) == is_ok
    assert values["fleettui_engine_up", "ada", "ollama", "11434"] == is_told


def test_cards_of_an_earlier_answer_are_not_told() -> None:
    snapshot = make_snapshot()
    assert snapshot.gpu is not None
    values = values_of(replace(snapshot, gpu=replace(snapshot.gpu, is_stale=True)))
    assert not any(name.startswith("fleettui_gpu_") for name, *_ in values)


def test_leases_that_cannot_be_read_are_no_samples() -> None:
    assert not any(name == "fleettui_leases" for name, *_ in values_of(make_snapshot(), leases=None))


# -- hostile text ----------------------------------------------------------------------------------------

HOSTILE = (
    'x"} 1\nfleettui_machine_up{machine="evil"} 1\n# EOF\n',
    "back\\slash\\",
    'quote"',
    "\x1b[31mred\x1b[0m\u202egnp.exe",
    "a" * 5000,
    "half \ud800 a pair",
    "# HELP x",
    "{}",
    "",
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_text_of_machines_stays_one_label(text: str) -> None:
    card = make_card(name=text, uuid=text, driver=text)
    copy = replace(make_copy(), name=text)
    engine = make_engine(version=text, loaded=[replace(copy, quantization=text), copy])
    snapshot = make_snapshot(machine=make_machine(role=text), cards=[card], engines=(engine,))
    system, disks = snapshot.system, snapshot.disks
    assert system is not None
    assert disks is not None
    snapshot = replace(
        snapshot,
        system=replace(system, os=text, kernel=text),
        disks=replace(disks, disks=(replace(disks.disks[0], mount=text),)),
    )
    plain = values_of(make_snapshot(cards=[make_card()], loaded=[make_copy()]))
    for written, parse in ((write_text, parse_text), (write_openmetrics, parse_openmetrics)):
        document = written(sheet_of(snapshot), METRICS) + ("# EOF\n" if written is write_openmetrics else "")
        document.encode()
        samples = [sample for family in parse(document) for sample in family.samples]
        assert {sample.name for sample in samples} == {name for name, *_ in plain}
        for sample in samples:
            assert sample.labels.get("machine", "ada") == "ada"
            assert all(len(value) <= LABEL_CHARS and value.isprintable() for value in sample.labels.values())
        assert len({(s.name, *sorted(s.labels.items())) for s in samples}) == len(samples)


def test_a_name_comes_back_as_it_is() -> None:
    name = 'we"ird\\name {x="y"} größer'
    assert ("fleettui_copy_size_bytes", "ada", "ollama", "11434", name) in values_of(
        make_snapshot(loaded=[make_copy(name)])
    )


def test_one_machine_cannot_tell_without_end() -> None:
    snapshot = make_snapshot(loaded=[make_copy(f"m{number}") for number in range(5000)])
    disks = snapshot.disks
    assert disks is not None
    many = tuple(replace(disks.disks[0], mount=f"/{number}") for number in range(5000))
    values = values_of(replace(snapshot, disks=replace(disks, disks=many)))
    assert sum(1 for name, *_ in values if name == "fleettui_copy_size_bytes") == engines.MAX_COPIES
    assert sum(1 for name, *_ in values if name == "fleettui_disk_free_bytes") == machines.MAX_DISKS
    assert values["fleettui_engine_copies", "ada", "ollama", "11434"] == 5000


# -- forms, and what is shared ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "is_openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("text/plain;version=0.0.4", False),
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", True),
        (  # Prometheus 2.42
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
            "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            True,
        ),
        (  # Prometheus 3
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
            "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.1",
            True,
        ),
        ("application/openmetrics-text;version=1.x", False),
        ("application/openmetrics-text;version=" + "9" * 4000, True),
        (";;;,,,=;=", False),
    ],
)
def test_the_form_is_what_the_reader_takes(accept: str, is_openmetrics: bool) -> None:
    form = choose_form(accept, "deflate, gzip")
    assert form == Form(is_openmetrics, True)
    assert "9.9" not in form.content_type
    assert choose_form(accept, "identity") == Form(is_openmetrics, False)


async def test_readers_of_the_same_moment_share_one_answer(tmp_path: Path) -> None:
    looks = 0

    async def look() -> FleetSnapshot:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return make_fleet(*rich_fleet())

    service = SimpleNamespace(notices=(), pollers=())
    door: Any = SimpleNamespace(
        service=service, hub=SimpleNamespace(readers=0), is_ready=True, decisions={}, fleet=look,
        state_dir=str(tmp_path), machines_dir=str(tmp_path),
    )  # fmt: skip
    exposition = Exposition(door)
    bodies = await asyncio.gather(*(exposition.read(Form()) for _ in range(100)))
    assert all(body is bodies[0] for body in bodies)
    assert looks == 1
    assert await exposition.read(Form(is_openmetrics=True)) != bodies[0]
    deadline = time.monotonic() + 60
    while await exposition.read(Form()) is bodies[0]:  # made anew once it is old
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


# -- the page --------------------------------------------------------------------------------------------


def test_the_page_has_each_metric_and_none_besides() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    shown = [
        (name, kind, tuple(re.findall(r"`(\w+)`", labels)), unit, text)
        for name, kind, labels, unit, text in rows
    ]
    assert shown == [
        (metric.name, metric.kind, metric.labels, metric.unit.replace("_", " "), metric.text)
        for metric in METRICS
    ]


def test_names_follow_the_conventions() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"fleettui_[a-z0-9_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.name.endswith("_info") == (metric.kind == "info"), metric.name
        assert metric.family.endswith(metric.unit), metric.name
        assert re.fullmatch(r"[^\n\\]+", metric.text), metric.name
