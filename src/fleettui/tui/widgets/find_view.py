"""A list of lines to look through: `/` asks for a text, n and N go from line to line that has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

from textual.message import Message

from fleettui.tui.actions import bindings_for
from fleettui.tui.typed import note_line
from fleettui.tui.widgets.cursor_view import CursorView
from fleettui.tui.widgets.painting import Paintable
from fleettui.tui.widgets.prompt import Question
from fleettui.view.cells import Cell, Cells
from fleettui.view.find import mark_cells, pattern_of

if TYPE_CHECKING:
    from fleettui.tui.live import LiveScreen


class Findable(Paintable, Protocol):
    """A line that has a text."""

    @property
    def text(self) -> str:
        """What is looked through."""


FoundPart = TypeVar("FoundPart", bound=Findable)


class _Marked:
    """A line that has the text, with the text marked."""

    __slots__ = ("_cells", "_pattern", "line")

    def __init__(self, line: Findable, pattern: re.Pattern[str]) -> None:
        self.line = line
        self._pattern = pattern
        self._cells: Cells | None = None

    @property
    def key(self) -> str:
        return self.line.key

    @property
    def cells(self) -> Cells:
        if self._cells is None:
            self._cells = mark_cells(self.line.cells, self._pattern)
        return self._cells

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Marked) and (self.line, self._pattern) == (other.line, other._pattern)

    __hash__ = None  # type: ignore[assignment]


class FindView(CursorView[Paintable], Generic[FoundPart]):
    """Lines with a cursor; those that have the text are marked."""

    BINDINGS = bindings_for("find")

    class Found(Message):
        """Another text is looked for, or none."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, FindView.Found)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.needle = ""
        """What is looked for; empty: nothing."""
        self.places: list[int] = []
        """Indices of the lines that have it."""
        self._plain: Sequence[FoundPart] = ()
        self._header: Paintable | None = None
        self._typed: list[str] = []

    @property
    def found_line(self) -> FoundPart | None:
        """The line under the cursor, without marks."""
        return self._plain[self.cursor] if self.cursor < len(self._plain) else None

    @property
    def place_text(self) -> str:
        """`3 of 12`: the match under the cursor, or before it, and how many lines match."""
        before = sum(place <= self.cursor for place in self.places)
        return f"{before} of {len(self.places)}" if self.places else "not there"

    def show_found(self, lines: Sequence[FoundPart], header: Paintable | None = None) -> int:
        """Take over the lines, marked where they have the text."""
        self._plain, self._header = lines, header
        if not self.needle:
            self.places = []
            return self.show_lines(lines, header)
        pattern = pattern_of(self.needle)
        self.places = [index for index, line in enumerate(lines) if pattern.search(line.text)]
        shown: list[Paintable] = list(lines)
        for index in self.places:
            shown[index] = _Marked(lines[index], pattern)
        return self.show_lines(shown, header)

    def on_resize(self) -> None:
        """Less room, for what stands below: the cursor stays in sight."""
        self.show_cursor()

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Going on needs something that is looked for."""
        return action not in ("find_next", "find_previous", "clear_find") or bool(self.needle)

    def action_find(self, text: str = "") -> None:
        """Ask for a text; or look for the one typed behind the name."""
        origin, before = self.cursor, self.needle
        if text:
            self._take(text, origin)
            return

        def cancel() -> None:
            self._look_for(before)
            self.move_cursor(origin)

        cast("LiveScreen", self.screen).ask(
            Question(
                "/",
                lambda text: self._take(text, origin),
                text=before,
                placeholder="text to find",
                on_change=lambda text: self._go_from(text, origin),
                on_cancel=cancel,
                hint_of=self._hint_of,
                history=tuple(self._typed),
            )
        )

    def action_find_next(self) -> None:
        self._step(1)

    def action_find_previous(self) -> None:
        self._step(-1)

    def action_clear_find(self) -> None:
        self._look_for("")

    def _take(self, text: str, origin: int) -> None:
        if text:
            note_line(self._typed, text)
        self._go_from(text, origin)

    def _hint_of(self, text: str) -> Cells:
        if not text:
            return ()
        count = len(self.places) if text == self.needle else self._count(text)
        words = f" {count} line{'' if count == 1 else 's'}   n next  N before" if count else " not there"
        return (Cell(words, "dim" if count else "warn"),)

    def _count(self, text: str) -> int:
        pattern = pattern_of(text)
        return sum(pattern.search(line.text) is not None for line in self._plain)

    def _go_from(self, text: str, origin: int) -> None:
        """To the first line that has it, from where one was on."""
        self._look_for(text)
        if self.places:
            self.move_cursor(next((place for place in self.places if place >= origin), self.places[0]))

    def _step(self, step: int) -> None:
        places = self.places if step > 0 else self.places[::-1]
        if places:
            beyond = (place for place in places if (place - self.cursor) * step > 0)
            self.move_cursor(next(beyond, places[0]))

    def _look_for(self, text: str) -> None:
        if text != self.needle:
            self.needle = text
            self.show_found(self._plain, self._header)
            self.screen.refresh_bindings()
            self.post_message(self.Found())
