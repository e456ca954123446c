"""Whole decisions: every machine of a fleet with its tier, rank and reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import (
    GIB,
    NOW,
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
from fleettui.decide.early import cannot_be_beaten
from fleettui.decide.knowledge import NOTHING_KNOWN, RouteKnowledge
from fleettui.decide.model_need import SeenCopy
from fleettui.decide.ranking import rank
from fleettui.decide.routing import decide_route, reject_unreachable
from fleettui.model.catalog import Catalog, CatalogModel
from fleettui.model.lease import Lease
from fleettui.model.model_shape import AttentionShape, ModelShape, TensorSums
from fleettui.model.readings import CopyUse, EngineTraits, LoadedModel, MemoryReading
from fleettui.model.route import RouteCandidate, RouteDecision, RouteQuery
from fleettui.model.snapshot import LinkStatus, MachineSnapshot, MaintenanceFlag
from fleettui.model.unknown import Unknown
from fleettui.view.route_text import route_document, route_lines

MODEL = "llama3.1:70b"


def ask(
    *machines: MachineSnapshot, model: str = MODEL, known: RouteKnowledge = NOTHING_KNOWN, **wishes: Any
) -> RouteDecision:
    return decide_route(make_fleet(*machines), RouteQuery(model, **wishes), NOW, known)


def box(
    name: str,
    free: tuple[float, ...] = (24.0,),
    *loaded: LoadedModel,
    gib: float | None = None,
    idle_s: dict[str, float] | None = None,
    **changes: Any,
) -> MachineSnapshot:
    """A machine with so much free on its cards and these copies; `gib`: size of the asked model's file."""
    cards = [make_card(index, free_gib=size, total_gib=48.0) for index, size in enumerate(free)]
    installed = [make_installed(copy.name, digest=copy.digest, size_bytes=copy.size_bytes) for copy in loaded]
    if gib is not None:
        installed.append(make_installed(gib=gib))
    uses = tuple(CopyUse(copy, NOW - seconds) for copy, seconds in (idle_s or {}).items())
    engine = make_engine(loaded=loaded, installed=installed, uses=uses)
    return make_snapshot(name, gpus=len(free), cards=cards, engines=(engine,), **changes)


def table(decision: RouteDecision) -> dict[str, tuple[int, str] | tuple[str, ...]]:
    """Machine -> (tier, reason) in order of rank, then machine -> texts of what speaks against it."""
    found: dict[str, tuple[int, str] | tuple[str, ...]] = {
        item.machine: (item.tier, item.reason) for item in decision.candidates
    }
    for item in decision.rejected:
        found[item.machine] = tuple(rejection.text for rejection in item.rejections)
    assert decision.chosen == (decision.candidates[0] if decision.candidates else None)
    return found


def only(decision: RouteDecision) -> RouteCandidate:
    assert len(decision.candidates) == 1, decision.rejected
    return decision.candidates[0]


def lease(machine: str, kind: Any = "resident", vram_mib: int = 0, **changes: Any) -> Lease:
    given = Lease(
        changes.pop("id", f"{machine}-1"), machine, 11434, "ollama", MODEL, kind, NOW - 1, NOW + 9, vram_mib
    )
    return replace(given, **changes)


