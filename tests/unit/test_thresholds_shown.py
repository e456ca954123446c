"""Thresholds of the settings reach every bar and figure; columns choose those of the table."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from builders import NOW
from fleettui.view.bars import Thresholds
from fleettui.view.cells import Cell
from fleettui.view.layout import Layout, make_layout
from fleettui.view.machine_page import hardware_page
from fleettui.view.rows import fleet_rows
from fleettui.view.summary import summary_cells
from sample_fleet import sample_fleet

NEVER = Thresholds((1000, 1000), (1000, 1000), (1000, 1000))
ALWAYS = Thresholds((0, 0), (0, 0), (0, 0))
FLEET = sample_fleet()
NAMES = [machine.name for machine in FLEET.machines]


def layout(thresholds: Thresholds) -> Layout:
    return make_layout(200, NAMES, interval_s=FLEET.interval_s, thresholds=thresholds)


def bars(cells: Iterable[Cell]) -> set[str]:
    return {cell.tone for cell in cells if cell.tone in ("bar_good", "bar_warn", "bar_bad")}


def table_cells(thresholds: Thresholds) -> list[Cell]:
    rows = fleet_rows(FLEET, NOW, layout(thresholds), set(NAMES))
    return [cell for row in rows for cell in row.cells]


def page_cells(thresholds: Thresholds) -> list[Cell]:
    ada = next(machine for machine in FLEET.machines if machine.name == "ada")
    return [
        cell
        for section in hardware_page(ada, NOW, layout(thresholds))
        if section.title != "Disks"  # what counts as full is a rule of health
        for line in section.lines
        for cell in line
    ]


def summary(thresholds: Thresholds) -> list[Cell]:
    return list(summary_cells(FLEET, NOW, 200, thresholds=thresholds))


@pytest.mark.parametrize("cells_of", [table_cells, page_cells, summary])
def test_bars_follow(cells_of: object) -> None:
    assert callable(cells_of)
    assert bars(cells_of(NEVER)) == {"bar_good"}
    assert bars(cells_of(ALWAYS)) == {"bar_bad"}
    assert bars(cells_of(Thresholds(memory=(0, 1000)))) == {"bar_warn"}


@pytest.mark.parametrize("cells_of", [table_cells, page_cells])
def test_use_and_temperature_follow(cells_of: object) -> None:
    assert callable(cells_of)

    def tone(thresholds: Thresholds, text: str) -> set[str]:
        return {cell.tone for cell in cells_of(thresholds) if cell.text.strip().startswith(text)}

    assert tone(ALWAYS, "97 %") == tone(ALWAYS, "79 °C") == {"bad"}
    assert "bad" not in tone(NEVER, "97 %") | tone(NEVER, "79 °C")


def test_columns_choose() -> None:
    chosen = make_layout(200, NAMES, columns=("vram", "age"))
    assert [place.column.key for place in chosen.places] == ["machine", "vram", "age"]
