"""Width of text, numbers, bars and cells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.model.clock import hh_mm, iso_utc
from fleettui.model.unknown import Unknown
from fleettui.view import units
from fleettui.view.bars import DEFAULT_THRESHOLDS, bar_cells, bar_text, tone_for
from fleettui.view.cells import Cell, dimmed, fit_cells, text_of, width_of
from fleettui.view.completion import shared_start
from fleettui.view.glyphs import ASCII, UNICODE, glyphs_of
from fleettui.view.text import cell_width, clean, clip, fit, wrap


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("ada", 3),
        ("●", 1),
        ("日本", 4),
        ("ｆｕｌｌ", 8),
        ("e\u0301", 1),
        ("a\u200bb", 2),
        ("한글", 4),
        ("–", 1),
    ],
)
def test_cell_width(text: str, width: int) -> None:
    assert cell_width(text) == width


def test_clip_and_fit() -> None:
    assert clip("llama3.1:70b", 12) == "llama3.1:70b"
    assert clip("llama3.1:70b", 8) == "llama3.…"
    assert clip("日本語モデル", 6) == "日本 …"
    assert clip("abc", 1) == "…"
    assert clip("abc", 0) == ""
    assert fit("ab", 4) == "ab  "
    assert clean("a\x1b[31mb\nc\u202e") == "a [31mb c "


@given(st.text(max_size=30), st.integers(0, 40))
def test_fit_is_exactly_as_wide_as_asked(text: str, width: int) -> None:
    assert cell_width(fit(clean(text), width)) == width
    assert width_of(fit_cells((Cell(clean(text), "good"), Cell(clean(text[::-1]))), width)) == width


@given(st.text(max_size=80), st.integers(2, 30))
def test_wrap_loses_nothing_and_stays_within(text: str, width: int) -> None:
    lines = wrap(clean(text), width)
    assert all(cell_width(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(clean(text).split())


def test_cells_are_cut_across_runs() -> None:
    cells = (Cell("llama3.1:70b"), Cell(" 39.6", "dim"), Cell(" · ", "faint"), Cell("4m", "dim"))
    assert text_of(fit_cells(cells, 22)) == "llama3.1:70b 39.6 · 4m"
    assert text_of(fit_cells(cells, 21)) == "llama3.1:70b 39.6 · …"
    assert text_of(fit_cells(cells, 16)) == "llama3.1:70b 39…"
    assert text_of(fit_cells(cells, 5)) == "llam…"
    assert text_of(fit_cells(cells, 24, "right")) == "  llama3.1:70b 39.6 · 4m"
    assert dimmed((Cell("x", "bar_bad"), Cell("y", "good"))) == (Cell("x", "bar_dim"), Cell("y", "dim"))


def test_units() -> None:
    unknown = Unknown("[N/A]")
    assert [units.gib_text(v) for v in (0, 18637, 24564, unknown)] == ["0.0", "18.2", "24.0", "–"]
    assert [units.gib_short(v) for v in (18637, 102349, 124610, unknown)] == ["18.2", "100", "122", "–"]
    assert [units.kib_gib(v) for v in (4 << 20, 125 << 20, unknown)] == ["4.0", "125", "–"]
    assert [units.duration(v) for v in (0.9, 59.9, 60, 3599, 3600, 100_800, 86_400, 864_000)] == [
        "0s", "59s", "1m", "59m", "1h", "1d4h", "1d", "10d",
    ]  # fmt: skip
    assert [units.remaining(v) for v in (-5, 0.2, 37.4, 59.6, 240)] == ["0s", "1s", "38s", "1m", "4m"]
    assert [units.age(v) for v in (None, 3.7)] == ["–", "3s"]
    assert units.count(1, "copy", "copies") == "1 copy"
    assert units.count(0, "GPU") == "0 GPUs"
    assert [units.percent(unknown, 4), units.percent(12.4, 4), units.percent(12.4, 5)] == ["–", "12%", "12 %"]
    assert [units.celsius(41), units.watts(212.4), units.rate(1.1e6)] == ["41 °C", "212 W", "1.1 MB/s"]


@pytest.mark.parametrize(
    ("epoch", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399.9, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_796_047_392, "2026-11-30T14:03:12Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
    ],
)
def test_iso_utc(epoch: float, text: str) -> None:
    assert iso_utc(epoch) == text


def test_hh_mm_is_local_where_the_zone_is_known() -> None:
    assert hh_mm(1_796_047_392) == "14:03 UTC"
    assert hh_mm(1_796_047_392, 3600) == "15:03"
    assert hh_mm(1_796_047_392, -50_400) == "00:03"


@given(st.floats(0, 4e10, allow_nan=False))
def test_iso_utc_agrees_with_the_standard_library(epoch: float) -> None:
    import datetime

    expected = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)
    assert iso_utc(epoch) == expected.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_bars() -> None:
    assert bar_text(0, 4) == "    "
    assert bar_text(0.001, 4) == "▏   "
    assert bar_text(0.5, 4) == "██  "
    assert bar_text(0.53, 4) == "██▏ "
    assert bar_text(1, 4) == "████"
    assert bar_text(7, 4) == "████"
    assert bar_text(0.5, 4, ASCII.bar_parts) == "##  "
    assert text_of(bar_cells(0.5, 6, (70, 90), ASCII)) == "[##  ]"
    assert text_of(bar_cells(0.4, 7, (70, 90), UNICODE, UNICODE.card_bar_parts)) == "▕▄▄   ▏"
    assert text_of(bar_cells(0.5, 7, (70, 90), UNICODE, UNICODE.card_bar_parts)) == "▕▄▄▖  ▏"
    assert [cell.tone for cell in bar_cells(0.95, 6, (70, 90), UNICODE)] == ["faint", "bar_bad", "faint"]
    assert text_of(bar_cells(None, 6, (70, 90))) == "▕    ▏"
    assert width_of(bar_cells(0.3, 2, (70, 90))) == 2


@given(st.floats(-1, 2), st.integers(0, 60))
def test_a_bar_is_as_wide_as_asked(fraction: float, width: int) -> None:
    assert len(bar_text(fraction, width)) == width
    assert width_of(bar_cells(fraction, width, (70, 90))) == width


def test_thresholds() -> None:
    limits = DEFAULT_THRESHOLDS
    assert [tone_for(v, limits.memory) for v in (69.9, 70, 89.9, 90)] == ["good", "warn", "warn", "bad"]
    assert [tone_for(v, limits.utilisation) for v in (9, 10, 75)] == ["good", "warn", "bad"]
    assert [tone_for(v, limits.temperature) for v in (74, 75, 85)] == ["good", "warn", "bad"]
    assert tone_for(Unknown(), limits.memory) == "unknown"


def test_the_ascii_set_has_nothing_else() -> None:
    assert glyphs_of("ascii") is ASCII
    assert glyphs_of("unicode") is UNICODE
    for sign in (ASCII.healthy, ASCII.degraded, ASCII.flag, ASCII.ellipsis, *ASCII.bar_parts):
        assert sign.isascii()
    assert ASCII.plain("41 °C · 39.6 – …") == "41 C - 39.6 - ~"


@given(st.lists(st.text("abAB:-", max_size=4), max_size=4))
def test_a_completion_goes_as_far_as_all_words_agree(words: list[str]) -> None:
    start = shared_start(words)
    assert all(word.casefold().startswith(start.casefold()) for word in words)
    longer = words[0][: len(start) + 1] if words else ""
    assert longer == start or any(not word.casefold().startswith(longer.casefold()) for word in words)
