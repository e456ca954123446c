"""The Models screen by keys and mouse: what stands there, opening, jumping to a machine, order, filter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot
from tui_fleet import Clock, FakeService

from builders import NOW, make_copy, make_engine, make_fleet, make_snapshot
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.app import FleetApp
from fleettui.tui.memory import Memory
from fleettui.tui.offers import actions_now
from fleettui.tui.port import Look
from fleettui.tui.screens.help.screen import HelpScreen
from fleettui.tui.screens.machine.screen import MachineScreen
from fleettui.tui.screens.menu.screen import MenuScreen
from fleettui.tui.screens.models.screen import ModelsScreen
from fleettui.tui.screens.pending.screen import PendingScreen
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.prompt import Prompt
from fleettui.view.model_rows import copy_key
from model_fleets import crowd, host, mixed_fleet, renewed

pytestmark = pytest.mark.usefixtures("quick_waiting")

USUAL = [
    "llama3.1:70b",
    "mixtral:8x22b",
    "qwen2.5:32b",
    "nomic-embed-text",
    "phi3:mini",
    "gpt-oss:120b-cloud",
    "mistral:7b",
]


class Driver:
    """The dashboard on its Models screen."""

    def __init__(self, app: FleetApp, service: FakeService, pilot: Pilot[None], clock: Clock) -> None:
        self.app, self.service, self.pilot, self.clock = app, service, pilot, clock

    @property
    def screen(self) -> ModelsScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, ModelsScreen)
        return screen

    @property
    def models(self) -> list[str]:
        """Keys of the models, the first one on top."""
        return [row.model for row in self.screen.table.lines if row.kind == "model"]

    @property
    def under_cursor(self) -> str:
        row = self.screen.table.cursor_line
        return "" if row is None else row.key

    @property
    def lines(self) -> list[str]:
        """What is drawn in the table, without blanks at the ends."""
        table = self.screen.table
        return [table.render_line(y).text.rstrip() for y in range(table.size.height)]

    def text(self, widget_id: str) -> str:
        return self.screen.query_one(f"#{widget_id}", CellBlock).text.strip()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        await self.press(
            *[{" ": "space", ":": "colon", "!": "exclamation_mark"}.get(key, key) for key in text]
        )

    async def publish(self, *machines: MachineSnapshot) -> None:
        self.service.publish(*machines)
        await self.settle()

    async def settle(self) -> None:
        """The newest snapshot is on the screen, whatever the pace allows."""
        await self.pilot.pause()
        self.app.painter.paint_now()
        await self.pilot.pause()

    async def click(self, x: int, y: int, times: int = 1) -> None:
        await self.pilot.click("#models", offset=(x, y), times=times)
        await self.pilot.pause()


@asynccontextmanager
async def models_screen(
    fleet: FleetSnapshot | None = None,
    size: tuple[int, int] = (130, 30),
    memory: Memory | None = None,
    **look: Any,
) -> AsyncIterator[Driver]:
    service, clock = FakeService(fleet or mixed_fleet()), Clock(NOW)
    app = FleetApp(service, Look(**look), clock, memory)
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, service, pilot, clock)
        await driver.press("2")
        await driver.settle()
        yield driver


async def test_two_shows_the_models_most_vram_first() -> None:
    async with models_screen() as driver:
        assert driver.models == USUAL
        assert driver.text("summary").startswith(
            "Models  7 models · 6 copies · 169.8 GiB in VRAM · 1 duplicate, 39.6 GiB · 2 not installed"
        )
        assert driver.lines[1] == (
            " ▸ llama3.1:70b             2   79.2 GiB   100 %  4m                2       3/4"
            "   ●     ✗                 ●            ◌"
        )
        assert driver.text("legend").startswith("● on GPU")


async def test_by_name_on_the_command_line_and_back_to_the_fleet() -> None:
    async with models_screen() as driver:
        await driver.press("1")
        assert not isinstance(driver.app.screen, ModelsScreen)
        await driver.press("colon", *"models", "enter")
        assert isinstance(driver.app.screen, ModelsScreen)


async def test_x_opens_a_model_and_shift_x_all() -> None:
    async with models_screen() as driver:
        await driver.press("x")
        keys = [row.key for row in driver.screen.table.lines]
        assert copy_key("llama3.1:70b", "hopper") in keys
        assert copy_key("mixtral:8x22b", "hopper") not in keys
        await driver.press("j", "j", "x")
        assert driver.under_cursor == "llama3.1:70b", "the row of its machine went"
        await driver.press("X")
        assert sum(row.kind == "copy" for row in driver.screen.table.lines) == 13
        await driver.press("X")
        assert [row.kind for row in driver.screen.table.lines] == ["model"] * 7


async def test_enter_goes_to_the_first_copy_then_to_its_machine_and_escape_comes_back() -> None:
    async with models_screen() as driver:
        await driver.press("enter")
        assert driver.under_cursor == copy_key("llama3.1:70b", "ada")
        await driver.press("j", "enter")
        assert isinstance(driver.app.screen, MachineScreen)
        assert driver.app.screen.machine_name == "hopper"
        await driver.press("escape")
        assert driver.under_cursor == copy_key("llama3.1:70b", "hopper")


async def test_enter_on_a_machine_that_waits_shows_its_key() -> None:
    async with models_screen() as driver:
        await driver.press("X", "G")
        assert driver.screen.table.move_to(copy_key("phi3:mini", "kiosk"))
        await driver.press("enter")
        assert isinstance(driver.app.screen, PendingScreen)


async def test_keys_for_one_machine_are_there_on_its_line_only() -> None:
    async with models_screen() as driver:
        assert driver.screen.current_machine is None
        assert not driver.app.check_action("logs", ())
        await driver.press("enter")
        assert driver.screen.current_machine == "ada"
        assert driver.app.check_action("logs", ())


async def test_clicks_select_open_and_sort() -> None:
    async with models_screen() as driver:
        await driver.click(10, 3)
        assert driver.under_cursor == "qwen2.5:32b"
        await driver.click(1, 3)
        assert "qwen2.5:32b" in driver.screen.opened
        layout = driver.screen.layout_now
        assert layout is not None
        expiry = layout.place_of("expiry")
        assert expiry is not None
        await driver.click(expiry.start + 1, 0)
        assert driver.models[:3] == ["phi3:mini", "llama3.1:70b", "mixtral:8x22b"]
        await driver.click(expiry.start + 1, 0)
        assert driver.models[:3] == ["mixtral:8x22b", "llama3.1:70b", "phi3:mini"]


async def test_two_clicks_on_a_sign_of_the_matrix_lead_to_that_machine() -> None:
    async with models_screen() as driver:
        layout = driver.screen.layout_now
        assert layout is not None
        column = next(item for item in layout.machines if item.machine == "dora")
        await driver.click(column.start + 1, 1, times=2)
        assert isinstance(driver.app.screen, ModelsScreen), "dora has no llama"
        await driver.click(column.start + 1, 3, times=2)
        assert isinstance(driver.app.screen, MachineScreen)
        assert driver.app.screen.machine_name == "dora"


async def test_two_clicks_on_a_name_do_what_enter_does() -> None:
    async with models_screen() as driver:
        await driver.click(8, 2, times=2)
        assert driver.under_cursor == copy_key("mixtral:8x22b", "hopper")


async def test_the_sort_moves_by_comma_and_stop_turns_and_has_a_menu() -> None:
    async with models_screen() as driver:
        await driver.press("full_stop")
        assert driver.screen.listing.order == ("gpu", False)
        await driver.press("comma", "comma")
        assert driver.screen.listing.order == ("copies", True)
        await driver.press("O")
        assert driver.screen.listing.order == ("copies", False)
        await driver.press("o")
        assert isinstance(driver.app.screen, MenuScreen)
        await driver.press("g", "enter")
        assert driver.models == sorted(USUAL)
        await driver.press("colon", *"sort next", "space", *"expiry", "enter")
        assert driver.models[0] == "phi3:mini"


async def test_the_filter_follows_what_is_typed_and_escape_brings_all_back() -> None:
    async with models_screen() as driver:
        await driver.press("slash")
        await driver.type("is:miss")
        assert driver.models == ["llama3.1:70b", "mistral:7b"]
        await driver.press("tab", "enter")
        assert driver.text("shown") == "filter is:missing · 2 of 7 models"
        assert driver.app.screen.focused is driver.screen.table
        await driver.press("slash", *"x", "escape")
        assert driver.text("shown") == "filter is:missing · 2 of 7 models"
        await driver.press("escape")
        assert driver.models == USUAL
        assert driver.text("shown") == ""


async def test_a_filter_that_leaves_nothing_says_so() -> None:
    async with models_screen() as driver:
        await driver.press("colon", *"filter nothing", "enter")
        assert driver.models == []
        assert driver.lines[1].strip() == "no model matches nothing  Esc shows all"
        await driver.press("enter", "x", "j", "G", "X")
        await driver.press("escape")
        assert driver.models == USUAL


async def test_what_cannot_be_read_stays_in_the_line() -> None:
    async with models_screen() as driver:
        await driver.press("slash")
        await driver.type("is:gone")
        await driver.press("enter")
        assert driver.screen.query_one(Prompt).question is not None
        assert driver.text("prompt-hint").startswith("there is no is:gone")


async def test_rows_do_not_move_under_the_cursor() -> None:
    async with models_screen() as driver:
        await driver.press("j")
        assert driver.under_cursor == "mixtral:8x22b"
        grown = host("dora", make_copy("qwen2.5:32b", gib=200.0))
        await driver.publish(grown)
        assert driver.models == USUAL, "it would be the first now"
        assert driver.under_cursor == "mixtral:8x22b"
        await driver.press("r")
        assert driver.models[0] == "qwen2.5:32b"
        assert driver.under_cursor == "mixtral:8x22b"


async def test_who_comes_back_finds_the_rows_in_order() -> None:
    async with models_screen() as driver:
        await driver.press("j")
        await driver.publish(host("dora", make_copy("qwen2.5:32b", gib=200.0)))
        await driver.press("o", "escape", "question_mark", "escape")
        assert driver.models == USUAL, "the screen was there all the time"
        await driver.press("1")
        await driver.press("2")
        assert driver.models[0] == "qwen2.5:32b"
        assert driver.under_cursor == "mixtral:8x22b"


async def test_a_new_model_does_not_push_the_cursor_away() -> None:
    async with models_screen() as driver:
        await driver.press("j", "j")
        line = driver.screen.table.cursor - driver.screen.table.scroll_offset.y
        await driver.publish(host("zoe", make_copy("aaa-huge:1t", gib=900.0)))
        assert driver.under_cursor == "qwen2.5:32b"
        assert driver.screen.table.cursor - driver.screen.table.scroll_offset.y == line
        assert "aaa-huge:1t" in driver.models


async def test_seconds_count_down_and_old_machines_fade_by_the_clock() -> None:
    async with models_screen() as driver:
        await driver.press("X")
        assert any("0.0 GiB     CPU  1m" in line for line in driver.lines)
        driver.clock.now += 2
        await driver.settle()
        assert any("0.0 GiB     CPU  58s" in line for line in driver.lines)
        driver.clock.now += 10
        await driver.settle()
        assert driver.text("summary").startswith("Models  7 models · 0 copies")


async def test_what_is_chosen_is_remembered() -> None:
    memory = Memory()
    async with models_screen(memory=memory) as driver:
        await driver.press("x", "colon", *"sort name", "space", *"desc", "enter")
        await driver.press("slash", *"llama,phi", "enter")
    async with models_screen(memory=Memory({"models": memory.part("models")})) as driver:
        assert driver.models == ["phi3:mini", "llama3.1:70b"]
        assert copy_key("llama3.1:70b", "ada") in [row.key for row in driver.screen.table.lines]


async def test_a_memory_of_another_version_does_no_harm() -> None:
    part = {"sort": "beauty", "filter": "free>24", "opened": [1, "llama3.1:70b"], "filters": None}
    async with models_screen(memory=Memory({"models": part})) as driver:
        assert driver.models == USUAL


async def test_an_empty_fleet_and_one_without_models() -> None:
    async with models_screen(make_fleet()) as driver:
        assert driver.lines[1].strip() == "no machine is declared"
        await driver.press("enter", "x", "X", "j", "o", "escape", "full_stop")
        await driver.publish(make_snapshot("ada"))
        assert driver.lines[1].strip() == "no machine has or declares a model, as far as is known"
        await driver.publish(make_snapshot("ada", engines=(make_engine(loaded=[make_copy()]),)))
        assert driver.models == ["llama3.1:70b"]


async def test_any_size_and_every_key() -> None:
    async with models_screen(size=(1, 1)) as driver:
        for size in ((1, 1), (20, 5), (40, 12), (80, 24), (200, 60), (120, 40)):
            await driver.pilot.resize_terminal(*size)
            await driver.press("X", "G", "j", "k", "pagedown", "pageup", "g", "full_stop", "x")
            assert driver.models


async def test_ascii_signs() -> None:
    async with models_screen(glyphs="ascii") as driver:
        await driver.press("X")
        assert all(line.isascii() for line in driver.lines)
        assert driver.text("legend").isascii()
        assert driver.text("summary").isascii()


async def test_three_hundred_machines_paint_what_is_seen() -> None:
    machines = crowd(300, 40)
    async with models_screen(make_fleet(*machines), size=(160, 24)) as driver:
        screen = driver.screen
        built, painted = screen.rows.built, screen.table.painted
        await driver.publish(replace(machines[0], last_seen=NOW, seq=2))
        assert (screen.rows.built, screen.table.painted) == (built, painted), "nothing of it is on the screen"
        await driver.publish(renewed(machines[0], 60.0))
        assert screen.rows.built - built <= 2
        assert screen.table.painted - painted <= 2


async def test_everything_open_draws_what_is_near() -> None:
    async with models_screen(make_fleet(*crowd(300, 12)), size=(120, 24)) as driver:
        built = driver.screen.rows.built
        await driver.press("X")
        assert len(driver.screen.table.lines) > 12 * 300
        assert driver.screen.rows.built - built <= 2
        for key in ("G", "pageup", "pageup", "g", "pagedown"):
            await driver.press(key)
            drawn = [line for line in driver.lines[1:] if line.strip()]
            assert len(drawn) == driver.screen.table.page_height, key


async def test_the_palette_the_help_and_the_footer_have_what_applies_here() -> None:
    async with models_screen(size=(200, 30)) as driver:
        commands = {command.title for command in driver.app.get_system_commands(driver.screen)}
        assert {
            "Details",
            "Expand",
            "Expand all",
            "Filter",
            "Sort",
            "Sort right",
            "Reverse",
            "Models",
        } <= commands
        assert not {"Tag", "Show all", "Next machine"} & commands
        assert {"o sort", "/ filter", "x expand", "2 models"} <= {
            f"{offer.label} {offer.action.title}" for offer in actions_now(driver.screen)
        }
        await driver.press("question_mark")
        assert isinstance(driver.app.screen, HelpScreen)