def test_six_machines_of_which_two_can_serve() -> None:
    cloud = make_installed(MODEL, remote_host="https://ollama.com:443")
    bora = box("bora", (31.0,), make_copy("qwen3:8b", gib=14), gib=29, idle_s={"qwen3:8b": 41 * 60})
    fleet = (
        box("ada", (0.5, 18.2), make_copy(), idle_s={MODEL: 180.0}, age_s=0.4),
        replace(bora, last_seen=NOW - 0.4),
        box("cleo", (6.1,), gib=31, maintenance=MaintenanceFlag("fan swap", "mia", NOW - 4.8 * 3600)),
        make_snapshot("dora", installed=[make_installed("llama3.1:8b")]),
        box("enno", (24.0,), make_copy(), age_s=41),
        make_snapshot("fips", installed=[cloud]),
    )
    decision = ask(*fleet, min_free_vram_mib=4096)
    assert table(decision) == {
        "ada": (0, "resident, 100 % GPU, ctx 32768, idle 3 min"),
        "bora": (5, "installed, ~28 s cold (1.5 GB/s assumed), needs 40.1 GiB = file size x 1.2 (assumed)"),
        "cleo": (
            'maintenance "fan swap" by mia since 09:15 UTC',
            "free_vram 6.1 < 44.1 GiB on GPU 0 (40.1 for the model + 4.0)",
        ),
        "dora": ("not_installed (has llama3.1:8b)",),
        "enno": ("stale 41 s > 4 s, last seen resident",),
        "fips": ("remote_model (ollama.com:443), never local",),
    }
    assert decision.candidates[1].evicts[0].model == "qwen3:8b"
    lines = route_lines(decision)
    assert lines[0] == "route llama3.1:70b  (2 eligible of 6, data 0.4 s old)"
    assert lines[1].startswith(" 1 ada   tier 0  resident, 100 % GPU, ctx 32768, idle 3 min  ")
    assert lines[1].endswith("  free 18.2 GiB (GPU 1)")
    assert lines[2].endswith("  free 31.0 GiB (GPU 0)  evicts qwen3:8b (idle 41 min)")
    assert lines[3] == (
        ' - cleo  maintenance "fan swap" by mia since 09:15 UTC; '
        "free_vram 6.1 < 44.1 GiB on GPU 0 (40.1 for the model + 4.0)"
    )


def test_every_tier() -> None:
    resident = make_copy(gib=20, context=8192)
    other = make_copy("qwen3:8b", gib=14)
    engine = make_engine(loaded=[resident], running=2)
    fleet = (
        box("t0", (1.0,), resident),
        make_snapshot("t1", cards=[make_card()], engines=(engine,)),
        box("t2", (24.0,), make_copy(gib=20, vram_gib=15, context=8192)),
        box("t3-context", (24.0,), make_copy(gib=20, context=4096)),
        box("t3-loading", (24.0,), replace(resident, state="loading")),
        box("t4", (30.0,), gib=20),
        box("t4-several", (20.0, 20.0), gib=20),
        box("t5", (12.0,), other, gib=20),
        box("t6", (12.0,), gib=20),
        make_snapshot("t6-cpu", gpus=0, installed=[make_installed(gib=20)]),
        box("t7", (40.0,)),
    )
    decision = ask(*fleet, context=8192, allow_pull=True)
    assert decision.rejected == ()
    assert {item.machine: item.tier for item in decision.candidates} == {
        "t0": 0, "t1": 1, "t2": 2, "t3-loading": 3, "t3-context": 3, "t4": 4, "t4-several": 4, "t5": 5,
        "t6": 6, "t6-cpu": 6, "t7": 7,
    }  # fmt: skip
    assert [item.machine for item in decision.candidates] == [
        "t0", "t1", "t2", "t3-context", "t3-loading", "t4", "t4-several", "t5", "t6", "t6-cpu", "t7",
    ]  # fmt: skip
    reasons = {item.machine: item.reason for item in decision.candidates}
    need = "needs 20.5 GiB = as seen elsewhere"
    assert reasons["t1"] == "resident, busy (2 running), 100 % GPU, ctx 8192"
    assert reasons["t2"] == "resident, partly in RAM, 75 % GPU, ctx 8192"
    assert reasons["t3-context"] == "resident with context 4096, reload for 8192"
    assert reasons["t3-loading"] == "loading, 100 % GPU, ctx 8192"
    assert reasons["t4"] == f"installed, ~16 s cold (1.5 GB/s assumed), {need}"
    assert reasons["t4-several"] == (
        "installed, ~16 s cold (1.5 GB/s assumed), needs 21.0 GiB = as seen elsewhere on GPUs 0, 1"
    )
    assert reasons["t5"] == f"installed, ~21 s cold (1.5 GB/s assumed), {need}"
    assert reasons["t6"] == (
        f"installed, ~16 s cold (1.5 GB/s assumed), partly in RAM: {need}, 8.5 GiB of it in main memory"
    )
    assert reasons["t6-cpu"] == f"installed, ~16 s cold (1.5 GB/s assumed), CPU only, {need}"
    assert reasons["t7"].startswith("not installed, pull of 21.5 GB, then ")


