"""Routing decides the same on what is stored for it as on the whole snapshot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.routing import decide_route
from fleettui.model.gpu import GpuCard, GpuFault, GpuProblem, GpuReading
from fleettui.model.lease import Lease
from fleettui.model.machine import DeclaredGpu, EngineEndpoint, EngineKind, Machine
from fleettui.model.ollama_settings import NOT_SET, OllamaSettings
from fleettui.model.readings import (
    CopyUse,
    EngineReading,
    EngineState,
    EngineTraits,
    InstalledModel,
    LoadedModel,
    MemoryReading,
    ModelState,
    ModelTraits,
    SystemReading,
)
from fleettui.model.route import RouteQuery
from fleettui.model.snapshot import (
    DrainFlag,
    DrainState,
    FleetSnapshot,
    Health,
    LinkStage,
    LinkState,
    LinkStatus,
    MachineSnapshot,
    MaintenanceFlag,
    SourceState,
    SourceStatus,
    Trust,
)
from fleettui.model.unknown import Unknown
from fleettui.store.database import Store
from fleettui.store.routing_part import RoutingEncoder, decode_for_routing, encode_for_routing
from fleettui.store.snapshots import load_for_routing, load_snapshot, save_snapshot
from sample_fleet import sample_fleet


def mostly(usual: st.SearchStrategy[Any], *rare: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A machine that everything is wrong with shows nothing: four of five values are usual."""
    return st.integers(0, 4).flatmap(lambda number: usual if number else st.one_of(*rare))


def words(literal: Any) -> st.SearchStrategy[str]:
    return st.sampled_from(literal.__args__)


def some(items: st.SearchStrategy[Any], count: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=count).map(tuple)


UNKNOWN = st.builds(Unknown, st.sampled_from(["not reported", "[N/A]"]))
ASKED = "llama3.1:8b"
NAMES = mostly(st.just(ASKED), st.sampled_from(["LLAMA3.1:8b", "llama3.1:70b", "qwen3", "org/x"]))
DIGESTS = mostly(st.just("sha256:aa"), st.just("sha256:bb"), UNKNOWN)
MIB = mostly(st.integers(0, 90_000), UNKNOWN)
KIB = mostly(st.integers(0, 90 << 20), UNKNOWN)
BYTES = mostly(st.integers(0, 80 << 30), UNKNOWN)
TIMES = mostly(st.floats(NOW - 3, NOW), st.none(), st.floats(NOW - 90, NOW))
KINDS = mostly(st.just("ollama"), words(EngineKind))


