"""The simulated fleet by itself: reproducible, alive, and consistent in every figure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fleettui.demo import fleet_plan
from fleettui.demo.engine_requests import keep_alive_seconds
from fleettui.demo.engine_texts import go_time, installed_models, loaded_models, model_document
from fleettui.demo.fleet_plan import plan_fleet
from fleettui.demo.hardware import MIB
from fleettui.demo.machine import SimulatedMachine
from fleettui.demo.machine_files import machine_file
from fleettui.demo.memory_pool import MemoryPool
from fleettui.demo.models import CATALOG, file_bytes, full_name, need_bytes
from fleettui.demo.probe_answers import answer_section
from fleettui.demo.scheduler import Request, Scheduler
from fleettui.demo.simulation import Simulation
from fleettui.probes.loops_gpu import QUERY_FIELDS

SECTIONS = ("stat", "load", "uptime", "mem", "net", "disks", "uname", "os", "cpu", "gpu", "apps", "ps")
EPOCH = 1_780_000_000.0


def readings(simulation: Simulation) -> str:
    """Everything that the fleet shows, as one text."""
    parts = []
    for name, machine in simulation.machines.items():
        for section in SECTIONS:
            code, text = answer_section(machine, section, simulation.now)
            parts.append(f"{name} {section} {code}\n{text}\n")
        parts.append(json.dumps(loaded_models(machine, lambda moment: EPOCH + moment)))
        parts.append(json.dumps(installed_models(machine)))
    return "".join(parts)


def card_rows(machine: SimulatedMachine, *fields: str) -> Iterator[list[str]]:
    code, text = answer_section(machine, "gpu:" + ":".join(fields), machine.now)
    assert code == 0, text
    for line in text.splitlines():
        yield line.split(", ")


def test_same_seed_and_ticks_give_the_same_readings() -> None:
    first, second = Simulation(12, seed=7), Simulation(12, seed=7)
    for step in (0, 1, 36, 263):
        first.advance(step)
        second.advance(step)
        assert readings(first) == readings(second)


def test_asking_changes_nothing() -> None:
    asked, quiet = Simulation(8), Simulation(8)
    for _ in range(120):
        asked.advance(1)
        readings(asked)
    quiet.advance(120)
    assert readings(asked) == readings(quiet)


def test_another_seed_lives_another_life() -> None:
    first, second = Simulation(seed=7), Simulation(seed=8)
    first.advance(60)
    second.advance(60)
    assert readings(first) != readings(second)


def test_default_fleet_has_the_promised_machines() -> None:
    machines = Simulation().machines
    assert list(machines) == ["ada", "bora", "cleo", "dora", "spark", "app-host", "enno", "fips"]
    assert answer_section(machines["app-host"], "gpu", 0) == (127, "")
    code, text = answer_section(machines["fips"], "gpu", 0)
    assert code == 18
    assert text == "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161"
    (spark,) = card_rows(machines["spark"], *QUERY_FIELDS)
    assert spark[2:7] == ["NVIDIA GB10", "580.126.09", "[N/A]", "[N/A]", "[N/A]"]
    assert (spark[10], spark[11], spark[13]) == ("[N/A]", "[N/A]", "0000000F:01:00.0")
    (partly,) = loaded_models(machines["enno"], lambda moment: EPOCH + moment)["models"]
    assert 0 < partly["size_vram"] < partly["size"]
    (on_cpu,) = loaded_models(machines["fips"], lambda moment: EPOCH + moment)["models"]
    assert on_cpu["size_vram"] == 0
    assert {name for name, machine in machines.items() if machine.plan.absence} == {"bora"}


@pytest.mark.parametrize("count", [1, 64, 300])
def test_any_number_of_machines(count: int) -> None:
    plans = plan_fleet(count, seed=7)
    assert len({plan.name for plan in plans}) == count
    for plan in plans:
        assert {full_name(name) for name in plan.declared} <= set(plan.installed)
        assert {start.name for start in plan.resident} <= set(plan.installed)
        assert {name for name, _ in plan.traffic.models} <= set(plan.installed) <= set(CATALOG)
        assert plan.traffic.mean_gap_s >= 2, "at most one request a step"


@pytest.mark.parametrize("count", [0, 301])
def test_too_few_or_too_many_machines(count: int) -> None:
    with pytest.raises(ValueError, match="1 to 300"):
        plan_fleet(count, seed=7)


def test_card_count_can_be_set() -> None:
    machines = Simulation(12, cards_each=8).machines
    counts = {name: len(machine.cards) for name, machine in machines.items()}
    assert counts["ada"] == counts["gpu-12"] == 8
    assert (counts["spark"], counts["app-host"]) == (1, 0)


def test_figures_agree_at_every_moment() -> None:
    simulation = Simulation(12)
    before: dict[str, list[int]] = {}
    for _ in range(150):
        simulation.advance(6.5)
        for name, machine in simulation.machines.items():
            check_cards(machine)
            counters = host_counters(machine)
            assert all(new >= old for new, old in zip(counters, before.get(name, counters), strict=True)), (
                name
            )
            before[name] = counters


def check_cards(machine: SimulatedMachine) -> None:
    """Sums of memory, processes and the engine's own list."""
    if machine.plan.has_driver_failure or not machine.cards:
        return
    code, apps = answer_section(machine, "apps", machine.now)
    assert code == 0
    held: dict[str, int] = {}
    for row in apps.splitlines():
        uuid, _, _, mib = row.split(", ")
        held[uuid] = held.get(uuid, 0) + int(mib)
    if not machine.plan.is_unified:
        fields = ("uuid", "memory.total", "memory.reserved", "memory.used", "memory.free")
        for uuid, *numbers in card_rows(machine, *fields):
            total, reserved, used, free = map(int, numbers)
            assert free >= 0
            assert used + reserved + free == total
            assert held.get(uuid, 0) <= used
    for runner in machine.scheduler.runners.values():
        if runner.is_ready:
            mib = sum(item.used_mib for item in machine.processes() if item.pid == runner.pid)
            assert mib >= runner.placement.vram_bytes // MIB
    for _, util, power, limit in card_rows(machine, "index", "utilization.gpu", "power.draw", "power.limit"):
        assert 0 <= int(util) <= 100
        assert limit == "[N/A]" or 0 < float(power) <= float(limit)


