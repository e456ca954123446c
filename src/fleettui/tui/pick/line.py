"""The line of the picker that one types in all the time."""

from __future__ import annotations

from textual.widgets import Input


class PickInput(Input):
    """Has every letter, so that none of them is a command; keys that move, pick and leave are the app's."""

    DEFAULT_CSS = """
    PickInput {
        width: 1fr; height: 1; border: none; padding: 0;
        background: $background; color: $tone-strong;
    }
    PickInput:focus { border: none; background-tint: $background 0%; }
    PickInput > .input--placeholder { color: $tone-dim; }
    """

    def __init__(self) -> None:
        super().__init__(
            placeholder="type to filter: a name, a model, tag:edge, free>24",
            compact=True,
            select_on_focus=False,
        )
        self.cursor_blink = False  # each blink would be a repaint, sent over the operator's SSH