@pytest.mark.parametrize(
    ("machine", "wishes", "seconds", "basis", "text"),
    [
        (box("m", (1.0,), make_copy()), {}, 0.0, "resident", ""),
        (box("m", (1.0,), make_copy(gib=40, vram_gib=20)), {}, 0.0, "resident", ""),
        (
            box("m", (1.0,), make_copy(gib=37.25)),
            {"context": 4096},
            12.0,
            "assumed",
            "4 GB/s page cache assumed",
        ),
        (
            box("m", (1.0,), make_copy(gib=27.94, state="loading")),
            {},
            22.0,
            "assumed",
            "at most, 1.5 GB/s assumed",
        ),
        (box("m", (48.0,), gib=27.94), {}, 22.0, "assumed", "1.5 GB/s assumed"),
        (box("m", (30.0,), make_copy("a:1", gib=14), gib=27.94), {}, 27.0, "assumed", "1.5 GB/s assumed"),
    ],
)
def test_seconds_until_it_is_ready(
    machine: MachineSnapshot, wishes: dict[str, Any], seconds: float, basis: str, text: str
) -> None:
    candidate = only(ask(machine, **wishes))
    assert candidate.eta_s == pytest.approx(seconds, abs=0.1)
    assert (candidate.eta_basis, candidate.eta_text) == (basis, text)


def test_a_measured_rate_wins_over_an_assumed_one() -> None:
    known = RouteKnowledge(load_rates={"m": 3e9})
    cold = only(ask(box("m", (48.0,), gib=27.94), known=known))
    assert cold.eta_s == pytest.approx(12.0, abs=0.1)
    assert (cold.eta_basis, cold.eta_text) == ("measured", "3.0 GB/s measured")
    assert "~12 s cold (3.0 GB/s measured)" in cold.reason
    # A reload reads from the page cache, which a rate of cold loads says nothing of.
    assert only(ask(box("m", (1.0,), make_copy()), known=known, context=4096)).eta_basis == "assumed"


def test_a_queue_that_nobody_can_count_is_unknown_and_null() -> None:
    busy = make_engine(loaded=[make_copy()], running=2)
    candidate = only(ask(make_snapshot("m", engines=(busy,))))
    assert isinstance(candidate.eta_s, Unknown)
    document = route_document(ask(make_snapshot("m", engines=(busy,))))
    assert (document["chosen"]["eta_s"], document["chosen"]["busy"]) == (None, ["2 running"])
    batch = make_engine(
        kind="vllm", port=8000, loaded=[make_copy("org/m", engine="vllm")], running=2, waiting=0
    )
    assert only(ask(make_snapshot("m", engines=(batch,)), model="org/m")).eta_s == 0.0
    asleep = make_engine(kind="vllm", port=8000, loaded=[make_copy("org/m", engine="vllm", state="sleeping")])
    sleeper = only(ask(make_snapshot("m", engines=(asleep,)), model="org/m"))
    assert (sleeper.tier, sleeper.eta_s) == (3, 0.4)


# What a cold copy needs, and what goes for it

SHAPE = ModelShape(
    "llama",
    layers=80,
    embedding_length=8192,
    max_context=131072,
    vocabulary=128256,
    attention=AttentionShape(heads=(64,), kv_heads=(8,), key_length=128, value_length=128),
    tensors=TensorSums(40 * GIB, embedding_bytes=GIB),
    capabilities=("completion",),
)


def test_the_basis_is_the_best_one_known_and_always_named() -> None:
    digest = make_copy().digest
    assert isinstance(digest, str)
    machine = box("m", (48.0, 48.0), gib=40)
    catalog = Catalog((CatalogModel(MODEL, vram_gib=42.0),))
    elsewhere = box("z", (1.0,), make_copy(gib=44))
    off = replace(elsewhere, maintenance=MaintenanceFlag(None, "mia", NOW))
    seen = SeenCopy(45 * GIB, 32768, 1)

    def basis(*machines: MachineSnapshot, **known: Any) -> str:
        need = only(ask(*machines, known=RouteKnowledge(**known), context=32768)).need
        assert need is not None
        return need.basis

    assert basis(machine) == "file size x 1.2 (assumed)"
    assert basis(machine, catalog=catalog) == "catalog"
    assert basis(machine, catalog=catalog, shapes={digest: SHAPE}) == "tensors and cache"
    assert basis(machine, off, catalog=catalog, shapes={digest: SHAPE}) == "as seen elsewhere"
    known = {"catalog": catalog, "shapes": {digest: SHAPE}, "measured": {digest: (seen,)}}
    assert basis(machine, off, **known) == "measured"


