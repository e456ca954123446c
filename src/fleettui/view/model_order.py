"""The lines of the Models screen in an order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from fleettui.model.order import natural_key
from fleettui.view.columns import known_value
from fleettui.view.model_matrix import ModelLine
from fleettui.view.sorting import Sorting, SortOrder


class ModelSort(NamedTuple):
    """Something to sort by."""

    key: str
    title: str
    """For the menu."""
    column: str
    """Key of the column that shows it."""
    order: Callable[[ModelLine], Any]
    """None: there is nothing to compare; such lines come last in either direction."""
    is_descending_first: bool = True


def _or_none(number: int) -> int | None:
    return number or None


MODEL_SORTS: tuple[ModelSort, ...] = (
    ModelSort("model", "name", "model", lambda line: natural_key(line.name), False),
    ModelSort("copies", "copies", "copies", lambda line: _or_none(line.figures.copies)),
    ModelSort("vram", "VRAM", "vram", lambda line: known_value(line.figures.vram_bytes)),
    ModelSort("gpu", "share on the GPU", "gpu", lambda line: known_value(line.figures.gpu_percent), False),
    ModelSort("expiry", "next expiry", "expiry", lambda line: line.figures.expires_at, False),
    ModelSort("installed", "installed on", "installed", lambda line: _or_none(line.figures.installed)),
    ModelSort("declared", "declared on", "declared", lambda line: _or_none(line.figures.declared)),
    ModelSort("spare", "more than one needs", "note", lambda line: known_value(line.figures.spare_bytes)
              if line.figures.spare_copies else None),
)  # fmt: skip
"""In the order of the table."""
DEFAULT_ORDER = SortOrder("vram", True)
_BY_KEY = {sort.key: sort for sort in MODEL_SORTS}


def model_sort_named(key: str) -> ModelSort | None:
    """The sort of that key."""
    return _BY_KEY.get(key)


def next_model_sort(order: SortOrder, shown: Sequence[str], step: int = 1) -> SortOrder:
    """The sort of the next column (step 1) or of the one before (-1) among the shown ones, around the end."""
    sorts = [sort for sort in MODEL_SORTS if sort.column in shown]
    if not sorts:
        return order
    keys = [sort.key for sort in sorts]
    place = (keys.index(order.column) + step) % len(keys) if order.column in keys else 0
    return SortOrder(keys[place], sorts[place].is_descending_first)


MODEL_SORTING = Sorting(MODEL_SORTS, model_sort_named, next_model_sort)


def sort_lines(lines: Iterable[ModelLine], order: SortOrder) -> list[ModelLine]:
    """Lines by a sort; equals by name, those with nothing to compare last. `lines`: by name, as
    `ModelIndex` gives them."""
    named = list(lines)
    sort = _BY_KEY.get(order.column)
    if sort is None or sort.key == "model":
        return named[::-1] if sort is not None and order.is_descending else named
    known = [(value, line) for line in named if (value := sort.order(line)) is not None]
    rest = [line for line in named if sort.order(line) is None]
    known.sort(key=lambda pair: pair[0], reverse=order.is_descending)
    return [line for _, line in known] + rest
