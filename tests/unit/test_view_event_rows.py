"""The timeline as rows of a list: order, days, columns, what is made when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import NOW  # 2026-11-30T14:03:12Z, a Monday
from fleettui.model.event import EVENT_KINDS, Event
from fleettui.view.cells import text_of, width_of
from fleettui.view.detail import detail_room
from fleettui.view.event_filter import parse_event_filter
from fleettui.view.event_rows import Timeline, event_detail, event_layout, header_of
from fleettui.view.filter_language import FilterError
from fleettui.view.glyphs import ASCII, UNICODE, Glyphs

DAY = 86_400
LOADED = Event(NOW - 60, "ada", "loaded", "note", "qwen3:8b loaded (5.2 GiB)", {"model": "qwen3:8b"})
OFFLINE = Event(NOW - 30, "bora", "offline", "bad", "offline: no answer", {"to": "offline"}, count=3)
FLAG = Event(NOW - DAY, "ada", "maintenance", "note", "maintenance on", by="mia@jump")


def rows(
    *events: Event,
    width: int = 80,
    offset: int | None = 0,
    names: tuple[str, ...] = ("ada", "bora"),
    wanted: str = "",
    machine: str | None = None,
    glyphs: Glyphs = UNICODE,
) -> list[str]:
    layout = event_layout(width, names, NOW, utc_offset_s=offset, glyphs=glyphs)
    chosen = parse_event_filter(wanted)
    assert not isinstance(chosen, FilterError)
    made = Timeline().rows_of(reversed(events), layout, chosen, machine)
    return [text_of(row.cells).rstrip() for row in made]


def test_newest_first_and_earlier_days_set_apart() -> None:
    assert rows(FLAG, LOADED, OFFLINE) == [
        " 14:02:42  bora     ✗ offline: no answer ×3",
        " 14:02:12  ada      + qwen3:8b loaded (5.2 GiB)",
        " yesterday, Sun 2026-11-29 " + "─" * 52,
        " 14:03:12  ada      ⚑ maintenance on by mia@jump",
    ]


def test_days_are_those_of_the_operators_clock() -> None:
    shown = rows(FLAG, LOADED, offset=12 * 3600)
    assert [line.split(" ─")[0] for line in shown if "─" in line] == [" yesterday, Mon 2026-11-30"]
    late = replace(LOADED, at=NOW + 11 * 3600)
    assert rows(late)[0].startswith(" Tue 2026-12-01 ─"), "a machine's clock of tomorrow has its day too"


def test_only_what_is_asked_for() -> None:
    assert rows(FLAG, LOADED, OFFLINE, wanted="kind:loaded") == [
        " 14:02:12  ada      + qwen3:8b loaded (5.2 GiB)"
    ]
    assert len(rows(FLAG, LOADED, OFFLINE, machine="ada", names=())) == 3
    assert rows(LOADED, machine="ada", names=()) == [" 14:02:12  + qwen3:8b loaded (5.2 GiB)"]


def test_a_wide_line_has_the_kind_a_narrow_one_short_times() -> None:
    assert rows(LOADED, width=120) == [" 14:02:12  ada      loaded       + qwen3:8b loaded (5.2 GiB)"]
    assert rows(LOADED, width=40) == [" 14:02 ada  + qwen3:8b loaded (5.2 GiB)"]
    layout = event_layout(120, ("ada", "bora"), NOW, utc_offset_s=0, glyphs=UNICODE)
    assert text_of(header_of(layout)).startswith(" time      machine  kind         what happened")
    unzoned = event_layout(120, ("ada",), NOW, utc_offset_s=None, glyphs=UNICODE)
    assert text_of(header_of(unzoned)).startswith(" UTC ")


@pytest.mark.parametrize("width", [10, 40, 59, 60, 80, 109, 110, 200])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_no_line_is_wider_than_asked(width: int, glyphs: Glyphs) -> None:
    layout = event_layout(width, ("a-machine-of-a-long-name",), NOW, utc_offset_s=0, glyphs=glyphs)
    for kind in EVENT_KINDS:
        event = Event(
            NOW - 9, "a-machine-of-a-long-name", kind, "warn", "wörd " * 60, {}, "mia@jump", count=12
        )
        (row,) = Timeline().rows_of([event], layout)
        if width >= 40:
            assert width_of(row.cells) <= width
        for height in (12, 24, 60):
            room = detail_room(height)
            detail = event_detail(event, NOW, layout, room)
            assert room.least <= len(detail) - room.has_rule <= room.most
            assert all(width_of(cells) <= max(width + 1, 12) for cells in detail)


def test_all_of_an_event() -> None:
    layout = event_layout(60, ("bora",), NOW, utc_offset_s=0, glyphs=UNICODE)
    event = replace(OFFLINE, text="offline: " + "very " * 20 + "long", by="mia", last_at=NOW - 12)
    lines = [text_of(cells).rstrip() for cells in event_detail(event, NOW, layout, detail_room(34))]
    assert lines[0] == "─" * 61
    assert lines[1] == " 2026-11-30 14:02:42  bora  offline · 12s ago · 3 times, la…"
    assert lines[2].startswith(" ✗ offline: very very")
    assert lines[4].endswith("long")
    assert len(lines) == 6, "the least, though nothing is left to say"
    cut = [text_of(cells) for cells in event_detail(event, NOW, layout, detail_room(8))]
    assert cut[1].endswith("…")


def test_rows_stay_the_same_objects_and_are_made_when_looked_at() -> None:
    layout = event_layout(80, ("ada",), NOW, utc_offset_s=0, glyphs=UNICODE)
    timeline = Timeline()
    before = timeline.rows_of([LOADED], layout)
    after = timeline.rows_of([OFFLINE, LOADED], layout)
    assert after[1] is before[0]
    assert after[1]._cells is None, "nobody looked"
    assert (timeline.total, timeline.shown) == (2, 2)


def test_a_repetition_keeps_its_key_and_twins_have_two() -> None:
    layout = event_layout(80, ("ada",), NOW, utc_offset_s=0, glyphs=UNICODE)
    timeline = Timeline()
    (once,) = timeline.rows_of([OFFLINE], layout)
    (again,) = timeline.rows_of([replace(OFFLINE, count=4, last_at=NOW)], layout)
    assert once.key == again.key
    assert text_of(again.cells).rstrip().endswith("×4")
    twins = timeline.rows_of([LOADED, replace(LOADED)], layout)
    assert len({row.key for row in twins}) == 2


def test_hostile_text_stays_on_its_line() -> None:
    bad = Event(NOW, "\x1b[2Ja", "loaded", "note", "x\x1b]0;t\x07\ny", {}, "w\x1b[0m\nho")
    layout = event_layout(80, (bad.machine,), NOW, utc_offset_s=0, glyphs=UNICODE)
    (row,) = Timeline().rows_of([bad], layout)
    shown = text_of(row.cells) + "".join(
        text_of(cells) for cells in event_detail(bad, NOW, layout, detail_room(24))
    )
    assert shown.isprintable()
