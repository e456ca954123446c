"""Does a model fit on a machine: every verdict, with the numbers behind it."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import GIB, NOW, make_card, make_copy, make_engine, make_process, make_snapshot
from fleettui.decide.fit import Fit, find_place, judge_fit
from fleettui.decide.model_need import ContextUse, ModelFacts, ModelNeed
from fleettui.decide.room import CardRoom, IdleCopy, Room, find_room
from fleettui.model.fit_verdict import VERDICT_WORDS, VERDICTS
from fleettui.model.gpu import GpuFault, GpuReading, MigInstance
from fleettui.model.model_shape import AttentionShape, ModelShape, TensorSums
from fleettui.model.readings import MemoryReading
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown

USE = ContextUse(32768)
CODER = ModelFacts(
    ModelShape(
        architecture="qwen3moe",
        layers=48,
        embedding_length=2048,
        vocabulary=151936,
        attention=AttentionShape(heads=(32,), kv_heads=(4,), key_length=128, value_length=128),
        tensors=TensorSums(18 * GIB, has_output=True, count=579),
        capabilities=("completion",),
    ),
    18 * GIB,
)
"""Weights 18 + cache 3 GiB; 0.83 GiB more on each card: 21.8 GiB on one."""


def make_room(
    *free_gib: float, idle: tuple[IdleCopy, ...] = (), ram_gib: float | None = 64, **more: Any
) -> Room:
    ram = Unknown("main memory not read") if ram_gib is None else int(ram_gib * GIB)
    cards = tuple(CardRoom(index, int(gib * GIB)) for index, gib in enumerate(free_gib))
    return Room(cards, idle, ram, **{"has_other_models": bool(idle), **more})


def idle(name: str, gib: float, *cards: int) -> IdleCopy:
    """A copy; on the cards that are named, in equal parts."""
    parts = tuple((card, int(gib * GIB) // len(cards)) for card in cards)
    return IdleCopy(name, int(gib * GIB), parts)


@pytest.mark.parametrize(
    ("room", "verdict", "gpus", "evicted", "ram_gib"),
    [
        (make_room(24), "one_gpu", (0,), (), 0),
        (make_room(20, 24), "one_gpu", (1,), (), 0),
        (make_room(30, 24), "one_gpu", (0,), (), 0),
        (make_room(12, 16), "several_gpus", (0, 1), (), 0),
        (make_room(12, 8, 16), "several_gpus", (0, 2), (), 0),
        (make_room(9, 9, 9), "several_gpus", (0, 1, 2), (), 0),
        (make_room(10, idle=(idle("a", 6, 0), idle("b", 8, 0))), "evictions", (0,), ("a", "b"), 0),
        (make_room(10, idle=(idle("a", 14, 0), idle("b", 8, 0))), "evictions", (0,), ("a",), 0),
        (make_room(10, 2, idle=(idle("a", 20, 1),)), "evictions", (1,), ("a",), 0),
        (make_room(10, 2, idle=(idle("a", 20),)), "evictions", (0, 1), ("a",), 0),
        (make_room(10, 2, idle=(idle("a", 5, 1), idle("b", 20, 1))), "evictions", (1,), ("a", "b"), 0),
        (make_room(12), "cpu_offload", (0,), (), 9.8),
        (make_room(2, idle=(idle("a", 4, 0),)), "cpu_offload", (0,), ("a",), 15.8),
        (make_room(0.5), "cpu_offload", (), (), 21),
        (make_room(), "cpu_offload", (), (), 21),
        (make_room(2, ram_gib=10), "no", (), (), 19.8),
        (make_room(ram_gib=10), "no", (), (), 21),
        (make_room(2, ram_gib=None), "unknown", (), (), 19.8),
        (make_room(24, ram_gib=None), "one_gpu", (0,), (), 0),
    ],
)
def test_verdicts(
    room: Room, verdict: str, gpus: tuple[int, ...], evicted: tuple[str, ...], ram_gib: float
) -> None:
    fit = judge_fit(room, CODER, USE)
    assert (fit.verdict, fit.gpus, fit.evicted) == (verdict, gpus, evicted), fit.text
    assert fit.ram_bytes / GIB == pytest.approx(ram_gib, abs=0.05)


@pytest.mark.parametrize(
    ("room", "text"),
    [
        (make_room(24), "needs 21.8 GiB, 24.0 GiB on GPU 0"),
        (make_room(12, 16), "needs 23.1 GiB, 28.0 GiB on GPUs 0, 1"),
        (make_room(10, idle=(idle("a", 14, 0),)), "needs 21.8 GiB, 24.0 GiB on GPU 0 once a is evicted"),
        (make_room(12), "needs 21.8 GiB, 12.0 GiB VRAM free; 9.8 GiB for main memory, 64.0 free there"),
        (make_room(), "needs 21.8 GiB, no GPU; 21.0 GiB for main memory, 64.0 free there"),
        (
            make_room(2, ram_gib=None),
            "needs 21.8 GiB, 2.0 GiB VRAM free; 19.8 GiB for main memory: main memory not read",
        ),
    ],
)
def test_the_numbers_are_told(room: Room, text: str) -> None:
    assert judge_fit(room, CODER, USE).text == text


def test_each_card_needs_its_own_buffer_and_whole_layers() -> None:
    need = ModelNeed(20 * GIB, GIB, "tensors", "", layer_bytes=GIB // 2)

    def cards(*free_gib: float) -> tuple[CardRoom, ...]:
        return make_room(*free_gib).cards

    assert find_place(cards(20.9), need) is None
    assert find_place(cards(21), need) is not None
    assert find_place(cards(11.2, 11.2), need) is None, "20 + 2 buffers + half a layer"
    assert find_place(cards(11.25, 11.25), need) is not None
    assert find_place(cards(20.9, 0.9), need) is None, "a card without room for the buffer is no help"


def test_a_mig_instance_is_never_joined() -> None:
    parts = tuple(CardRoom(at, 12 * GIB, is_alone=True) for at in range(3))
    fit = judge_fit(Room(parts, ram_bytes=64 * GIB), CODER, USE)
    assert fit.verdict == "cpu_offload"
    assert fit.ram_bytes / GIB == pytest.approx(9.8, abs=0.05)


# -- beside it what Ollama predicts -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("room", "use", "note"),
    [
        (make_room(40), USE, ""),
        (make_room(24.3, idle=(idle("a", 4, 0),)), USE, "it evicts though it would fit"),
        (make_room(23, 23), USE, "it spreads over 2"),
        (make_room(22.2), USE, "less than Ollama's margin of 1 GiB"),
        (make_room(11, 13, idle=(idle("a", 4, 0),)), USE, "of what is free"),
        (make_room(12, 16, idle=(idle("a", 4, 0),)), USE, ""),
        (make_room(20, 5), USE, ""),
        (make_room(46, idle=(idle("a", 40, 0),)), ContextUse(131072, 4), ""),
        (make_room(69, idle=(idle("a", 40, 0),)), ContextUse(131072, 4), ""),
        (make_room(64, idle=(idle("a", 60, 0),)), ContextUse(131072, 4), "evicts only once loading fails"),
    ],
)
def test_where_ollama_does_something_else(room: Room, use: ContextUse, note: str) -> None:
    fit = judge_fit(room, CODER, use)
    assert len(fit.notes) == (1 if note else 0), fit
    assert note in " ".join(fit.notes)


def test_ollama_sees_room_where_there_is_none() -> None:
    """Its cache is half of the real one: at a long context it starts loading and fails."""
    fit = judge_fit(make_room(64, idle=(idle("a", 60, 0),)), CODER, ContextUse(131072, 4))
    assert fit.verdict == "evictions"
    assert not isinstance(fit.forecast, Unknown)
    assert fit.forecast.kv_bytes == 24 * GIB
    assert not isinstance(fit.need, Unknown)
    assert fit.need.kv_bytes == 48 * GIB


def test_the_forecast_stands_beside_every_verdict() -> None:
    fit = judge_fit(make_room(24), CODER, USE)
    assert not isinstance(fit.forecast, Unknown)
    assert fit.forecast.predicted_bytes == 18 * GIB + GIB * 3 // 2
    assert isinstance(judge_fit(make_room(), CODER, USE).forecast, Unknown)


def test_what_is_not_known_says_why() -> None:
    fit = judge_fit(Unknown("nvidia-smi hangs"), CODER, USE)
    assert (fit.verdict, fit.text) == ("unknown", "free VRAM not known: nvidia-smi hangs")
    fit = judge_fit(make_room(24), ModelFacts(), USE)
    assert (fit.verdict, fit.text) == ("unknown", "need not known: neither tensors nor file size are known")


def test_every_verdict_has_a_place_and_words() -> None:
    assert set(VERDICTS) == set(VERDICT_WORDS)
    assert all(VERDICT_WORDS.values())


# -- room of a machine --------------------------------------------------------------------------------


def room_of(snapshot: MachineSnapshot, **options: Any) -> Room:
    room = find_room(snapshot, **options)
    assert isinstance(room, Room), room
    return room


def free_of(room: Room) -> list[tuple[int, float]]:
    return [(card.index, card.free_bytes / GIB) for card in room.cards]


def test_cards_that_may_be_used() -> None:
    fault = GpuFault("00000000:03:00.0", "lost", "GPU is lost")
    snapshot = make_snapshot(
        cards=[make_card(0, free_gib=20), make_card(1, free_gib=None), make_card(2, fault=fault),
               make_card(3), make_card(4)],
        processes=[make_process(4, name="/usr/bin/vllm", command="vllm serve x")],
    )  # fmt: skip
    snapshot = replace(snapshot, machine=replace(snapshot.machine, disabled_gpus=(3,)))
    room = room_of(snapshot)
    assert free_of(room) == [(0, 20)]
    assert room.left_out == (
        "GPU 1: [N/A]",
        "GPU 2: GPU is lost",
        "GPU 3: disabled",
        "GPU 4: vLLM runs there",
    )
    assert room.ram_bytes == 90 * GIB
    assert judge_fit(room, CODER, USE).notes == room.left_out


def test_mig_counts_by_its_largest_instance() -> None:
    parts = tuple(
        MigInstance("3g.40gb", f"MIG-{at}", 40960, 0, free) for at, free in enumerate((10 * 1024, 30 * 1024))
    )
    room = room_of(make_snapshot(cards=[make_card(0, mig=parts, is_mig=True), make_card(1, free_gib=5)]))
    assert [(card.free_bytes / GIB, card.is_alone) for card in room.cards] == [(30, True), (5, False)]
    assert judge_fit(room, CODER, USE).gpus == (0,)


def test_unified_memory_counts_once_and_nothing_goes_beside_it() -> None:
    cards = [make_card(0, free_gib=None, total_gib=None, is_unified=True)] * 2
    room = room_of(make_snapshot(cards=cards, memory=MemoryReading(128 << 20, 20 << 20, 0, 0)))
    assert free_of(room) == [(0, 20)]
    assert room.ram_bytes == 0
    assert judge_fit(room, CODER, USE).verdict == "no"


def test_a_cpu_only_machine_has_no_cards() -> None:
    room = room_of(make_snapshot(gpus=0))
    assert (room.cards, room.total_vram_mib) == ((), 0)
    assert judge_fit(room, CODER, USE).verdict == "cpu_offload"


def test_no_free_vram_known_is_unknown() -> None:
    assert isinstance(find_room(make_snapshot(gpu=None)), Unknown)
    assert isinstance(find_room(make_snapshot(cards=[make_card(0, free_gib=None)])), Unknown)
    stale = GpuReading((make_card(0),), faults=(GpuFault(Unknown(), "lost", "GPU is lost"),), is_stale=True)
    found = find_room(make_snapshot(gpu=stale))
    assert isinstance(found, Unknown)
    assert found.reason == "GPU is lost"


def test_who_is_evicted_first() -> None:
    copies = [
        make_copy("pinned", gib=4, is_pinned=True, expires_at=NOW + 9e9),
        make_copy("late", gib=4, expires_at=NOW + 900),
        make_copy("b-soon", gib=4, expires_at=NOW + 60),
        make_copy("a-soon", gib=4, expires_at=NOW + 60),
        make_copy("works", gib=4, expires_at=NOW + 1),
        make_copy("in-ram", gib=4, vram_gib=0),
        make_copy("stops", gib=4, state="stopping"),
        make_copy("loads", gib=4, state="loading"),
    ]
    room = room_of(make_snapshot(loaded=copies), busy=frozenset({"works"}))
    assert [copy.name for copy in room.idle] == ["a-soon", "b-soon", "late", "pinned"]
    assert room.has_other_models


def test_copies_of_other_engines_are_not_evicted() -> None:
    engine = make_engine(loaded=[make_copy("m", engine="vllm")], kind="vllm", port=8000)
    room = room_of(make_snapshot(engines=(engine,)))
    assert (room.idle, room.has_other_models) == ((), False)


def test_where_a_copy_lies() -> None:
    copies = [make_copy("a", gib=12), make_copy("b", gib=20)]
    one = room_of(make_snapshot(cards=[make_card(0, free_gib=1)], loaded=copies[:1]))
    assert one.idle[0].by_card == ((0, 12 * GIB),)
    unproven = room_of(make_snapshot(loaded=copies))
    assert [copy.by_card for copy in unproven.idle] == [(), ()]
    proven = room_of(make_snapshot(loaded=copies, processes=[
        make_process(0, pid=1, gib=12.5), make_process(1, pid=2, gib=20.5),
    ]))  # fmt: skip
    assert [copy.by_card for copy in proven.idle] == [((0, 12.5 * GIB),), ((1, 20.5 * GIB),)]


def test_a_copy_that_is_loaded_anew_frees_its_own_room() -> None:
    copy = make_copy("coder", gib=22)
    snapshot = make_snapshot(cards=[make_card(0, free_gib=1)], loaded=[copy])
    room = room_of(snapshot, reloads="coder")
    assert free_of(room) == [(0, 23)]
    assert (room.idle, room.has_other_models) == ((), False)
    fit = judge_fit(room, CODER, USE)
    assert (fit.verdict, fit.evicted) == ("one_gpu", ())


# -- whatever the room --------------------------------------------------------------------------------

FREE = st.lists(st.tuples(st.integers(0, 30 * GIB), st.booleans()), max_size=4)
IDLE = st.lists(st.tuples(st.integers(1, 20 * GIB), st.none() | st.integers(0, 3)), max_size=3)


def room_from(free: list[tuple[int, bool]], copies: list[tuple[int, int | None]], ram: int | None) -> Room:
    return Room(
        tuple(CardRoom(at, size, alone) for at, (size, alone) in enumerate(free)),
        tuple(
            IdleCopy(str(at), size, () if card is None else ((card, size),))
            for at, (size, card) in enumerate(copies)
        ),
        Unknown("no") if ram is None else ram,
        bool(copies),
    )


@given(
    FREE, IDLE, st.none() | st.integers(0, 40 * GIB),
    st.lists(st.integers(0, 20 * GIB), min_size=4, max_size=4), st.integers(1, 200_000), st.integers(1, 4),
)  # fmt: skip
def test_more_free_vram_never_makes_it_worse(
    free: list[tuple[int, bool]],
    copies: list[Any],
    ram: int | None,
    more: list[int],
    context: int,
    parallel: int,
) -> None:
    use = ContextUse(context, parallel)
    before = judge_fit(room_from(free, copies, ram), CODER, use)
    larger = [(size + extra, alone) for (size, alone), extra in zip(free, more, strict=False)]
    after = judge_fit(room_from(larger, copies, ram), CODER, use)
    assert VERDICTS.index(after.verdict) <= VERDICTS.index(before.verdict)
    assert len(after.evicted) <= len(before.evicted) or before.verdict == "cpu_offload"
    assert after.ram_bytes <= before.ram_bytes


@given(FREE, IDLE, st.none() | st.integers(0, 40 * GIB), st.integers(1, 200_000), st.integers(0, 200_000))
def test_a_longer_context_never_fits_better(
    free: list[tuple[int, bool]], copies: list[Any], ram: int | None, context: int, more: int
) -> None:
    room = room_from(free, copies, ram)
    short, long = (
        judge_fit(room, CODER, ContextUse(context)),
        judge_fit(room, CODER, ContextUse(context + more)),
    )
    assert VERDICTS.index(short.verdict) <= VERDICTS.index(long.verdict)


@given(FREE, IDLE, st.none() | st.integers(0, 40 * GIB))
def test_a_verdict_is_consistent(free: list[tuple[int, bool]], copies: list[Any], ram: int | None) -> None:
    room = room_from(free, copies, ram)
    fit: Fit = judge_fit(room, CODER, USE)
    assert set(fit.evicted) <= {copy.name for copy in room.idle}
    assert set(fit.gpus) <= {card.index for card in room.cards}
    assert (fit.ram_bytes > 0) == (fit.verdict in ("cpu_offload", "no", "unknown"))
    assert (len(fit.gpus) == 1) >= (fit.verdict == "one_gpu")
    assert fit.text.isprintable()
    assert fit == judge_fit(dataclasses.replace(room), CODER, USE)
