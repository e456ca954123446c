"""Screens that were opened and closed leave nothing behind, however often."""

from __future__ import annotations

import gc

import pytest
from textual.screen import Screen
from textual.strip import Strip
from tui_fleet import Clock, FakeService, fleet, rack

from fleettui.tui.app import FleetApp

pytestmark = pytest.mark.usefixtures("quick_waiting")

TIMES = 6


def counts() -> tuple[int, int]:
    """Screens and painted lines in memory."""
    gc.collect()
    found = gc.get_objects()
    return sum(isinstance(item, Screen) for item in found), sum(isinstance(item, Strip) for item in found)


@pytest.mark.parametrize(
    "keys",
    [
        ("question_mark", "escape"),
        ("enter", "escape"),
        ("enter", "question_mark"),
        ("enter", "tab", "tab", "tab", "tab"),
        ("l", "escape"),
        ("ctrl+p", "escape"),
    ],
)
async def test_a_closed_screen_is_let_go(keys: tuple[str, ...]) -> None:
    app = FleetApp(FakeService(fleet(rack(8))), clock=Clock())
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause(0.3)

        async def open_and_close() -> None:
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
            while len(app.screen_stack) > 1:
                await pilot.press("escape")
                await pilot.pause()

        await open_and_close()
        screens, strips = counts()
        for _ in range(TIMES):
            await open_and_close()
        screens_now, strips_now = counts()
        for _ in range(100):
            if screens_now == screens and strips_now <= strips + TIMES:
                break
            await pilot.pause(0.05)  # a screen ends its tasks when it has been closed
            screens_now, strips_now = counts()
    assert screens_now == screens
    assert strips_now <= strips + TIMES, "less than a line for each time"
