"""While the operator has paused, values stay what they were then: ages grow, nothing turns stale by that."""

from __future__ import annotations

import pytest
from fleet_driver import Driver, dashboard
from tui_fleet import NOW, Clock, FakeService, fleet

from fleettui.decide.routing import decide_route
from fleettui.model.record import replace
from fleettui.model.route import RouteQuery


async def _later(driver: Driver, clock: Clock, seconds: float) -> None:
    clock.now += seconds
    await driver.settle()


def _tones(driver: Driver, machine: str) -> set[str]:
    """Tones of what its own row says."""
    row = next(row for row in driver.table.lines if row.key == machine)
    return {cell.tone for cell in row.cells if cell.text.strip()}


async def test_nothing_turns_stale_by_a_pause() -> None:
    clock = Clock()
    async with dashboard(clock=clock, size=(120, 40)) as driver:
        before = _tones(driver, "ada")
        await driver.press("p")
        await _later(driver, clock, 90)
        assert "stale" not in driver.text("summary")
        assert _tones(driver, "ada") - {"warn"} == before - {"warn"}  # the age is told, in its own tone
        assert "1m" in driver.row("ada")
        await driver.press("p")
        await driver.settle()
        assert "stale" in driver.text("summary")
        assert _tones(driver, "ada") != before


async def test_copies_count_while_nobody_is_asked() -> None:
    clock = Clock()
    async with dashboard(clock=clock, size=(120, 40)) as driver:
        await driver.press("2")
        before = driver.app.screen.lines
        await driver.press("p")
        await _later(driver, clock, 90)
        assert driver.app.screen.lines == before
        assert sum(line.figures.copies for line in before) == 6


@pytest.mark.parametrize(
    ("width", "text"), [(50, "paused"), (80, "paused 02:40 UTC"), (120, "paused since 02:40 UTC")]
)
async def test_the_first_line_says_since_when(width: int, text: str) -> None:
    async with dashboard(size=(width, 24)) as driver:
        await driver.press("p")
        await driver.settle()
        assert driver.text("summary").rstrip().endswith(text)
        await driver.press("2")
        assert text in driver.text("summary")
        await driver.press("5")
        assert text in driver.text("event-title")
        await driver.press("1", "enter")
        await driver.settle()
        assert text in driver.text("title")


def test_routing_takes_paused_readings_for_as_old_as_they_are() -> None:
    paused = replace(fleet(), paused_at=NOW)
    query = RouteQuery(model="llama3.1:70b")
    assert decide_route(paused, query, NOW + 1).candidates
    assert not decide_route(paused, query, NOW + 90).candidates
    assert FakeService(paused).snapshot.judged_at(NOW + 90) == NOW