def test_a_copy_partly_in_ram_says_nothing_of_the_need() -> None:
    spilled = replace(
        box("z", (1.0,), make_copy(gib=44, vram_gib=20)), maintenance=MaintenanceFlag(None, "mia", NOW)
    )
    need = only(ask(box("m", (48.0, 48.0), gib=40), spilled)).need
    assert need is not None
    assert need.basis == "file size x 1.2 (assumed)"


def test_the_context_decides_what_is_needed() -> None:
    digest = make_copy().digest
    assert isinstance(digest, str)
    known = RouteKnowledge(shapes={digest: SHAPE})
    small, large = (
        only(ask(box("m", (48.0, 48.0), gib=40), known=known, context=context)).need
        for context in (4096, 32768)
    )
    assert small is not None
    assert large is not None
    # 80 layers x 8 heads x 256 x 2 bytes for each token
    assert large.mib - small.mib >= (32768 - 4096) * 80 * 8 * 256 * 2 // (1 << 20)
    # 96 GiB of VRAM: Ollama's own default is 262,144 tokens, of which the model takes 131,072.
    usual = only(ask(box("m", (48.0, 48.0), gib=40), known=known)).need
    assert usual is not None
    assert "ctx 131072" in usual.text


def test_victims_go_in_the_order_in_which_ollama_evicts_and_no_more_than_needed() -> None:
    copies = [
        make_copy("pinned:1", gib=10, is_pinned=True, expires_at=NOW + 1),
        make_copy("long:1", gib=10, expires_at=NOW + 3000),
        make_copy("short:1", gib=10, expires_at=NOW + 30),
    ]
    idle = {"short:1": 600.0, "long:1": 60.0}
    one = only(ask(box("m", (8.0,), *copies, gib=10, idle_s=idle)))
    assert [(item.model, item.idle_s, item.vram_mib) for item in one.evicts] == [("short:1", 600.0, 10240)]
    two = only(ask(box("m", (8.0,), *copies, gib=20, idle_s=idle)))
    assert [item.model for item in two.evicts] == ["short:1", "long:1"]
    assert two.evict_cost_s > one.evict_cost_s > 0
    assert (
        "evicts short:1 (idle 10 min), long:1 (idle 1 min)"
        in route_lines(ask(box("m", (8.0,), *copies, gib=20, idle_s=idle)))[1]
    )


def test_what_expires_first_is_not_always_what_goes_first() -> None:
    """Ollama goes by keep_alive: half an hour that is nearly over is longer than five minutes."""
    copies = [
        make_copy("half-hour:1", gib=10, expires_at=NOW + 60),
        make_copy("minutes:1", gib=10, expires_at=NOW + 280),
    ]
    seen = only(ask(box("m", (8.0,), *copies, gib=10, idle_s={"half-hour:1": 1740.0, "minutes:1": 20.0})))
    assert [item.model for item in seen.evicts] == ["minutes:1"]
    unseen = only(ask(box("m", (8.0,), *copies, gib=10)))
    assert [item.model for item in unseen.evicts] == ["half-hour:1"]


def test_a_copy_at_work_is_never_named_as_a_victim() -> None:
    engine = make_engine(
        loaded=[make_copy("qwen3:8b", gib=14)], installed=[make_installed(gib=20)], running=1
    )
    machine = make_snapshot("m", cards=[make_card(free_gib=12.0)], engines=(engine,))
    candidate = only(ask(machine))
    assert (candidate.tier, candidate.evicts, candidate.busy) == (6, (), ("1 running",))
    assert ask(machine, avoid_busy=True).rejected[0].codes == ("busy",)


