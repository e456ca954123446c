"""Lines of cells and their Strips: the only place where tones become colours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from fleettui.tui.tones import class_of
from fleettui.view.cells import Cells


class Paintable(Protocol):
    """One line of the screen, laid out: a row of `view.rows`, a line of a page."""

    @property
    def key(self) -> str:
        """Stays with what the line is about, whatever its place."""

    @property
    def cells(self) -> Cells:
        """Runs of text from left to right, gaps included."""


class Line(NamedTuple):
    """A line of our own making."""

    key: str
    cells: Cells


NO_LINE = Line("", ())


class Painting:
    """Strips for lines in the colours of one widget. Hands the same Strip back for an unchanged line."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._styles: dict[tuple[str, str | None], Style] = {}
        self._strips: dict[str, tuple[Paintable, int, str | None, Strip]] = {}

    def forget(self) -> None:
        """Drop everything: colours changed."""
        self._styles.clear()
        self._strips.clear()

    def keep_only(self, keys: Iterable[str]) -> None:
        """Drop strips of lines that are gone."""
        gone = self._strips.keys() - set(keys)
        for key in gone:
            del self._strips[key]

    def strip_of(self, line: Paintable, width: int, backdrop: str | None = None) -> Strip:
        """The painted line, `width` cells wide; `backdrop`: component class with the background."""
        known = self._strips.get(line.key)
        if known is not None and known[0] == line and known[1] == width and known[2] == backdrop:
            return known[3]
        strip = self._paint(line, width, backdrop)
        self._strips[line.key] = (line, width, backdrop, strip)
        return strip

    def _paint(self, line: Paintable, width: int, backdrop: str | None) -> Strip:
        base = self._style_of("plain", backdrop)
        segments: list[Segment] = []
        for cell in line.cells:
            if not cell.text:
                continue
            # A blank has the colour of its left neighbour: fewer style runs, fewer bytes.
            if segments and not cell.text.strip(" "):
                segments.append(Segment(cell.text, segments[-1].style))
            else:
                segments.append(Segment(cell.text, self._style_of(cell.tone, backdrop)))
        return Strip(segments).adjust_cell_length(width, base).simplify()

    def _style_of(self, tone: str, backdrop: str | None) -> Style:
        style = self._styles.get((tone, backdrop))
        if style is None:
            style = self._widget.get_component_rich_style(class_of(tone))
            if backdrop is not None:
                ground = self._widget.get_component_rich_style(backdrop)
                style += Style(bgcolor=ground.bgcolor, bold=ground.bold, reverse=ground.reverse)
            self._styles[tone, backdrop] = style
        return style
