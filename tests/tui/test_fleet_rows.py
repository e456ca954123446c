"""Rows of the Fleet screen: drawn for what is seen, outlined for the rest, and the same rows either way."""

from __future__ import annotations

import pytest
from fleet_driver import dashboard
from tui_fleet import NOW, FakeService, fleet, rack, sample_machines

from fleettui.tui.screens.fleet.rows import FleetRows
from fleettui.view.layout import make_layout
from fleettui.view.rows import machine_rows
from sample_fleet import sample_fleet

MACHINES = (*sample_machines(), *sample_fleet().machines)


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("width", [24, 40, 60, 79, 80, 100, 120, 160, 212, 260])
def test_an_outline_has_the_same_rows_in_the_same_width(width: int, *, is_open: bool) -> None:
    layout = make_layout(width, [item.name for item in MACHINES])
    for item in MACHINES:
        opened = {item.name} if is_open else set()
        outlined = FleetRows().rows_of([item], NOW, layout, opened, ())
        drawn = machine_rows(item, NOW, layout, is_expanded=is_open)
        assert [(row.key, row.kind, row.machine) for row in outlined] == [
            (row.key, row.kind, row.machine) for row in drawn
        ]
        assert {sum(len(cell.text) for cell in row.cells) for row in outlined} == {width}


def test_what_comes_into_view_is_drawn_and_what_leaves_it_is_kept() -> None:
    rows, layout, machines = FleetRows(), make_layout(120), rack(3)
    names = [item.name for item in machines]
    outlined = rows.rows_of(machines, NOW, layout, (), ())
    assert rows.built == 0
    drawn = rows.rows_of(machines, NOW, layout, (), names[:1])
    assert rows.built == 1
    assert drawn[0].cells != outlined[0].cells
    assert rows.rows_of(machines, NOW, layout, (), names[1:])[0] is drawn[0]
    assert rows.built == 3


async def test_only_what_is_seen_of_three_hundred_machines_is_drawn() -> None:
    async with dashboard(FakeService(fleet(rack(300))), size=(160, 45)) as driver:
        rows, table = driver.screen._rows, driver.table
        assert rows.built <= 45
        for key in ("X", "pagedown", "pagedown", "G", "pageup", "g", "X"):
            built = rows.built
            await driver.press(key)
            await driver.settle()
            assert rows.built - built <= 45 + 1, key
            for index in table.visible_range():
                row = table.lines[index]
                drawn = machine_rows(
                    driver.service.snapshot.find(row.machine), NOW, driver.screen.layout_now,  # type: ignore[arg-type]
                    is_expanded=f"{row.machine}/gpu/0" in driver.keys,
                )  # fmt: skip
                assert row in drawn, (key, row.key)