FAULTS = st.builds(
    GpuFault,
    bus_id=UNKNOWN,
    code=st.just("lost"),
    text=st.sampled_from(["fell off the bus", "needs a reset"]),
)
CARDS = st.builds(
    GpuCard,
    index=st.integers(0, 3),
    uuid=st.just("GPU-1"),
    name=UNKNOWN | st.just("NVIDIA H100"),
    total_mib=MIB,
    used_mib=MIB,
    free_mib=MIB,
    utilisation_percent=UNKNOWN | st.integers(0, 100),
    is_unified=st.booleans(),
    fault=mostly(st.none(), FAULTS),
)
TRAITS = st.none() | st.builds(
    ModelTraits,
    aliases=some(NAMES, 2),
    adapters=some(st.sampled_from(["sql-lora", "de-lora"]), 2),
    max_context=UNKNOWN | st.just(131072),
)
ENGINES = st.builds(
    EngineReading,
    kind=KINDS,
    port=st.sampled_from([11434, 8000]),
    state=mostly(st.just("ok"), words(EngineState)),
    loaded=mostly(
        some(
            st.builds(
                LoadedModel,
                name=NAMES,
                engine=KINDS,
                digest=DIGESTS,
                size_bytes=BYTES,
                vram_bytes=BYTES,
                context=UNKNOWN | st.sampled_from([2048, 8192]),
                state=mostly(st.just("loaded"), words(ModelState)),
                expires_at=UNKNOWN | st.floats(NOW - 60, NOW + 600),
                is_pinned=st.booleans(),
                traits=TRAITS,
            )
        ),
        UNKNOWN,
    ),
    installed=mostly(
        some(
            st.builds(
                InstalledModel,
                name=NAMES,
                engine=KINDS,
                digest=DIGESTS,
                size_bytes=BYTES,
                remote_host=mostly(st.none(), st.just("https://ollama.com")),
                traits=TRAITS,
            )
        ),
        UNKNOWN,
    ),
    running=UNKNOWN | st.integers(0, 2),
    waiting=UNKNOWN | st.integers(0, 2),
    error=st.none() | st.just("busy: 3 in the queue"),
    traits=st.none() | st.builds(EngineTraits, slots=UNKNOWN | st.integers(1, 3)),
    uses=some(st.builds(CopyUse, name=NAMES, used_at=st.floats(NOW - 600, NOW))),
)
STATUSES = st.builds(
    SourceStatus,
    state=mostly(st.just("ok"), words(SourceState)),
    read_at=TIMES,
    since=TIMES,
    error=st.none() | st.just("no answer"),
)
MACHINES = st.builds(
    Machine,
    name=st.sampled_from(["ada", "gpu2", "gpu10"]),
    role=st.just("gpu-host"),
    hostname=st.sampled_from(["ada.lan", "fd00::1"]),
    gpus=st.none() | some(st.just(DeclaredGpu("RTX 4090", 24.0))),
    models=some(NAMES),
    tags=some(st.sampled_from(["home", "big"])),
    disabled_gpus=mostly(st.just(()), some(st.integers(0, 3))),
    engines=some(
        st.builds(
            EngineEndpoint,
            kind=KINDS,
            port=st.sampled_from([11434, 8000]),
            url=st.none() | st.just("https://ada:8443/v"),
        )
    ),
    document=st.just({"name": "ada"}),
)
SNAPSHOTS = st.builds(
    MachineSnapshot,
    machine=MACHINES,
    trust=mostly(st.just("approved"), words(Trust)),
    link=st.builds(
        LinkStatus,
        state=mostly(st.just("up"), words(LinkState)),
        stage=st.none() | words(LinkStage),
        error=st.none(),
    ),
    gpu=mostly(
        st.builds(
            GpuReading,
            cards=some(CARDS),
            faults=mostly(st.just(()), some(FAULTS, 1)),
            problem=st.none() | st.just(GpuProblem("no_tool", "no nvidia-smi", "sh: not found")),
        ),
        st.none(),
    ),
    memory=mostly(st.builds(MemoryReading, total_kib=KIB, available_kib=KIB), st.none()),
    engines=some(ENGINES, 2),
    sources=st.dictionaries(st.sampled_from(["gpu", "cpu", "ollama", "vllm", "ollama:8000"]), STATUSES),
    health=mostly(st.just("healthy"), words(Health)),
    last_seen=TIMES,
    maintenance=mostly(st.none(), st.just(MaintenanceFlag("fan swap", "mia", NOW - 60))),
    drain=mostly(
        st.none(), st.builds(DrainFlag, words(DrainState), st.just("move"), st.just("mia"), st.just(NOW))
    ),
)
QUERIES = st.builds(
    RouteQuery,
    model=mostly(st.just(ASKED), NAMES, st.just("never heard of")),
    min_free_vram_mib=st.sampled_from([0, 0, 4096, 40_000]),
    free_scope=st.sampled_from(["gpu", "host"]),
    context=st.none() | st.just(8192),
    require_loaded=st.booleans(),
    avoid_busy=st.booleans(),
    tags=mostly(st.just(()), st.just(("home",))),
    exclude=mostly(st.just(()), st.just(("ada",))),
    max_age_s=st.sampled_from([None, 60.0]),
    allow_pull=st.booleans(),
    sticky=st.sampled_from([None, "chat 7"]),
    takes_lease=st.booleans(),
)


def routed_part(machine: MachineSnapshot) -> MachineSnapshot:
    part = decode_for_routing(encode_for_routing(machine))
    assert part is not None
    return part


@settings(max_examples=250, deadline=None)
@given(st.lists(SNAPSHOTS, max_size=3), QUERIES)
def test_decisions_are_the_same(machines: list[MachineSnapshot], query: RouteQuery) -> None:
    fleet = FleetSnapshot(1, NOW, 2.0, tuple(machines), (), "/etc/fleet")
    part = replace(fleet, machines=tuple(map(routed_part, machines)))
    assert repr(decide_route(part, query, NOW)) == repr(decide_route(fleet, query, NOW))
    leases = tuple(
        Lease(f"l{port}", "ada", port, "ollama", "x:latest", "cold", NOW - 5, NOW + 60, 4096)
        for port in (11434, 8000)
    )
    known = RouteKnowledge(leases, load_rates={"gpu2": 2e9})
    assert repr(decide_route(part, query, NOW, known)) == repr(decide_route(fleet, query, NOW, known))


