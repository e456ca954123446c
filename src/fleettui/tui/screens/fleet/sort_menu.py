"""What the fleet's table can be sorted by: the menu, and the words behind `:sort`."""

from __future__ import annotations

from difflib import get_close_matches

from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell
from fleettui.view.glyphs import Glyphs
from fleettui.view.sorting import SORTS, SortOrder, choose_sort, sort_named

_DOWN, _UP = ("desc", "descending", "down"), ("asc", "ascending", "up")


def sort_lines(order: SortOrder, glyphs: Glyphs) -> list[Line]:
    """A line for each sort, the present one with its direction."""
    width = max(len(sort.title) for sort in SORTS)
    lines = []
    for sort in SORTS:
        is_present = sort.key == order.column
        arrow = (glyphs.descending if order.is_descending else glyphs.ascending) if is_present else " "
        title = Cell(f" {sort.title:<{width}}  ", "strong" if is_present else "plain")
        lines.append(Line(sort.key, (title, Cell(f"{arrow} ", "accent"))))
    return lines


def order_from(text: str, before: SortOrder) -> SortOrder | str:
    """The order that `vram`, `vram used` or `power asc` names; else a sentence that says what is wrong."""
    *words, last = text.split() or [""]
    direction = True if last.lower() in _DOWN else False if last.lower() in _UP else None
    name = " ".join(words if direction is not None and words else (*words, last)).lower()
    keys = {sort.title.lower(): sort.key for sort in SORTS} | {sort.key: sort.key for sort in SORTS}
    key = keys.get(name) or keys.get(name.replace(" ", "_"))
    if key is None:
        near = get_close_matches(name, list(keys), 1, 0.5)
        known = f"there are {', '.join(sort.key for sort in SORTS)}"
        return f"nothing is called {name!r} to sort by; {f'did you mean {near[0]}?' if near else known}"
    if direction is not None:
        return SortOrder(key, direction)
    sort = sort_named(key)
    return before if sort is not None and key == before.column else choose_sort(before, key)
