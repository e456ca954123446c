"""Sparklines: exact signs, gaps, scales, both sets, and any values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.cells import text_of
from fleettui.view.glyphs import ASCII, UNICODE, Glyphs
from fleettui.view.sparkline import (
    ASCII_MARKS,
    BLOCKS,
    GAP,
    Scale,
    braille_rows,
    graph_rows,
    marks_of,
    spark_cells,
    spark_text,
    values_in,
)
from fleettui.view.text import cell_width

NONE = Unknown("no sample")
LIMITS = (10.0, 75.0)


def test_eighths_of_the_scale() -> None:
    assert spark_text([0, 12, 13, 25, 38, 50, 63, 75, 88, 100], 10) == "▁▁▂▃▄▅▆▇██"


def test_the_newest_value_is_at_the_right_and_fewer_values_leave_blanks() -> None:
    assert spark_text([0, 50, 100], 2) == "▅█"
    assert spark_text([0, 100], 5) == "   ▁█"
    assert spark_text([0, 100], 0) == ""
    assert spark_text([], 3) == "   "


def test_a_gap_is_a_blank_and_a_real_zero_is_not() -> None:
    assert spark_text([0, NONE, 0, float("nan"), float("inf"), 0], 6) == "▁ ▁  ▁"


def test_beyond_the_scale_is_at_its_end() -> None:
    assert spark_text([-5, 250], 2) == "▁█"
    assert spark_text([30, 60, 90], 3, Scale(30, 90)) == "▁▅█"
    assert spark_text([7, 7], 2, Scale(5, 5)) == "▁▁"


def test_ascii_has_the_same_levels() -> None:
    values = [0, 20, 40, 60, 80, 100, NONE]
    assert marks_of(ASCII) == ASCII_MARKS
    assert marks_of(UNICODE) == BLOCKS
    text = spark_text(values, 7, marks=ASCII_MARKS)
    assert text.isascii()
    assert text.translate(str.maketrans(ASCII_MARKS, BLOCKS)) == spark_text(values, 7)


def test_braille_has_two_values_a_column_and_four_levels_a_row() -> None:
    assert braille_rows([0, 100], 1, 1) == ("⣸",)
    assert braille_rows([0, 30, 60, 99], 2, 1) == ("⣠⣾",)
    assert braille_rows([NONE, 0], 1, 1) == ("⢀",)
    assert braille_rows([100, 100, 0, 50], 2) == ("⣿⢀", "⣿⣸")
    assert braille_rows([], 2) == ("⠀⠀", "⠀⠀")
    assert braille_rows([5], 0) == ("", "")


def test_an_ascii_graph() -> None:
    assert graph_rows([0, 25, 50, 75, 100, NONE], 6, 2, ASCII) == ("  .:| ", ".:||| ")
    assert graph_rows([0, 100], 1, 1, UNICODE) == ("⣸",)
    assert values_in(10, UNICODE) == 20
    assert values_in(10, ASCII) == 10


def test_runs_of_one_tone_are_one_cell_and_gaps_break_none() -> None:
    cells = spark_cells([5, NONE, 6, 50, 90, 91], 7, LIMITS, UNICODE)
    assert [(cell.text, cell.tone) for cell in cells] == [
        (" ▁ ▁", "bar_good"), ("▅", "bar_warn"), ("██", "bar_bad")
    ]  # fmt: skip
    assert [cell.tone for cell in spark_cells([5, 90], 2, LIMITS, UNICODE, is_dim=True)] == ["bar_dim"]
    assert text_of(spark_cells([NONE], 3, LIMITS, ASCII)) == "   "
    assert spark_cells([5], 0, LIMITS, UNICODE) == ()


VALUES = st.lists(
    st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.integers(-10, 200), st.just(NONE)),
    max_size=40,
)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@given(values=VALUES, width=st.integers(0, 30), height=st.integers(1, 4))
def test_any_values_fill_exactly_the_width(
    glyphs: Glyphs, values: list[Maybe[float]], width: int, height: int
) -> None:
    text = spark_text(values, width, marks=marks_of(glyphs))
    assert cell_width(text) == width
    assert set(text) <= set(marks_of(glyphs)) | {GAP}
    rows = graph_rows(values, width, height, glyphs)
    assert [cell_width(row) for row in rows] == [width] * height
    assert text_of(spark_cells(values, width, LIMITS, glyphs)) == text
    shown = values[-width:] if width else []
    gaps = [isinstance(value, Unknown) or value - value != 0 for value in shown]
    assert [sign == GAP for sign in text[width - len(shown) :]] == gaps


@given(st.lists(st.floats(0, 100), min_size=2, max_size=2))
def test_a_larger_value_never_has_a_lower_sign(pair: list[float]) -> None:
    low, high = sorted(pair)
    assert BLOCKS.index(spark_text([low], 1)) <= BLOCKS.index(spark_text([high], 1))
