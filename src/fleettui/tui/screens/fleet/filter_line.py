"""The filter as it is typed: the table follows each character, Esc brings back what was."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.widgets.prompt import Question
from fleettui.view.cells import Cells
from fleettui.view.filter_completion import begins_field, complete_line
from fleettui.view.filter_language import Filter, FilterError, parse_filter
from fleettui.view.filter_prompt import PLACEHOLDER, filter_hint
from fleettui.view.glyphs import Glyphs

_LABEL = "/"
_INDENT = len(_LABEL) + 2
"""Columns in front of the text, as the prompt lays it out."""


class FilterLine:
    """One asking for a filter."""

    def __init__(
        self,
        fleet_of: Callable[[], FleetSnapshot],
        width_of_screen: Callable[[], int],
        glyphs: Glyphs,
        clock: Callable[[], float],
        on_filter: Callable[[Filter], None],
    ) -> None:
        self._fleet_of = fleet_of
        self._width = width_of_screen
        self._glyphs = glyphs
        self._clock = clock
        self._on_filter = on_filter
        self._is_final = False
        """Enter was pressed on a line that cannot be read: from now on say what is wrong with it."""

    def question(
        self,
        text: str,
        history: Sequence[str],
        on_answer: Callable[[str], None],
        on_cancel: Callable[[], None],
    ) -> Question:
        """For the prompt; `on_answer` only hears lines that can be read."""
        return Question(
            _LABEL,
            on_answer,
            text=text,
            placeholder=PLACEHOLDER,
            on_change=self._follow,
            on_cancel=on_cancel,
            hint_of=self._hint,
            is_wrong=self._is_wrong,
            complete=lambda typed: complete_line(typed, self._fleet_of()),
            history=history,
        )

    def _follow(self, text: str) -> None:
        """What cannot be read yet changes nothing, nor does the beginning of a field's name: on the way to
        `free>24` the table is not emptied by `fre`."""
        wanted = parse_filter(text)
        if isinstance(wanted, Filter) and not (begins_field(text) and not self._finds_any(wanted)):
            self._on_filter(wanted)

    def _finds_any(self, wanted: Filter) -> bool:
        now = self._clock()
        return any(wanted.matches(item, now) for item in self._fleet_of().machines)

    def _hint(self, text: str) -> Cells:
        is_final, self._is_final = self._is_final, False
        return filter_hint(text, self._fleet_of(), self._width(), _INDENT, self._glyphs, is_final=is_final)

    def _is_wrong(self, text: str) -> bool:
        self._is_final = isinstance(parse_filter(text), FilterError)
        return self._is_final
