"""When a maintenance is to end, as an operator writes it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from fleettui.fleet.until import parse_until

BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
NOON = datetime(2026, 11, 30, 12, tzinfo=timezone(timedelta(hours=1))).timestamp()


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", BERLIN)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def utc(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30m", 1800), ("2h", 7200), ("1d", 86_400), ("1h30m", 5400), ("1d2h3m", 93_780), (" 2h ", 7200)],
)
def test_a_length(text: str, seconds: int) -> None:
    assert parse_until(text, NOON) == NOON + seconds


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("14:00", utc(2026, 11, 30, 13)),
        ("8:05", utc(2026, 12, 1, 7, 5)),
        ("12:00", utc(2026, 12, 1, 11)),
        ("2026-12-01T08:00", utc(2026, 12, 1, 7)),
        ("2026-12-01 08:00", utc(2026, 12, 1, 7)),
        ("2026-12-01T08:00:30", utc(2026, 12, 1, 7, 0, 30)),
        ("2026-12-01T08:00Z", utc(2026, 12, 1, 8)),
        ("2026-12-01T08:00-05:00", utc(2026, 12, 1, 13)),
        ("2027-07-01T08:00", utc(2027, 7, 1, 6)),
    ],
)
def test_a_moment_is_local_unless_it_says_otherwise(text: str, moment: float) -> None:
    assert parse_until(text, NOON) == moment


def test_tomorrow_morning_over_a_change_of_the_clock() -> None:
    saturday = datetime(2026, 10, 24, 22, tzinfo=timezone(timedelta(hours=2))).timestamp()
    assert parse_until("08:00", saturday) == utc(2026, 10, 25, 7)


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "2", "h", "-2h", "2h-", "2 h", "1.5h", "99999999999h", "25:00", "12:60", "1400", "٢h"),
        *("2026-02-30T08:00", "2026-12-01", "2026-12-01T8", "9999-12-31T23:59+99:00", "30s", "2H"),
    ],
)
def test_anything_else_says_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no time; write 2h, 30m, 1d, 14:00 or 2026-12-01T08:00"):
        parse_until(text, NOON)


@pytest.mark.parametrize("text", ["0m", "2026-11-30T11:59", "1999-01-01T00:00"])
def test_what_is_over_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is over already"):
        parse_until(text, NOON)


@pytest.mark.parametrize("text", ["99999d", "9000-12-31T23:59"])
def test_no_more_than_ten_years(text: str) -> None:
    with pytest.raises(ValueError, match="more than ten years ahead"):
        parse_until(text, NOON)
