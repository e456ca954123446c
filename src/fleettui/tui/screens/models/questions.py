"""What the operator is asked on the Models screen: by what to sort, what to show."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fleettui.tui.widgets.painting import Line
from fleettui.tui.widgets.prompt import Question
from fleettui.view.cells import Cell
from fleettui.view.filter_language import FilterError
from fleettui.view.glyphs import Glyphs
from fleettui.view.model_filter import (
    PLACEHOLDER,
    ModelFilter,
    complete_model_filter,
    filter_cells,
    parse_model_filter,
)
from fleettui.view.model_matrix import ModelLine
from fleettui.view.model_order import MODEL_SORTS
from fleettui.view.sorting import SortOrder


def sort_choices(order: SortOrder, glyphs: Glyphs) -> list[Line]:
    """A line for each sort, the present one with its direction."""
    width = max(len(sort.title) for sort in MODEL_SORTS)
    lines = []
    for sort in MODEL_SORTS:
        is_present = sort.key == order.column
        arrow = (glyphs.descending if order.is_descending else glyphs.ascending) if is_present else " "
        title = Cell(f" {sort.title:<{width}}  ", "strong" if is_present else "plain")
        lines.append(Line(sort.key, (title, Cell(f"{arrow} ", "accent"))))
    return lines


def filter_question(
    text: str,
    history: Sequence[str],
    lines_of: Callable[[], Sequence[ModelLine]],
    on_answer: Callable[[str], None],
    on_filter: Callable[[ModelFilter], None],
    on_cancel: Callable[[], None],
) -> Question:
    """For the prompt: the table follows each character, Esc brings back what was."""

    def follow(typed: str) -> None:
        wanted = parse_model_filter(typed)
        if isinstance(wanted, ModelFilter):
            on_filter(wanted)

    return Question(
        "/",
        on_answer,
        text=text,
        placeholder=PLACEHOLDER,
        on_change=follow,
        on_cancel=on_cancel,
        hint_of=filter_cells,
        is_wrong=lambda typed: isinstance(parse_model_filter(typed), FilterError),
        complete=lambda typed: complete_model_filter(typed, lines_of()),
        history=tuple(history),
    )
