"""Suggestions of the filter line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import make_fleet, make_machine, make_snapshot
from fleettui.view.filter_completion import MOST, complete, quoted, suggestions
from fleettui.view.filter_language import Filter, parse_filter
from sample_fleet import sample_fleet

FLEET = sample_fleet()


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("", ("name:", "free>")),
        ("fr", ("free>",)),
        ("ada fr", ("free>",)),
        ("ada|FR", ("free>",)),
        ("!hea", ("health:",)),
        ("ad", ("ada",)),
        ("health:", ("degraded", "healthy", "offline", "unhealthy", "unknown")),
        ("health!=de", ("degraded",)),
        ("health:healthy,off", ("offline",)),
        ("tag:", ("cpu", "gpu")),
        ("loaded~=llama", ("llama3.1:70b",)),
        ("free>", ("unknown",)),
        ("trust:key", ("key_changed",)),
    ],
)
def test_what_can_stand_next(text: str, some: tuple[str, ...]) -> None:
    assert set(some) <= set(suggestions(text, FLEET))


@pytest.mark.parametrize("text", ["note:'fan", "xyzzy", "health:nowhere"])
def test_nothing_is_suggested_where_nothing_fits(text: str) -> None:
    assert suggestions(text, FLEET) == ()


def test_values_that_begin_so_come_first_then_those_that_hold_it() -> None:
    found = suggestions("loaded:qwen", FLEET)
    assert found[:2] == ("qwen2.5:32b", "qwen3:8b")
    assert suggestions("health:healthy", FLEET) == ("healthy", "unhealthy")


def test_many_values_are_cut() -> None:
    fleet = make_fleet(*(make_snapshot(f"m{number}") for number in range(50)))
    assert len(suggestions("name:m", fleet)) == MOST
    assert suggestions("name:m", fleet)[:3] == ("m0", "m1", "m2")


@pytest.mark.parametrize(
    ("text", "suggestion", "line"),
    [
        ("ada fr", "free>", "ada free>"),
        ("!hea", "health:", "!health:"),
        ("health:healthy,off", "offline", "health:healthy,offline"),
        ("a|b tag!=g", "gpu", "a|b tag!=gpu"),
        ("", "free>", "free>"),
    ],
)
def test_the_last_piece_is_replaced(text: str, suggestion: str, line: str) -> None:
    assert complete(text, suggestion) == line


@given(st.text(min_size=1, max_size=20))
def test_a_suggested_value_is_read_back_as_it_is(value: str) -> None:
    fleet = make_fleet(make_snapshot(machine=make_machine("ada", tags=(value,))))
    for suggestion in suggestions("tag=", fleet):
        parsed = parse_filter(complete("tag=", suggestion))
        if not value.isprintable() or {'"', "'"} <= set(value):
            continue  # cannot be typed
        assert isinstance(parsed, Filter), suggestion
        assert len(parsed.select(fleet, 0.0)) == 1


@given(st.text(max_size=30))
def test_any_line_may_be_half_typed(text: str) -> None:
    for suggestion in suggestions(text, FLEET):
        assert complete(text, suggestion).endswith(suggestion)


def test_values_with_blanks_are_quoted() -> None:
    assert quoted("fan swap") == '"fan swap"'
    assert quoted('say "hi"') == "'say \"hi\"'"
    assert quoted("llama3.1:70b") == "llama3.1:70b"
