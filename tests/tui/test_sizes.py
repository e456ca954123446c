"""Any size of the terminal, on every screen: nothing breaks, no line is too long, and all comes back."""

from __future__ import annotations

from typing import Any

import pytest
from test_machine_panes import FakeLog
from test_screens import FLEETS, SCREENS, Fleet, come_to, make_app, settle
from textual.app import App
from textual.events import Resize
from textual.geometry import Size

pytestmark = pytest.mark.usefixtures("quick_waiting")

USUAL = (120, 40)
SIZES = ((1, 1), (2, 2), (1000, 20), (20, 200), (40, 12), (3, 7))
STEPS = (0, 1, 2, 3, 4, 5, 8, 13, 18, 21, 30, 47)
"""Lines and columns of a window that is drawn smaller and larger by its corner."""
KEYS = ("G", "pagedown", "k", "g")
TYPED = {"mistake", "pick"}
"""Where keys are typed, not done."""


def lines_of(app: App[Any]) -> list[str]:
    """What stands there; no line is longer than the screen."""
    strips = app.screen._compositor.render_strips()
    size = app.size
    assert len(strips) == size.height
    assert {strip.cell_length for strip in strips} <= {size.width}
    return [strip.text.rstrip() for strip in strips]


CASES = [
    (screen, "broken" if "broken" in kinds else "healthy")
    for screen, (kinds, _) in SCREENS.items()
    if screen not in {"filter", "command", "help of a machine"}  # as mistake, help
]


@pytest.mark.parametrize(("screen", "kind"), [*CASES, ("fleet", "300"), ("models", "300")])
async def test_no_size_breaks_a_screen(screen: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeLog(monkeypatch)
    shown: Fleet = FLEETS[kind]()
    app = make_app(screen, shown)
    async with app.run_test(size=USUAL) as pilot:
        await come_to(screen, shown, pilot)
        before = lines_of(app)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            lines_of(app)
        await pilot.resize_terminal(*USUAL)
        await settle(pilot)
        assert lines_of(app) == before
        for size in () if screen in TYPED else SIZES[2:4]:
            await pilot.resize_terminal(*size)
            await pilot.press(*KEYS)
            await settle(pilot)
            lines_of(app)


@pytest.mark.parametrize("size", SIZES[:4])
async def test_a_dashboard_may_begin_in_any_size(size: tuple[int, int]) -> None:
    shown = FLEETS["broken"]()
    app = make_app("fleet", shown)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        lines_of(app)
        await pilot.press(
            "enter", "question_mark", "escape", "escape", "a", "escape", "2", "5", "o", "escape"
        )
        await settle(pilot)
        lines_of(app)


async def test_a_window_that_is_drawn_by_its_corner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes come faster than they are painted."""
    FakeLog(monkeypatch)
    shown = FLEETS["broken"]()
    app = make_app("fleet", shown)
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        before = lines_of(app)
        for key in ("", "2", "5"):
            if key:
                await pilot.press(key)
            for step in (*STEPS, *reversed(STEPS)):
                size = Size(USUAL[0] - 2 * step, USUAL[1] - step // 2)
                app._driver._size = size  # type: ignore[union-attr]
                app.post_message(Resize(size, size))
        await pilot.press("1")
        await pilot.resize_terminal(*USUAL)
        await settle(pilot)
        assert lines_of(app) == before
