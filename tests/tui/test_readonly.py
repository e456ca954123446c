"""--readonly: no action that changes anything is there, on no screen and by no way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from inspect import isawaitable
from pathlib import Path

import pytest
from action_rig import EndlessDesk, RecordingDesk
from test_pending_panel import GINA, KIOSK, REJECTED, FakeTrust
from textual.pilot import Pilot
from tui_fleet import Clock, FakeService, fleet, sample_machines

from fleettui.tui.action import Action
from fleettui.tui.actions import ACTIONS
from fleettui.tui.app import TOP_SCREENS, FleetApp
from fleettui.tui.command_line import CommandLine
from fleettui.tui.offers import actions_now
from fleettui.tui.port import Look
from fleettui.tui.screens.help.screen import HelpScreen
from fleettui.tui.screens.machine.tabs import TABS
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.route_list import RouteList

pytestmark = pytest.mark.usefixtures("quick_waiting")

CHANGING = tuple(action for action in ACTIONS if action.changes)
WHILE_ASKED = {"confirm", "undo"}
"""There only while something was begun, which takes one of the others."""
SOURCE = Path(__file__).resolve().parents[2] / "src" / "fleettui" / "tui"
CHANGES = re.compile(
    r"\btrust\.(approve|reject|remove|add|read_key)\(|\.set_maintenance\(|\bflags\.undo\(|\.prepare\("
    r"|\bdesk\.(take_lease|warm_up|start|cancel|undrain|skip|resume|resume_soon)\b"
)
"""What changes something, or lets the operator: calls of the service."""


def show_top(name: str) -> Callable[[FleetApp], object]:
    return lambda app: app.show_top_screen(name)


def show_tab(tab: str) -> Callable[[FleetApp], object]:
    return lambda app: app.open_machine("ada", tab)


async def show_cold(app: FleetApp) -> None:
    """The Route screen, on a machine that would have to load the model."""
    await app.action_route("llama3.1:70b")
    app.painter.paint_now()
    app.screen.query_one(RouteList).move_cursor(1)


def show_drain(name: str) -> Callable[[FleetApp], object]:
    """As if one could come there with --readonly."""

    async def show(app: FleetApp) -> None:
        app.open_drain((name,))
        for _ in range(2):
            await app.workers.wait_for_complete()
            app.painter.paint_now()

    return show


PLACES: dict[str, Callable[[FleetApp], object]] = {
    **{name: show_top(name) for name, _ in TOP_SCREENS},
    **{f"machine, {tab.key}": show_tab(tab.key) for tab in TABS},
    "pending": lambda app: app.open_pending("kiosk"),
    "key changed": lambda app: app.open_pending("gina"),
    "rejected": lambda app: app.open_pending("old"),
    "a cold machine": show_cold,
    "drain": show_drain("ada"),
    "drain at work": show_drain("cleo"),
    "drain cancelled": show_drain("dora"),
    "drain left behind": show_drain("pve52"),
}


def make_app(*, is_readonly: bool) -> FleetApp:
    machines = [item for item in sample_machines() if item.name != "kiosk"]
    service = FakeService(
        fleet(tuple(sorted((*machines, GINA, KIOSK, REJECTED), key=lambda item: item.name)))
    )
    service.trust = FakeTrust()  # type: ignore[assignment]
    service.routing = EndlessDesk()  # type: ignore[assignment]
    service.drains = RecordingDesk(service)  # type: ignore[assignment]
    return FleetApp(service, Look(is_readonly=is_readonly), Clock())


async def go_to(place: str, app: FleetApp, pilot: Pilot[None]) -> None:
    await pilot.pause()
    app.painter.paint_now()
    going = PLACES[place](app)
    if isawaitable(going):
        await going
    await pilot.pause()
    app.painter.paint_now()
    await pilot.pause()


def offered(app: FleetApp) -> set[str]:
    return {offer.action.id for offer in actions_now(app.screen)}


@pytest.mark.parametrize("place", PLACES)
async def test_nothing_that_changes_is_there(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    app = make_app(is_readonly=True)
    async with app.run_test(size=(200, 50)) as pilot:
        await go_to(place, app, pilot)
        ids = {action.id for action in CHANGING}
        assert offered(app).isdisjoint(ids)
        titles = {command.title.lower() for command in app.get_system_commands(app.screen)}
        assert titles.isdisjoint(
            {action.title for action in CHANGING if action.title not in _shared_titles()}
        )
        footer = app.screen.query_one("#footer", CellBlock).text
        line = CommandLine(actions_now(app.screen))
        for action in CHANGING:
            assert f"{action.label} {action.title}" not in footer
            offer, _ = line.read(action.name)
            assert offer is None or offer.action.id not in ids
            for node in (app, *app.screen.walk_children(), app.screen):
                if hasattr(node, f"action_{action.id}"):
                    monkeypatch.setattr(node, f"action_{action.id}", lambda *_, id=action.id: ran.append(id))
        await pilot.press(*_keys_of(CHANGING))
        await pilot.pause()
        assert ran == []


@pytest.mark.parametrize(
    "place", [place for place in PLACES if place not in {"pending", "key changed", "rejected"}]
)
async def test_help_does_not_speak_of_it(place: str) -> None:
    app = make_app(is_readonly=True)
    async with app.run_test(size=(200, 60)) as pilot:
        await go_to(place, app, pilot)
        app.action_help()
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        assert {line.key for line in app.screen.lines}.isdisjoint({action.id for action in CHANGING})


async def test_without_it_every_one_of_them_is_somewhere() -> None:
    """The tests above would pass on actions that are nowhere."""
    seen: set[str] = set()
    app = make_app(is_readonly=False)
    async with app.run_test(size=(200, 50)) as pilot:
        for place in PLACES:
            app.show_top_screen(app.current_mode)
            await go_to(place, app, pilot)
            seen |= offered(app)
    assert {action.id for action in CHANGING} - WHILE_ASKED <= seen


def changing_modules() -> Iterator[str]:
    """Modules of the dashboard that call what changes something."""
    for path in sorted(SOURCE.rglob("*.py")):
        if CHANGES.search(path.read_text(encoding="utf-8")):
            yield path.relative_to(SOURCE).as_posix()


def test_what_changes_something_is_called_in_known_places_only() -> None:
    """Who adds one declares its action with `changes=True`, and its module here. A lease is
    left out where nothing may change; the address is copied all the same."""
    assert set(changing_modules()) == {
        "draining.py", "maintenance.py", "shell.py", "screens/pending/decisions.py",
        "screens/route/taking.py", "screens/route/warming.py",
    }  # fmt: skip
    assert {action.id for action in CHANGING} == {
        "maintenance", "maintenance_reason", "undo", "shell", "approve", "confirm", "reject", "read_key",
        "warm_up", "drain", "undrain", "drain_start", "drain_cancel", "drain_abort", "drain_take_over",
        "drain_skip",
    }  # fmt: skip


def _shared_titles() -> set[str]:
    """Titles that an action which changes nothing has as well."""
    return {action.title for action in ACTIONS if not action.changes}


def _keys_of(actions: tuple[Action, ...]) -> list[str]:
    own = [key for action in actions for key in action.keys.split(",")]
    return [key for key in dict.fromkeys(own) if key not in {"enter", "a"}]