def test_a_full_engine_evicts_though_there_is_room() -> None:
    copies = [make_copy(f"m{number}:1", gib=1) for number in range(3)]
    candidate = only(ask(box("m", (30.0,), *copies, gib=10)))
    assert candidate.tier == 5
    assert [item.model for item in candidate.evicts] == ["m0:1"]
    assert only(ask(box("m", (30.0,), *copies[:2], gib=10))).tier == 4


def test_it_says_so_where_ollama_evicts_though_the_model_fits() -> None:
    digest = make_copy().digest
    assert isinstance(digest, str)
    machine = box("m", (48.0,), make_copy("qwen3:8b", gib=5), gib=40)
    quiet = box("n", (47.9,), gib=40)
    known = RouteKnowledge(shapes={digest: SHAPE})
    decision = ask(machine, quiet, known=known, context=4096)
    assert table(decision)["m"][1].endswith("; Ollama may evict qwen3:8b though it fits")
    assert [item.machine for item in decision.candidates] == ["n", "m"]  # nobody loses anything there


def test_the_cheapest_eviction_comes_first() -> None:
    def idle(name: str, free: float, seconds: float) -> MachineSnapshot:
        copy = make_copy("qwen3:8b", gib=14)
        return box(name, (free,), copy, gib=20, idle_s={"qwen3:8b": seconds})

    decision = ask(idle("just-used", 16.0, 50.0), idle("long-idle", 12.0, 7200.0))
    assert [item.machine for item in decision.candidates] == ["long-idle", "just-used"]
    assert [item.tier for item in decision.candidates] == [5, 5]


def test_no_fit_names_need_best_card_and_sum() -> None:
    memory = MemoryReading(16 * 1024 * 1024, 4 * 1024 * 1024, 0, 0)
    small = box("m", (8.0, 4.0), gib=40, memory=memory)
    assert table(ask(small))["m"] == (
        "no_fit needs 48.5 GiB = file size x 1.2 (assumed), best GPU 8.0, all GPUs 12.0 GiB free, "
        "main memory 4.0 GiB free",
    )
    unread = replace(small, memory=None)
    assert only(ask(unread)).tier == 6


def test_a_reload_needs_room_too() -> None:
    digest = make_copy().digest
    assert isinstance(digest, str)
    known = RouteKnowledge(shapes={digest: SHAPE})
    copy = make_copy(gib=41, context=4096)
    roomy = only(ask(box("m", (20.0,), copy, gib=40), known=known, context=32768))
    assert (roomy.tier, roomy.reason) == (3, "resident with context 4096, reload for 32768")
    tight = only(ask(box("m", (1.0,), copy, gib=40), known=known, context=32768))
    assert tight.tier == 3
    assert "partly in RAM then: needs " in tight.reason
    other = make_copy("qwen3:8b", gib=14)
    evicting = only(ask(box("m", (1.0,), copy, other, gib=40), known=known, context=32768))
    assert [item.model for item in evicting.evicts] == ["qwen3:8b"]
    # More than the model was made for is cut by Ollama: no reload.
    most = make_copy(gib=41, context=131072)
    assert only(ask(box("m", (1.0,), most), known=known, context=200_000)).tier == 0


# Leases


def test_leases_put_a_machine_later_and_reject_nothing() -> None:
    fleet = [box(name, (8.0,), make_copy()) for name in ("a", "b", "c")]
    known = RouteKnowledge((lease("a"), lease("a", id="a-2"), lease("b")))
    decision = ask(*fleet, known=known)
    assert [(item.machine, item.leases) for item in decision.candidates] == [("c", 0), ("b", 1), ("a", 2)]
    assert route_lines(decision)[3].endswith("free 8.0 GiB (GPU 0)  2 leases held")
    over = RouteKnowledge((lease("a", until=NOW),))
    assert ask(*fleet, known=over).candidates[0].machine == "a"


def test_forty_askers_spread_evenly() -> None:
    fleet = [box(name, (8.0,), make_copy()) for name in ("a", "b", "c", "d")]
    leases: tuple[Lease, ...] = ()
    for number in range(40):
        chosen = ask(*fleet, known=RouteKnowledge(leases)).chosen
        assert chosen is not None
        leases += (lease(chosen.machine, id=str(number)),)
    assert sorted(item.machine for item in leases) == sorted("abcd" * 10)


