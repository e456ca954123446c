"""docs/events.md tells of each kind of event, and of no other."""

from __future__ import annotations

import re
from pathlib import Path

from fleettui.model.event import EVENT_KINDS
from fleettui.store.events import KEEP_DAYS, KEEP_ROWS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "events.md").read_text(encoding="utf-8")


def test_the_page_has_each_kind() -> None:
    firsts = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(firsts))) == set(EVENT_KINDS)


def test_the_page_says_how_long_events_are_kept() -> None:
    assert f"for {KEEP_DAYS} days, at most {KEEP_ROWS:,} of each" in PAGE
