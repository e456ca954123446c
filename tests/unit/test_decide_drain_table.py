"""What becomes of each copy of a machine that is drained: every class with target, figures and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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
    make_process,
    make_snapshot,
)
from fleettui.decide.drain.keep import count_resident
from fleettui.decide.drain.plan import plan_copy, plan_drains
from fleettui.decide.drain.sight import what_holds
from fleettui.decide.knowledge import NOTHING_KNOWN, RouteKnowledge
from fleettui.model.catalog import Catalog, CatalogModel
from fleettui.model.drain import DrainOptions, DrainPlan, PlannedCopy
from fleettui.model.gpu import CardCondition, GpuCondition, GpuReading
from fleettui.model.lease import Lease
from fleettui.model.machine import EngineEndpoint
from fleettui.model.ollama_settings import OllamaSettings
from fleettui.model.readings import CopyUse, EngineTraits, InstalledModel, LoadedModel, SystemReading
from fleettui.model.snapshot import DrainFlag, MachineSnapshot, MaintenanceFlag, SourceStatus
from fleettui.model.sockets import FoundEngine, ListeningPort, SocketsReading
from fleettui.model.unknown import Unknown

QWEN, LLAMA, NOMIC, PHI = "qwen3:32b", "llama3.1:8b", "nomic-embed-text:latest", "phi4:latest"
VLLM_ID = "Qwen/Qwen2-VL-7B"


def host(
    name: str,
    *loaded: LoadedModel,
    disk: Sequence[str | InstalledModel] = (),
    free: float = 24.0,
    gpus: int = 1,
    context: int = 32768,
    **changes: Any,
) -> MachineSnapshot:
    """A machine whose Ollama takes `context` by its settings, with cards of so much free; `disk` beside what
    is loaded. Models on the disk have 10 GiB."""
    files = [make_installed(copy.name, gib=10, digest=copy.digest) for copy in loaded]
    files += [make_installed(item, gib=10) if isinstance(item, str) else item for item in disk]
    cards = [make_card(index, free_gib=free) for index in range(gpus)]
    system = SystemReading(ollama=OllamaSettings(port=11434, context=context))
    return make_snapshot(
        name, machine=make_machine(name, gpus=gpus), cards=cards, loaded=loaded, installed=files,
        **{"system": system, **changes},
    )  # fmt: skip


def copy_of(name: str = QWEN, gib: float = 12, **changes: Any) -> LoadedModel:
    return make_copy(name, gib=gib, **changes)


def plan(
    *machines: MachineSnapshot,
    known: RouteKnowledge = NOTHING_KNOWN,
    options: DrainOptions = DrainOptions(),  # noqa: B008 - frozen
) -> DrainPlan:
    """Of the first machine."""
    (made,) = plan_drains(make_fleet(*machines), [machines[0].name], known, options, NOW)
    return made


def only(made: DrainPlan) -> PlannedCopy:
    (line,) = made.copies
    return line


def said(line: PlannedCopy) -> dict[str, tuple[str, ...]]:
    return {item.machine: item.codes for item in line.rejected}


def target_of(line: PlannedCopy) -> str:
    assert line.target is not None
    return line.target.machine


# What is resident elsewhere


def test_a_peer_with_the_same_weights_covers_it() -> None:
    made = plan(host("ada", copy_of()), host("bora", copy_of()), host("cleo", disk=[QWEN]))
    line = only(made)
    assert (line.drain_class, target_of(line), line.text) == ("covered", "bora", "also on bora (same digest)")
    assert line.context_there == 32768
    assert (made.load_bytes, made.seconds, made.targets) == (0, 0.0, {})


def test_the_same_weights_under_another_tag_cover_it_only_where_the_tag_is_known() -> None:
    digest = copy_of().digest
    other = copy_of("mine:latest", digest=digest)
    knows = host("bora", other, disk=[make_installed(QWEN, gib=10)])
    assert only(plan(host("ada", copy_of()), knows)).text == "also on bora (same digest, as mine:latest)"
    assert only(plan(host("ada", copy_of()), host("bora", other))).drain_class == "cannot"


def test_other_weights_by_the_same_name_neither_cover_nor_take_it() -> None:
    line = only(plan(host("ada", copy_of()), host("bora", copy_of(digest="f" * 64))))
    assert line.drain_class == "cannot"
    assert line.rejected[0].text == "not_installed (other weights by that name, digest ffffffffffff)"


def test_a_peer_with_a_shorter_context_does_not_cover_while_another_machine_can_take_it() -> None:
    short = host("bora", copy_of(context=4096))
    line = only(plan(host("ada", copy_of()), short, host("cleo", disk=[QWEN])))
    assert (line.drain_class, target_of(line)) == ("move", "cleo")
    line = only(plan(host("ada", copy_of()), short))
    assert (line.drain_class, target_of(line)) == ("degraded", "bora")
    assert line.text == "resident there already; ctx 32768 -> 4096"


def test_a_peer_that_lies_partly_in_main_memory_covers_only_what_does_so_too() -> None:
    partly = copy_of(vram_gib=6)
    assert only(plan(host("ada", copy_of()), host("bora", partly))).drain_class == "degraded"
    assert only(plan(host("ada", partly), host("bora", partly))).drain_class == "covered"


def test_a_peer_out_of_service_covers_nothing() -> None:
    flag = MaintenanceFlag("fan", "mia@desk", NOW - 60)
    line = only(plan(host("ada", copy_of()), host("bora", copy_of(), maintenance=flag)))
    assert (line.drain_class, line.cold_on, line.text) == (
        "last_copy", ("bora",), "will be cold on bora (out of service now)",
    )  # fmt: skip
    assert said(line) == {"bora": ("maintenance",)}


def test_what_is_stopping_or_sleeps_is_no_copy() -> None:
    stopping = copy_of(state="stopping")
    assert plan(host("ada", stopping), host("bora", disk=[QWEN])).copies == ()
    line = only(plan(host("ada", copy_of()), host("bora", copy_of(state="stopping"))))
    assert line.drain_class == "move"


# Moves


def test_a_move_shows_need_basis_context_and_seconds() -> None:
    made = plan(host("ada", copy_of()), host("bora", disk=[QWEN]))
    line = only(made)
    assert (line.drain_class, target_of(line), line.text) == ("move", "bora", "")
    target = line.target
    assert target is not None and target.need is not None  # noqa: PT018
    assert (target.need.mib, target.need.basis) == (12 * 1024 + 512, "as seen elsewhere")
    assert (target.free_mib, target.gpus, target.evicts) == (24 * 1024, (0,), ())
    assert (line.context_there, line.num_ctx) == (32768, None)
    assert made.seconds == target.eta_s == round(10 * GIB / 1.5e9 + 2, 1)
    assert target.eta_basis == "assumed"
    assert made.load_bytes == 10 * GIB
    assert made.targets == {"bora": 1}


def test_a_measured_rate_tells_the_seconds() -> None:
    known = RouteKnowledge(load_rates={"bora": 5e8})
    made = plan(host("ada", copy_of()), host("bora", disk=[QWEN]), known=known)
    target = only(made).target
    assert target is not None
    assert (target.eta_s, target.eta_basis) == (round(10 * GIB / 5e8 + 2, 1), "measured")


def test_loads_on_one_target_follow_each_other_and_targets_work_side_by_side() -> None:
    one = round(10 * GIB / 1.5e9 + 2, 1)
    both = host("ada", copy_of(gib=8), copy_of(LLAMA, gib=8))
    made = plan(both, host("bora", disk=[QWEN, LLAMA], gpus=2))
    assert (made.seconds, made.targets) == (2 * one, {"bora": 2})
    made = plan(both, host("bora", disk=[QWEN]), host("cleo", disk=[LLAMA]))
    assert (made.seconds, made.targets) == (one, {"bora": 1, "cleo": 1})
    assert made.load_bytes == 20 * GIB


def test_no_room_is_given_away_twice() -> None:
    made = plan(host("ada", copy_of(gib=14), copy_of(LLAMA, gib=14)), host("bora", disk=[QWEN, LLAMA]))
    assert [line.drain_class for line in made.copies] == ["move", "last_copy"]
    assert made.copies[1].rejected[0].text == f"no_fit 9.5 < 14.5 GiB; {LLAMA} has to stay"


def test_room_that_somebody_holds_for_the_very_copy_is_its_own() -> None:
    """A worker that died while it loaded leaves its lease behind."""
    ada, bora = host("ada", copy_of()), host("bora", disk=[QWEN])

    def known(model: str, digest: str | None = None) -> RouteKnowledge:
        lease = Lease("x", "bora", 11434, "ollama", model, "cold", NOW, NOW + 60, 20 << 10, 0, digest)
        return replace(NOTHING_KNOWN, leases=(lease,))

    assert only(plan(ada, bora, known=known(QWEN))).drain_class == "move"
    other_tag = known("qwen:latest", str(ada.loaded[0].digest))
    assert only(plan(ada, bora, known=other_tag)).drain_class == "move"
    assert only(plan(ada, bora, known=known("phi4:14b"))).drain_class != "move", "that takes the room"
    fleet, copy = make_fleet(ada, bora), only(plan(ada, bora)).copy
    for model, wanted in ((QWEN, True), ("phi4:14b", False)):
        line = plan_copy(fleet, copy, known(model), DrainOptions(), NOW)
        assert (line.drain_class == "move") is wanted


def test_the_machine_with_most_room_afterwards_then_the_name_decides() -> None:
    ada = host("ada", copy_of())
    roomy = host("dora", disk=[QWEN], gpus=2)
    assert target_of(only(plan(ada, host("bora", disk=[QWEN]), roomy))) == "dora"
    assert target_of(only(plan(ada, host("cleo", disk=[QWEN]), host("bora", disk=[QWEN])))) == "bora"


def test_what_is_loading_elsewhere_is_waited_for() -> None:
    line = only(plan(host("ada", copy_of()), host("bora", copy_of(state="loading"), free=6)))
    assert (line.drain_class, target_of(line), line.text) == ("move", "bora", "it is loading there")


# Evictions


def idle_phi(**changes: Any) -> LoadedModel:
    return copy_of(PHI, gib=14, **changes)


def test_idle_copies_that_have_to_go_are_named() -> None:
    bora = host("bora", idle_phi(), disk=[QWEN], free=9)
    engine = replace(bora.engines[0], uses=(CopyUse(PHI, NOW - 7200),))
    line = only(plan(host("ada", copy_of()), replace(bora, engines=(engine,))))
    assert line.drain_class == "move_evicts"
    assert line.target is not None
    (eviction,) = line.target.evicts
    assert (eviction.model, eviction.idle_s, eviction.vram_mib) == (PHI, 7200.0, 14 * 1024)
    assert line.target.free_mib == 9 * 1024
    assert line.target.eta_s == round(10 * GIB / 1.5e9 + 2 + 5, 1)


def test_what_is_evicted_and_resident_nowhere_else_is_told() -> None:
    bora = host("bora", idle_phi(), disk=[QWEN], free=9)
    assert plan(host("ada", copy_of()), bora).evicted_last == (PHI,)
    assert plan(host("ada", copy_of()), bora, host("cleo", idle_phi())).evicted_last == ()
    drained_too = plan_drains(
        make_fleet(host("ada", copy_of()), bora, host("cleo", idle_phi())),
        ("cleo", "ada"), NOTHING_KNOWN, DrainOptions(), NOW,
    )  # fmt: skip
    assert [item.evicted_last for item in drained_too] == [(), ()], "bora's copy covers cleo's: it stays"


def test_files_on_a_machine_that_is_drained_too_make_it_a_last_copy() -> None:
    plans = plan_drains(
        make_fleet(host("ada", copy_of()), host("bora", disk=[QWEN])), ("ada", "bora"),
        NOTHING_KNOWN, DrainOptions(), NOW,
    )  # fmt: skip
    line = only(plans[0])
    assert (line.drain_class, line.cold_on) == ("last_copy", ("bora",))
    assert line.text == "will be cold on bora (out of service now)"


def test_a_machine_without_an_eviction_goes_before_one_with_more_room() -> None:
    evicts = host("bora", idle_phi(), disk=[QWEN], free=9, gpus=1)
    line = only(plan(host("ada", copy_of()), evicts, host("zoe", disk=[QWEN], free=13)))
    assert (line.drain_class, target_of(line)) == ("move", "zoe")


def test_a_copy_at_work_is_no_victim() -> None:
    bora = host("bora", idle_phi(), disk=[QWEN], free=9)
    engine = replace(bora.engines[0], uses=(CopyUse(PHI, NOW - 1),))
    line = only(plan(host("ada", copy_of()), replace(bora, engines=(engine,))))
    assert line.drain_class == "last_copy"
    assert said(line) == {"bora": ("no_fit",)}
    assert f"{PHI} (at work) has to stay" in line.rejected[0].text


def test_what_covers_a_copy_is_never_evicted_for_another() -> None:
    ada = host("ada", copy_of(), copy_of(PHI, gib=14))
    made = plan(ada, host("bora", idle_phi(), disk=[QWEN], free=9))
    classes = {line.copy.name: line.drain_class for line in made.copies}
    assert classes == {PHI: "covered", QWEN: "last_copy"}
    assert f"{PHI} (needed there) has to stay" in made.of_class("last_copy")[0].rejected[0].text


def test_a_pinned_copy_goes_last_and_what_was_moved_before_it_is_never_dropped() -> None:
    """The first move leaves no room; the second would need the pinned copy, before which Ollama drops the
    one that was just moved."""
    ada = host("ada", copy_of(gib=12), copy_of(LLAMA, gib=10))
    bora = host("bora", idle_phi(is_pinned=True), disk=[QWEN, LLAMA], free=13)
    made = plan(ada, replace(bora, memory=None))
    assert sorted(line.drain_class for line in made.copies) == ["last_copy", "move"]


def test_one_copy_too_many_goes_first_whatever_the_room() -> None:
    small = [copy_of(f"tiny{number}:1b", gib=0.5, expires_at=NOW + 60 * number) for number in range(1, 4)]
    line = only(plan(host("ada", copy_of(gib=4)), host("bora", *small, disk=[QWEN], free=22)))
    assert line.drain_class == "move_evicts"
    assert line.target is not None
    assert [eviction.model for eviction in line.target.evicts] == ["tiny1:1b"]


def test_what_only_ollama_s_prediction_drops_is_announced_too() -> None:
    """A file of 10 GiB is more than 80 % of 12.5: it makes room first, though the copy would fit."""
    seen = copy_of(gib=11)
    bora = host("bora", idle_phi(expires_at=NOW + 60), disk=[QWEN], free=12.4)
    line = only(plan(host("ada", seen), bora))
    assert (line.drain_class, line.text) == ("move_evicts", f"Ollama may evict {PHI} though it fits")
    assert line.target is not None
    assert [eviction.model for eviction in line.target.evicts] == [PHI]
    alone = host("bora", disk=[QWEN], free=12.4)
    assert only(plan(host("ada", seen), alone)).drain_class == "move"


# Less than at the source


def test_a_smaller_default_context_is_degraded_and_a_named_one_is_not() -> None:
    ada, bora = host("ada", copy_of()), host("bora", disk=[QWEN], context=4096)
    line = only(plan(ada, bora))
    assert (line.drain_class, line.text, line.context_there) == ("degraded", "ctx 32768 -> 4096", 4096)
    line = only(plan(ada, bora, options=DrainOptions(keeps_context=True)))
    assert (line.drain_class, line.context_there, line.num_ctx) == ("move", 32768, 32768)
    catalog = Catalog((CatalogModel(QWEN, num_ctx=16384),))
    line = only(plan(ada, bora, known=RouteKnowledge(catalog=catalog)))
    assert (line.drain_class, line.context_there, line.num_ctx) == ("move", 16384, 16384)


def test_a_context_in_the_catalog_that_only_describes_is_never_named() -> None:
    catalog = Catalog((CatalogModel(QWEN, context=131072),))
    line = only(
        plan(host("ada", copy_of()), host("bora", disk=[QWEN]), known=RouteKnowledge(catalog=catalog))
    )
    assert (line.num_ctx, line.context_there) == (None, 32768)


def test_a_part_in_main_memory_is_degraded_but_not_for_a_copy_that_lies_there_already() -> None:
    bora = host("bora", disk=[QWEN], free=8)
    line = only(plan(host("ada", copy_of()), bora))
    assert (line.drain_class, line.text) == ("degraded", "4.5 GiB of it in main memory")
    assert only(plan(host("ada", copy_of(vram_gib=0)), bora)).drain_class == "move"


def test_degraded_takes_no_room_from_others_unless_it_is_accepted() -> None:
    ada = host("ada", copy_of(gib=22), copy_of(LLAMA, gib=6))
    machines = host("bora", disk=[QWEN, LLAMA], free=12), host("cleo", disk=[QWEN, LLAMA], free=8)
    lines = {line.copy.name: line for line in plan(ada, *machines).copies}
    assert {name: line.drain_class for name, line in lines.items()} == {QWEN: "degraded", LLAMA: "move"}
    assert target_of(lines[LLAMA]) == "bora"  # for nobody has accepted that QWEN takes it
    made = plan(ada, *machines, options=DrainOptions(accept_degraded=True))
    assert {line.copy.name: target_of(line) for line in made.copies} == {QWEN: "bora", LLAMA: "cleo"}


# Without the files


def test_a_pull_is_planned_only_where_it_is_allowed() -> None:
    machines = host("ada", copy_of()), host("bora")
    assert only(plan(*machines)).drain_class == "cannot"
    line = only(plan(*machines, options=DrainOptions(allow_pull=True)))
    assert (line.drain_class, line.pull_bytes) == ("pull", 10 * GIB)
    assert line.text == f"pull of {10 * GIB / 1e9:.1f} GB first"
    made = plan(*machines, host("cleo", disk=[QWEN], free=13), options=DrainOptions(allow_pull=True))
    assert target_of(only(made)) == "cleo"
    assert isinstance(plan(*machines, options=DrainOptions(allow_pull=True)).seconds, Unknown)


def test_no_pull_onto_a_full_disk() -> None:
    bora = host("bora")
    assert bora.disks is not None
    full = replace(bora, disks=replace(bora.disks, disks=(replace(bora.disks.disks[0], free_kib=1 << 20),)))
    line = only(plan(host("ada", copy_of()), full, options=DrainOptions(allow_pull=True)))
    assert line.rejected[0].text == "no_fit disk 1.1 < 10.7 GB"


def test_a_cloud_entry_is_no_file() -> None:
    cloud = make_installed(QWEN, remote_host="https://ollama.com")
    line = only(plan(host("ada", copy_of()), host("bora", disk=[cloud])))
    assert (line.drain_class, line.cold_on) == ("cannot", ())


# No target


def test_every_machine_says_why_it_takes_nothing() -> None:
    flag = DrainFlag("running", "PSU", "mia@desk", NOW - 60)
    card = make_card(free_gib=24)
    old = GpuCondition((CardCondition(0, card.uuid, compute_cap="6.1"),))
    aged = host("ike", disk=[QWEN], gpu=GpuReading((card,), condition=old))
    catalog = Catalog((CatalogModel(QWEN, min_cc=(7, 5)),))
    machines = [
        host("ada", copy_of()),
        host("bora", disk=[QWEN], free=2, memory=None),
        host("cleo", disk=["qwen3:8b"]),
        host("dora", disk=[QWEN], maintenance=MaintenanceFlag("fan", "mia@desk", NOW - 60)),
        host("edda", disk=[QWEN], drain=flag),
        host("fips", disk=[QWEN], age_s=60.0),
        make_offline("gus"),
        make_pending("hal"),
        aged,
        host("jo", engines=(replace(make_engine(), state="down", error="refused"),)),
    ]
    made = plan(*machines, known=RouteKnowledge(catalog=catalog))
    line = only(made)
    assert (line.drain_class, line.cold_on) == ("last_copy", ("bora", "ike"))
    assert said(line) == {
        "bora": ("gpu_unknown",), "cleo": ("not_installed",), "dora": ("maintenance",), "edda": ("draining",),
        "fips": ("stale",), "gus": ("offline",), "hal": ("not_approved",), "ike": ("cc",),
        "jo": ("engine_down",),
    }  # fmt: skip
    assert [item.machine for item in made.excluded] == ["dora", "edda", "fips", "gus", "hal", "jo"]
    assert made.refused(DrainOptions()) == (line,)


def test_a_drained_or_cancelled_machine_is_no_target_in_any_state() -> None:
    for state in ("planned", "running", "blocked", "failed", "cancelled", "drained"):
        flag = DrainFlag(state, "PSU", "mia@desk", NOW - 60)  # type: ignore[arg-type]
        line = only(plan(host("ada", copy_of()), host("bora", disk=[QWEN], drain=flag)))
        assert said(line) == {"bora": ("drained" if state == "drained" else "draining",)}


def test_only_the_named_targets_take_loads_but_any_peer_covers() -> None:
    options = DrainOptions(targets=("cleo",))
    ada = host("ada", copy_of())
    assert (
        target_of(
            only(plan(ada, host("bora", disk=[QWEN], gpus=2), host("cleo", disk=[QWEN]), options=options))
        )
        == "cleo"
    )
    assert only(plan(ada, host("bora", copy_of()), host("cleo"), options=options)).drain_class == "covered"


def test_a_source_that_nobody_can_read_is_told() -> None:
    made = plan(replace(host("ada", copy_of()), health="offline"), host("bora", disk=[QWEN]))
    assert made.problem.startswith("offline")
    silent = replace(make_engine(), loaded=Unknown("busy"), state="unauthorized")
    made = plan(host("ada", engines=(silent,)), host("bora"))
    assert "Ollama on port 11434: login needed" in made.problem


def test_an_engine_that_says_nothing_may_hold_anything() -> None:
    """Its port is open, or it was never heard: that is no empty machine."""
    ada = host("ada")
    down = replace(ada.engines[0], state="down", error="no answer within 4 s", loaded=Unknown("down"))
    mute = replace(ada, engines=(down,), sockets=SocketsReading((ListeningPort(11434, False),)))
    assert plan(mute).problem == "Ollama on port 11434 does not answer: no answer within 4 s"
    assert plan(replace(mute, sockets=SocketsReading(()))).problem == "", "nothing listens there"
    unheard = replace(ada, sources={**ada.sources, "vllm:8000": SourceStatus("late", error="no answer yet")})
    assert plan(unheard).problem == "vLLM on port 8000 has not answered (no answer yet)"
    listed = replace(unheard, sources={**unheard.sources, "processes": SourceStatus("ok")})
    assert what_holds(listed) == f"{plan(unheard).problem}, so what it holds is not known"


# Engines that load nothing on request


def vllm(name: str, context: int = 32768, stop: str | None = None, **changes: Any) -> MachineSnapshot:
    """A machine with a vLLM on port 8001."""
    machine = make_machine(name, gpus=1, engines=(EngineEndpoint("vllm", 8001, stop=stop),))
    copy = LoadedModel(VLLM_ID, "vllm", context=context)
    engine = make_engine(loaded=[copy], installed=[], kind="vllm", port=8001)
    return make_snapshot(name, machine=machine, cards=[make_card(free_gib=1)], engines=(engine,), **changes)


def test_a_vllm_without_commands_is_unmanaged_and_says_what_is_missing() -> None:
    process = make_process(name="python3", command=f"vllm serve {VLLM_ID} --port 8001", user="mia")
    line = only(plan(vllm("ada", processes=[process]), host("bora")))
    assert line.drain_class == "unmanaged"
    assert line.text == (
        "vLLM on port 8001 was started outside (pid 4242 of mia: vllm serve Qwen/Qwen2-VL-7B --port 8001) "
        "and has no call that unloads; missing: `stop:` of that engine in machines/ada.yaml; "
        'stays, blocks "drained"'
    )  # fmt: skip


def test_another_vllm_with_the_same_id_and_no_shorter_limit_covers_it() -> None:
    line = only(plan(vllm("ada"), vllm("bora")))
    assert (line.drain_class, target_of(line)) == ("covered", "bora")
    assert "also on bora (same name); it stays up without requests" in line.text
    assert only(plan(vllm("ada"), vllm("bora", context=8192))).drain_class == "unmanaged"


def test_a_vllm_with_a_stop_command_is_covered_by_a_peer_and_lost_without_one() -> None:
    ada = vllm("ada", stop="docker stop vllm")
    assert only(plan(ada, vllm("bora"))).text == "also on bora (same name)"
    line = only(plan(ada, vllm("bora", context=8192), host("cleo", disk=[QWEN])))
    assert (line.drain_class, said(line)) == (
        "cannot", {"bora": ("ctx",), "cleo": ("not_installed",)},
    )  # fmt: skip
    assert line.rejected[0].text == "ctx: vLLM serves it with 8192 there, 32768 here"
    assert line.text == "nobody else serves it, and nothing loads it elsewhere on request"


def test_gpu_processes_of_nobody_we_ask_are_listed_once_each() -> None:
    train = [
        make_process(index, pid=99, name="python3", command="python3 train.py", user="mia")
        for index in (0, 1)
    ]
    sglang = make_process(0, pid=7, name="python3", command="python3 -m sglang.launch_server", user="root")
    ada = host("ada", gpus=2, processes=[*train, sglang], found=(FoundEngine("sglang", 30000, True),))
    made = plan(ada, host("bora"))
    assert [(line.drain_class, line.copy.engine, line.copy.name) for line in made.copies] == [
        ("unmanaged", "process", "python3 (pid 99)"), ("unmanaged", "process", "sglang:30000 (pid 7)"),
    ]  # fmt: skip
    assert "pid 99 of mia: python3 train.py" in made.copies[0].text
    assert "add sglang:30000 to `engines:` of machines/ada.yaml" in made.copies[1].text


def router(
    name: str, *loaded: str, disk: Sequence[str] = (), free: float = 24.0, **changes: Any
) -> MachineSnapshot:
    """A llama.cpp server in router mode."""
    copies = [LoadedModel(item, "llamacpp") for item in loaded]
    files = [InstalledModel(item, "llamacpp") for item in (*loaded, *disk)]
    engine = make_engine(
        loaded=copies, installed=files, kind="llamacpp", port=8080, traits=EngineTraits(is_router=True)
    )
    machine = make_machine(name, gpus=1, engines=(EngineEndpoint("llamacpp", 8080),))
    return make_snapshot(
        name, machine=machine, cards=[make_card(free_gib=free)], engines=(engine,), **changes
    )


def test_a_llamacpp_router_moves_what_another_router_has() -> None:
    known = RouteKnowledge(catalog=Catalog((CatalogModel("gemma", vram_gib=8.0),)))
    line = only(plan(router("ada", "gemma"), router("bora", disk=["gemma"]), known=known))
    assert (line.drain_class, target_of(line)) == ("move", "bora")
    line = only(plan(router("ada", "gemma"), router("bora", disk=["gemma"])))
    assert "need not known" in line.rejected[0].text
    process = make_process(gib=6, name="llama-server", command="llama-server --model gemma.gguf", user="mia")
    line = only(plan(router("ada", "gemma", processes=[process]), router("bora", disk=["gemma"])))
    assert (line.drain_class, line.target is not None and line.target.need is not None) == ("move", True)


# Several at once


def test_two_machines_are_planned_as_one() -> None:
    fleet = make_fleet(
        host("ada", copy_of(gib=12)), host("bora", copy_of(LLAMA, gib=12), disk=[QWEN]),
        host("cleo", disk=[QWEN, LLAMA]), host("dora", disk=[QWEN]),
    )  # fmt: skip
    first, second = plan_drains(fleet, ["ada", "bora"], NOTHING_KNOWN, DrainOptions(), NOW)
    assert target_of(only(first)) == "dora"
    assert target_of(only(second)) == "cleo"
    assert [(item.machine, item.codes) for item in first.excluded] == [("bora", ("draining",))]


def test_the_same_weights_on_both_are_moved_once() -> None:
    fleet = make_fleet(
        host("ada", copy_of(context=4096)), host("bora", copy_of()), host("cleo", disk=[QWEN])
    )  # fmt: skip
    first, second = plan_drains(fleet, ["ada", "bora"], NOTHING_KNOWN, DrainOptions(), NOW)
    assert (only(second).drain_class, target_of(only(second))) == ("move", "cleo")
    line = only(first)
    assert (line.drain_class, target_of(line), line.follows) == ("covered", "cleo", "bora")
    assert line.text == "will be on cleo, moved from bora"
    assert (first.load_bytes, second.load_bytes) == (0, 10 * GIB)


# Order, keep, re-planning


def test_the_only_copies_in_use_go_first_then_the_large_ones_and_what_stays_comes_last() -> None:
    ada = host(
        "ada", copy_of("old:1b", gib=9), copy_of("used:1b", gib=2), copy_of("large:1b", gib=4),
        copy_of("covered:1b", gib=1), copy_of("lost:1b", gib=1),
    )  # fmt: skip
    engine = replace(ada.engines[0], uses=(CopyUse("old:1b", NOW - 9000),))
    disk = ["old:1b", "used:1b", "large:1b"]
    made = plan(
        replace(ada, engines=(engine,)), host("bora", copy_of("covered:1b", gib=1), disk=disk, gpus=2)
    )
    assert [line.copy.name for line in made.copies] == [
        "covered:1b",
        "large:1b",
        "used:1b",
        "old:1b",
        "lost:1b",
    ]


def kept(count: int) -> RouteKnowledge:
    return RouteKnowledge(catalog=Catalog((CatalogModel("qwen", names=(("ollama", (QWEN,)),), keep=count),)))


def test_keep_asks_for_another_copy_before_a_covered_one_goes() -> None:
    ada, bora, cleo = host("ada", copy_of()), host("bora", copy_of()), host("cleo", disk=[QWEN])
    line = only(plan(ada, bora, cleo, known=kept(1)))
    assert (line.drain_class, line.keep) == ("covered", 1)
    line = only(plan(ada, bora, cleo, known=kept(2)))
    assert (line.drain_class, target_of(line), line.keep) == ("move", "cleo", 2)
    line = only(plan(ada, bora, known=kept(2)))
    assert line.drain_class == "covered"
    assert "keep: 2 in the catalog, 1 more must be resident elsewhere" in line.text


def test_a_copy_that_the_catalog_wants_kept_is_no_victim() -> None:
    known = RouteKnowledge(catalog=Catalog((CatalogModel(PHI, keep=1),)))
    bora = host("bora", idle_phi(), disk=[QWEN], free=9)
    assert only(plan(host("ada", copy_of()), bora, known=known)).drain_class == "last_copy"
    again = host("cleo", idle_phi(), disk=[QWEN], free=9)
    assert target_of(only(plan(host("ada", copy_of()), bora, again, known=known))) == "cleo"


def test_resident_copies_are_counted_on_machines_in_service() -> None:
    flag = MaintenanceFlag("fan", "mia@desk", NOW - 60)
    fleet = make_fleet(
        host("ada", copy_of()), host("bora", copy_of()), host("cleo", copy_of(), maintenance=flag),
        host("dora", copy_of(state="loading")),
    )  # fmt: skip
    (made,) = plan_drains(fleet, ["ada"], NOTHING_KNOWN, DrainOptions(), NOW)
    assert count_resident(fleet, only(made).copy, Catalog()) == 1


def test_a_copy_is_planned_anew_without_the_machines_that_failed_and_beside_what_is_on_its_way() -> None:
    ada = host("ada", copy_of(gib=12), copy_of(LLAMA, gib=12))
    fleet = make_fleet(
        ada, host("bora", disk=[QWEN, LLAMA]), host("cleo", disk=[QWEN, LLAMA]), host("dora", disk=[QWEN])
    )
    (made,) = plan_drains(fleet, ["ada"], NOTHING_KNOWN, DrainOptions(), NOW)
    second, first = made.copies
    assert first.copy.name == QWEN
    options = DrainOptions()
    again = plan_copy(fleet, first.copy, NOTHING_KNOWN, options, NOW)
    assert again.drain_class == "move"
    failed = frozenset({target_of(first)})
    other = plan_copy(fleet, first.copy, NOTHING_KNOWN, options, NOW, failed, planned=made.copies)
    assert target_of(other) not in (target_of(first), target_of(second))
    nowhere = plan_copy(fleet, first.copy, NOTHING_KNOWN, options, NOW, frozenset({"bora", "cleo", "dora"}))
    assert nowhere.drain_class == "last_copy"
    assert {item.codes for item in nowhere.rejected} == {("excluded",)}


def test_what_was_moved_before_is_no_victim_when_another_is_planned_anew() -> None:
    ada = host("ada", copy_of(gib=12), copy_of(LLAMA, gib=12))
    fleet = make_fleet(ada, host("bora", disk=[QWEN, LLAMA]), host("cleo", disk=[LLAMA], free=2))
    (made,) = plan_drains(fleet, ["ada"], NOTHING_KNOWN, DrainOptions(), NOW)
    moved, other = made.copies
    assert target_of(moved) == "bora"
    there = host("bora", copy_of(moved.copy.name, gib=12), disk=[QWEN, LLAMA], free=11.5)
    later = make_fleet(ada, there, host("cleo", disk=[LLAMA], free=2))
    again = plan_copy(later, other.copy, NOTHING_KNOWN, DrainOptions(), NOW)
    assert again.drain_class == "move_evicts"  # for nobody said who serves what
    again = plan_copy(later, other.copy, NOTHING_KNOWN, DrainOptions(), NOW, relied_on=[moved])
    assert again.is_lost