@pytest.mark.parametrize(
    ("gpu", "mib", "free", "expected"),
    [
        (1, 10 * 1024, (24.0, 20.0), [24.0, 10.0]),  # its card
        (None, 10 * 1024, (24.0, 20.0), [14.0, 20.0]),  # the freest one that has the room
        (None, 30 * 1024, (24.0, 12.0), [4.0, 2.0]),  # all of them, by what they have
        (None, 90 * 1024, (24.0, 12.0), [0.0, 0.0]),
        (7, 10 * 1024, (24.0, 20.0), [14.0, 20.0]),  # a card that is gone
    ],
)
def test_a_cold_lease_holds_vram_back(
    gpu: int | None, mib: int, free: tuple[float, ...], expected: list[float]
) -> None:
    known = RouteKnowledge((lease("m", "cold", mib, gpu=gpu, model="other:1"),))
    machine = box("m", free, make_copy())
    best, summed = max(expected), sum(expected)
    assert only(ask(machine, known=known)).free_mib == best * 1024
    assert only(ask(machine, known=known, free_scope="host")).free_mib == summed * 1024
    assert ask(machine, known=known, min_free_vram_mib=round(best * 1024) + 1).chosen is None
    strict = only(ask(machine, known=known, require_loaded=True, takes_lease=False))
    assert (strict.free_mib, strict.leases) == (max(free) * 1024, 0)


def test_a_cold_lease_holds_shared_memory_back_once() -> None:
    cards = [make_card(i, free_gib=None, total_gib=None, is_unified=True) for i in range(2)]
    machine = make_snapshot("m", cards=cards, loaded=[make_copy()])  # MemAvailable is 90 GiB
    known = RouteKnowledge((lease("m", "cold", 30 * 1024, model="other:1"),))
    assert only(ask(machine, known=known)).free_mib == 60 * 1024


def test_askers_for_one_cold_model_wait_for_one_load() -> None:
    machine = box("m", (48.0,), gib=15)
    mine = [lease("m", "cold", 20 * 1024, id=f"mine-{number}") for number in range(2)]
    other = [lease("m", "cold", 20 * 1024, id=f"other-{number}", model="other:1") for number in range(2)]
    joined = only(ask(machine, known=RouteKnowledge(tuple(mine))))
    assert (joined.tier, joined.free_mib, joined.leases) == (4, 48 * 1024, 2), "needs no room beside itself"
    beside = only(ask(machine, known=RouteKnowledge((*mine, *other))))
    assert (beside.free_mib, beside.leases) == (28 * 1024, 4), "two wait for the same load"


def test_two_cold_askers_do_not_share_one_card() -> None:
    fleet = [box("a", (24.0,), gib=15), box("b", (23.0,), gib=15)]
    first = ask(*fleet).chosen
    assert first is not None
    assert first.need is not None
    held = lease(first.machine, "cold", first.need.mib, gpu=first.gpus[0], model="other:1")
    second = ask(*fleet, known=RouteKnowledge((held,))).chosen
    assert (first.machine, second and second.machine) == ("a", "b")


def test_slots_that_are_used_up_make_a_machine_busy() -> None:
    copy = make_copy("m.gguf", engine="llamacpp")
    engine = make_engine(
        kind="llamacpp", port=8080, loaded=[copy], running=0, waiting=0, traits=EngineTraits(slots=2)
    )
    machine = make_snapshot("m", engines=(engine,))
    sent = tuple(lease("m", id=str(number), port=8080) for number in range(2))
    assert only(ask(machine, model="m.gguf")).tier == 0
    assert only(ask(machine, model="m.gguf", known=RouteKnowledge(sent[:1]))).tier == 0
    full = only(ask(machine, model="m.gguf", known=RouteKnowledge(sent)))
    assert (full.tier, full.busy) == (1, ("2 slots, 0 at work and 2 sent there",))


# Order: sticky, crossing, strict