def host_counters(machine: SimulatedMachine) -> list[int]:
    """Counters that only grow; memory that adds up."""
    facts = {section: answer_section(machine, section, machine.now)[1] for section in ("stat", "mem", "net")}
    memory = {row.split(":")[0]: int(row.split()[1]) for row in facts["mem"].splitlines()}
    assert 0 <= memory["MemFree"] <= memory["MemAvailable"] <= memory["MemTotal"]
    jiffies = [int(word) for word in facts["stat"].split()[1:]]
    assert min(jiffies) >= 0
    traffic = [int(row.split()[column]) for row in facts["net"].splitlines() for column in (1, 9)]
    return [sum(jiffies), jiffies[0], jiffies[3], *traffic]


def test_models_come_and_go() -> None:
    """Within half an hour something expires, is evicted, is loaded and computes."""
    simulation = Simulation()
    seen: dict[str, set[frozenset[str]]] = {name: set() for name in simulation.machines}
    was_computing = set()
    for _ in range(600):
        simulation.advance(3)
        for name, machine in simulation.machines.items():
            seen[name].add(frozenset(item.model.name for item in machine.scheduler.runners.values()))
            if any(gauge.utilisation_percent > 30 for gauge in machine.cards):
                was_computing.add(name)
    assert {"ada", "bora", "cleo", "dora", "spark", "enno"} <= was_computing
    assert min(len(seen[name]) for name in ("bora", "cleo", "dora", "app-host")) >= 3


