"""What 1 to 5 show, by name. Each keeps a stack of screens of its own, so that going there is instant.

The modules of a screen are loaded when it is opened first: all of them together are a fifth of our own code,
2 MiB of memory and some of the time before the first paint, and most runs open few.
"""

from __future__ import annotations

from collections.abc import Callable

from fleettui.tui.live import LiveScreen
from fleettui.tui.screens.fleet.screen import FleetScreen


def _open_models() -> LiveScreen:
    from fleettui.tui.screens.models.screen import ModelsScreen

    return ModelsScreen()


def _open_route() -> LiveScreen:
    from fleettui.tui.screens.route.screen import RouteScreen

    return RouteScreen()


def _open_plan() -> LiveScreen:
    from fleettui.tui.screens.plan.screen import PlanScreen

    return PlanScreen()


def _open_events() -> LiveScreen:
    from fleettui.tui.screens.events.screen import EventsScreen

    return EventsScreen()


TOP_SCREENS: tuple[tuple[str, Callable[[], LiveScreen]], ...] = (
    ("fleet", FleetScreen),
    ("models", _open_models),
    ("route", _open_route),
    ("plan", _open_plan),
    ("events", _open_events),
)
