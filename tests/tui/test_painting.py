"""What is painted: rows that changed, at the pace of the eye, never under a modal."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from tui_fleet import NOW, Clock, FakeService, fleet, moved, rack

from fleettui.tui.app import FleetApp, SnapshotArrived
from fleettui.tui.painter import MIN_GAP_S, Painter
from fleettui.tui.port import Look
from fleettui.tui.themes import DARK, LIGHT
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.fleet_table import FleetTable
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell


class Timers:
    """Timers and a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pending: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timers:
        self.pending.append((self.now + seconds, callback))
        return self

    def stop(self) -> None:
        self.pending.clear()

    def advance(self, seconds: float) -> None:
        self.now += seconds
        due = [callback for at, callback in self.pending if at <= self.now + 1e-9]
        self.pending = [item for item in self.pending if item[0] > self.now + 1e-9]
        for callback in due:
            callback()


def test_a_flood_of_requests_paints_at_most_four_times_a_second_and_the_last_one_too() -> None:
    timers, painted = Timers(), []
    latest = [0]
    painter = Painter(lambda: painted.append((timers.now, latest[0])), timers.call_later, lambda: timers.now)  # type: ignore[arg-type]
    for newest in range(1, 1001):  # 1000 snapshots in 10 seconds
        latest[0] = newest
        painter.request()
        timers.advance(0.01)
    timers.advance(MIN_GAP_S)
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(painted)]
    assert min(gaps) >= MIN_GAP_S - 1e-9
    assert 38 <= len(painted) <= 41
    assert painted[-1][1] == 1000


def test_after_a_quiet_spell_a_request_is_painted_at_once() -> None:
    timers, painted = Timers(), []
    painter = Painter(lambda: painted.append(timers.now), timers.call_later, lambda: timers.now)  # type: ignore[arg-type]
    painter.request()
    timers.advance(5.0)
    painter.request()
    assert painted == [100.0, 105.0]


class SlowTerminal:
    """As slow as a test says."""

    is_terminal_behind = False
    terminal_frame_s = 0.0


def test_while_the_terminal_is_behind_only_keys_paint_and_then_the_last_request_does() -> None:
    timers, painted, terminal = Timers(), [], SlowTerminal()
    painter = Painter(lambda: painted.append(timers.now), timers.call_later, lambda: timers.now, terminal)  # type: ignore[arg-type]
    terminal.is_terminal_behind = True
    for _ in range(100):
        painter.request()
        timers.advance(0.1)
    assert painted == []
    painter.paint_now()
    assert len(painted) == 1
    painter.request()
    terminal.is_terminal_behind = False
    timers.advance(2 * MIN_GAP_S)
    assert len(painted) == 2


def test_a_terminal_that_needs_a_second_for_a_frame_gets_one_every_two() -> None:
    timers, painted, terminal = Timers(), [], SlowTerminal()
    painter = Painter(lambda: painted.append(timers.now), timers.call_later, lambda: timers.now, terminal)  # type: ignore[arg-type]
    terminal.terminal_frame_s = 1.0
    for _ in range(100):
        painter.request()
        timers.advance(0.1)
    assert 5 <= len(painted) <= 6


def test_a_newer_snapshot_replaces_the_one_in_the_queue() -> None:
    first, second = SnapshotArrived(fleet(seq=1)), SnapshotArrived(fleet(seq=2))
    assert second.can_replace(first)


@pytest.mark.parametrize(("glyphs", "sign"), [("unicode", "…"), ("ascii", "~")])
async def test_what_has_no_room_is_seen_to_be_cut(glyphs: str, sign: str) -> None:
    app = FleetApp(FakeService(), Look(glyphs=glyphs), clock=Clock())  # type: ignore[arg-type]
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        block = app.screen.query_one("#footer", CellBlock)
        block.show_cells((Cell("a sentence that is longer "), Cell("than the screen is wide", "warn")))
        assert block.render_line(0).text == f"a sentence that is longer than the scre{sign}"
        block.show_cells((Cell("just as wide as the screen, and no wider"), Cell("   ")))
        assert block.render_line(0).text == "just as wide as the screen, and no wider"
        block.show_cells((Cell("wide characters at the edge of it are 機械"),))
        assert block.render_line(0).cell_length == 40