def test_one_machine_goes_away_and_returns() -> None:
    simulation = Simulation()
    states = []
    for _ in range(120):
        simulation.advance(10)
        if not states or states[-1] != simulation.is_away("bora"):
            states.append(simulation.is_away("bora"))
    assert states[:4] == [False, True, False, True]
    assert not simulation.is_away("ada")


# --- models and files


def test_sizes_are_those_of_the_real_models() -> None:
    """File sizes in GB as the registry of Ollama lists them, within 3 %."""
    published = {
        "llama3.1:8b": 4.92, "llama3.1:70b": 42.5, "qwen2.5:32b": 19.85, "llama3.2:3b": 2.02,
        "gpt-oss:120b": 65.4, "gpt-oss:20b": 13.8, "mistral-small:24b": 14.3,
        "nomic-embed-text:latest": 0.274,
    }  # fmt: skip
    for name, size_gb in published.items():
        assert file_bytes(CATALOG[name]) / 1e9 == pytest.approx(size_gb, rel=0.03), name


def test_show_tells_what_the_cache_is_made_of() -> None:
    machine = Simulation(1).machines["ada"]
    model = CATALOG["llama3.1:70b"]
    document = model_document(model, machine, is_verbose=False)
    info = document["model_info"]
    layers, heads, length = (
        info["llama.block_count"],
        info["llama.attention.head_count_kv"],
        info["llama.attention.key_length"],
    )
    per_token = layers * heads * length * 2 * 2
    assert need_bytes(model, 16384) - need_bytes(model, 8192) == pytest.approx(per_token * 8192, rel=0.01)
    assert sum(1 for tensor in document["tensors"] if tensor["name"].endswith("attn_q.weight")) == layers
    assert info["tokenizer.ggml.tokens"] is None
    assert (
        f"FROM /usr/share/ollama/.ollama/models/blobs/sha256-{model.blob_digest}\n" in document["modelfile"]
    )


def test_machine_files_are_readable(tmp_path: Path) -> None:
    for plan in plan_fleet(16, seed=7):
        text = machine_file(plan, 2222, 11434, tmp_path / "key: #1", "SHA256:abc")
        document = yaml.safe_load(text)
        assert document["name"] == plan.name
        assert len(document["hardware"]["gpu"]) == len(plan.cards)
        assert document["network"] == {"hostname": "127.0.0.1", "port": 11434}
        assert document["models"] == list(plan.declared)
        assert document["ssh"]["identity"] == str(tmp_path / "key: #1")


# --- the engine's scheduler


def make_scheduler(cards_gib: tuple[int, ...] = (24,), context: int | None = 8192) -> Scheduler:
    pids = iter(range(100, 10_000))
    pool = MemoryPool([gib << 30 for gib in cards_gib], 64 << 30)
    return Scheduler(pool, 300.0, context, lambda: next(pids), is_instant=True)


def load(scheduler: Scheduler, name: str, keep_alive_s: float | None = None, now: float = 0.0) -> Request:
    request = Request(CATALOG[name], keep_alive_s=keep_alive_s)
    scheduler.submit(request, now)
    return request


def names(scheduler: Scheduler) -> set[str]:
    return {runner.model.name for runner in scheduler.runners.values()}


def test_shortest_keep_alive_is_evicted_first() -> None:
    scheduler = make_scheduler()
    load(scheduler, "llama3.1:8b", 600)
    load(scheduler, "qwen3:8b", 60)
    load(scheduler, "mistral-small:24b")
    assert names(scheduler) == {"llama3.1:8b", "mistral-small:24b"}


def test_lowest_path_decides_between_equals() -> None:
    scheduler = make_scheduler()
    load(scheduler, "llama3.1:8b")
    load(scheduler, "qwen3:8b")
    victim = min("llama3.1:8b", "qwen3:8b", key=lambda name: CATALOG[name].blob_digest)
    load(scheduler, "mistral-small:24b")
    assert victim not in names(scheduler)
    assert len(names(scheduler)) == 2


