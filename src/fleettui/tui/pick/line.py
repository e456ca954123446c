"""The line of the picker that one types in all the time."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

_NOT_OURS = frozenset({"submit", "copy"})
"""What Input does with Enter and Ctrl+C."""


class PickInput(Input, inherit_bindings=False):
    """Has every letter, so that none of them is a command; keys that move, pick and leave are the app's.

    They pass through here first, behind the letters that were typed before them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        binding
        for binding in Input.BINDINGS
        if isinstance(binding, Binding) and binding.action not in _NOT_OURS
    ]
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
