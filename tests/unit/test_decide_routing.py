"""Routing: every reject code, tiers and order, room, exit codes, warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import (
    NOW,
    judged,
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
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.routing import decide_route
from fleettui.model.catalog import Catalog, CatalogModel
from fleettui.model.gpu import GpuFault, GpuProblem, GpuReading
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import LoadedModel
from fleettui.model.route import RouteDecision, RouteQuery
from fleettui.model.snapshot import DrainFlag, LinkStatus, MachineSnapshot, MaintenanceFlag, SourceStatus
from fleettui.model.unknown import Unknown

MODEL = "llama3.1:70b"


def ask(*machines: MachineSnapshot, model: str = MODEL, **wishes: Any) -> RouteDecision:
    """The decision for a fleet of these machines."""
    return decide_route(make_fleet(*machines), RouteQuery(model, **wishes), NOW)


def rejection(snapshot: MachineSnapshot, **wishes: Any) -> list[tuple[str, str]]:
    """(code, text) of everything that speaks against the machine."""
    decision = ask(snapshot, **wishes)
    assert decision.chosen is None
    return [(item.code, item.text) for item in decision.rejected[0].rejections]


def resident(name: str = "ada", free: tuple[float, ...] = (8.0, 4.0), **changes: Any) -> MachineSnapshot:
    """A machine with the model loaded and this much free on its cards, GiB."""
    cards = [make_card(index, free_gib=gib) for index, gib in enumerate(free)]
    copy = changes.pop("copy", make_copy())
    return make_snapshot(name, gpus=len(free), cards=cards, loaded=[copy], **changes)


def cold(
    name: str = "ada", free: tuple[float, ...] = (24.0, 24.0), gib: float = 10.0, **changes: Any
) -> MachineSnapshot:
    """A machine with the model on its disk; need = 1.2 x gib."""
    cards = [make_card(index, free_gib=value) for index, value in enumerate(free)]
    return make_snapshot(name, gpus=len(free), cards=cards, installed=[make_installed(gib=gib)], **changes)


def source(snapshot: MachineSnapshot, name: str, state: Any, **fields: Any) -> MachineSnapshot:
    return replace(snapshot, sources={**snapshot.sources, name: SourceStatus(state, **fields)})


# Reject codes


def test_not_approved() -> None:
    assert rejection(make_pending()) == [("not_approved", "not_approved: pending, host key not approved yet")]
    assert rejection(make_snapshot(trust="rejected")) == [("not_approved", "not_approved: host key rejected")]


def test_key_changed() -> None:
    assert rejection(make_snapshot(trust="key_changed")) == [
        ("key_changed", "key_changed: waits for re-approval")
    ]


def test_flags_say_why_who_and_since_when_and_hide_nothing_else() -> None:
    snapshot = resident(
        maintenance=MaintenanceFlag("fan swap", "mia", NOW - 7200),
        drain=DrainFlag("blocked", "new card", "tom", NOW - 60),
    )
    assert rejection(snapshot, min_free_vram_mib=9 * 1024) == [
        ("maintenance", 'maintenance "fan swap" by mia since 12:03 UTC'),
        ("draining", 'draining (blocked) "new card" by tom since 14:02 UTC'),
        ("free_vram", "free_vram 8.0 < 9.0 GiB on GPU 0"),
    ]


@pytest.mark.parametrize("state", ["planned", "running", "blocked", "failed", "cancelled"])
def test_every_drain_state_but_drained_is_draining(state: Any) -> None:
    assert [code for code, _ in rejection(resident(drain=DrainFlag(state, "x", "mia", NOW)))] == ["draining"]


def test_drained() -> None:
    flag = DrainFlag("drained", "x", "mia", NOW)
    assert rejection(resident(drain=flag)) == [("drained", 'drained "x" by mia since 14:03 UTC')]


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        (MaintenanceFlag(None, "mia", NOW - 9), "maintenance by mia since 14:03 UTC"),
        (
            MaintenanceFlag("fan swap", "mia", NOW - 9, NOW + 3600),
            'maintenance "fan swap" by mia since 14:03 UTC, until 15:03 UTC',
        ),
        (
            MaintenanceFlag(None, "mia", NOW - 3 * 86_400, NOW - 3600),
            "maintenance by mia since 2026-11-27 14:03 UTC, overdue since 13:03 UTC",
        ),
    ],
)
def test_maintenance_rejects_also_past_its_time(flag: MaintenanceFlag, text: str) -> None:
    """Nobody knows whether the work is done: only the operator ends it."""
    assert rejection(resident(maintenance=flag)) == [("maintenance", text)]


def test_offline() -> None:
    assert rejection(make_offline()) == [
        ("offline", "offline: no answer on port 22 (timeout), last heard 240 s ago")
    ]
    gone = judged(resident(link=LinkStatus("failed", stage="lost", error="connection reset")))
    assert rejection(gone) == [
        ("offline", "offline: connection reset, last heard 1 s ago, last seen resident")
    ]


def test_timeout() -> None:
    waiting = MachineSnapshot(make_machine(), link=LinkStatus("connecting", stage="authentication"))
    assert rejection(waiting) == [("timeout", "timeout: no answer yet, at authentication")]
    assert rejection(waiting, deadline_s=10.0) == [
        ("timeout", "timeout: no answer within 10 s, at authentication")
    ]


def test_stale() -> None:
    assert rejection(resident(age_s=41)) == [("stale", "stale 41 s > 4 s, last seen resident")]
    assert ask(resident(age_s=41), max_age_s=60).chosen is not None
    assert rejection(resident(age_s=3), max_age_s=1)[0][0] == "stale"


def test_engine_down() -> None:
    engine = make_engine(state="down", error="connection refused", loaded=())
    assert rejection(make_snapshot(engines=(replace(engine, loaded=Unknown()),))) == [
        ("engine_down", "engine_down: Ollama on port 11434 does not answer: connection refused")
    ]
    assert rejection(make_snapshot(engines=())) == [("engine_down", "engine_down: no engine answered")]


def test_not_installed_names_the_nearest_tag() -> None:
    assert rejection(make_snapshot()) == [("not_installed", "not_installed")]
    installed = [make_installed("llama3.1:70b-q8"), make_installed("llama3.1:8b"), make_installed("qwen3:8b")]
    assert rejection(make_snapshot(installed=installed)) == [
        ("not_installed", "not_installed (has llama3.1:8b)")
    ]


def test_an_unread_list_of_models_is_not_an_empty_one() -> None:
    engine = replace(make_engine(), installed=Unknown())
    decision = ask(make_snapshot(engines=(engine,)))
    assert decision.rejected[0].codes == ("timeout",)
    assert decision.exit_code == 4


def test_remote_model() -> None:
    cloud = make_installed("gpt-oss:120b-cloud", remote_host="https://ollama.com:443")
    assert rejection(make_snapshot(installed=[cloud]), model="gpt-oss:120b-cloud") == [
        ("remote_model", "remote_model (ollama.com:443), never local")
    ]


def test_not_loaded_only_when_asked_for() -> None:
    assert rejection(cold(), require_loaded=True) == [("not_loaded", "not_loaded (installed)")]
    assert [code for code, _ in rejection(cold(free=(1,)), require_loaded=True, min_free_vram_mib=4096)] == [
        "not_loaded",
        "free_vram",
    ]
    assert ask(cold()).chosen is not None


def test_a_stopping_copy_is_not_resident() -> None:
    assert rejection(resident(copy=make_copy(state="stopping")), require_loaded=True)[0][0] == "not_loaded"


def test_free_vram_of_a_resident_copy_is_headroom_as_it_is() -> None:
    snapshot = resident(free=(8.0, 4.0))
    assert ask(snapshot, min_free_vram_mib=8 * 1024).chosen is not None  # inclusive
    assert rejection(snapshot, min_free_vram_mib=8 * 1024 + 1) == [
        ("free_vram", "free_vram 8192 < 8193 MiB on GPU 0")
    ]
    assert ask(snapshot, min_free_vram_mib=12 * 1024, free_scope="host").chosen is not None
    assert rejection(snapshot, min_free_vram_mib=13 * 1024, free_scope="host") == [
        ("free_vram", "free_vram 12.0 < 13.0 GiB on all GPUs")
    ]


def test_free_vram_of_a_cold_copy_is_what_is_left_after_its_need() -> None:
    snapshot = cold(free=(20.0, 10.0), gib=10)  # needs 12.0 and 0.5 for CUDA on the card
    assert ask(snapshot, min_free_vram_mib=7 * 1024).chosen is not None
    assert rejection(snapshot, min_free_vram_mib=9 * 1024) == [
        ("free_vram", "free_vram 20.0 < 21.5 GiB on GPU 0 (12.5 for the model + 9.0)")
    ]
    spanning = cold(free=(20.0, 10.0), gib=20)  # needs 25.0 on two cards: more than one has
    assert ask(spanning, min_free_vram_mib=5 * 1024).chosen is not None
    assert rejection(spanning, min_free_vram_mib=7 * 1024) == [
        ("free_vram", "free_vram 30.0 < 32.0 GiB on all GPUs (25.0 for the model + 7.0)")
    ]


def test_a_cpu_only_machine_has_no_free_vram() -> None:
    snapshot = make_snapshot(gpus=0, loaded=[make_copy(vram_gib=0)])
    assert ask(snapshot).chosen is not None
    assert rejection(snapshot, min_free_vram_mib=1) == [("free_vram", "free_vram 0 < 1 MiB")]


def test_unified_memory_counts_once() -> None:
    cards = [make_card(i, free_gib=None, total_gib=None, is_unified=True) for i in range(2)]
    snapshot = make_snapshot(cards=cards, loaded=[make_copy()])  # MemAvailable is 90 GiB
    assert ask(snapshot, min_free_vram_mib=90 * 1024, free_scope="host").chosen is not None
    assert rejection(snapshot, min_free_vram_mib=91 * 1024, free_scope="host") == [
        ("free_vram", "free_vram 90.0 < 91.0 GiB of shared memory")
    ]


def test_disabled_cards_are_left_out() -> None:
    machine = make_machine(disabled_gpus=(1,))
    snapshot = resident(free=(4.0, 24.0), machine=machine)
    assert rejection(snapshot, min_free_vram_mib=5 * 1024) == [
        ("free_vram", "free_vram 4.0 < 5.0 GiB on GPU 0")
    ]
    nothing = resident(free=(4.0,), machine=make_machine(gpus=1, disabled_gpus=(0,)))
    assert rejection(nothing, min_free_vram_mib=1) == [("free_vram", "free_vram 0 < 1 MiB")]


def test_ctx() -> None:
    engine = make_engine(kind="vllm", port=8000, loaded=[make_copy("org/m", engine="vllm", context=8192)])
    snapshot = make_snapshot(engines=(engine,))
    assert rejection(snapshot, model="org/m", context=16384) == [
        ("ctx", "ctx 8192 < 16384, fixed when it was started")
    ]
    assert ask(snapshot, model="org/m", context=4096).chosen is not None


def test_gpu_fault() -> None:
    fault = GpuFault("00000000:02:00.0", "lost", "GPU is lost: reboot the machine")
    cards = (make_card(0, free_gib=2), make_card(1, fault=fault))
    snapshot = replace(resident(), gpu=GpuReading(cards=cards))
    assert rejection(snapshot, min_free_vram_mib=4096) == [
        ("free_vram", "free_vram 2.0 < 4.0 GiB on GPU 0"),
        ("gpu_fault", "gpu_fault: GPU 1: GPU is lost: reboot the machine"),
    ]
    dead = replace(cold(), gpu=GpuReading(faults=(fault,)))
    assert rejection(dead) == [("gpu_fault", "gpu_fault: no GPU in order: GPU is lost: reboot the machine")]


def test_gpu_unknown_only_where_the_choice_needs_it() -> None:
    problem = GpuProblem("version_mismatch", "driver/library version mismatch")
    loaded, on_disk = (replace(item, gpu=GpuReading(problem=problem)) for item in (resident(), cold()))
    assert ask(loaded).chosen is not None
    expected = [("gpu_unknown", "gpu_unknown: driver/library version mismatch")]
    assert rejection(loaded, min_free_vram_mib=1) == expected
    assert rejection(on_disk) == expected


def test_stale_gpu_figures_decide_nothing() -> None:
    snapshot = source(cold(), "gpu", "late", read_at=NOW - 41, since=NOW - 40)
    assert rejection(snapshot) == [("gpu_unknown", "gpu_unknown: GPU data 41 s old")]
    hung = source(resident("ada", free=(24.0,)), "gpu", "late", read_at=NOW - 41, since=NOW - 40)
    fresh = resident("zoe", free=(0.5,))
    assert [item.machine for item in ask(hung, fresh).candidates] == ["zoe", "ada"]  # unknown sorts last


def test_busy_only_with_avoid_busy() -> None:
    copy = make_copy("org/m", engine="vllm", size_bytes=Unknown(), vram_bytes=Unknown())
    engine = make_engine(kind="vllm", port=8000, loaded=[copy], running=3)
    snapshot = make_snapshot(engines=(engine,))
    chosen = ask(snapshot, model="org/m").chosen
    assert chosen is not None
    assert (chosen.tier, chosen.reason) == (1, "resident, busy (3 running), ctx 32768")
    assert rejection(snapshot, model="org/m", avoid_busy=True) == [("busy", "busy: 3 running")]


def test_excluded_and_selector() -> None:
    snapshot = resident()
    assert rejection(snapshot, exclude=("ada",), tags=("gpu", "edge", "lab")) == [
        ("excluded", "excluded (--exclude ada)"),
        ("selector", "selector: without tags edge, lab"),
    ]
    assert ask(snapshot, exclude=("bora",), tags=("gpu",)).chosen is not None


# Tiers and order


@pytest.mark.parametrize(
    ("copy", "wishes", "tier", "reason"),
    [
        (make_copy(), {}, 0, "resident, 100 % GPU, ctx 32768"),
        (make_copy(context=Unknown()), {}, 0, "resident, 100 % GPU"),
        (make_copy(vram_gib=33), {}, 2, "resident, partly in RAM, 83 % GPU, ctx 32768"),
        (make_copy(vram_gib=0), {}, 2, "resident in RAM, 0 % GPU, ctx 32768"),
        (make_copy(), {"context": 8192}, 3, "resident with context 32768, reload for 8192"),
        (make_copy(), {"context": 32768}, 0, "resident, 100 % GPU, ctx 32768"),
        (
            make_copy(context=Unknown()),
            {"context": 8192},
            3,
            "resident with context unknown, reload for 8192",
        ),
        (make_copy(state="loading"), {}, 3, "loading, 100 % GPU, ctx 32768"),
        (make_copy(state="sleeping"), {}, 3, "asleep, 100 % GPU, ctx 32768"),
    ],
)
def test_tiers_of_resident_copies(copy: LoadedModel, wishes: dict[str, Any], tier: int, reason: str) -> None:
    chosen = ask(resident(copy=copy), **wishes).chosen
    assert chosen is not None
    assert (chosen.tier, chosen.reason) == (tier, reason)


@pytest.mark.parametrize(
    ("free", "gib", "tier", "reason"),
    [
        (
            (24.0, 24.0),
            10,
            4,
            "installed, ~9 s cold (1.5 GB/s assumed), needs 12.5 GiB = file size x 1.2 (assumed)",
        ),
        (
            (24.0, 24.0),
            30,
            4,
            "installed, ~24 s cold (1.5 GB/s assumed), needs 37.0 GiB = file size x 1.2 (assumed) "
            "on GPUs 0, 1",
        ),
        (
            (24.0, 4.0),
            30,
            6,
            "installed, ~24 s cold (1.5 GB/s assumed), partly in RAM: "
            "needs 37.0 GiB = file size x 1.2 (assumed), 9.0 GiB of it in main memory",
        ),
    ],
)
def test_tiers_of_cold_copies(free: tuple[float, ...], gib: float, tier: int, reason: str) -> None:
    decision = ask(cold(free=free, gib=gib))
    assert decision.chosen is not None
    assert (decision.chosen.tier, decision.chosen.reason) == (tier, reason)
    assert decision.warnings[0].code == "cold"


def test_a_cpu_only_machine_is_the_last_resort() -> None:
    snapshot = make_snapshot("zoe", gpus=0, installed=[make_installed(gib=3)])
    chosen = ask(snapshot).chosen
    assert chosen is not None
    assert (chosen.tier, chosen.reason, chosen.free_mib) == (
        6,
        "installed, ~4 s cold (1.5 GB/s assumed), CPU only, needs 4.1 GiB = file size x 1.2 (assumed)",
        0,
    )
    assert [item.machine for item in ask(snapshot, cold("ada")).candidates] == ["ada", "zoe"]


def test_order_within_a_tier() -> None:
    def box(name: str, free: float, busy: int) -> MachineSnapshot:
        cards = [make_card(0, free_gib=free, utilisation_percent=busy)]
        return make_snapshot(name, gpus=1, cards=cards, loaded=[make_copy()])

    fleet = [box("n10", 8, 5), box("n2", 8, 5), box("n1", 8, 50), box("z", 9, 99)]
    assert [item.machine for item in ask(*fleet).candidates] == ["z", "n2", "n10", "n1"]


def test_resident_beats_more_room_and_partly_beats_cold() -> None:
    decision = ask(
        cold("a"),
        resident("b", copy=make_copy(vram_gib=20)),
        resident("c", free=(0.1,)),
        cold("d", free=(2.0,), gib=30),
    )
    assert [(item.machine, item.tier) for item in decision.candidates] == [
        ("c", 0),
        ("b", 2),
        ("a", 4),
        ("d", 6),
    ]


def test_the_strict_rule_takes_all_resident_copies_alike() -> None:
    fleet = [
        resident("full", free=(2.0,)),
        resident("partly", free=(9.0,), copy=make_copy(vram_gib=20)),
        resident("loading", free=(5.0,), copy=make_copy(state="loading")),
        resident("cpu", free=(9.0,), copy=make_copy(vram_gib=20)),
    ]
    candidates = ask(*fleet, require_loaded=True, takes_lease=False).candidates
    assert [item.machine for item in candidates] == ["cpu", "partly", "loading", "full"]
    candidates = ask(*fleet, require_loaded=True).candidates
    assert [item.machine for item in candidates] == ["full", "cpu", "partly", "loading"]


def test_a_tag_that_shares_the_digest_shares_the_runner() -> None:
    installed = [
        make_installed("llama3.1:latest", digest="a" * 64),
        make_installed("llama3.1:8b", digest="a" * 64),
    ]
    snapshot = make_snapshot(loaded=[make_copy("llama3.1:8b", digest="a" * 64)], installed=installed)
    chosen = ask(snapshot, model="llama3.1").chosen
    assert chosen is not None
    assert (chosen.tier, chosen.model) == (0, "llama3.1:latest")


@pytest.mark.parametrize("asked", ["llama3.2", "LLAMA3.2:latest", "library/llama3.2"])
def test_names_are_matched_in_their_normal_form(asked: str) -> None:
    assert ask(make_snapshot(loaded=[make_copy("llama3.2:latest")]), model=asked).chosen is not None
    assert ask(make_snapshot(loaded=[make_copy("llama3.2:1b")]), model=asked).chosen is None


def test_the_address_is_that_of_the_engine_that_has_it() -> None:
    engines = (
        make_engine(),
        make_engine(kind="vllm", port=8000, loaded=[make_copy("org/m", engine="vllm")]),
    )
    chosen = ask(make_snapshot(engines=engines), model="org/m").chosen
    assert chosen is not None
    assert (chosen.address, chosen.url) == ("ada.lan:8000", "http://ada.lan:8000")
    endpoint = EngineEndpoint("vllm", 8000, "https://gpu.example.net/v/")
    elsewhere = make_snapshot(machine=make_machine(engines=(endpoint,)), engines=engines)
    chosen = ask(elsewhere, model="org/m").chosen
    assert chosen is not None
    assert (chosen.address, chosen.url) == ("gpu.example.net:443", "https://gpu.example.net/v")


def test_an_ipv6_address_gets_brackets() -> None:
    chosen = ask(resident(machine=make_machine(hostname="2001:db8::7"))).chosen
    assert chosen is not None
    assert (chosen.address, chosen.url) == ("[2001:db8::7]:11434", "http://[2001:db8::7]:11434")


# Exit codes and warnings


def test_exit_codes() -> None:
    assert ask(resident()).exit_code == 0
    assert ask(resident(), min_free_vram_mib=10**6).exit_code == 1
    assert ask(make_snapshot()).exit_code == 3
    assert ask(make_offline()).exit_code == 4
    assert ask(make_offline(), make_pending(), resident("z", age_s=99)).exit_code == 4  # before 3
    assert ask().exit_code == 4
    assert ask().warnings[0].code == "no_machines"


def test_a_model_is_unknown_only_when_every_approved_machine_answered_without_it() -> None:
    assert ask(make_snapshot(), make_offline()).exit_code == 1
    assert ask(make_snapshot(), make_pending()).exit_code == 3
    down = make_snapshot(
        "z", engines=(replace(make_engine(state="down"), loaded=Unknown(), installed=Unknown()),)
    )
    assert ask(make_snapshot(), down).exit_code == 1
    declared = make_snapshot(machine=make_machine(models=("Llama3.1:70B",)))
    assert ask(declared).exit_code == 1
    fleet = make_fleet(make_snapshot())
    catalog = Catalog((CatalogModel(MODEL),))
    assert decide_route(fleet, RouteQuery(MODEL), NOW, RouteKnowledge(catalog=catalog)).exit_code == 1


def test_an_unknown_model_comes_with_the_nearest_names() -> None:
    snapshot = make_snapshot(installed=[make_installed("llama3.1:8b"), make_installed("qwen3:8b")])
    assert ask(snapshot).nearest == ("llama3.1:8b", "qwen3:8b")
    assert ask(snapshot, make_offline()).nearest == ("llama3.1:8b", "qwen3:8b")
    assert ask(resident(), min_free_vram_mib=10**6).nearest == ()


def test_digest_drift() -> None:
    decision = ask(resident("ada"), cold("bora"), resident("cleo", copy=make_copy(digest="f" * 64)))
    assert [(item.code, item.text) for item in decision.warnings] == [
        (
            "digest_drift",
            "llama3.1:70b differs between machines: 6c6c616d6133 on ada, bora, ffffffffffff on cleo",
        )
    ]


def test_the_whole_fleet_is_explained_in_natural_order() -> None:
    decision = ask(resident("n10"), make_offline("n2"), make_pending("n1"))
    assert [item.machine for item in decision.rejected] == ["n1", "n2"]
    assert decision.chosen is decision.candidates[0]
    assert decision.canonical == MODEL
    assert decision.chosen is not None
    assert decision.chosen.need is None


def test_need_is_the_file_size_and_a_fifth() -> None:
    chosen = ask(cold(gib=10)).chosen
    assert chosen is not None
    assert chosen.need is not None
    assert chosen.need.mib == 12 * 1024 + 512  # and the CUDA context of one card
    assert chosen.need.text == "file 10.0 GiB x 1.2 (assumed)"
    unsized = make_snapshot(installed=[make_installed(size_bytes=Unknown("not given"))])
    chosen = ask(unsized).chosen
    assert chosen is not None
    assert (chosen.tier, chosen.reason) == (
        6,
        "installed, cold, seconds not known (size not reported), "
        "need unknown: neither tensors nor file size are known",
    )
    assert rejection(unsized, min_free_vram_mib=1) == [
        ("free_vram", "free_vram: need unknown, neither tensors nor file size are known")
    ]


def test_an_engine_that_is_down_beside_one_without_the_model_is_a_reason_of_its_own() -> None:
    down = make_engine(kind="vllm", port=8000, state="down", error="connection refused")
    snapshot = make_snapshot(engines=(make_engine(installed=[]), down))
    (rejected,) = ask(snapshot).rejected
    assert rejected.codes == ("not_installed", "engine_down")
    assert rejected.text == (
        "not_installed; engine_down: vLLM on port 8000 does not answer: connection refused"
    )


def test_lists_that_were_not_read_anywhere_are_no_usable_data() -> None:
    snapshot = make_snapshot(engines=(make_engine(installed=None, loaded=[]),))
    unread = replace(snapshot, engines=(replace(snapshot.engines[0], installed=Unknown("not read yet")),))
    decision = ask(unread)
    assert [item.codes for item in decision.rejected] == [("timeout",)]
    assert decision.exit_code == 4
    assert ask(unread, resident(), model="no-such").exit_code == 1
