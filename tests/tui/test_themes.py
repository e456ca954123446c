"""Every tone can be read in every theme: contrast by WCAG 2, 4.5 for text, 3 for bars; sight simulated."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme
from tui_fleet import Clock, FakeService

from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.themes import DARK, LIGHT, THEMES, describe_theme, theme_names, tone_variables
from fleettui.tui.themes.own import COLORBLIND_DARK, COLORBLIND_LIGHT, CONTRAST
from fleettui.tui.widgets.fleet_table import FleetTable

TEXT = ("plain", "strong", "dim", "good", "warn", "bad", "accent", "title", "key", "unknown")
TONES = ("plain", "strong", "dim", "good", "warn", "bad", "accent")
BARS = ("bar-good", "bar-warn", "bar-bad")
GROUNDS = ("background", "line-cursor", "line-header", "line-footer")
ALL = {**BUILTIN_THEMES, **{theme.name: theme for theme in THEMES}}
COLORED = [name for name, theme in ALL.items() if not theme.ansi]
Triple = tuple[float, float, float]
SIGHT: dict[str, tuple[Triple, Triple, Triple]] = {
    "usual": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""On linear RGB. Source: Machado, Oliveira, Fernandes, 2009, severity 1.0."""


def linear(color: Color) -> list[float]:
    parts = [part / 255 for part in color.rgb]
    return [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(color: Color) -> float:
    red, green, blue = linear(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(color: Color, sight: str) -> Triple:
    """CIE L*a*b*, D65, of what somebody with that sight sees."""
    source = linear(color)
    red, green, blue = (
        min(1.0, max(0.0, sum(a * b for a, b in zip(row, source, strict=True)))) for row in SIGHT[sight]
    )
    white = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in white)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def colors_of(theme: Theme) -> dict[str, Color]:
    """As the app resolves them: what the theme names, else what is made of it."""
    variables = theme.to_color_system().generate()
    variables = {**tone_variables(variables), **variables}
    names = [*(f"tone-{tone}" for tone in (*TONES, "faint")), *BARS, *GROUNDS]
    return {name: Color.parse(variables[name]) for name in names}


def weak_tones(theme: Theme, least_text: float, least_bar: float) -> dict[tuple[str, str], float]:
    colors = colors_of(theme)
    least = {f"tone-{tone}": least_text for tone in TONES} | dict.fromkeys(BARS, least_bar)
    found = {(name, ground): contrast(colors[name], colors[ground]) for name in least for ground in GROUNDS}
    return {key: round(value, 2) for key, value in found.items() if value < least[key[0]]}


@pytest.mark.parametrize("name", COLORED)
def test_every_tone_can_be_read_on_every_ground(name: str) -> None:
    assert weak_tones(ALL[name], 4.5, 3.0) == {}


@pytest.mark.parametrize("name", COLORED)
def test_steps_of_text_and_states_differ(name: str) -> None:
    colors = colors_of(ALL[name])
    ground = colors["background"]
    steps = [contrast(colors[f"tone-{tone}"], ground) for tone in ("strong", "plain", "dim", "faint")]
    assert steps == sorted(steps, reverse=True)
    assert steps[1] > steps[2] * 1.15 > steps[3]
    for first, second in itertools.combinations(("tone-good", "tone-warn", "tone-bad"), 2):
        assert colors[first].hex != colors[second].hex
    assert 1.05 < contrast(colors["line-cursor"], ground) < 2.0


def test_high_contrast_is_seven_to_one() -> None:
    assert weak_tones(ALL[CONTRAST], 7.0, 3.0) == {}


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("name", [COLORBLIND_DARK, COLORBLIND_LIGHT])
def test_states_are_told_apart_without_red_or_green(name: str, sight: str) -> None:
    colors = colors_of(ALL[name])
    for names in (("tone-good", "tone-warn", "tone-bad"), BARS):
        for first, second in itertools.combinations(names, 2):
            seen, other = lab(colors[first], sight), lab(colors[second], sight)
            distance = sum((a - b) ** 2 for a, b in zip(seen, other, strict=True)) ** 0.5
            assert distance > 20, (first, second)


@pytest.mark.parametrize("theme", [DARK, LIGHT, "nord"])
async def test_tones_stand_out_from_both_backgrounds_of_the_table(theme: str) -> None:
    app = FleetApp(FakeService(), Look(theme=theme), Clock())
    async with app.run_test() as pilot:
        await pilot.pause()
        table = app.screen.query_one(FleetTable)
        grounds = [
            table.background_colors[1],
            table.app.get_component_styles("line--cursor").background,
        ]
        found = {
            (tone, number): contrast(table.app.get_component_styles(f"tone--{tone}").color, ground)
            for tone in TEXT + BARS
            for number, ground in enumerate(grounds)
        }
    weak = {key: round(value, 2) for key, value in found.items() if value < (4.5 if key[0] in TEXT else 3.0)}
    assert weak == {}


async def test_every_theme_can_be_worn_and_changed_while_it_runs() -> None:
    app = FleetApp(FakeService(), Look(), Clock())
    async with app.run_test() as pilot:
        for name in theme_names():
            app.theme = name
            await pilot.pause()
            table = app.screen.query_one(FleetTable)
            tones = {
                tone: table.app.get_component_styles(f"tone--{tone}").color.hex
                for tone in ("good", "warn", "bad")
            }
            assert len(set(tones.values())) == 3, name


def test_every_theme_is_named_once_and_described() -> None:
    names = theme_names()
    assert len(set(names)) == len(names) == len(ALL)
    assert names[0] == DARK
    assert all(describe_theme(name) for name in names)


def test_a_warning_next_to_the_red_of_an_error_is_moved_towards_yellow() -> None:
    colors = colors_of(ALL["solarized-dark"])
    hues = [colors[name].hsl.h * 360 for name in ("bar-bad", "bar-warn")]
    assert (hues[1] - hues[0]) % 360 > 30


def test_the_page_of_settings_lists_every_theme() -> None:
    page = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [name for name in theme_names() if f"`{name}`" not in page] == []
