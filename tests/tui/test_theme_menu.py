"""The menu of themes shows each on the screen; the dashboard in ASCII has nothing else anywhere."""

from __future__ import annotations

import re
from html import unescape

import pytest
from fleet_driver import Driver, dashboard
from textual.geometry import Region
from textual.widget import Widget
from tui_fleet import PROBLEM, Clock, FakeService, fleet, rack

from fleettui.tui.app import FleetApp
from fleettui.tui.memory import Memory
from fleettui.tui.port import Look
from fleettui.tui.screens.menu.screen import MenuScreen
from fleettui.tui.themes import DARK, LIGHT, theme_names


def remembered(theme: str) -> Memory:
    return Memory({"app": {"theme": theme}})


def visible_text(driver: Driver) -> str:
    """All that is on the screen, whoever drew it."""
    svg = driver.app.export_screenshot(title="", simplify=True)
    parts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return "".join(unescape(part) for part in parts).replace("\xa0", " ")


async def test_moving_shows_a_theme_and_enter_keeps_it() -> None:
    async with dashboard(size=(132, 36)) as driver:
        await driver.press("colon")
        await driver.type("theme")
        await driver.press("enter")
        menu = driver.app.screen
        assert isinstance(menu, MenuScreen)
        assert driver.app.theme == DARK
        await driver.press("down")
        assert driver.app.theme == LIGHT
        assert driver.table.background_colors[1].hex == "#FAFBFC"
        assert "ada" in visible_text(driver), "what is below stays in sight"
        await driver.press("enter")
        assert driver.app.theme == LIGHT
        assert driver.app.memory.part("app")["theme"] == LIGHT


async def test_escape_goes_back_and_remembers_nothing() -> None:
    async with dashboard(size=(132, 36), look=Look(theme="nord")) as driver:
        driver.app.action_theme()
        await driver.settle()
        await driver.press("G")
        assert driver.app.theme == theme_names()[-1]
        await driver.press("escape")
        assert driver.app.theme == "nord"
        assert "theme" not in driver.app.memory.part("app")


async def test_a_theme_is_named_on_the_command_line_and_a_wrong_one_is_told() -> None:
    async with dashboard(size=(132, 36)) as driver:
        driver.app.action_theme("nord")
        assert driver.app.theme == "nord"
        driver.app.action_theme("nort")
        assert driver.app.theme == "nord"
        await driver.settle()
        said = [note.message for note in driver.app._notifications]
        assert said == ["There is no theme nort; did you mean nord?"]


@pytest.mark.parametrize(
    ("look", "memory", "theme"),
    [
        (Look(), remembered("dracula"), "dracula"),
        (Look(theme="nord"), remembered("dracula"), "nord"),
        (Look(), remembered("gone-with-the-last-version"), DARK),
        (Look(), Memory({"app": {"theme": 7}}), DARK),
    ],
)
async def test_the_last_choice_holds_unless_the_settings_name_one(
    look: Look, memory: Memory, theme: str
) -> None:
    async with dashboard(look=look, memory=memory) as driver:
        assert driver.app.theme == theme


async def test_without_colours_there_is_no_choice_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with dashboard(memory=remembered("nord")) as driver:
        assert driver.app.theme == "fleettui-ansi"
        assert driver.app.check_action("theme", ()) is False
        colors = {
            color.name
            for strip in driver.table.render_lines(Region(0, 0, *driver.table.size))
            for segment in strip
            if segment.style is not None
            for color in (segment.style.color, segment.style.bgcolor)
            if color is not None
        }
        assert colors <= {"default"}


async def test_a_variable_set_to_nothing_takes_no_colours_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    async with dashboard(memory=remembered("nord")) as driver:
        assert driver.app.theme == "nord"
        assert driver.app.check_action("theme", ()) is not False


@pytest.mark.parametrize("has_color", [True, False])
async def test_ascii_signs_are_all_there_is(has_color: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_color:
        monkeypatch.setenv("NO_COLOR", "1")
    service = FakeService(fleet(rack(60), problems=(PROBLEM,)))
    app = FleetApp(service, Look(glyphs="ascii"), Clock())
    async with app.run_test(size=(132, 30), notifications=True) as pilot:
        driver = Driver(app, service, pilot)
        await driver.settle()
        seen = {"fleet": visible_text(driver)}
        await driver.press("question_mark")
        assert "+-" in visible_text(driver)
        seen["help"] = visible_text(driver)
        await driver.press("escape", "colon")
        seen["command line"] = visible_text(driver)
        await driver.press("escape", "o")
        seen["menu"] = visible_text(driver)
        await driver.press("escape", "ctrl+p")
        await driver.app.workers.wait_for_complete()
        await driver.settle()
        seen["palette"] = visible_text(driver)
        await driver.press("escape")
        driver.app.notify("text of a toast", title="title", severity="error")
        await driver.settle()
        seen["toast"] = visible_text(driver)
        assert "text of a toast" in seen["toast"]
        await driver.press("enter")
        seen["machine"] = visible_text(driver)
    strange = {where: sorted({sign for sign in text if not sign.isascii()}) for where, text in seen.items()}
    assert {where: signs for where, signs in strange.items() if signs} == {}


async def test_scrollbars_move_in_ascii() -> None:
    def bar(widget: Widget) -> list[bool]:
        strips = widget.vertical_scrollbar.render_lines(
            Region(0, 0, 1, widget.vertical_scrollbar.size.height)
        )
        return [bool(next(iter(strip)).style.reverse) for strip in strips]  # type: ignore[union-attr]

    async with dashboard(FakeService(fleet(rack(60))), (132, 30), Look(glyphs="ascii")) as driver:
        top = bar(driver.table)
        assert top[0]
        assert not top[-1]
        await driver.press("G")
        bottom = bar(driver.table)
        assert bottom[-1]
        assert not bottom[0]
    async with dashboard(FakeService(fleet(rack(60))), (132, 30)) as driver:
        assert driver.table.vertical_scrollbar.renderer.VERTICAL_BARS[0] != " "
