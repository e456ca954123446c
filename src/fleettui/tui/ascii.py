"""What Textual draws itself, in ASCII: scrollbars, frames, the search of the palette."""

from __future__ import annotations

from typing import ClassVar

from textual.scrollbar import ScrollBar, ScrollBarRender


class AsciiScrollBarRender(ScrollBarRender):
    """Whole blanks in colour or in reverse; Textual's own ends its bar with an eighth of a block."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


ASCII_CLASS = "-ascii"
"""Of the app, while everything is drawn in ASCII."""
ASCII_CSS = """
    &.-ascii Box { border: ascii $tone-faint; }
    &.-ascii Toast.-information { border-left: ascii $tone-good; }
    &.-ascii Toast.-warning { border-left: ascii $tone-warn; }
    &.-ascii Toast.-error { border-left: ascii $tone-bad; }
    &.-ascii SearchIcon { display: none; }
    &.-ascii CommandPalette #--input { border: blank !important; }
    &.-ascii CommandPalette CommandList { border: none !important; text-overflow: clip; }
    &.-ascii CommandPalette LoadingIndicator { display: none !important; }
"""
"""Rules for the app."""


def use_scrollbars(*, is_ascii: bool) -> None:
    """The scrollbars of this process. Textual has one way to draw them for all."""
    ScrollBar.renderer = AsciiScrollBarRender if is_ascii else ScrollBarRender
