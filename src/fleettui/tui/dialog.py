"""Boxes that open over a screen and close again."""

from __future__ import annotations

from typing import TypeVar

from textual.screen import ModalScreen

ResultT = TypeVar("ResultT")


class Dialog(ModalScreen[ResultT]):
    """A modal screen with one Box in it; what is below stays in sight, dimmed, and is not painted."""

    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        color: $tone-plain;
        background: $background 60%;
    }
    Dialog:ansi { background: $background; }
    Dialog > Box {
        width: 76;
        max-width: 100%;
        height: auto;
        max-height: 100%;
        border: round $tone-faint;
        border-title-color: $tone-strong;
        border-subtitle-color: $tone-dim;
        background: $background;
        padding: 0 1;
    }
    """
