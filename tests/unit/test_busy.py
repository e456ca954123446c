"""Signs that an engine or one copy works, and how long ago a copy was used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from builders import NOW, make_card, make_copy, make_engine, make_process, make_snapshot
from fleettui.model.busy import BusySign, find_busy_signs, idle_s
from fleettui.model.gpu import BUSY_SAMPLES_KEPT, GpuCard, count_busy
from fleettui.model.readings import (
    CopyPlace,
    CopyUse,
    EngineLoad,
    EngineReading,
    EngineTraits,
    LoadedModel,
)
from fleettui.model.snapshot import MachineSnapshot, SourceStatus
from fleettui.model.sockets import ListeningPort, SocketsReading
from fleettui.model.unknown import Unknown
from fleettui.store.routing_part import decode_for_routing, encode_for_routing

COPY = make_copy("qwen3:8b", gib=6.0)


def snapshot_of(
    engine: EngineReading,
    *,
    port: ListeningPort | None = None,
    cards: Sequence[GpuCard] | None = None,
    read_s: float = 2.0,
    **changes: Any,
) -> MachineSnapshot:
    made = make_snapshot(cards=cards, engines=(engine,), **changes)
    if port is None:
        return made
    sources = {**made.sources, "sockets": SourceStatus("ok", read_at=NOW - read_s, since=NOW - 3600)}
    return replace(made, sockets=SocketsReading((ListeningPort(22, False, 3), port)), sources=sources)


def codes(snapshot: MachineSnapshot, copy: LoadedModel | None = COPY) -> list[str]:
    return [sign.code for sign in find_busy_signs(snapshot, snapshot.engines[0], copy, NOW)]


def idle(snapshot: MachineSnapshot) -> object:
    return idle_s(snapshot, snapshot.engines[0], COPY, NOW)


OLLAMA = make_engine(loaded=(COPY,))


def test_nothing_seen_is_no_sign_and_no_figure() -> None:
    snapshot = snapshot_of(OLLAMA)
    assert codes(snapshot) == []
    assert isinstance(idle(snapshot), Unknown)


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        (ListeningPort(11434, True, 0), []),
        (ListeningPort(11434, True, 1, ours=1), []),
        (ListeningPort(11434, True, 3, ours=1), ["connections"]),
        (ListeningPort(8000, True, 3), []),
    ],
)
def test_connections_beyond_our_own(port: ListeningPort, expected: list[str]) -> None:
    assert codes(snapshot_of(OLLAMA, port=port)) == expected


def test_which_sign_is_told_in_words() -> None:
    snapshot = snapshot_of(OLLAMA, port=ListeningPort(11434, True, 3, ours=1))
    signs = find_busy_signs(snapshot, OLLAMA, COPY, NOW)
    assert signs == (BusySign("connections", "2 connections to its port"),)


def test_old_counts_of_connections_say_nothing() -> None:
    port = ListeningPort(11434, True, 3)
    assert codes(snapshot_of(OLLAMA, port=port, read_s=31.0)) == []
    assert codes(replace(snapshot_of(OLLAMA, port=port), sources={})) == []


def on_cards(*cards: int) -> dict[str, Any]:
    return {"places": (CopyPlace(11434, "qwen3:8b", cards),)}


def busy_card(index: int, samples: int, percent: int = 97) -> GpuCard:
    return make_card(index, utilisation_percent=percent, busy_samples=samples)


def test_cards_of_the_copy_busy_in_two_samples() -> None:
    def with_samples(samples: int, *cards: int) -> list[str]:
        return codes(snapshot_of(OLLAMA, cards=[make_card(0), busy_card(1, samples)], **on_cards(*cards)))

    assert with_samples(1, 1) == []
    assert with_samples(2, 1) == ["gpu"]
    assert with_samples(2, 0, 1) == ["gpu"]
    assert with_samples(5, 0) == []  # another's card


def test_a_card_that_nothing_proves_to_be_the_copys_says_nothing() -> None:
    assert codes(snapshot_of(OLLAMA, cards=[busy_card(0, 5), busy_card(1, 5)], places=())) == []


def test_cards_that_the_tool_no_longer_answers_for() -> None:
    snapshot = snapshot_of(OLLAMA, cards=[busy_card(0, 5)], **on_cards(0))
    assert snapshot.gpu is not None
    assert codes(replace(snapshot, gpu=replace(snapshot.gpu, is_stale=True))) == []


def test_without_places_the_processes_tell() -> None:
    snapshot = snapshot_of(OLLAMA, cards=[busy_card(0, 2)], processes=[make_process(0, gib=6.4)])
    assert snapshot.places is None
    assert codes(snapshot) == ["gpu"]


def test_a_connection_kept_open_while_the_cards_rest_is_no_work() -> None:
    port = ListeningPort(11434, True, 2)
    resting = [make_card(0, utilisation_percent=0)]
    assert codes(snapshot_of(OLLAMA, port=port, cards=resting, **on_cards(0))) == []
    assert codes(snapshot_of(OLLAMA, port=port, cards=resting, places=())) == ["connections"]
    unread = [make_card(0, utilisation_percent=Unknown("[N/A]"))]
    assert codes(snapshot_of(OLLAMA, port=port, cards=unread, **on_cards(0))) == ["connections"]


def test_what_lies_partly_in_memory_works_without_the_cards() -> None:
    partly = make_copy("qwen3:8b", gib=6.0, vram_gib=2.0)
    snapshot = snapshot_of(
        make_engine(loaded=(partly,)),
        port=ListeningPort(11434, True, 2),
        cards=[make_card(0, utilisation_percent=0)],
        **on_cards(0),
    )
    assert codes(snapshot, partly) == ["connections"]


def used(age_s: float) -> EngineReading:
    return replace(OLLAMA, uses=(CopyUse("qwen3:8b", NOW - age_s),))


def test_a_use_a_moment_ago_is_a_sign_and_later_the_time_since() -> None:
    assert codes(snapshot_of(used(4.0))) == ["expiry"]
    assert idle(snapshot_of(used(4.0))) == 4.0
    assert codes(snapshot_of(used(11.0))) == []
    assert idle(snapshot_of(used(2460.0))) == 2460.0


def test_behind_a_sign_of_work_nobody_knows_the_idle_time() -> None:
    """A long request leaves no trace before it ends."""
    snapshot = snapshot_of(used(2460.0), cards=[busy_card(0, 2)], **on_cards(0))
    assert isinstance(idle(snapshot), Unknown)


def test_another_copy_of_the_engine_was_used() -> None:
    other = make_engine(loaded=(COPY, make_copy("b:1")), uses=(CopyUse("b:1", NOW - 2),))
    assert codes(snapshot_of(other)) == []
    assert codes(snapshot_of(other), None) == ["expiry"]


VLLM = make_engine(loaded=(make_copy("qwen3:8b", engine="vllm"),), kind="vllm", port=8000)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"running": 0, "waiting": 0}, []),
        ({"running": 2, "waiting": 0}, ["running"]),
        ({"running": 2, "waiting": 1}, ["running", "waiting"]),
        ({"running": 0, "waiting": 0, "load": EngineLoad(in_flight=1)}, ["running"]),
        ({"load": EngineLoad(in_flight=0), "traits": EngineTraits(counts_load=True)}, []),
        # vLLM's /load stays 0 unless it was told to count: connections are then the better sign.
        ({"load": EngineLoad(in_flight=0)}, ["connections"]),
        ({}, ["connections"]),
    ],
)
def test_engines_that_count_need_no_weak_signs(changes: dict[str, Any], expected: list[str]) -> None:
    snapshot = snapshot_of(replace(VLLM, **changes), port=ListeningPort(8000, True, 2))
    assert codes(snapshot) == expected


def test_a_working_copy_is_idle_since_no_time() -> None:
    engine = replace(VLLM, running=1, uses=(CopyUse("qwen3:8b", NOW - 50),))
    assert idle(snapshot_of(engine)) == 0.0
    assert idle(snapshot_of(replace(engine, running=0))) == 50.0


def test_busy_samples_are_counted_in_a_row() -> None:
    cards: tuple[GpuCard, ...] = ()
    seen = []
    for percent in (97, 19, 20, 97, Unknown("[N/A]"), 30, 30, 30, 30, 30, 30, 3):
        fresh = (make_card(0, utilisation_percent=percent), make_card(1))
        cards = count_busy(fresh, cards)
        seen.append(cards[0].busy_samples)
        assert cards[1] is fresh[1]
    assert seen == [1, 0, 1, 2, 0, 1, 2, 3, 4, 5, 6, 0]
    for _ in range(20):
        cards = count_busy((make_card(0, utilisation_percent=97),), cards)
    assert cards[0].busy_samples == BUSY_SAMPLES_KEPT == 15


def test_routing_keeps_all_of_it_through_the_state_database() -> None:
    engine = make_engine(
        loaded=(COPY,),
        uses=(CopyUse("qwen3:8b", NOW - 3),),
        load=EngineLoad(in_flight=2),
        traits=EngineTraits(slots=4, counts_load=True),
    )
    snapshot = snapshot_of(
        engine, port=ListeningPort(11434, True, 3, ours=1), cards=[busy_card(0, 2)], **on_cards(0)
    )
    told = decode_for_routing(encode_for_routing(snapshot))
    assert told is not None
    assert told.sockets == SocketsReading((ListeningPort(11434, True, 3, ours=1),))  # no other ports
    assert told.places == snapshot.places
    assert (told.engines[0].uses, told.engines[0].load) == (engine.uses, engine.load)
    assert told.engines[0].traits == engine.traits
    for item in (OLLAMA, used(4.0), engine):
        stored = replace(snapshot, engines=(item,))
        told = decode_for_routing(encode_for_routing(stored))
        assert told is not None
        assert find_busy_signs(told, told.engines[0], COPY, NOW) == find_busy_signs(stored, item, COPY, NOW)
        assert idle(told) == idle(stored)
