"""A line to type in at the bottom of a screen: filter, command, a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from fleettui.tui.actions import bindings_for
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.view.cells import Cell, Cells


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the operator, and who hears of it."""

    label: str
    """In front of the text: `/`, `:`, `reason`."""
    on_answer: Callable[[str], None]
    """Enter was pressed."""
    text: str = ""
    """Stands there at first."""
    placeholder: str = ""
    """Shown while nothing is typed."""
    on_change: Callable[[str], None] | None = None
    """Called for each change of the text."""
    on_cancel: Callable[[], None] | None = None
    """Esc was pressed."""
    hint_of: Callable[[str], Cells] | None = None
    """The line above: what is wrong with the text, or what can follow. Empty cells: no line."""
    is_wrong: Callable[[str], bool] | None = None
    """True: Enter does nothing, the hint says why."""
    complete: Callable[[str], str] | None = None
    """Tab: the text completed as far as it can be."""
    history: Sequence[str] = ()
    """What was typed before, oldest first."""
    on_step: Callable[[int], None] | None = None
    """Up (-1) and Down (1) move in what is listed, not in the history."""


class Prompt(Vertical):
    """Shown only while something is asked; takes the place of the footer."""

    BINDINGS = bindings_for("prompt")
    DEFAULT_CSS = """
    Prompt { height: auto; display: none; background: $line-footer; }
    Prompt Horizontal { height: 1; }
    Prompt #prompt-label { width: auto; background: $line-footer; }
    Prompt #prompt-hint { background: $background; }
    Prompt Input {
        width: 1fr; height: 1; border: none; padding: 0;
        background: $line-footer; color: $tone-strong;
    }
    Prompt Input:focus { border: none; background-tint: $line-footer 0%; }
    Prompt Input > .input--placeholder { color: $tone-dim; }
    """

    def __init__(self) -> None:
        super().__init__(id="prompt")
        self.question: Question | None = None
        """What is asked now."""
        self._place = 0
        self._typed = ""

    def compose(self) -> ComposeResult:
        yield CellBlock(id="prompt-hint")
        with Horizontal():
            yield CellBlock(id="prompt-label")
            yield Input(compact=True, select_on_focus=False)

    @property
    def input(self) -> Input:
        """The line itself."""
        return self.query_one(Input)

    def ask(self, question: Question) -> None:
        """Show the question; the line has the keys until it is answered or cancelled."""
        self.question = question
        self._place = len(question.history)
        label = self.query_one("#prompt-label", CellBlock)
        label.styles.width = len(question.label) + 2
        label.show_cells((Cell(f" {question.label} ", "key"),))
        line = self.input
        line.cursor_blink = False  # each blink would be a repaint, sent over the operator's SSH
        line.placeholder = question.placeholder
        with line.prevent(Input.Changed):
            line.value = question.text
        line.cursor_position = len(question.text)
        self._show_hint(question.text)
        self.display = True
        self.screen.set_focus(line)  # at once: what is typed ahead is meant for it

    def close(self) -> None:
        """Nothing is asked any more."""
        self.question = None
        self.display = False

    def _show_hint(self, text: str) -> None:
        question = self.question
        cells = question.hint_of(text) if question is not None and question.hint_of is not None else ()
        hint = self.query_one("#prompt-hint", CellBlock)
        hint.show_cells(*([cells] if cells else []))
        hint.display = bool(cells)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.question is None:
            return
        self._show_hint(event.value)
        if self.question.on_change is not None:
            self.question.on_change(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        question = self.question
        if question is None:
            return
        if question.is_wrong is not None and question.is_wrong(event.value):
            self._show_hint(event.value)  # it may say more now
            return
        self.close()
        question.on_answer(event.value)

    def action_cancel(self) -> None:
        question = self.question
        self.close()
        if question is not None and question.on_cancel is not None:
            question.on_cancel()

    def action_complete(self) -> None:
        if self.question is not None and self.question.complete is not None:
            self._put(self.question.complete(self.input.value))

    def action_earlier(self) -> None:
        self._step(-1)

    def action_later(self) -> None:
        self._step(1)

    def _step(self, step: int) -> None:
        """Through the history; behind its newest line stands what was being typed."""
        if self.question is None:
            return
        if self.question.on_step is not None:
            self.question.on_step(step)
            return
        history = self.question.history
        place = self._place + step
        if not 0 <= place <= len(history):
            return
        if self._place == len(history):
            self._typed = self.input.value
        self._place = place
        self._put(self._typed if place == len(history) else history[place])

    def _put(self, text: str) -> None:
        self.input.value = text
        self.input.cursor_position = len(text)