def test_the_rest_is_as_if_never_read() -> None:
    for machine in sample_fleet().machines:
        part = routed_part(machine)
        assert repr(part)  # every field of every record is there
        assert encode_for_routing(part) == encode_for_routing(machine)
        assert (part.link.state, part.machine.is_cpu_only) == (
            machine.link.state,
            machine.machine.is_cpu_only,
        )
        assert part.machine.declares_gpus == machine.machine.declares_gpus
        if machine.gpu is not None:
            assert part.gpu is not None
            assert (part.gpu.problem, part.gpu.faults) == (machine.gpu.problem, machine.gpu.faults)
        assert (part.processes, part.disks, part.reasons, part.machine.document) == (None, None, (), {})


@settings(max_examples=100, deadline=None)
@given(st.lists(SNAPSHOTS, min_size=2, max_size=6))
def test_an_encoder_that_goes_on_writes_what_a_new_one_writes(machines: list[MachineSnapshot]) -> None:
    encoder = RoutingEncoder()
    for machine in machines:  # of few names, so that each meets another's engines
        assert encoder.encode(machine) == encode_for_routing(machine)
        assert encoder.encode(replace(machine, seq=7)) == encode_for_routing(replace(machine, seq=7))


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "[1,2]", '[[[],1],[],[[],[],null,null,{"gpu":3}]]'])
def test_any_other_text_is_no_snapshot(text: str) -> None:
    assert decode_for_routing(text) is None


def test_stored_and_loaded(tmp_path: Path) -> None:
    fleet = replace(sample_fleet(), machines_dir=str(tmp_path))
    with Store.open(str(tmp_path / "state")) as store:
        save_snapshot(store, fleet, [], written_at=NOW)
        stored = load_for_routing(store, str(tmp_path))
        assert stored is not None
        assert stored.fleet == replace(fleet, machines=tuple(map(routed_part, fleet.machines)))
        store.connection.execute("UPDATE machine_snapshots SET routing = replace(routing, 'ada', 'bda')")
        assert load_for_routing(store, str(tmp_path)) is None


def test_routing_alone_is_brought_up_to_date_between_whole_snapshots(tmp_path: Path) -> None:
    """The cheap save: routing reads the newest, the whole stays as it was, a new machine is stored whole."""
    old = sample_fleet()
    first, *rest = old.machines
    with Store.open(str(tmp_path)) as store:
        save_snapshot(store, replace(old, machines=tuple(rest)), {item.name for item in rest})
        newer = [replace(item, seq=item.seq + 1, last_seen=NOW + 5) for item in rest]
        fleet = replace(old, seq=old.seq + 1, machines=(first, *newer))
        save_snapshot(store, fleet, {item.name for item in fleet.machines}, is_whole=False)
        part, whole = load_for_routing(store, old.machines_dir), load_snapshot(store, old.machines_dir)
    assert part is not None
    assert whole is not None
    assert [item.last_seen for item in part.fleet.machines[1:]] == [NOW + 5] * len(rest)
    assert whole.fleet.machines == old.machines


SETTINGS = st.builds(
    OllamaSettings,
    port=st.sampled_from([11434, 8000]),
    parallel=st.integers(1, 8) | st.just(NOT_SET),
    cache_type=st.sampled_from(["f16", "q8_0"]) | st.just(NOT_SET),
    context=st.sampled_from([4096, 32768]) | st.just(NOT_SET),
    flash_attention=st.sampled_from(["on", "off", "auto"]),
    spreads=st.booleans(),
    max_loaded=st.integers(1, 8) | st.just(NOT_SET),
    keep_alive=st.just("24h") | st.just(NOT_SET),
)


@given(SNAPSHOTS, st.none() | SETTINGS)
def test_settings_of_ollama_and_times_of_copies_are_kept(
    snapshot: MachineSnapshot, told: OllamaSettings | None
) -> None:
    whole = replace(snapshot, system=SystemReading(ollama=told))
    found = decode_for_routing(encode_for_routing(whole))
    assert found is not None
    assert (None if found.system is None else found.system.ollama) == told

    def times(machine: MachineSnapshot) -> list[object]:
        return [(copy.name, copy.expires_at, copy.is_pinned) for copy in machine.loaded]

    assert times(found) == times(whole)
