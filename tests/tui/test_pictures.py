"""Pictures of the screens: the clock stands still, the fleet is the sample one."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot
from tui_fleet import PROBLEM, Clock, FakeService, fleet

from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.themes import DARK, LIGHT

SIZES = [(80, 24), (200, 60)]


def app_of(theme: str, **look: object) -> FleetApp:
    return FleetApp(FakeService(), Look(theme=theme, **look), Clock())  # type: ignore[arg-type]


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    app = pilot.app
    assert isinstance(app, FleetApp)
    app.painter.paint_now()
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", [DARK, LIGHT])
def test_fleet(snap_compare, theme: str, size: tuple[int, int]) -> None:  # type: ignore[no-untyped-def]
    assert snap_compare(app_of(theme), terminal_size=size, run_before=settle)


@pytest.mark.parametrize("size", SIZES)
def test_machine(snap_compare, size: tuple[int, int]) -> None:  # type: ignore[no-untyped-def]
    async def open_machine(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)

    assert snap_compare(app_of(DARK), terminal_size=size, run_before=open_machine)


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
