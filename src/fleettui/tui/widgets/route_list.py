"""The ranking as a list: the cursor goes from machine to machine."""

from __future__ import annotations

from fleettui.tui.widgets.block_list import BlockList
from fleettui.view.route_rows import RouteRow


class RouteList(BlockList[RouteRow]):
    """Machines with their reasons, or models to choose from."""