def test_busy_copy_is_not_evicted() -> None:
    scheduler = make_scheduler()
    busy = Request(CATALOG["qwen2.5:14b"], work_s=30)
    scheduler.submit(busy, 0.0)
    waiting = load(scheduler, "mistral-small:24b", now=1.0)
    assert (busy.state, waiting.state) == ("running", "queued")
    scheduler.process(30.0)
    assert (busy.state, waiting.state) == ("done", "done")
    assert names(scheduler) == {"mistral-small:24b"}


def test_at_most_three_runners_for_each_gpu() -> None:
    scheduler = make_scheduler((80,))
    for name in ("llama3.2:3b", "qwen2.5:3b", "phi3:mini", "nomic-embed-text:latest"):
        load(scheduler, name)
    assert len(scheduler.runners) == 3


def test_model_too_large_for_one_card_is_split() -> None:
    scheduler = make_scheduler((24, 24))
    load(scheduler, "llama3.1:70b")
    (runner,) = scheduler.runners.values()
    assert set(runner.placement.card_bytes) == {0, 1}
    assert runner.placement.ram_bytes == 0


def test_model_too_large_for_all_cards_lies_partly_in_ram() -> None:
    scheduler = make_scheduler((24,))
    load(scheduler, "llama3.1:70b")
    (runner,) = scheduler.runners.values()
    assert 0 < runner.placement.vram_bytes < runner.placement.size_bytes


def test_automatic_context_goes_by_vram_and_steps_down() -> None:
    scheduler = make_scheduler((24,), context=None)
    load(scheduler, "qwen2.5:14b")
    assert [runner.context for runner in scheduler.runners.values()] == [32768]
    scheduler = make_scheduler((24,), context=None)
    load(scheduler, "qwen2.5:32b")
    assert [runner.context for runner in scheduler.runners.values()] == [4096]


def test_full_queue_is_busy() -> None:
    scheduler = make_scheduler()
    scheduler.max_queue = 1
    scheduler.submit(Request(CATALOG["qwen2.5:14b"], work_s=30), 0.0)
    load(scheduler, "mistral-small:24b")
    refused = load(scheduler, "mistral-small:24b")
    assert refused.state == "failed"
    assert refused.error == "server busy, please try again.  maximum pending requests exceeded"


def test_request_with_keep_alive_revives_an_ending_copy() -> None:
    scheduler = make_scheduler()
    scheduler.submit(Request(CATALOG["llama3.1:8b"], work_s=10), 0.0)
    scheduler.expire(CATALOG["llama3.1:8b"], 1.0)
    scheduler.submit(Request(CATALOG["llama3.1:8b"], keep_alive_s=60), 2.0)
    scheduler.process(11.0)
    assert names(scheduler) == {"llama3.1:8b"}
    scheduler.process(80.0)
    assert names(scheduler) == set()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("10m", 600), ("1h30m", 5400), ("24h", 86_400), (300, 300), (-1, -1), ("-1", -1), ("-1m", -60), (0, 0),
     ("0", 0), ("1.5s", 1.5), ("soon", None), ("5x", None), (None, None), (True, None), ("", None),
     (float("nan"), None), (1e300, -1)],
)  # fmt: skip
def test_keep_alive_forms(value: object, seconds: float | None) -> None:
    assert keep_alive_seconds(value) == seconds


def test_dates_are_written_as_go_does() -> None:
    assert go_time(1_764_500_000.5, 1, 7) == "2025-11-30T11:53:20.500000007+01:00"
    assert go_time(1_764_500_000.0, -5, 0) == "2025-11-30T05:53:20-05:00"
    assert go_time(1_764_500_000.25, 0, 0) == "2025-11-30T10:53:20.25Z"
    assert fleet_plan.FOREVER < 0
