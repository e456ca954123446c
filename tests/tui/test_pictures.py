"""A few pictures as a terminal shows them: the clock stands still, the fleet is the sample one.

What stands on every screen, in every size and under every theme, is compared as text in test_screens."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot
from tui_fleet import PROBLEM, Clock, FakeService, fleet

from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.themes import DARK, LIGHT
from fleettui.tui.themes.own import COLORBLIND_DARK


def app_of(theme: str, **look: object) -> FleetApp:
    return FleetApp(FakeService(), Look(theme=theme, **look), Clock())  # type: ignore[arg-type]


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    app = pilot.app
    assert isinstance(app, FleetApp)
    app.painter.paint_now()
    await pilot.pause()


@pytest.mark.parametrize(
    ("theme", "size"), [(DARK, (80, 24)), (LIGHT, (200, 60)), (COLORBLIND_DARK, (120, 40))]
)
def test_fleet(snap_compare, theme: str, size: tuple[int, int]) -> None:  # type: ignore[no-untyped-def]
    assert snap_compare(app_of(theme), terminal_size=size, run_before=settle)


def test_small_terminal_with_a_problem(snap_compare) -> None:  # type: ignore[no-untyped-def]
    app = FleetApp(FakeService(fleet(problems=(PROBLEM,))), Look(theme=DARK), Clock())
    assert snap_compare(app, terminal_size=(40, 12), run_before=settle)


def test_ascii_signs(snap_compare) -> None:  # type: ignore[no-untyped-def]
    assert snap_compare(app_of(DARK, glyphs="ascii"), terminal_size=(100, 30), run_before=settle)


def test_help(snap_compare) -> None:  # type: ignore[no-untyped-def]
    async def ask(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("question_mark")
        await pilot.pause()

    assert snap_compare(app_of(DARK), terminal_size=(80, 24), run_before=ask)
