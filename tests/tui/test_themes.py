"""Every tone can be read in our themes: contrast by WCAG 2, 4.5 for text, 3 for bars."""

from __future__ import annotations

import pytest
from textual.color import Color
from tui_fleet import Clock, FakeService

from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.themes import DARK, LIGHT
from fleettui.tui.widgets.fleet_table import FleetTable

TEXT = ("plain", "strong", "dim", "good", "warn", "bad", "accent", "title", "key", "unknown")
BARS = ("bar-good", "bar-warn", "bar-bad")


def luminance(color: Color) -> float:
    parts = [part / 255 for part in color.rgb]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Color, other: Color) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [DARK, LIGHT])
async def test_tones_stand_out_from_both_backgrounds(theme: str) -> None:
    app = FleetApp(FakeService(), Look(theme=theme), Clock())
    async with app.run_test() as pilot:
        await pilot.pause()
        table = app.screen.query_one(FleetTable)
        grounds = [
            table.background_colors[1],
            table.get_component_styles("line--cursor").background,
        ]
        found = {
            (tone, number): contrast(table.get_component_styles(f"tone--{tone}").color, ground)
            for tone in TEXT + BARS
            for number, ground in enumerate(grounds)
        }
    weak = {key: round(value, 2) for key, value in found.items() if value < (4.5 if key[0] in TEXT else 3.0)}
    assert weak == {}


@pytest.mark.parametrize("theme", ["nord", "textual-light", "solarized-light", "ansi-dark", "dracula"])
async def test_any_theme_of_textual_can_be_worn(theme: str) -> None:
    app = FleetApp(FakeService(), Look(theme=theme), Clock())
    async with app.run_test() as pilot:
        await pilot.pause()
        table = app.screen.query_one(FleetTable)
        colors = {
            tone: table.get_component_styles(f"tone--{tone}").color.hex for tone in ("good", "warn", "bad")
        }
        assert len(set(colors.values())) == 3
