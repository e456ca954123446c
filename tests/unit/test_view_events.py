"""Events as lines and as JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import NOW
from fleettui.model.event import EVENT_KINDS, Event
from fleettui.view.cells import text_of, width_of
from fleettui.view.event_document import event_document, events_document
from fleettui.view.event_lines import event_lines
from fleettui.view.glyphs import ASCII

DEGRADED = Event(
    NOW,
    "ada",
    "health",
    "warn",
    "healthy → degraded: disk / is 97 % full",
    {"from": "healthy", "to": "degraded", "reason": "disk / is 97 % full"},
)
BACK = Event(
    NOW + 60, "bora", "back", "good", "back after 1m, healthy", {"to": "healthy"}, count=3, last_at=NOW + 99
)
FLAG = Event(NOW + 61, "", "maintenance", "note", "maintenance on", by="mia\x1b[2J")


def lines(*events: Event, **settings: object) -> list[str]:
    return [text_of(cells) for cells in event_lines(events, **settings)]  # type: ignore[arg-type]


def test_lines() -> None:
    assert lines(DEGRADED, BACK, FLAG) == [
        "14:03:12  ada   ● healthy → ◐ degraded: disk / is 97 % full",
        "14:04:12  bora  ● back after 1m, healthy (3 times, last 14:04:51)",
        "14:04:13  –     ⚑ maintenance on by mia [2J",
    ]


def test_times_are_local_and_other_days_have_their_date() -> None:
    assert lines(DEGRADED, utc_offset_s=3600)[0].startswith("15:03:12  ada")
    assert lines(DEGRADED, now=NOW + 60)[0].startswith("14:03:12")
    assert lines(DEGRADED, now=NOW + 86_400)[0].startswith("2026-11-30 14:03:12")
    assert lines(DEGRADED, now=NOW + 60, utc_offset_s=-15 * 3600)[0].startswith("23:03:12")


def test_wrapped_below_the_text() -> None:
    wrapped = lines(DEGRADED, width=48)
    assert wrapped == [
        "14:03:12  ada  ● healthy → ◐ degraded: disk /",
        "                 is 97 % full",
    ]
    for width in (10, 30, 41, 60, 200):
        for cells in event_lines([DEGRADED, BACK], width=width):
            assert width_of(cells) <= max(width, 70)
    assert len(lines(DEGRADED, width=20)) == 1, "too narrow to wrap"


def test_for_the_timeline_of_one_machine() -> None:
    assert lines(DEGRADED, has_names=False) == ["14:03:12  ● healthy → ◐ degraded: disk / is 97 % full"]
    assert lines(DEGRADED, name_width=8)[0].startswith("14:03:12  ada       ●")


def test_in_ascii() -> None:
    for kind in EVENT_KINDS:
        event = replace(DEGRADED, kind=kind, text="healthy → degraded")
        assert all(line.isascii() for line in lines(event, glyphs=ASCII)), kind


@pytest.mark.parametrize(
    ("severity", "tone"), [("good", "good"), ("warn", "warn"), ("bad", "bad"), ("note", "plain")]
)
def test_tones(severity: str, tone: str) -> None:
    (cells,) = event_lines([replace(DEGRADED, severity=severity)])
    assert [cell.tone for cell in cells] == ["dim", "strong", tone]


def test_as_json() -> None:
    assert event_document(BACK) == {
        "at": "2026-11-30T14:04:12Z",
        "machine": "bora",
        "kind": "back",
        "severity": "good",
        "text": "back after 1m, healthy",
        "by": None,
        "count": 3,
        "last_at": "2026-11-30T14:04:51Z",
        "details": {"to": "healthy"},
    }
    document = events_document([FLAG], None, None)
    assert (document["since"], document["recorded_by"], document["events"][0]["machine"]) == (None,) * 3
