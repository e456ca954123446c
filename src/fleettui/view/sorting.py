"""How the fleet's table is ordered: what columns sort by, and an order that keeps still under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from fleettui.model.order import natural_key
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe
from fleettui.model.vram import vram_sum
from fleettui.view.columns import COLUMNS, SortKey, known_value
from fleettui.view.figures import is_answering, percent_of

_ALWAYS_KNOWN = frozenset({"machine", "health", "age", "note"})
"""Columns that say something of a machine that does not answer; other values of it are old, so unknown."""

IDLE_S = 10.0
"""Seconds without key or mouse after which rows may take their new places."""


class Sort(NamedTuple):
    """Something to sort by."""

    key: str
    title: str
    """For the menu."""
    column: str
    """Key of the column that shows it."""
    order: SortKey
    is_descending_first: bool


class Sortable(Protocol):
    """A `Sort` of whatever list."""

    @property
    def key(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def is_descending_first(self) -> bool: ...


class SortOrder(NamedTuple):
    """What the operator chose."""

    column: str = "machine"
    """Key of a `Sort`."""
    is_descending: bool = False


def _vram_share(snapshot: MachineSnapshot) -> Maybe[float]:
    sums = vram_sum(snapshot)
    return percent_of(sums.used_mib, sums.total_mib)


_OTHER_SORTS = (
    Sort("vram_used", "VRAM used", "vram", lambda s, _: known_value(vram_sum(s).used_mib), True),
    Sort("vram_percent", "VRAM used, %", "vram", lambda s, _: known_value(_vram_share(s)), True),
)
_TITLES = {"vram": "VRAM free", "gpu": "GPU utilisation", "disk": "fullest disk"}

SORTS: tuple[Sort, ...] = (
    *(
        Sort(column.key, _TITLES.get(column.key, column.title), column.key, column.order,
             column.is_descending_first)
        for column in COLUMNS
        if column.order is not None
    ),
    *_OTHER_SORTS,
)  # fmt: skip
"""One for each column of figures in the order of the table, then those that share a column."""

_BY_KEY = {sort.key: sort for sort in SORTS}
_SORTS_AS = {column.key: column.sorts_as for column in COLUMNS if column.sorts_as}


def sort_named(key: str) -> Sort | None:
    """The sort of that key; of a column that only draws what another has in figures, that one's."""
    return _BY_KEY.get(_SORTS_AS.get(key, key))


class Sorting(NamedTuple):
    """How a list is sorted."""

    sorts: Sequence[Sortable]
    """In the order of the menu."""
    named: Callable[[str], Sortable | None]
    """The sort of a key."""
    next: Callable[[SortOrder, Sequence[str], int], SortOrder]
    """The sort of the next column (1) or of the one before (-1) among those shown."""

    def choose(self, order: SortOrder, key: str) -> SortOrder:
        """A sort chosen in the menu or by its header: from its usual end first, turned when chosen again.
        An unknown key changes nothing."""
        sort = self.named(key)
        if sort is None:
            return order
        if sort.key == order.column:
            return order._replace(is_descending=not order.is_descending)
        return SortOrder(sort.key, sort.is_descending_first)


def order_from(text: str, before: SortOrder, sorts: Sequence[Sortable]) -> SortOrder | str:
    """The order that `vram`, `vram used` or `power asc` names; else a sentence that says what is wrong."""
    *words, last = text.split() or [""]
    is_descending = _DIRECTIONS.get(last.lower())
    name = " ".join(words if is_descending is not None and words else (*words, last)).lower()
    named = {sort.title.lower(): sort for sort in sorts} | {sort.key: sort for sort in sorts}
    sort = named.get(name) or named.get(name.replace(" ", "_"))
    if sort is None:
        from difflib import get_close_matches

        near = get_close_matches(name, list(named), 1, 0.5)
        known = f"there are {', '.join(sort.key for sort in sorts)}"
        return f"nothing is called {name!r} to sort by; {f'did you mean {near[0]}?' if near else known}"
    if is_descending is not None:
        return SortOrder(sort.key, is_descending)
    return before if sort.key == before.column else SortOrder(sort.key, sort.is_descending_first)


_DIRECTIONS = {"desc": True, "descending": True, "down": True, "asc": False, "ascending": False, "up": False}


def next_sort(order: SortOrder, shown: Sequence[str], step: int = 1) -> SortOrder:
    """The sort of the next column (step 1) or of the one before (-1) among the shown ones, around the end."""
    keys = [key for key in shown if key in _BY_KEY]
    if not keys:
        return order
    current = sort_named(order.column)
    place = current.column if current is not None else ""
    index = (keys.index(place) + step) % len(keys) if place in keys else (0 if step > 0 else -1)
    sort = _BY_KEY[keys[index]]
    return order if sort.key == order.column else SortOrder(sort.key, sort.is_descending_first)


MACHINE_SORTING = Sorting(SORTS, sort_named, next_sort)


def sort_machines(machines: Iterable[MachineSnapshot], order: SortOrder, now: float) -> list[MachineSnapshot]:
    """Machines by a sort; equals in natural order of their names, unknown values last in both directions."""
    named = sorted(machines, key=lambda item: natural_key(item.name))
    sort = sort_named(order.column)
    if sort is None:
        return named
    if sort.key == "machine":
        return named[::-1] if order.is_descending else named
    known, unknown = [], []
    for item in named:
        key = sort.order(item, now) if sort.column in _ALWAYS_KNOWN or is_answering(item) else None
        if key is None:
            unknown.append(item)
        else:
            known.append((key, item))
    known.sort(key=lambda pair: pair[0], reverse=order.is_descending)
    return [item for _, item in known] + unknown


def may_reorder(*, is_asked: bool, has_cursor: bool, idle_s: float) -> bool:
    """The rule of calm: rows take new places only when the operator asks (moves the sort, presses refresh,
    changes the filter), when no row is under the cursor, or when nobody touched anything for `IDLE_S`."""
    return is_asked or not has_cursor or idle_s >= IDLE_S


def keep_order(previous: Sequence[str], wanted: Sequence[str], cursor: str | None = None) -> tuple[str, ...]:
    """An order in which what was there stays where it was.

    Names that are gone leave. New ones come to their wanted place where that is below the cursor, else last:
    nothing is ever pushed in above the row under the cursor. Without a cursor's row it is `wanted`.
    """
    asked = set(wanted)
    if cursor is None or cursor not in asked or cursor not in previous:
        return tuple(wanted)
    kept = [name for name in previous if name in asked]
    return tuple(_insert_new(kept, wanted, cursor))


def _insert_new(kept: list[str], wanted: Sequence[str], cursor: str) -> list[str]:
    known = set(kept)
    followers: dict[str, list[str]] = {}
    """New names behind the name that wanted puts before them."""
    last: list[str] = []
    movable = _from_cursor_on(kept, cursor)
    before: str | None = None
    for name in wanted:
        if name in known:
            before = name
        elif before is not None and before in movable:
            followers.setdefault(before, []).append(name)
        else:
            last.append(name)
    placed: list[str] = []
    for name in kept:
        placed.append(name)
        placed += followers.get(name, ())
    return placed + last


def _from_cursor_on(kept: list[str], cursor: str) -> Collection[str]:
    return frozenset(kept[kept.index(cursor) :])
