"""Copies against cards: notes of health, the Models tab, JSON."""

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
    make_process,
    make_snapshot,
)
from fleettui.decide.copy_notes import copy_notes
from fleettui.model.readings import CopyPlace, CopyUse, EngineLoad, EngineTraits, ModelTraits
from fleettui.model.snapshot import MachineSnapshot, SourceStatus
from fleettui.model.sockets import ListeningPort, SocketsReading
from fleettui.model.unknown import Unknown
from fleettui.view.document import infrastructure_document

NAME = "qwen3:8b"


def codes(snapshot: MachineSnapshot) -> list[str]:
    return [reason.code for reason in copy_notes(snapshot)]


def with_context(context: Any, longest: Any, **changes: Any) -> MachineSnapshot:
    copy = make_copy(NAME, gib=6.0, context=context)
    disk = replace(make_installed(NAME), traits=ModelTraits(max_context=longest), **changes)
    return make_snapshot(loaded=[copy], installed=[disk])


@pytest.mark.parametrize(
    ("context", "longest", "expected"),
    [
        (4096, 131072, ["copy_context"]),
        (4096, 16384, ["copy_context"]),
        (4096, 8192, []),
        (8192, 131072, []),
        (Unknown("not reported"), 131072, []),
        (4096, Unknown("not reported"), []),
    ],
)
def test_a_context_below_the_models_own(context: Any, longest: Any, expected: list[str]) -> None:
    assert codes(with_context(context, longest)) == expected


def test_the_context_of_other_weights_of_that_name_is_not_its_own() -> None:
    assert codes(with_context(4096, 131072, digest="f" * 64)) == []


def test_the_copys_own_word_counts_first() -> None:
    copy = make_copy(NAME, engine="llamacpp", context=4096, traits=ModelTraits(max_context=40960))
    engine = make_engine(loaded=[copy], installed=(), kind="llamacpp", port=8080)
    (reason,) = copy_notes(make_snapshot(engines=(engine,)))
    assert reason.text.startswith("qwen3:8b has context 4096, it was made for 40960")
    assert judged(make_snapshot(engines=(engine,))).health == "healthy"


def vllm_at_work(samples: int = 15, **changes: Any) -> MachineSnapshot:
    copy = make_copy("m", engine="vllm", gib=20.0)
    counts = {"running": 0, "waiting": 0} | changes
    engine = make_engine(loaded=[copy], kind="vllm", port=8000, **counts)
    return make_snapshot(
        cards=[make_card(0, utilisation_percent=99, busy_samples=samples, free_gib=2.0), make_card(1)],
        engines=(engine,),
        processes=[make_process(0, name="VLLM::EngineCore", command="VLLM::EngineCore")],
        places=(CopyPlace(8000, "m", (0,)),),
    )


def test_a_card_at_work_for_an_engine_that_says_nothing_runs() -> None:
    (reason,) = copy_notes(vllm_at_work())
    assert (reason.severity, reason.code) == ("note", "gpu_busy_idle_engine")
    assert reason.text.startswith("GPU 0 is busy although vLLM on port 8000 says that nothing runs")


@pytest.mark.parametrize(
    "snapshot",
    [
        vllm_at_work(14),
        vllm_at_work(running=1),
        vllm_at_work(waiting=1),
        vllm_at_work(running=Unknown("metrics off"), waiting=Unknown("metrics off")),
        vllm_at_work(load=EngineLoad(in_flight=2)),
        replace(vllm_at_work(), places=()),
        replace(vllm_at_work(), processes=None),
        replace(vllm_at_work(), sources={"gpu": SourceStatus("late", read_at=NOW - 60)}),
    ],
    ids=["too short", "running", "waiting", "not counted", "in flight", "not placed", "no processes", "late"],
)
def test_no_note_without_all_figures(snapshot: MachineSnapshot) -> None:
    assert codes(snapshot) == []


def test_somebody_else_on_the_card_may_be_why() -> None:
    snapshot = vllm_at_work()
    assert snapshot.processes is not None
    other = make_process(0, pid=77, gib=1.0, name="python3", command="python3 train.py")
    joined = replace(snapshot.processes, processes=(*snapshot.processes.processes, other))
    assert codes(replace(snapshot, processes=joined)) == []


def test_load_that_is_not_counted_claims_nothing() -> None:
    """vLLM's /load is 0 for ever without --enable-server-load-tracking."""
    unread = {"running": Unknown("no metrics"), "waiting": Unknown("no metrics")}
    silent = vllm_at_work(load=EngineLoad(in_flight=0), **unread)
    counting = vllm_at_work(load=EngineLoad(in_flight=0), traits=EngineTraits(counts_load=True), **unread)
    assert (codes(silent), codes(counting)) == ([], ["gpu_busy_idle_engine"])


def test_json_has_signs_idle_time_and_what_the_model_was_made_for() -> None:
    copies = [make_copy(NAME, gib=6.0), make_copy("b:1", gib=2.0)]
    disk = replace(make_installed(NAME), traits=ModelTraits(max_context=40960))
    snapshot = make_snapshot(
        loaded=copies,
        installed=[disk],
        sockets=SocketsReading((ListeningPort(11434, True, 3, ours=1),)),
    )
    sources = {**snapshot.sources, "sockets": SourceStatus("ok", read_at=NOW - 2)}
    engine = replace(snapshot.engines[0], uses=(CopyUse(NAME, NOW - 90),))
    told = replace(snapshot, sources=sources, engines=(engine,))
    document = infrastructure_document(make_fleet(told), NOW)["machines"][0]
    first, second = document["loaded"]
    assert (first["busy"], first["idle_s"]) == (["2 connections to its port"], None)
    assert (first["max_context"], second["max_context"]) == (40960, None)
    assert (document["engines"][0]["connections"], document["engines"][0]["loopback"]) == (2, True)
    quiet = replace(told, sources=snapshot.sources)
    document = infrastructure_document(make_fleet(quiet), NOW)["machines"][0]
    first, second = document["loaded"]
    assert (first["busy"], first["idle_s"], second["idle_s"]) == ([], 90.0, None)
    assert document["engines"][0]["connections"] is None
