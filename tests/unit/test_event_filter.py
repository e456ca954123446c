"""The filter of the timeline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.model.event import Event
from fleettui.view.event_filter import (
    EVERY_EVENT,
    MAX_LENGTH,
    EventFilter,
    complete_event_filter,
    parse_event_filter,
)
from fleettui.view.filter_language import FilterError

LOADED = Event(0, "bora", "loaded", "note", "qwen3:8b loaded (5.2 GiB)", {"model": "qwen3:8b"})
DOWN = Event(0, "ada", "engine_down", "bad", "ollama on 11434 does not answer", {"engine": "ollama"})
FLAG = Event(0, "ada", "maintenance", "note", "maintenance on: fan swap", {}, "Mia@jump")
UNSEEN = Event(0, "cleo", "unseen", "warn", "not watched", {"events": [{"model": "phi3:mini"}, {}]})
ALL = (LOADED, DOWN, FLAG, UNSEEN)


def chosen(text: str) -> tuple[Event, ...]:
    wanted = parse_event_filter(text)
    assert isinstance(wanted, EventFilter), wanted
    return tuple(event for event in ALL if wanted.matches(event))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ALL),
        ("  ", ALL),
        ("bora", (LOADED,)),
        ("BORA", (LOADED,)),
        ("qwen3:8b", (LOADED,)),
        ("ada answer", (DOWN,)),
        ("mia", (FLAG,)),
        ("!ada", (LOADED, UNSEEN)),
        ("kind:loaded", (LOADED,)),
        ("kind:engine", (DOWN,)),
        ("kind:loaded,maint", (LOADED, FLAG)),
        ("!kind:loaded", (DOWN, FLAG, UNSEEN)),
        ("KIND:Loaded", (LOADED,)),
        ("machine:ada", (DOWN, FLAG)),
        ("machine:ada,bora !severity:bad", (LOADED, FLAG)),
        ("severity:bad,warn", (DOWN, UNSEEN)),
        ("model:phi3", (UNSEEN,)),
        ("model:qwen,phi", (LOADED, UNSEEN)),
        ("by:mia", (FLAG,)),
        ('"fan swap"', (FLAG,)),
        ('"kind:loaded"', ()),
        ('"fan swap', (FLAG,)),
        ("http://x", ()),
    ],
)
def test_what_matches(text: str, expected: tuple[Event, ...]) -> None:
    assert chosen(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("kind:", 5, "takes one of health, offline"),
        ("ada by:", 7, "takes a value"),
        ("ada kind:helth", 4, "did you mean health?"),
        ("kind:zzz", 0, "known are health, "),
        ("severity:zzz", 0, "known are good, note, warn, bad"),
        ("kinds:loaded", 0, "did you mean kind:?"),
        ("ada ! bora", 4, "directly before"),
        ("x" * (MAX_LENGTH + 1), MAX_LENGTH, "at most"),
    ],
)
def test_what_is_wrong(text: str, column: int, said: str) -> None:
    error = parse_event_filter(text)
    assert isinstance(error, FilterError)
    assert error.column == column
    assert said in error.text


@given(st.text(max_size=80))
def test_any_line_is_read_or_refused(text: str) -> None:
    wanted = parse_event_filter(text)
    if isinstance(wanted, FilterError):
        assert wanted.length >= 1
        assert wanted.text.isprintable()
    else:
        for event in ALL:
            wanted.matches(event)
    assert complete_event_filter(text, ("ada", "bora")).startswith(text)


def test_nothing_asked_matches_everything() -> None:
    assert all(EVERY_EVENT.matches(event) for event in ALL)
    wanted = parse_event_filter("   ")
    assert isinstance(wanted, EventFilter)
    assert wanted.tests == ()


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("ki", "kind:"),
        ("kind:he", "kind:health"),
        ("ada kind:engine_u", "ada kind:engine_up"),
        ("kind:health,off", "kind:health,offline"),
        ("!kind:eng", "!kind:engine_"),
        ("machine:ad", "machine:ada"),
        ("machine:bora,a", "machine:bora,ada"),
        ("bo", "bora"),
        ("severity:w", "severity:warn"),
        ("nothing", "nothing"),
        ("", ""),
    ],
)
def test_completion(text: str, completed: str) -> None:
    assert complete_event_filter(text, ("ada", "bora")) == completed
