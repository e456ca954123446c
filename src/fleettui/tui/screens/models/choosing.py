"""What the operator chooses to see of the models: filter, sort, what is open; by key, mouse and name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from fleettui.tui.choosing import ChoosingScreen
from fleettui.tui.memory import Part, texts_in
from fleettui.tui.screens.models.listing import ModelListing
from fleettui.tui.screens.models.table import ModelTable
from fleettui.tui.widgets.group_table import GroupTable
from fleettui.tui.widgets.prompt import Question
from fleettui.view.filter_language import FilterError
from fleettui.view.model_filter import (
    PLACEHOLDER,
    ModelFilter,
    complete_model_filter,
    filter_cells,
    parse_model_filter,
)
from fleettui.view.model_layout import ModelLayout
from fleettui.view.model_matrix import ModelLine
from fleettui.view.model_order import MODEL_SORTING

MOST_OPENED = 500
"""Open models that are remembered; beyond that only those that there are now."""


class ChoosingModels(ChoosingScreen[ModelFilter]):
    """A screen with a table of models, and what of it is shown."""

    MEMORY = "models"
    SORTING = MODEL_SORTING
    SORT_TITLE = "Sort models by"

    def __init__(self) -> None:
        super().__init__()
        self.listing: ModelListing = ModelListing()
        self.opened: set[str] = set()
        """Keys of models that show their machines."""
        self.lines: tuple[ModelLine, ...] = ()
        """All models, by name."""

    @property
    @abstractmethod
    def table(self) -> ModelTable:
        """The list of models."""

    @property
    @abstractmethod
    def layout_now(self) -> ModelLayout | None:
        """Where the columns stand; None before the first paint."""

    def restore(self) -> Part:
        part = super().restore()
        self.opened = set(texts_in(part, "opened"))
        return part

    def remember(self) -> None:
        super().remember()
        if len(self.opened) > MOST_OPENED:
            self.opened &= {line.key for line in self.lines}
        self.fleet_app.memory.note(self.MEMORY, opened=sorted(self.opened))

    # Filter and sort

    def parse(self, text: str) -> ModelFilter | FilterError:
        return parse_model_filter(text)

    def filter_question(
        self, text: str, on_filter: Callable[[ModelFilter], None], on_cancel: Callable[[], None]
    ) -> Question:
        def follow(typed: str) -> None:
            wanted = parse_model_filter(typed)
            if isinstance(wanted, ModelFilter):
                on_filter(wanted)

        return Question(
            "/",
            self.answer_filter,
            text=text,
            placeholder=PLACEHOLDER,
            on_change=follow,
            on_cancel=on_cancel,
            hint_of=filter_cells,
            is_wrong=lambda typed: isinstance(parse_model_filter(typed), FilterError),
            complete=lambda typed: complete_model_filter(typed, self.lines),
            history=self.filters,
        )

    @property
    def shown_columns(self) -> Sequence[str]:
        return [] if self.layout_now is None else self.layout_now.keys

    def sort_at(self, x: int) -> str | None:
        column = None if self.layout_now is None else self.layout_now.column_at(x)
        return "spare" if column == "note" else column

    # What is open

    def toggle(self, model: str) -> None:
        """Show the machines of a model, or hide them."""
        self.opened ^= {model}
        self.fleet_app.painter.paint_now()
        self.remember()

    def action_expand(self) -> None:
        if self.table.cursor_model is not None:
            self.toggle(self.table.cursor_model)

    def on_group_table_toggle_asked(self, message: GroupTable.ToggleAsked) -> None:
        self.toggle(message.group)

    def action_expand_all(self) -> None:
        keys = {line.key for line in self.listing.shown}
        self.opened = self.opened - keys if keys <= self.opened else self.opened | keys
        self.fleet_app.painter.paint_now()
        self.remember()
