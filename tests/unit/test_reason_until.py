"""A reason and an end in one line, and what a change of several flags is told as."""

from __future__ import annotations

import pytest

from fleettui.fleet.until import parse_reason_until
from fleettui.model.flags import MaintenanceChange, MaintenanceResult
from fleettui.model.snapshot import MaintenanceFlag
from fleettui.view.maintenance_text import announced_text, told_text, undone_text

NOW = 1_796_047_392.0
FLAG = MaintenanceFlag("fan swap", "mia", NOW - 3600)
OTHER = MaintenanceFlag("reboot", "mia", NOW - 3600)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (None, None)),
        ("fan  swap", ("fan swap", None)),
        ("fan swap until 2h", ("fan swap", NOW + 7200)),
        ("until 30m", (None, NOW + 1800)),
        ("wait until spring Until 1d", ("wait until spring", NOW + 86_400)),
        ("untilled", ("untilled", None)),
    ],
)
def test_a_line_is_read(text: str, expected: tuple[str | None, float | None]) -> None:
    assert parse_reason_until(text, NOW) == expected


@pytest.mark.parametrize("text", ["fan swap until", "until noon", "wait until the parts come", "until 0m"])
def test_an_end_that_is_none_is_a_mistake(text: str) -> None:
    with pytest.raises(ValueError, match="write 2h"):
        parse_reason_until(text, NOW)


def test_a_group_is_told_by_what_became_of_it() -> None:
    results = (
        MaintenanceResult("ada", None, FLAG),
        MaintenanceResult("bora", None, FLAG),
        MaintenanceResult("cleo", OTHER, FLAG),
        MaintenanceResult("dora", FLAG, FLAG),
    )
    assert told_text(MaintenanceChange(results), NOW) == (
        "2 machines now in maintenance: not routed from now on, nothing is unloaded; "
        "1 machine in maintenance with another reason or end; 1 was in maintenance already"
    )
    off = (MaintenanceResult("ada", FLAG, None), MaintenanceResult("bora", None, None))
    assert told_text(MaintenanceChange(off), NOW) == "1 machine out of maintenance; 1 was out of it already"
    assert undone_text(MaintenanceChange(off), NOW).startswith("Undone: 1 machine out of maintenance")


def test_what_enter_would_set_is_told_before() -> None:
    assert announced_text(None, None, NOW) == "no reason, until you end it"
    assert announced_text("x", NOW + 7200, NOW).startswith('"x", until 16:03 UTC, 2h from now; ')
