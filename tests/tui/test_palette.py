"""The palette shows each command's key, at the right of its line, also one that the operator chose."""

from __future__ import annotations

import pytest
from fleet_driver import Driver, dashboard
from textual.command import CommandList, CommandPalette

from fleettui.tui.port import Look


async def entries(driver: Driver, words: str) -> dict[str, str]:
    """First lines of what is offered: name -> key; the key ends at the right edge of the text."""
    await driver.press("ctrl+p")
    assert isinstance(driver.app.screen, CommandPalette)
    await driver.type(words)
    options = driver.app.screen.query_one(CommandList)
    for _ in range(300):
        if options.option_count and (not words or options.option_count < 10):
            break
        await driver.pilot.pause(0.01)
    lines = [
        str(options.get_option_at_index(index).prompt).split("\n")[0] for index in range(options.option_count)
    ]
    with_key = [line for line in lines if "  " in line]
    assert {len(line) for line in with_key} == {driver.app.size.width - 6}
    return {line.partition("  ")[0]: line.split("  ")[-1].strip() for line in lines}


@pytest.mark.parametrize("width", [80, 140])
async def test_a_found_command_has_its_key(width: int) -> None:
    async with dashboard(size=(width, 24)) as driver:
        assert (await entries(driver, "maint"))["Maintenance"] == "m"


async def test_all_commands_have_their_keys() -> None:
    async with dashboard(look=Look(keys={"pause": "f8"})) as driver:
        found = await entries(driver, "")
        assert (found["Pause"], found["Quit"], found["Sort"]) == ("f8", "q", "o")
