"""When copies were last used, from one reading of an engine to the next."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builders import NOW, make_copy, make_engine
from fleettui.decide.copy_uses import FOREVER_S, note_uses
from fleettui.fleet.engine_record import EngineRecord
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import CopyUse, EngineLoad, EngineReading
from fleettui.model.unknown import Unknown
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer

SAMPLES = Path(__file__).parents[1] / "fixtures/samples/ollama"
A = make_copy("a:1", expires_at=NOW + 200)


def ollama(*copies: Any, **changes: Any) -> EngineReading:
    return make_engine(loaded=copies, **changes)


def use_of(reading: EngineReading, name: str = "a:1") -> float | None:
    return next((use.used_at for use in reading.uses if use.name == name), None)


def test_a_first_look_tells_nothing_of_a_finite_copy() -> None:
    assert note_uses(ollama(A), None, NOW).uses == ()


def test_an_expiry_that_moved_tells_that_it_was_used() -> None:
    first = ollama(A)
    second = note_uses(ollama(replace(A, expires_at=NOW + 290)), first, NOW + 2, NOW)
    assert use_of(second) == NOW + 2
    third = note_uses(ollama(second.loaded[0]), second, NOW + 4, NOW + 2)  # type: ignore[index]
    assert use_of(third) == NOW + 2
    assert third.uses is second.uses


def test_a_shorter_keep_alive_moves_it_back() -> None:
    second = note_uses(ollama(replace(A, expires_at=NOW + 30)), ollama(A), NOW + 2, NOW)
    assert use_of(second) == NOW + 2


def test_a_clock_that_is_corrected_by_whole_seconds_is_no_use() -> None:
    assert note_uses(ollama(replace(A, expires_at=NOW + 201)), ollama(A), NOW + 2, NOW).uses == ()


def test_a_copy_that_was_not_there_was_loaded_for_a_request() -> None:
    assert use_of(note_uses(ollama(A), ollama(), NOW + 2, NOW)) == NOW + 2
    unread = replace(ollama(), loaded=Unknown("not read yet"))
    assert note_uses(ollama(A), unread, NOW + 2, NOW).uses == ()


def test_a_reload_with_another_context_is_a_use() -> None:
    assert use_of(note_uses(ollama(replace(A, context=4096)), ollama(A), NOW + 2, NOW)) == NOW + 2


def test_nobody_knows_when_in_an_hour_without_a_reading() -> None:
    before = ollama(A, uses=(CopyUse("a:1", NOW - 900),))
    assert note_uses(ollama(replace(A, expires_at=NOW + 9000)), before, NOW + 3600, NOW).uses == ()
    assert note_uses(ollama(A, make_copy("b:1")), before, NOW + 3600, NOW).uses == before.uses


@pytest.mark.parametrize(
    ("sample", "finished"),
    [
        ("01-ps-keep-alive-forever.json", "2026-08-13T19:03:02.075"),
        ("02-ps-cpu-only.json", "2026-05-30T15:56:27.081"),
    ],
)
def test_a_pinned_copy_tells_its_last_use_at_first_sight(sample: str, finished: str) -> None:
    record = EngineRecord(EngineEndpoint("ollama", 11434), (EngineEndpoint("ollama", 11434),))
    body = (SAMPLES / sample).read_bytes()
    record.take("/api/ps", HttpAnswer(200, (), body, NOW), "tunnel", NOW)
    assert record.reading is not None
    (use,) = record.reading.uses
    moment = datetime.fromisoformat(f"{finished}+00:00").replace(tzinfo=UTC)
    # From the time in the sample, less 106751 days 23:47:16.854775807.
    assert use.used_at == pytest.approx(moment.timestamp(), abs=0.01)


def test_a_pinned_copy_is_never_used_in_the_future() -> None:
    pinned = replace(A, is_pinned=True, expires_at=NOW + FOREVER_S + 3)
    assert use_of(note_uses(ollama(pinned), None, NOW)) == NOW


def test_uses_end_with_their_copies() -> None:
    before = ollama(A, uses=(CopyUse("a:1", NOW - 9),))
    assert note_uses(ollama(), before, NOW, NOW - 2).uses == ()
    down = replace(before, state="down", loaded=Unknown("refused"))
    assert note_uses(down, before, NOW, NOW - 2).uses == ()


def vllm(**changes: Any) -> EngineReading:
    return make_engine(loaded=(make_copy("a:1", engine="vllm"),), kind="vllm", **changes)


def test_of_an_engine_that_counts_requests() -> None:
    idle = vllm(running=0, waiting=0)
    assert note_uses(idle, vllm(), NOW, NOW - 2).uses == ()
    busy = note_uses(vllm(running=1, waiting=0), idle, NOW, NOW - 2)
    assert use_of(busy) == NOW
    again = note_uses(vllm(running=1, waiting=0), busy, NOW + 4, NOW + 2)
    assert again.uses is busy.uses  # within ten seconds it is no new reading
    ended = note_uses(vllm(running=0, waiting=0), again, NOW + 6, NOW + 4)
    assert use_of(ended) == NOW + 6
    assert use_of(note_uses(vllm(running=0, waiting=0), ended, NOW + 60, NOW + 58)) == NOW + 6


def test_tokens_between_two_looks_are_a_use() -> None:
    before = vllm(running=0, load=EngineLoad(generated_tokens=100))
    after = vllm(running=0, load=EngineLoad(generated_tokens=164))
    assert use_of(note_uses(after, before, NOW, NOW - 10)) == NOW
    assert note_uses(before, before, NOW, NOW - 10).uses == ()


def test_which_of_several_copies_worked_is_not_told() -> None:
    copies = (make_copy("a:1", engine="llamaswap"), make_copy("b:1", engine="llamaswap"))
    before = make_engine(loaded=copies, kind="llamaswap", running=0)
    assert note_uses(replace(before, running=3), before, NOW, NOW - 2).uses == ()


def test_the_record_follows_an_engine() -> None:
    endpoint = EngineEndpoint("ollama", 11434)
    record = EngineRecord(endpoint, (endpoint,))

    def take(path: str, document: object, at: float) -> tuple[CopyUse, ...]:
        record.take(path, HttpAnswer(200, (), json.dumps(document).encode(), at), "tunnel", at)
        assert record.reading is not None
        return record.reading.uses

    def ps(expires: str) -> object:
        return {"models": [{"name": "a:1", "size": 9, "size_vram": 9, "expires_at": expires}]}

    assert take("/api/ps", ps("2026-11-30T14:08:00Z"), NOW) == ()
    moved = take("/api/ps", ps("2026-11-30T14:08:14Z"), NOW + 2)
    assert moved == (CopyUse("a:1", NOW + 2),)
    assert take("/api/tags", {"models": []}, NOW + 3) is moved
    assert take("/api/ps", ps("2026-11-30T14:08:14Z"), NOW + 4) is moved
    for _ in range(3):
        record.take("/api/ps", HttpFailure("refused", "nothing listens"), "tunnel", NOW + 6)
    assert record.reading is not None
    assert record.reading.uses == ()
    assert take("/api/ps", ps("2026-11-30T14:09:00Z"), NOW + 8) == ()  # nobody saw it in between
