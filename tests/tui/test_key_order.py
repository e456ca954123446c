"""Keys that arrive all at once, as over a slow line, do what they do one by one."""

from __future__ import annotations

import pytest
from fleet_driver import Driver, dashboard
from textual import events
from textual.widgets import Input

from fleettui.tui.key_order import KeyOrder
from fleettui.tui.screens.fleet.screen import FleetScreen
from fleettui.tui.screens.machine.screen import MachineScreen

NAMES = {
    "/": "slash",
    ":": "colon",
    " ": "space",
    "\r": "enter",
    "\x1b": "escape",
    "[": "left_square_bracket",
}


async def burst(driver: Driver, keys: str) -> None:
    """All keys in one packet."""
    for character in keys:
        driver.app.post_message(events.Key(NAMES.get(character, character), character))
    await driver.settle()


async def test_a_filter_in_one_packet_is_a_filter_and_no_commands() -> None:
    async with dashboard(size=(120, 30)) as driver:
        await burst(driver, "/maxpa")
        assert driver.app.screen is driver.screen, "neither a nor x nor p was a command"
        assert not driver.service.is_paused
        assert driver.prompt.input.value == "maxpa"
        await burst(driver, "\x1b/spark\rO")
        assert driver.names == ["spark"]
        assert driver.screen.listing.order.is_descending, "what follows Enter is a command again"
        assert driver.prompt.input.value == "spark"


async def test_a_command_and_what_follows_it() -> None:
    async with dashboard() as driver:
        await burst(driver, ":sort vram\r/free>20\rj\x1b")
        assert driver.screen.listing.order.column == "vram"
        assert driver.screen.listing.filter.is_empty
        assert driver.table.cursor_machine == "spark", "the second of those that were left"


async def test_keys_go_on_when_the_widget_they_went_to_is_gone() -> None:
    async with dashboard() as driver:
        await burst(driver, "\r")
        assert isinstance(driver.app.screen, MachineScreen)
        await burst(driver, "\x1bjj")
        for _ in range(200):
            if driver.table.cursor == 2:
                break
            await driver.pilot.pause(0.01)
        assert isinstance(driver.app.screen, FleetScreen)
        assert driver.table.cursor_machine == "bora"


async def test_many_keys_stay_in_order() -> None:
    text = "abcdefghij" * 6
    async with dashboard() as driver:
        await burst(driver, "/" + text)
        assert isinstance(driver.app.focused, Input)
        for _ in range(200):
            if len(driver.prompt.input.value) == len(text):
                break
            await driver.pilot.pause()
        assert driver.prompt.input.value == text


async def test_a_key_that_never_comes_back_holds_the_next_up_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with dashboard() as driver:
        monkeypatch.setattr(KeyOrder, "_arrived", lambda *_: None)  # as of a widget that is taken away
        monkeypatch.setattr("fleettui.tui.key_order.PATIENCE_S", 0.05)
        for _ in range(2):
            driver.app.post_message(events.Key("j", "j"))
        for _ in range(400):
            if driver.table.cursor == 2:
                break
            await driver.pilot.pause(0.01)
        assert driver.table.cursor == 2
