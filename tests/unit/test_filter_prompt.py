"""What stands around a filter: the hint above it, the line above the table, the header's arrow, the mark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.view.cells import Cell, text_of, width_of
from fleettui.view.filter_completion import begins_field, complete_line
from fleettui.view.filter_language import FilterError, parse_filter
from fleettui.view.filter_prompt import filter_hint
from fleettui.view.glyphs import ASCII, UNICODE
from fleettui.view.layout import header_cells, make_layout
from fleettui.view.list_state import list_state, no_match
from fleettui.view.sorting import SORTS, SortOrder, sort_named
from fleettui.view.tagging import tagged_cells
from sample_fleet import sample_fleet

FLEET = sample_fleet()
WIDE, INDENT = 120, 3
BY_NAME = SortOrder()


def hint(text: str, width: int = WIDE, *, is_final: bool = False) -> str:
    return text_of(filter_hint(text, FLEET, width, INDENT, is_final=is_final)).rstrip()


# The hint


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "name: host: role: tag:"),
        ("gp", "gpufree> gpu: gpus>"),
        ("free>", "free VRAM, all usable GPUs; with % its share  GiB: 24, 24GiB or 500MiB"),
        ("free>2", "GiB: 24"),
        ("gpus>", "how many GPUs  2"),
        ("health=", "degraded healthy offline"),
        ("health=heal", "healthy unhealthy"),
        ("xyzzy", "part of a name, of a tag or of a model"),
        ("note~=x", "reasons, reasons of flags"),
    ],
)
def test_what_can_stand_next(text: str, part: str) -> None:
    assert part in hint(text)


@pytest.mark.parametrize("text", ["free>", "health=heal", "tag:"])
def test_what_is_not_finished_is_a_mistake_with_enter(text: str) -> None:
    assert "▾" not in hint(text)
    if isinstance(parse_filter(text), FilterError):
        assert "▾" in hint(text, is_final=True)


def test_signs_stand_above_the_wrong_characters() -> None:
    said = hint("tag:edge fre>24 util<5")
    assert said == " " * (INDENT + 9) + "▾▾▾ there is no field fre: did you mean free?"


def test_the_sentence_goes_to_the_left_or_names_the_column_where_it_has_no_room() -> None:
    text = "tag:edge | role=gpu-host health!=healthy free>24 fre>1"
    said = hint(text, 70)
    assert said.endswith(" ▾▾▾")
    assert said.index("▾") == INDENT + text.index("fre>1")
    assert hint(text, 40).startswith(" column 50: there is no field fre")
    assert hint("fre>1", 20).startswith(" column 1: ")


@given(st.text(max_size=60), st.integers(1, 160), st.booleans())
def test_any_text_has_a_hint_within_its_line(text: str, width: int, is_final: bool) -> None:
    for glyphs in (UNICODE, ASCII):
        cells = filter_hint(text, FLEET, width, INDENT, glyphs, is_final=is_final)
        assert 0 < width_of(cells) <= width


# Completion of the whole line


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("", ""),
        ("fr", "free>"),
        ("gp", "gpu"),
        ("tag:edge hea", "tag:edge health:"),
        ("health:deg", "health:degraded"),
        ("health:healthy,off", "health:healthy,offline"),
        ("!hea", "!health:"),
        ("xyzzy", "xyzzy"),
        ("note:'fan", "note:'fan"),
        ("sp", "spark"),
    ],
)
def test_a_line_is_completed_as_far_as_all_agree(text: str, completed: str) -> None:
    assert complete_line(text, FLEET) == completed


@given(st.text(max_size=40))
def test_completion_only_adds(text: str) -> None:
    done = complete_line(text, FLEET)
    assert len(done) >= len(text)
    assert complete_line(done, FLEET) == done or len(complete_line(done, FLEET)) > len(done)


def test_what_may_become_a_field() -> None:
    assert begins_field("f")
    assert begins_field("tag:edge !FRE")
    assert not any(begins_field(text) for text in ("", "free>", "free>2", "xyzzy", "tag:f", "f "))


# The line above the table


def state(
    text: str = "", matching: int = 9, tagged: tuple[str, ...] = (), shown: tuple[str, ...] = (),
    order: SortOrder = BY_NAME, width: int = 100,
) -> str:  # fmt: skip
    return text_of(list_state(text, matching, 9, tagged, shown, order, make_layout(width))).rstrip()


def test_nothing_to_say() -> None:
    assert list_state("", 9, 9, (), (), SortOrder(), make_layout(100)) == ()


def test_filter_tags_and_a_sort_without_a_column() -> None:
    assert state("free>24", 3) == " filter free>24 · 3 of 9 machines"
    assert state(tagged=("ada", "bo"), shown=("ada", "bo")) == " 2 tagged"
    assert state("x", 1, ("ada", "bo"), ("bo",)) == " filter x · 1 of 9 machines · 2 tagged (1 not shown)"
    assert state(order=SortOrder("net", True)) == " by net MB/s ▾"
    assert state(order=SortOrder("vram", True)) == ""


@given(st.text(max_size=50), st.integers(1, 9), st.integers(10, 200), st.sampled_from(SORTS))
def test_it_is_as_wide_as_the_table_and_keeps_the_count(
    text: str, matching: int, width: int, sort: object
) -> None:
    order = SortOrder(sort.key, True)  # type: ignore[attr-defined]
    cells = list_state(text, matching, 9, ("ada",), (), order, make_layout(width))
    assert width_of(cells) == width
    if text and width > 40:
        assert f"{matching} of 9 machines" in text_of(cells)


def test_no_match_names_the_filter_and_the_way_out() -> None:
    assert text_of(no_match("free>999", 80)).rstrip() == "   no machine matches free>999  Esc shows all"
    assert width_of(no_match("x" * 300, 40)) == 40


# Header and mark


@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: sort.key)
@pytest.mark.parametrize("width", [24, 40, 53, 79, 80, 100, 140, 200])
def test_the_arrow_stands_in_the_column_of_the_sort_and_nothing_moves(sort: object, width: int) -> None:
    key: str = sort.key  # type: ignore[attr-defined]
    layout = make_layout(width, ["ada", "a-machine-of-a-long-name"])
    plain, sorted_by = text_of(header_cells(layout)), text_of(header_cells(layout, key, is_descending=True))
    assert len(sorted_by) == len(plain)
    found = sort_named(key)
    assert found is not None
    place = layout.place_of(found.column)
    assert sorted_by.count("▾") == (0 if place is None else 1)
    if place is not None:
        assert place.start <= sorted_by.index("▾") < place.start + place.width
        outside = sorted_by[: place.start] + sorted_by[place.start + place.width :]
        assert outside == plain[: place.start] + plain[place.start + place.width :]


@pytest.mark.parametrize(
    ("key", "width", "title"),
    [("vram", 100, "VRAM free ▴"), ("vram_used", 80, "VRAM used ▴"), ("gpu", 80, "GPU▴"),
     ("temp", 200, "temp ▴"), ("machine", 40, "machine ▴")],
)  # fmt: skip
def test_the_header_says_what_it_is_sorted_by(key: str, width: int, title: str) -> None:
    assert title in text_of(header_cells(make_layout(width), key))


def test_the_mark_takes_the_blank_margin_and_nothing_else() -> None:
    cells = (Cell(" ▸ ", "faint"), Cell("ada", "strong"))
    assert tagged_cells(cells, UNICODE) == (Cell("▌", "accent"), Cell("▸ ", "faint"), Cell("ada", "strong"))
    assert tagged_cells(cells, ASCII)[0] == Cell("+", "accent")
    assert tagged_cells((), UNICODE) == ()
    assert tagged_cells((Cell("ada"),), UNICODE) == (Cell("ada"),)
