"""Pictures of the Fleet screen at work: a mistake in a filter, and what is sorted, tagged and filtered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual.pilot import Pilot
from tui_fleet import Clock, FakeService

from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.themes import DARK, LIGHT

MISTAKE = ["slash", *"tag", "colon", *"lab", "space", *"fre", "greater_than_sign", *"24"]
AT_WORK = [
    "full_stop", "full_stop", "space",
    "slash", *"free", "greater_than_sign", *"12", "enter", "G", "space",
]  # fmt: skip


def after(*keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def press(pilot: Pilot[None]) -> None:
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        app = pilot.app
        assert isinstance(app, FleetApp)
        app.painter.paint_now()
        await pilot.pause()

    return press


def app_of(theme: str) -> FleetApp:
    return FleetApp(FakeService(), Look(theme=theme), Clock())


def test_a_mistake_in_a_filter(snap_compare) -> None:  # type: ignore[no-untyped-def]
    assert snap_compare(app_of(DARK), terminal_size=(80, 24), run_before=after(*MISTAKE))


def test_sorted_tagged_and_filtered(snap_compare) -> None:  # type: ignore[no-untyped-def]
    assert snap_compare(app_of(LIGHT), terminal_size=(120, 40), run_before=after(*AT_WORK))
