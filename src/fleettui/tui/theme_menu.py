"""The menu of themes."""

from __future__ import annotations

from collections.abc import Callable

from fleettui.tui.screens.menu.screen import MenuScreen
from fleettui.tui.themes import describe_theme, theme_names
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell


def theme_menu(current: str, show: Callable[[str], None]) -> MenuScreen:
    """A menu that shows each theme as the cursor moves over it."""
    width = max(len(name) for name in theme_names())
    lines = [
        Line(name, (Cell(f"{name:<{width}}"), Cell(f"  {describe_theme(name)}", "dim")))
        for name in theme_names()
    ]
    return MenuScreen("Theme", lines, current, show)
