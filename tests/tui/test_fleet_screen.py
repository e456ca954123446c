"""The Fleet screen by keys and mouse, on a service that publishes what the test wants."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fleet_driver import dashboard
from textual import events
from tui_fleet import NOW, PROBLEM, Clock, FakeService, fleet, machine, model, moved, rack

from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.screens.fleet.screen import FleetScreen
from fleettui.tui.screens.help.screen import HelpScreen
from fleettui.tui.screens.machine.screen import MachineScreen
from fleettui.tui.widgets.fleet_table import FleetTable

pytestmark = pytest.mark.usefixtures("quick_waiting")


def wheel_down(table: FleetTable) -> events.MouseScrollDown:
    """One notch of the wheel over the table."""
    return events.MouseScrollDown(table, 5, 5, 0, 0, 0, False, False, False)


async def test_every_machine_has_its_row_and_the_summary_counts() -> None:
    async with dashboard(size=(200, 60)) as driver:
        names = [row.machine for row in driver.table.lines if row.kind == "machine"]
        assert names == [item.name for item in driver.service.snapshot.machines]
        assert "7/9 up" in driver.text("summary")
        assert "every 2 s" in driver.text("summary")


async def test_keys_move_the_cursor_and_stay_within_the_rows() -> None:
    async with dashboard(FakeService(fleet(rack(40)))) as driver:
        table = driver.table
        await driver.press("j", "down", "down", "k")
        assert table.cursor == 2
        await driver.press("up", "up", "up", "up")
        assert table.cursor == 0
        await driver.press("G")
        assert table.cursor_machine == "gpu-39"
        assert table.cursor in table.visible_range()
        await driver.press("j")
        assert table.cursor == len(table.lines) - 1
        await driver.press("pageup")
        assert table.cursor == len(table.lines) - table.page_height
        await driver.press("g")
        assert (table.cursor, table.scroll_offset.y) == (0, 0)
        await driver.press("pagedown")
        assert table.cursor == table.page_height - 1
        await driver.press("end", "home")
        assert table.cursor == 0


async def test_the_cursor_follows_its_machine_and_stays_on_its_line_of_the_screen() -> None:
    machines = rack(60)
    async with dashboard(FakeService(fleet(machines))) as driver:
        await driver.press("G", "k", "k", "k")
        line, name = driver.screen_line, driver.table.cursor_machine
        await driver.publish(machine("aaa-first"), machine("gpu-00b"))
        assert driver.table.cursor_machine == name
        assert driver.screen_line == line
        left = tuple(item for item in driver.service.snapshot.machines if not item.name.startswith("gpu-1"))
        await driver.publish_exactly(left)
        assert driver.table.cursor_machine == name
        assert driver.screen_line == line


async def test_when_the_machine_under_the_cursor_goes_the_next_takes_its_place() -> None:
    machines = rack(10)
    async with dashboard(FakeService(fleet(machines)), size=(80, 16)) as driver:
        await driver.press("j", "j", "j")
        await driver.publish_exactly(machines[:3] + machines[4:])
        assert driver.table.cursor_machine == "gpu-04"
        await driver.publish_exactly(())
        assert driver.table.cursor_machine is None
        await driver.press("enter", "x", "j", "G")
        await driver.publish_exactly(machines)
        assert driver.table.cursor_machine == "gpu-00"


async def test_with_the_cursor_out_of_sight_what_one_reads_stays() -> None:
    machines = rack(60)
    async with dashboard(FakeService(fleet(machines))) as driver:
        table = driver.table
        table.scroll_lines(30)
        await driver.settle()
        top = table.lines[table.visible_range().start].key
        await driver.publish(machine("aaa-first"))
        assert table.lines[table.visible_range().start].key == top
        assert table.cursor_machine == "gpu-00"


async def test_all_machines_are_open_while_they_fit() -> None:
    async with dashboard(size=(200, 60)) as driver:
        assert "ada/gpu/1" in driver.keys
        await driver.pilot.resize_terminal(200, 20)
        await driver.settle()
        assert "ada/gpu/1" not in driver.keys
        await driver.pilot.resize_terminal(200, 60)
        await driver.settle()
        assert "ada/gpu/1" in driver.keys


async def test_nothing_folds_by_itself_when_models_come() -> None:
    machines = rack(8)
    async with dashboard(FakeService(fleet(machines)), size=(120, 30)) as driver:
        assert "gpu-00/gpu/0" in driver.keys
        loaded = tuple(model(f"model-{number}", 1.0) for number in range(12))
        engine = replace(machines[0].engines[0], loaded=loaded)
        await driver.publish(replace(machines[0], engines=(engine,), seq=2))
        assert len(driver.table.lines) > driver.table.page_height
        assert "gpu-00/gpu/0" in driver.keys


async def test_x_opens_one_machine_and_shift_x_all() -> None:
    async with dashboard() as driver:
        assert "ada/gpu/0" not in driver.keys
        await driver.press("x")
        assert "ada/gpu/0" in driver.keys
        assert "hopper/gpu/0" not in driver.keys
        await driver.press("j", "x")
        assert "ada/gpu/0" not in driver.keys
        assert driver.table.cursor_line is not None
        assert driver.table.cursor_line.key == "ada"  # the row of its GPU went, its machine is next of kin
        await driver.press("X")
        assert {"ada/gpu/0", "hopper/gpu/3"} <= set(driver.keys)
        await driver.press("X")
        assert "hopper/gpu/0" not in driver.keys


async def test_enter_shows_the_machine_and_escape_comes_back() -> None:
    async with dashboard() as driver:
        await driver.press("j", "j", "enter")
        assert isinstance(driver.app.screen, MachineScreen)
        assert driver.app.screen.machine_name == "bora"
        await driver.press("escape")
        assert isinstance(driver.app.screen, FleetScreen)
        assert driver.table.cursor_machine == "bora"


async def test_help_lists_what_applies_here_and_only_that() -> None:
    async with dashboard() as driver:
        await driver.press("question_mark")
        assert isinstance(driver.app.screen, HelpScreen)
        fleet_keys = {line.key for line in driver.app.screen.lines}
        assert {"open", "expand", "refresh", "cursor_down"} <= fleet_keys
        assert "back" not in fleet_keys
        await driver.press("escape", "enter", "question_mark")
        assert isinstance(driver.app.screen, HelpScreen)
        machine_keys = {line.key for line in driver.app.screen.lines}
        assert {"back", "next_machine"} <= machine_keys
        assert "expand" not in machine_keys


async def test_the_pace_changes_and_pauses_in_the_summary() -> None:
    async with dashboard() as driver:
        await driver.press("plus")
        assert driver.service.interval_s == 1.0
        assert "every 1 s" in driver.text("summary")
        await driver.press("minus", "minus")
        assert driver.service.interval_s == 3.0
        await driver.press("p")
        assert driver.service.is_paused
        assert "paused" in driver.text("summary")
        await driver.press("p")
        assert not driver.service.is_paused


async def test_r_asks_all_here_and_one_on_its_own_screen() -> None:
    async with dashboard() as driver:
        await driver.press("r", "enter", "r")
        assert driver.service.polled == [None, "ada"]


async def test_the_mouse_selects_expands_opens_and_scrolls() -> None:
    async with dashboard(FakeService(fleet(rack(40)))) as driver:
        table = driver.table
        await driver.pilot.click(FleetTable, offset=(20, 4))
        assert table.cursor == 3
        await driver.pilot.click(FleetTable, offset=(1, 2))
        await driver.settle()
        assert "gpu-01/gpu/0" in driver.keys
        table.post_message(wheel_down(table))
        await driver.settle()
        assert table.scroll_offset.y == 3
        await driver.pilot.click(FleetTable, offset=(20, 4), times=2)
        await driver.settle()
        assert isinstance(driver.app.screen, MachineScreen)


async def test_a_click_on_the_footer_runs_its_action() -> None:
    async with dashboard(size=(260, 30)) as driver:
        at = driver.text("footer").index("p pause")
        await driver.pilot.click("#footer", offset=(at, 0))
        assert driver.service.is_paused


async def test_problems_of_files_are_named_above_the_table() -> None:
    problems = tuple(replace(PROBLEM, line=number) for number in range(1, 6))
    async with dashboard(FakeService(fleet(problems=problems[:1])), size=(120, 30)) as driver:
        assert "machines/attic.yaml:1" in driver.text("notices")
        driver.service.snapshot = replace(driver.service.snapshot, problems=problems)
        await driver.publish()
        assert driver.text("notices").count("\n") == 2
        assert "and 3 more" in driver.text("notices")
        await driver.pilot.resize_terminal(64, 24)
        await driver.publish()
        assert " attic.yaml:1" in driver.text("notices"), "the folder makes room for what is wrong"
        driver.service.snapshot = replace(driver.service.snapshot, problems=())
        await driver.publish()
        assert not driver.app.screen.query_one("#notices").display


async def test_the_palette_knows_every_action_that_applies() -> None:
    async with dashboard() as driver:
        titles = {command.title for command in driver.app.get_system_commands(driver.app.screen)}
        assert {"Refresh", "Pause", "Details", "Quit", "Theme", "Help"} <= titles
        assert "Back" not in titles
        await driver.press("ctrl+p")
        await driver.pilot.press(*"pause")
        await driver.app.workers.wait_for_complete()
        await driver.press("enter")
        await driver.settle()
        assert driver.service.is_paused


async def test_no_size_keeps_news_out() -> None:
    async with dashboard(size=(1, 1)) as driver:
        await driver.press("j", "X", "enter", "escape")
        await driver.publish(moved(driver.service.snapshot.machines[0], 3))
        await driver.pilot.resize_terminal(80, 24)
        await driver.settle()
        assert driver.table.cursor_machine is not None


async def test_ascii_signs_reach_every_part_of_the_screen() -> None:
    service = FakeService(fleet(problems=(PROBLEM,)))
    async with dashboard(service, (120, 40), Look(glyphs="ascii")) as driver:
        texts = ["".join(cell.text for cell in row.cells) for row in driver.table.lines]
        texts += [driver.text(name) for name in ("summary", "notices", "footer")]
        await driver.press("enter")
        texts += ["".join(cell.text for cell in line.cells) for line in driver.app.screen.pane.lines]
        assert [text for text in texts if not text.isascii()] == []


async def test_keys_of_the_settings_replace_ours() -> None:
    async with dashboard(size=(260, 30), look=Look(keys={"pause": "z"})) as driver:
        await driver.press("p")
        assert not driver.service.is_paused
        await driver.press("z")
        assert driver.service.is_paused
        assert "z pause" in driver.text("footer")


async def test_q_leaves_and_ends_the_subscription() -> None:
    service = FakeService()
    app = FleetApp(service, clock=Clock(NOW))
    async with app.run_test() as pilot:
        assert service.subscriber_count == 1
        await pilot.press("q")
    assert service.subscriber_count == 0
    assert app.return_code == 0