async def test_a_cut_is_seen_beside_a_scrollbar_too() -> None:
    app = FleetApp(FakeService(), clock=Clock())
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        await pilot.press("question_mark")
        await pilot.pause()
        view = app.screen.query_one(LineView)
        text = "x" * (view.size.width - 1) + "…"
        for count, shown in ((2, text), (99, "x" * (view.size.width - 2) + "… ")):
            view.show_lines([Line(str(number), (Cell(text),)) for number in range(count)])
            await pilot.pause()
            assert view.show_vertical_scrollbar is (count == 99)
            assert view.render_line(0).text == shown


async def test_what_was_published_while_the_dashboard_came_up_is_shown() -> None:
    service = FakeService()
    app = FleetApp(service, clock=Clock())
    service.publish_exactly(())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.painter.paint_now()
        assert "add one file for each machine" in app.screen.query_one("#notices", CellBlock).text


@pytest.fixture
def service() -> FakeService:
    return FakeService(fleet(rack(24)))


async def test_only_rows_that_changed_are_painted_again(service: FakeService) -> None:
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(160, 40)) as pilot:
        table = app.screen.query_one(FleetTable)
        await pilot.pause()
        machines = service.snapshot.machines
        app.painter.paint_now()
        await pilot.pause()
        refreshed: list[int] = []
        inner = table.refresh
        table.refresh = lambda *regions, **more: (
            refreshed.extend(r.y for r in regions),
            inner(*regions, **more),
        )[1]  # type: ignore[method-assign]
        before = table.painted
        service.publish(*(moved(machines[index], index) for index in (2, 7, 11)))
        await pilot.pause()
        app.painter.paint_now()
        await pilot.pause()
        assert table.painted - before == 3
        assert sorted(refreshed) == [3, 8, 12]  # the header is line 0


async def test_a_snapshot_without_a_change_paints_nothing(service: FakeService) -> None:
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        app.painter.paint_now()
        await pilot.pause()
        table = app.screen.query_one(FleetTable)
        before = table.painted
        for _ in range(5):
            service.publish()
            await pilot.pause()
            app.painter.paint_now()
        await pilot.pause()
        assert table.painted == before


async def test_the_tick_paints_ages_only_where_their_text_changes(service: FakeService) -> None:
    clock = Clock()
    app = FleetApp(service, clock=clock)
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        app.painter.paint_now()
        await pilot.pause()
        table = app.screen.query_one(FleetTable)
        before = table.painted
        clock.now = NOW + 1  # heard two seconds ago: still "now"
        app.painter.paint_now()
        await pilot.pause()
        first_tick = table.painted - before
        clock.now = NOW + 10
        app.painter.paint_now()
        await pilot.pause()
        assert first_tick == 0
        assert table.painted - before == 24


async def test_under_a_modal_nothing_is_painted_and_afterwards_the_newest(service: FakeService) -> None:
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        table = app.screen.query_one(FleetTable)
        await pilot.press("question_mark")
        await pilot.pause()
        lines, before = table.lines, table.painted
        for step in range(5):
            service.publish(moved(service.snapshot.machines[0], step))
            await pilot.pause()
            app.painter.paint_now()
        assert (table.lines, table.painted) == (lines, before)
        await pilot.press("escape")
        await pilot.pause()
        assert table.lines != lines


async def test_another_theme_drops_what_was_painted(service: FakeService) -> None:
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        table = app.screen.query_one(FleetTable)
        dark = next(iter(table.render_line(1))).style
        app.theme = LIGHT
        await pilot.pause()
        light = next(iter(table.render_line(1))).style
        assert dark is not None
        assert light is not None
        assert dark.bgcolor != light.bgcolor
        app.theme = DARK
