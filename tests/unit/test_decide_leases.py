"""What a lease says, which polls end it, and what one load tells of machine and model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import (
    GIB,
    NOW,
    digest_of,
    make_card,
    make_copy,
    make_engine,
    make_fleet,
    make_process,
    make_snapshot,
)
from fleettui.decide.kv_cache import CacheTypes
from fleettui.decide.lease_effect import shown_leases
from fleettui.decide.lease_terms import lease_on
from fleettui.decide.measured_load import load_rate, measure_need, vram_taken_mib
from fleettui.decide.model_need import SeenCopy
from fleettui.model.gpu import GpuReading, ProcessesReading
from fleettui.model.lease import Lease
from fleettui.model.ollama_settings import OllamaSettings
from fleettui.model.readings import CopyUse, LoadedModel, SystemReading
from fleettui.model.route import RouteCandidate, VramNeed
from fleettui.model.snapshot import FleetSnapshot
from fleettui.model.sockets import ListeningPort, SocketsReading
from fleettui.model.unknown import Unknown

MODEL = "qwen3:8b"


def candidate(tier: int, **changes: Any) -> RouteCandidate:
    found = RouteCandidate(
        machine="ada", hostname="ada.lan", port=11434, url="http://ada.lan:11434", engine="ollama",
        tier=tier, why="", model=MODEL, digest=digest_of(MODEL),
    )  # fmt: skip
    return replace(found, **changes)


def taken(**changes: Any) -> Lease:
    """A lease on a resident copy, five seconds old."""
    lease = Lease("one", "ada", 11434, "ollama", MODEL, "resident", NOW - 5, NOW + 5, digest=digest_of(MODEL))
    return replace(lease, **changes)


@pytest.mark.parametrize(
    ("tier", "eta_s", "kind", "term_s"),
    [
        (0, 0.0, "resident", 10.0),
        (1, Unknown("queue"), "resident", 10.0),
        (2, 0.0, "resident", 10.0),
        (3, 3.5, "resident", 33.5),
        (4, 27.0, "cold", 57.0),
        (5, 30.0, "cold", 60.0),
        (6, Unknown("size not reported"), "cold", 90.0),
    ],
)
def test_term_by_tier(tier: int, eta_s: Any, kind: str, term_s: float) -> None:
    lease = lease_on(candidate(tier, eta_s=eta_s), MODEL, lease_id="x", now=NOW)
    assert (lease.kind, lease.until - NOW) == (kind, pytest.approx(term_s))
    held = lease_on(candidate(tier, eta_s=eta_s), MODEL, lease_id="x", now=NOW, hold_s=300.0)
    assert held.until == NOW + 300.0


def test_only_a_cold_copy_reserves_vram_on_its_card_where_it_needs_one() -> None:
    need = VramNeed(6144, "file size")
    one = lease_on(candidate(4, need=need, gpus=(1,)), MODEL, lease_id="x", now=NOW)
    several = lease_on(candidate(4, need=need, gpus=(0, 1)), MODEL, lease_id="x", now=NOW)
    resident = lease_on(candidate(0, need=need, gpus=(1,)), MODEL, lease_id="x", now=NOW)
    assert (one.vram_mib, one.gpu) == (6144, 1)
    assert (several.vram_mib, several.gpu) == (6144, None)
    assert (resident.vram_mib, resident.gpu) == (0, None)


def fleet(*loaded: LoadedModel, age_s: float = 1.0, **engine: Any) -> FleetSnapshot:
    snapshot = make_snapshot("ada", loaded=loaded, age_s=age_s)
    return make_fleet(replace(snapshot, engines=(make_engine(loaded=loaded, **engine),)))


def test_a_cold_lease_ends_when_the_model_is_there() -> None:
    cold = taken(kind="cold", vram_mib=6144)
    copy = make_copy(MODEL, gib=6)
    assert shown_leases([cold], None, fleet()) == ()
    assert shown_leases([cold], None, fleet(replace(copy, state="loading"))) == ()
    assert shown_leases([cold], None, fleet(copy)) == ("one",)
    assert shown_leases([cold], None, fleet(copy, age_s=6)) == (), "that was read before the lease"
    other_tag = replace(copy, name="my-qwen:latest")
    assert shown_leases([cold], None, fleet(other_tag)) == ("one",), "the same weights"
    assert shown_leases([replace(cold, machine="bora")], None, fleet(copy)) == ()


def test_a_resident_lease_ends_when_the_copy_begins_to_work_or_was_used() -> None:
    copy = make_copy(MODEL, gib=6)
    idle, busy = fleet(copy, age_s=3, running=0, waiting=0), fleet(copy, running=1, waiting=0)
    assert shown_leases([taken()], idle, fleet(copy, running=0, waiting=0)) == ()
    assert shown_leases([taken()], idle, busy) == ("one",)
    assert shown_leases([taken()], busy, busy) == (), "that request may be an older one"
    assert shown_leases([taken()], None, busy) == (), "nobody knows whether it worked before"
    used = fleet(copy, uses=(CopyUse(MODEL, NOW - 2),))
    assert shown_leases([taken()], None, used) == ("one",)
    assert shown_leases([taken()], used, used) == (), "one use ends one lease"
    assert shown_leases([taken(taken_at=NOW - 1.5)], None, used) == ()


def connected(copy: LoadedModel, count: int, age_s: float, *, sockets_age_s: float) -> FleetSnapshot:
    """Ollama, which counts nothing, with so many connections of others."""
    (machine,) = fleet(copy, age_s=age_s).machines
    status = replace(machine.sources["gpu"], read_at=NOW - sockets_age_s)
    sockets = SocketsReading((ListeningPort(11434, False, count + 1, 1),))
    return make_fleet(replace(machine, sockets=sockets, sources={**machine.sources, "sockets": status}))


def test_a_connection_more_ends_one_and_a_busy_card_none() -> None:
    copy = make_copy(MODEL, gib=6)
    before = connected(copy, 1, 3, sockets_age_s=8)
    after = connected(copy, 2, 1, sockets_age_s=1)
    assert shown_leases([taken()], before, after) == ("one",)
    assert shown_leases([taken()], after, after) == ()
    old = connected(copy, 2, 1, sockets_age_s=6)
    assert shown_leases([taken()], before, old) == (), "counted before the lease was taken"
    other = taken(id="two", model="llama3.1:8b", digest=None)
    loaded = connected(replace(copy, name="llama3.1:8b", digest=digest_of("x")), 2, 1, sockets_age_s=1)
    both = make_fleet(
        replace(
            after.machines[0],
            engines=(make_engine(loaded=[*after.machines[0].loaded, *loaded.machines[0].loaded]),),
        )
    )
    assert shown_leases([taken(), other], before, both) == (), "it may be for either"
    card = make_card(0, utilisation_percent=26, busy_samples=2)
    (machine,) = fleet(copy).machines
    busy = make_fleet(replace(machine, gpu=GpuReading(cards=(card,))))
    assert shown_leases([taken()], fleet(copy, age_s=3), busy) == ()


def test_each_request_ends_one_lease_the_oldest_first() -> None:
    copy = make_copy(MODEL, gib=6)
    leases = [taken(id=name, taken_at=NOW - age) for name, age in (("new", 2), ("old", 6), ("mid", 4))]
    before, after = fleet(copy, age_s=3, running=1, waiting=0), fleet(copy, running=2, waiting=1)
    assert shown_leases(leases, before, after) == ("old", "mid")


def test_a_load_rate_leaves_the_start_of_the_process_out() -> None:
    assert load_rate(30 * 10**9, 22.0) == 1.5e9
    assert load_rate(10**9, 1.0) == 2e9, "sooner than the start is thought to take"
    assert load_rate(Unknown("not reported"), 10.0) is None


def loaded(free: tuple[float | None, float | None], *copies: LoadedModel, **card: Any) -> Any:
    cards = [make_card(index, free_gib=gib, **card) for index, gib in enumerate(free)]
    return make_snapshot("ada", cards=cards, loaded=copies)


def test_what_a_load_took_is_what_is_less_free() -> None:
    copy = make_copy(MODEL, gib=6)
    before, after = loaded((24.0, 24.0)), loaded((17.5, 24.0), copy)
    assert vram_taken_mib(before, after) == {0: 6656}
    expected = SeenCopy(6656 << 20, 32768, gpus=1, where="ada")
    assert measure_need(before, after, copy) == expected
    both = loaded((20.7, 20.8), copy)
    seen = measure_need(before, both, copy)
    assert seen is not None
    assert seen.gpus == 2


@pytest.mark.parametrize(
    ("before", "after", "copy"),
    [
        (loaded((24.0, 24.0), make_copy("other", gib=1)), loaded((17.5, 24.0)), {}),  # evicted meanwhile
        (loaded((24.0, 24.0)), loaded((17.5, 24.0)), {"vram_bytes": 5 * GIB}),  # partly in RAM
        (loaded((24.0, 24.0)), loaded((20.0, 24.0)), {}),  # less than the engine counts: others gave back
        (loaded((None, None)), loaded((17.5, 24.0)), {}),  # not known
        (loaded((24.0, 24.0)), loaded((14.0, 24.0)), {}),  # more than copy and context: somebody else came
        (loaded((24.0, 24.0)), loaded((17.5, 24.0)), {"context": Unknown("not reported")}),
    ],
)
def test_what_may_mean_anything_else_is_no_measurement(before: Any, after: Any, copy: dict[str, Any]) -> None:
    found = replace(make_copy(MODEL, gib=6), **copy)
    cards = after.gpu
    after = replace(make_snapshot("ada", loaded=[found]), gpu=cards)
    assert measure_need(before, after, found) is None


def test_a_process_that_came_meanwhile_spoils_the_measurement() -> None:
    copy = make_copy(MODEL, gib=6)
    before, after = loaded((24.0, 24.0)), loaded((17.5, 24.0), copy)
    assert measure_need(before, after, copy) is not None
    foreign = ProcessesReading((make_process(pid=4242, gib=0.1, name="python", command="python train.py"),))
    assert measure_need(before, replace(after, processes=foreign), copy) is None
    there = replace(before, processes=foreign)
    assert measure_need(there, replace(after, processes=foreign), copy) is not None


def test_a_measurement_knows_how_the_server_was_set_up() -> None:
    copy = make_copy(MODEL, gib=6)
    told = SystemReading(ollama=OllamaSettings(parallel=4, cache_type="q8_0"))
    seen = measure_need(loaded((24.0, 24.0)), replace(loaded((17.5, 24.0), copy), system=told), copy)
    assert seen is not None
    assert (seen.parallel, seen.types) == (4, CacheTypes("q8_0", "q8_0"))
