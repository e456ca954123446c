"""What a list shows and in which order: worked out on change, calm under the cursor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from fleettui.view.sorting import SortOrder, keep_order, may_reorder


class LineFilter(Protocol):
    """A line that was read, ready to match."""

    @property
    def text(self) -> str:
        """The line."""

    @property
    def is_empty(self) -> bool:
        """True when everything matches because nothing is asked."""


SourceT = TypeVar("SourceT")
ItemT = TypeVar("ItemT")
FilterT = TypeVar("FilterT", bound=LineFilter)


class Listing(Generic[SourceT, ItemT, FilterT]):
    """The filtered and sorted items of a source that never changes: another one takes its place."""

    def __init__(self, everything: FilterT, order: SortOrder) -> None:
        self.filter = everything
        self.order = order
        self.shown: Sequence[ItemT] = ()
        """Those of the table, the first one on top."""
        self.matching = 0
        """How many the filter lets through; the one under the cursor may be shown beside them."""
        self.has_moved = False
        """Rows took new places with the last call."""
        self.worked = 0
        """How often it was filtered and sorted so far."""
        self._source: SourceT | None = None
        self._made_for: object = None
        self._is_asked = True
        self._is_settled = True
        """False: rows wait for new places until nobody touches anything."""
        self._held: str | None = None
        """Key of what is shown only because the cursor is on it."""

    @abstractmethod
    def items_of(self, source: SourceT) -> Sequence[ItemT]:
        """All of them, in their usual order."""

    @abstractmethod
    def key_of(self, item: ItemT) -> str:
        """Stays with the item from source to source."""

    @abstractmethod
    def select(self, source: SourceT, now: float) -> Sequence[ItemT]:
        """Those that the filter lets through, in their usual order."""

    @abstractmethod
    def sort(self, items: Iterable[ItemT], now: float) -> Sequence[ItemT]:
        """Items of the usual order in the order that was chosen."""

    def second_of(self, now: float) -> int:
        """What of the time they depend on."""
        return 0

    def ask(self) -> None:
        """The operator asked for it: rows may take new places."""
        self._is_asked = True

    def set_filter(self, wanted: FilterT) -> None:
        """Show what matches."""
        self.filter = wanted
        self.ask()

    def set_order(self, order: SortOrder) -> None:
        """Sort by it."""
        self.order = order
        self.ask()

    def arrange(self, source: SourceT, now: float, cursor: str | None, idle_s: float) -> Sequence[ItemT]:
        """The items in their places. `cursor`: key of the one under it; `idle_s`: since the last key or
        mouse. Nothing is worked out again while neither source, filter, sort nor what counts of the time
        changed."""
        may_move = may_reorder(is_asked=self._is_asked, has_cursor=cursor is not None, idle_s=idle_s)
        made_for = (self.filter, self.order, self.second_of(now))
        is_same = source is self._source and made_for == self._made_for
        if is_same and (self._is_settled or not may_move) and self._held in (None, cursor):
            self._is_asked = self.has_moved = False
            return self.shown
        self._source, self._made_for, self._is_asked = source, made_for, False
        self.worked += 1
        matching = self.select(source, now)
        self.matching = len(matching)
        self._held = None
        before = [self.key_of(item) for item in self.shown]
        if may_move or not before:
            self.shown = self.sort(matching, now)
            self._is_settled = True
            self.has_moved = before != [self.key_of(item) for item in self.shown]
        else:
            self.shown = self._calm(source, matching, now, cursor, before)
            self.has_moved = False
        return self.shown

    def _calm(
        self, source: SourceT, matching: Sequence[ItemT], now: float, cursor: str | None, before: list[str]
    ) -> Sequence[ItemT]:
        """What was there stays where it was; what is under the cursor stays though it may not match."""
        keys = {self.key_of(item) for item in matching}
        if cursor is not None and cursor not in keys and cursor in before:
            keys.add(cursor)
        by_key = {key: item for item in self.items_of(source) if (key := self.key_of(item)) in keys}
        if cursor in by_key and len(by_key) > len(matching):
            self._held = cursor
        wanted = [self.key_of(item) for item in self.sort(by_key.values(), now)]
        places = keep_order(before, wanted, cursor)
        self._is_settled = self._held is None and list(places) == wanted
        return [by_key[key] for key in places]