def test_sticky_keys_stay_and_spread_within_the_best_tier() -> None:
    fleet = [box(f"n{number}", (8.0 + number,), make_copy()) for number in range(4)]
    slow = box("slow", (40.0,), make_copy(gib=40, vram_gib=20))
    first = {key: ask(*fleet, slow, sticky=key).candidates[0].machine for key in map(str, range(200))}
    counts = {name: list(first.values()).count(name) for name in {*first.values()}}
    assert set(counts) == {"n0", "n1", "n2", "n3"}
    assert all(30 <= count <= 70 for count in counts.values())
    fewer = fleet[:3]  # n3 is gone: only its keys move
    for key, machine in first.items():
        again = ask(*fewer, slow, sticky=key).candidates[0].machine
        assert machine in (again, "n3")
    known = RouteKnowledge((lease("n1"), lease("n2")))
    assert ask(*fleet, sticky="7", known=known).candidates[0].machine == first["7"]


def test_a_known_queue_longer_than_a_load_comes_after_idle_machines_that_load() -> None:
    busy = replace(only(ask(box("busy", (8.0,), make_copy()))), tier=1, busy=("9 waiting",))
    cold = only(ask(box("cold", (60.0,), gib=30)))
    assert [c.machine for c in rank([cold, busy], RouteQuery(MODEL))] == ["busy", "cold"]
    unknown = replace(busy, eta_s=Unknown("nobody can count its queue"))
    assert [c.machine for c in rank([cold, unknown], RouteQuery(MODEL))] == ["busy", "cold"]
    slow = replace(busy, eta_s=120.0)
    assert [c.machine for c in rank([cold, slow], RouteQuery(MODEL))] == ["cold", "busy"]


def test_the_strict_rule_shows_busy_machines_and_does_not_reorder_them() -> None:
    working = make_engine(loaded=[make_copy()], running=3)
    fleet = [
        make_snapshot("most", cards=[make_card(free_gib=20.0)], engines=(working,)),
        box("idle", (8.0,), make_copy()),
        box("cold", (48.0,), gib=20),
    ]
    strict = {"require_loaded": True, "takes_lease": False}
    decision = ask(*fleet, **strict)
    assert [item.machine for item in decision.candidates] == ["most", "idle"]
    assert decision.candidates[0].busy == ("3 running",)
    assert decision.rejected[0].codes == ("not_loaded",)
    assert [c.machine for c in ask(*fleet, avoid_busy=True, **strict).candidates] == ["idle"]
    assert [c.machine for c in ask(*fleet, require_loaded=True).candidates] == ["idle", "most"]
    nothing = ask(*fleet, model="qwen3:8b", min_free_vram_mib=4096, **strict)
    assert route_lines(nothing)[-1].startswith("error: no machine knows 'qwen3:8b'")


def test_none_is_left_names_model_and_minimum() -> None:
    decision = ask(
        box("m", (2.0,), make_copy()), require_loaded=True, takes_lease=False, min_free_vram_mib=4096
    )
    assert decision.exit_code == 1
    assert route_lines(decision)[-1] == (
        "error: no machine has 'llama3.1:70b' loaded with 4.0 GiB of free VRAM now"
    )


# Pulls


def test_a_pull_only_when_wanted_and_only_by_an_engine_that_can() -> None:
    empty = box("m", (40.0,))
    assert ask(empty).rejected[0].codes == ("not_installed",)
    pulled = ask(
        empty, box("z", (1.0,), gib=20, maintenance=MaintenanceFlag(None, "mia", NOW)), allow_pull=True
    )
    candidate = only(pulled)
    assert (candidate.tier, candidate.eta_s) == (7, Unknown("speed of the download"))
    assert candidate.need is not None
    assert [item.code for item in pulled.warnings] == ["cold"]
    assert ask(empty, allow_pull=True, require_loaded=True).rejected[0].codes == ("not_installed",)
    vllm = make_snapshot("v", engines=(make_engine(kind="vllm", port=8000),))
    assert ask(vllm, allow_pull=True).rejected[0].codes == ("not_installed",)


def test_a_pull_of_a_name_that_nobody_knows_is_warned_of() -> None:
    decision = ask(
        make_snapshot(installed=[make_installed("llama3.1:8b")]), model="lama3.1:8b", allow_pull=True
    )
    assert (decision.exit_code, decision.nearest) == (0, ("llama3.1:8b",))
    assert [item.code for item in decision.warnings] == ["cold", "not_known"]


