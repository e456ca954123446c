"""JSON as lines: the text of the command line, a path for each line, marks where something was found."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleettui.cli.output import encode_json
from fleettui.model.written import read_float
from fleettui.view.cells import Cell, text_of
from fleettui.view.find import mark_cells, pattern_of
from fleettui.view.json_lines import json_lines, json_text

DOCUMENT: dict[str, Any] = {
    "name": "ada",
    "age_s": 1.0,
    "version": read_float("1.10"),
    "error": None,
    "tags": [],
    "gpu": [{"index": 0, "notes": ["a: b", 'say "x", then']}, {"index": 1, "ok": True}],
    "odd key": {"x": {}},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


def test_the_text_is_that_of_the_command_line() -> None:
    text = json_text(DOCUMENT)
    assert text == encode_json(DOCUMENT)
    assert "\n".join(line.text for line in json_lines(text)) == text
    assert '"version": 1.10,' in text


def test_each_line_has_its_path() -> None:
    paths = {line.text.strip(): line.path for line in json_lines(json_text(DOCUMENT))}
    assert paths['"name": "ada",'] == ".name"
    assert paths['"index": 1,'] == ".gpu[1].index"
    assert paths['"a: b",'] == ".gpu[0].notes[0]"
    assert paths['"x": {}'] == '.["odd key"].x'
    lines = json_lines(json_text(DOCUMENT))
    assert (lines[0].path, lines[-1].path) == (".", ".")


def test_keys_stay_when_other_lines_come() -> None:
    more = {**DOCUMENT, "tags": ["lab", "edge"]}
    before = {line.key: line.text.rstrip(",") for line in json_lines(json_text(DOCUMENT))}
    after = {line.key: line.text.rstrip(",") for line in json_lines(json_text(more))}
    changed = {key for key in before if after.get(key) != before[key]}
    assert changed == {".tags"}


def test_tones() -> None:
    (line,) = (line for line in json_lines(json_text(DOCUMENT)) if ".error" in line.key)
    assert line.cells == (
        Cell("   "), Cell('"error"', "accent"), Cell(": ", "dim"), Cell("null", "dim"), Cell(",", "dim")
    )  # fmt: skip


@given(JSON)
def test_any_document(document: Any) -> None:
    lines = json_lines(json_text(document))
    assert json.loads("\n".join(line.text for line in lines)) == document
    assert len({line.key for line in lines}) == len(lines) or _has_odd_names(document)
    for line in lines:
        assert text_of(line.cells).isprintable()
        assert len(text_of(line.cells)) == len(line.text) + 1


def _has_odd_names(document: Any) -> bool:
    """Names that look like steps of a path may make two paths alike."""
    if isinstance(document, dict):
        return any(not name.isidentifier() or not name.isascii() for name in document) or any(
            _has_odd_names(item) for item in document.values()
        )
    return isinstance(document, list) and any(_has_odd_names(item) for item in document)


def test_what_is_found_is_marked_across_cells() -> None:
    cells = (Cell('"gpu"', "accent"), Cell(": "), Cell("GPU-0, gpu"))
    assert mark_cells(cells, pattern_of("gpu")) == (
        Cell('"', "accent"), Cell("gpu", "match"), Cell('"', "accent"), Cell(": "),
        Cell("GPU", "match"), Cell("-0, "), Cell("gpu", "match"),
    )  # fmt: skip
    assert mark_cells(cells, pattern_of('": G')) == (
        Cell('"gpu', "accent"), Cell('"', "match"), Cell(": ", "match"), Cell("G", "match"),
        Cell("PU-0, gpu"),
    )  # fmt: skip
    assert mark_cells(cells, pattern_of("none")) == cells
    assert mark_cells(cells, pattern_of("g.u")) == cells, "a text, no pattern"


@given(st.lists(st.text(max_size=5), max_size=5), st.text(max_size=3))
def test_marking_never_changes_the_text(parts: list[str], needle: str) -> None:
    cells = tuple(Cell(part) for part in parts)
    assert text_of(mark_cells(cells, pattern_of(needle))) == text_of(cells)
