"""The tabs of the Machine screen: by key, mouse, palette and name; each pane is about one machine alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from tui_fleet import NOW, Clock, FakeService, card, fleet, machine, model, moved, sample_machines

from fleettui.fleet.history import FleetHistory
from fleettui.model.snapshot import MachineSnapshot
from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.screens.fleet.screen import FleetScreen
from fleettui.tui.screens.machine.screen import MachineScreen
from fleettui.tui.screens.machine.tabs import TABS
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import text_of

pytestmark = pytest.mark.usefixtures("quick_waiting")

SIZES = [(40, 12), (60, 20), (130, 30), (200, 60)]


class OnMachine:
    """The dashboard with the screen of one machine."""

    def __init__(self, app: FleetApp, pilot: Pilot[None], service: FakeService) -> None:
        self.app, self.pilot, self.service = app, pilot, service

    @property
    def screen(self) -> MachineScreen:
        assert isinstance(self.app.screen, MachineScreen)
        return self.app.screen

    @property
    def page(self) -> LineView[Line]:
        """The pane, where it is a list of lines."""
        assert isinstance(self.screen.pane, LineView)
        return self.screen.pane

    @property
    def text(self) -> str:
        return "\n".join(text_of(line.cells) for line in self.page.lines)

    def block(self, name: str) -> str:
        """Text of the title, the tabs."""
        return self.screen.query_one(f"#{name}", CellBlock).text

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def publish(self, *machines: MachineSnapshot) -> None:
        self.service.publish(*machines)
        await self.settle()

    async def settle(self) -> None:
        await self.pilot.pause()
        self.app.painter.paint_now()
        await self.pilot.pause()


@asynccontextmanager
async def on_machine(
    name: str = "ada",
    tab: str | None = None,
    size: tuple[int, int] = (100, 40),
    service: FakeService | None = None,
    look: Look | None = None,
) -> AsyncIterator[OnMachine]:
    service = service or FakeService()
    app = FleetApp(service, look, clock=Clock())
    async with app.run_test(size=size) as pilot:
        driver = OnMachine(app, pilot, service)
        await driver.settle()
        app.open_machine(name, tab)
        await driver.settle()
        yield driver


def with_history(service: FakeService) -> FakeService:
    service.history = FleetHistory(60, 2.0)
    service.history.record(service.snapshot)
    return service


async def test_tab_goes_through_the_tabs_and_round() -> None:
    async with on_machine() as driver:
        assert driver.screen.tab == "hardware"
        seen = []
        for _ in TABS:
            seen.append(driver.screen.tab)
            await driver.press("tab")
        assert seen == [tab.key for tab in TABS]
        assert driver.screen.tab == "hardware"
        await driver.press("shift+tab")
        assert driver.screen.tab == TABS[-1].key
        assert driver.app.focused is not None  # the keys of the pane work
        await driver.press("escape", "escape")
        assert isinstance(driver.app.screen, FleetScreen)


async def test_tabs_can_be_clicked() -> None:
    async with on_machine() as driver:
        start = driver.block("tabs").index("Models")
        await driver.pilot.click("#tabs", offset=(start + 2, 0))
        await driver.settle()
        assert driver.screen.tab == "models"
        assert "Loaded models" in driver.text
        await driver.pilot.click("#tabs", offset=(2, 0))
        await driver.settle()
        assert driver.screen.tab == "hardware"
        await driver.pilot.click("#tabs", offset=(95, 0))  # beside them
        assert driver.screen.tab == "hardware"


async def test_tabs_by_name_and_from_the_palette() -> None:
    async with on_machine() as driver:
        await driver.press(":", *"next-tab", "enter")
        assert driver.screen.tab == "models"
        commands = {command.title: command for command in driver.app.get_system_commands(driver.screen)}
        commands["Previous tab"].callback()
        await driver.app.workers.wait_for_complete()
        await driver.settle()
        assert driver.screen.tab == "hardware"


async def test_the_shown_tab_is_underlined() -> None:
    async with on_machine(tab="models") as driver:
        titles, rule = driver.block("tabs").split("\n")
        start = titles.index("Models")
        assert (rule.index("━"), rule.count("━")) == (start, len("Models"))
    async with on_machine(tab="models", look=Look(glyphs="ascii")) as driver:
        assert driver.block("tabs").isascii()
    async with on_machine(tab="models", size=(40, 12)) as driver:
        assert "\n" not in driver.block("tabs")
        assert max(map(len, driver.block("tabs").split("\n"))) <= 40


async def test_neighbours_keep_the_tab_and_nothing_else() -> None:
    async with on_machine(tab="models") as driver:
        old = driver.screen.pane
        assert "llama3.1:70b" in driver.text
        await driver.press("right_square_bracket")
        assert driver.block("title").startswith(" app-host")
        assert driver.screen.tab == "models"
        assert "phi3:mini" in driver.text
        assert not old.is_attached
        assert [pane.machine_name for pane in driver.screen.query("MachineScreen > LineView")] == ["app-host"]  # type: ignore[attr-defined]
        await driver.press("tab", "left_square_bracket", "shift+tab")
        assert driver.screen.machine_name == "ada"
        assert "llama3.1:70b" in driver.text


async def test_a_hidden_pane_is_left_alone() -> None:
    async with on_machine() as driver:
        hardware = driver.page
        before = hardware.lines
        await driver.press("tab")
        await driver.publish(moved(driver.service.snapshot.machines[0], 7))
        assert hardware.lines is before
        await driver.press("shift+tab")
        assert hardware.lines is not before
        assert driver.screen.pane is hardware  # and is there again at once


async def test_only_what_changed_is_painted() -> None:
    async with on_machine(size=(200, 60), service=with_history(FakeService())) as driver:
        painted = driver.page.painted
        await driver.publish(moved(driver.service.snapshot.machines[1], 3))  # another machine
        assert driver.page.painted == painted
        ada = moved(driver.service.snapshot.machines[0], 3)
        await driver.publish(ada)
        changed = driver.page.painted - painted
        assert 0 < changed <= 10  # two cards and CPU, in the tables and beside their graphs


async def test_history_is_drawn_with_now_at_the_right() -> None:
    async with on_machine(service=with_history(FakeService())) as driver:
        assert "GPU history" in driver.text
        assert "last 5 min ─" in driver.text
        line = next(line for line in driver.text.split("\n") if "GPU 0 " in line)
        graph = line[24:].split("  ")[0]
        assert graph.rstrip() == graph
        assert "97 %" in line


async def test_without_history_there_are_figures_and_no_empty_graphs() -> None:
    async with on_machine() as driver:
        assert "history" not in driver.text
        assert "97 %" in driver.text


async def test_a_machine_that_does_not_answer() -> None:
    async with on_machine("pve52", service=with_history(FakeService())) as driver:
        assert "no answer on 192.0.2.52 port 22" in driver.text
        assert "next try in" in driver.text
        assert "history" not in driver.text
        await driver.press("tab")
        assert "not known: no engine was asked" in driver.text


async def test_a_machine_that_fell_silent_keeps_its_past() -> None:
    service = with_history(FakeService())
    async with on_machine("ada", service=service) as driver:
        old = replace(service.snapshot.machines[0], health="offline", last_seen=NOW - 300)
        await driver.publish(old)
        assert "GPU history" in driver.text
        assert "✗ offline" in driver.block("title")


async def test_a_machine_that_goes_away_and_comes_back() -> None:
    ada = machine("ada", card(0, "Tesla T4", 15360, 2, 0), models=(model("phi3:mini", 2.2),))
    service = FakeService(fleet((ada, machine("bora"))))
    async with on_machine("ada", "models", service=service) as driver:
        service.publish_exactly(service.snapshot.machines[1:])
        await driver.settle()
        assert "ada is no longer declared" in driver.text
        await driver.press("shift+tab")
        assert "ada is no longer declared" in driver.text
        assert driver.block("title").strip() == "ada"
        await driver.publish(ada)
        assert "Tesla T4" in driver.text or "T4" in driver.text
        service.publish_exactly(service.snapshot.machines[1:])
        await driver.settle()
        await driver.press("right_square_bracket")
        assert driver.screen.machine_name == "bora"


async def test_opening_a_tab_of_the_machine_that_is_shown_goes_there() -> None:
    async with on_machine() as driver:
        driver.app.open_machine("ada", "models")
        await driver.settle()
        assert (driver.screen.tab, len(driver.app.screen_stack)) == ("models", 2)
        driver.app.open_machine("ada", "no such tab")
        await driver.settle()
        assert driver.screen.tab == "models"


async def test_l_shows_the_log_from_wherever_a_machine_is_current() -> None:
    service = FakeService()
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        driver = OnMachine(app, pilot, service)
        await driver.settle()
        await driver.press("down", "l")
        assert driver.screen.tab == "logs"
        await driver.press("tab", "l")
        assert driver.screen.tab == "logs"


@pytest.mark.parametrize("tab", ["hardware", "models"])
async def test_no_size_breaks_a_tab(tab: str) -> None:
    service = with_history(FakeService())
    async with on_machine("ada", tab, SIZES[0], service) as driver:
        for item in sample_machines():
            for size in SIZES:
                await driver.pilot.resize_terminal(*size)
                await driver.settle()
                assert driver.page.lines, item.name
                assert max(len(text_of(line.cells)) for line in driver.page.lines) <= size[0]
                assert driver.page.size.height >= 1
            await driver.press("G", "right_square_bracket")


async def test_two_columns_never_change_sides() -> None:
    async with on_machine("ada", size=(200, 60), service=with_history(FakeService())) as driver:
        first = driver.text.split("\n")[0]
        assert (first.index("State"), first.index("Machine history")) == (1, 102)
        worse = replace(
            driver.service.snapshot.machines[0], reasons=driver.service.snapshot.machines[2].reasons * 12
        )
        await driver.publish(worse)
        assert driver.text.split("\n")[0] == first