# After the decision, and before all have answered


def test_a_machine_that_cannot_be_reached_is_rejected_afterwards() -> None:
    decision = ask(box("a", (9.0,), make_copy()), box("b", (8.0,), make_copy()), make_offline("c"))
    less = reject_unreachable(decision, {"a": "connection refused", "zz": "?"})
    assert table(less) == {
        "b": (0, "resident, 100 % GPU, ctx 32768"),
        "a": ("not_reachable a.lan:11434: connection refused",),
        "c": ("offline: no answer on port 22 (timeout), last heard 240 s ago",),
    }
    assert reject_unreachable(decision, {"c": "?"}) is decision
    none = reject_unreachable(less, {"b": "no route"})
    assert (none.chosen, none.exit_code) == (None, 1)
    cold = ask(box("a", (9.0,), make_copy()), box("b", (48.0,), gib=20))
    assert [item.code for item in reject_unreachable(cold, {"a": "?"}).warnings] == ["cold"]


WAITING = LinkStatus("connecting")


def test_an_answer_comes_early_where_nobody_else_can_be_better() -> None:
    ready = box("ready", (8.0,), make_copy())
    last = {
        "worse": box("worse", (48.0,), gib=10),
        "better": box("better", (20.0,), make_copy()),
        "dead": make_offline("dead"),
    }

    def early(*names: str, known: bool = True, **wishes: Any) -> bool:
        waiting = [MachineSnapshot(last[name].machine, link=WAITING) for name in names]
        fleet = make_fleet(ready, *waiting, make_pending("kiosk"))
        decision = decide_route(fleet, RouteQuery(MODEL, **wishes), NOW)
        stored = make_fleet(ready, *last.values(), taken_at=NOW - 900) if known else None
        return cannot_be_beaten(fleet, decision, stored)

    assert early()
    assert early("worse", "dead")
    assert not early("worse", "better")
    assert not early("worse", known=False)
    assert early(known=False)
    assert not early("worse", require_loaded=True, takes_lease=False)  # free VRAM alone decides
    assert not early("worse", context=4096)  # tier 3 is no reason to stop


def test_a_machine_that_has_the_model_by_another_name_may_be_better() -> None:
    """By the catalog alone, which tells nothing else about it."""
    known = RouteKnowledge(catalog=Catalog((CatalogModel(MODEL, names=(("ollama", (MODEL, "other:7b")),)),)))
    waiting = MachineSnapshot(make_machine("better"), link=WAITING)
    fleet = make_fleet(box("ready", (8.0,), make_copy()), waiting)
    stored = make_fleet(box("better", (20.0,), make_copy("other:7b", digest="f" * 64)))
    decision = decide_route(fleet, RouteQuery(MODEL), NOW, known)
    assert not cannot_be_beaten(fleet, decision, stored, known)
    assert cannot_be_beaten(fleet, decision, stored)


def test_a_flag_counts_as_it_is_now() -> None:
    """One set since: that machine is not waited for. One cleared since: it may be better."""
    flag = MaintenanceFlag("disk", "ops", NOW - 600)
    ready, better = box("ready", (8.0,), make_copy()), box("better", (20.0,), make_copy())
    waiting = MachineSnapshot(better.machine, link=WAITING)
    set_since = make_fleet(ready, replace(waiting, maintenance=flag))
    decision = decide_route(set_since, RouteQuery(MODEL), NOW)
    assert cannot_be_beaten(set_since, decision, make_fleet(better))
    cleared_since = make_fleet(ready, waiting)
    decision = decide_route(cleared_since, RouteQuery(MODEL), NOW)
    assert not cannot_be_beaten(cleared_since, decision, make_fleet(replace(better, maintenance=flag)))


def test_a_machine_whose_file_changed_may_be_better() -> None:
    fleet = make_fleet(
        box("ready", (8.0,), make_copy()),
        MachineSnapshot(make_machine("worse", tags=("new",)), link=WAITING),
    )
    decision = decide_route(fleet, RouteQuery(MODEL), NOW)
    assert not cannot_be_beaten(fleet, decision, make_fleet(box("worse", (48.0,), gib=10)))
