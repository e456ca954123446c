"""Which models the table shows and in which order: worked out on change, calm under the cursor."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.view.model_filter import NO_FILTER, ModelFilter
from fleettui.view.model_matrix import ModelLine
from fleettui.view.model_order import DEFAULT_ORDER, sort_lines
from fleettui.view.sorting import SortOrder, keep_order, may_reorder


class ModelListing:
    """The filtered and sorted models."""

    def __init__(self) -> None:
        self.filter: ModelFilter = NO_FILTER
        self.order: SortOrder = DEFAULT_ORDER
        self.shown: Sequence[ModelLine] = ()
        """Models of the table, the first one on top."""
        self.matching = 0
        """How many the filter lets through; the one under the cursor may be shown beside them."""
        self.worked = 0
        """How often models were filtered and sorted so far."""
        self._lines: Sequence[ModelLine] | None = None
        self._is_asked = True
        self._is_settled = True
        """False: rows wait for new places until nobody touches anything."""
        self._held: str | None = None
        """The model that is shown only because the cursor is on it."""

    def ask(self) -> None:
        """The operator asked for it: rows may take new places."""
        self._is_asked = True

    def set_filter(self, wanted: ModelFilter) -> None:
        """Show what matches."""
        self.filter = wanted
        self.ask()

    def set_order(self, order: SortOrder) -> None:
        """Sort by it."""
        self.order = order
        self.ask()

    def arrange(self, lines: Sequence[ModelLine], cursor: str | None, idle_s: float) -> Sequence[ModelLine]:
        """The models in their places. `cursor`: key of the model under it; `idle_s`: since the last key or
        mouse. Nothing is worked out again while neither lines, filter nor sort changed."""
        may_move = may_reorder(is_asked=self._is_asked, has_cursor=cursor is not None, idle_s=idle_s)
        is_same = lines is self._lines and not self._is_asked
        if is_same and (self._is_settled or not may_move) and self._held in (None, cursor):
            return self.shown
        self._lines, self._is_asked = lines, False
        self.worked += 1
        matching = self.filter.select(lines)
        self.matching = len(matching)
        self._held = None
        if may_move or not self.shown:
            self.shown = sort_lines(matching, self.order)
            self._is_settled = True
        else:
            self.shown = self._calm(lines, matching, cursor)
        return self.shown

    def _calm(
        self, lines: Sequence[ModelLine], matching: Sequence[ModelLine], cursor: str | None
    ) -> Sequence[ModelLine]:
        """What was there stays where it was; the model under the cursor stays though it may not match."""
        by_key = {line.key: line for line in matching}
        if cursor is not None and cursor not in by_key:
            held = next((line for line in lines if line.key == cursor), None)
            if held is not None:
                self._held = cursor
                by_key[cursor] = held
        chosen = [line for line in lines if line.key in by_key]
        wanted = [line.key for line in sort_lines(chosen, self.order)]
        keys = keep_order([line.key for line in self.shown], wanted, cursor)
        self._is_settled = self._held is None and list(keys) == wanted
        return [by_key[key] for key in keys]
