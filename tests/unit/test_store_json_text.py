"""The short way to read JSON gives what json gives: values, and what it says of a text that is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.model.written import WrittenNumber, read_float
from fleettui.store import json_text
from fleettui.store.json_text import read_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)


def told(read: Any, text: str | bytes, **options: Any) -> tuple[str, str]:
    """The value, or the kind of error with its words."""
    try:
        return "value", repr(read(text, **options))
    except (ValueError, TypeError, RecursionError) as error:
        return type(error).__name__, str(error)


@given(VALUES, st.booleans())
def test_every_value_comes_back(value: Any, is_ascii: bool) -> None:
    assert read_json(json.dumps(value, ensure_ascii=is_ascii)) == value


@given(VALUES, st.integers(0, 200), st.text(alphabet='[]{},:"\\ue0-.tfn1 ', max_size=4))
def test_a_damaged_text_ends_as_with_json(value: Any, at: int, put: str) -> None:
    whole = json.dumps(value)
    damaged = whole[:at] + put + whole[at + 2 :]
    assert told(read_json, damaged) == told(json.loads, damaged)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1,",
        '["a',
        '["\\x"]',
        '["\x01"]',
        "{,}",
        "[1] x",
        " [1] ",
        "\ufeff[1]",
        "NaN",
        "-",
        "[" * 100_000,
        b"[1]",
    ],
)
def test_odd_texts(text: str | bytes) -> None:
    assert told(read_json, text) == told(json.loads, text)


def test_hooks_are_asked() -> None:
    found = read_json(
        '{"a": {"b": 1.10}}', object_hook=lambda fields: [*fields.items()], parse_float=read_float
    )
    assert found == [("a", [("b", 1.1)])]
    assert isinstance(found[0][1][0][1], WrittenNumber)
    with pytest.raises(ValueError, match="no such tag"):
        read_json("{}", object_hook=refuse)


def test_without_the_c_scanner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "_make_scanner", None)
    assert read_json('{"a": [1, 2.5]}') == {"a": [1, 2.5]}


def refuse(_: object) -> object:
    raise ValueError("no such tag")
