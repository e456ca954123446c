"""What a screen says while a server is asked instead of the machines."""

from __future__ import annotations

from fleettui.view.cells import Cell, Cells

VIA_SERVER = "via server"
SERVER_AWAY = "server away"
ASKING_HERE = "server away, asking from here"
_WHOLE_FROM = 100


def origin_cells(origin: str, width: int) -> Cells:
    """`via server`; shorter on a screen that has not that many columns."""
    text = origin if width >= _WHOLE_FROM else origin.partition(",")[0]
    return (Cell(text, "accent" if origin == VIA_SERVER else "warn"),)
