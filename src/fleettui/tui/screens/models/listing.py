"""Which models the table shows and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fleettui.tui.listing import Listing
from fleettui.view.model_filter import NO_FILTER, ModelFilter
from fleettui.view.model_matrix import ModelLine
from fleettui.view.model_order import DEFAULT_ORDER, sort_lines


class ModelListing(Listing[Sequence[ModelLine], ModelLine, ModelFilter]):
    """By key of the model."""

    def __init__(self) -> None:
        super().__init__(NO_FILTER, DEFAULT_ORDER)

    def items_of(self, source: Sequence[ModelLine]) -> Sequence[ModelLine]:
        return source

    def key_of(self, item: ModelLine) -> str:
        return item.key

    def select(self, source: Sequence[ModelLine], now: float) -> Sequence[ModelLine]:
        return self.filter.select(source)

    def sort(self, items: Iterable[ModelLine], now: float) -> Sequence[ModelLine]:
        return sort_lines(items, self.order)
