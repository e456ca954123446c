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
from fleettui.view.glyphs import ASCII, UNICODE
from fleettui.view.text import cell_width


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


MARKED_FROM = 4
"""Columns below which an ellipsis would take more than it tells."""

NO_LINE = Line("", ())


class Painting:
    """Strips for lines in the colours of one widget. Hands the same Strip back for an unchanged line."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._styles: dict[tuple[str, str | None], Style] = {}
        self._hidden = 0
        self.painted = 0
        """Lines painted so far: those that were not there already."""
        self._strips: dict[str, tuple[Paintable, int, str | None, Strip]] = {}

    def leave_free(self, columns: int) -> None:
        """So many at the right end have something else on them: a scrollbar."""
        if columns != self._hidden:
            self._hidden = columns
            self._strips.clear()

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
        texts: list[list[str]] = []
        styles: list[Style] = []
        for text, tone in line.cells:
            style = self._style_of(tone, backdrop)
            # A blank has the colour of its left neighbour: fewer style runs, fewer bytes.
            if styles and (style is styles[-1] or not text.strip(" ")):
                texts[-1].append(text)
            elif text:
                texts.append([text])
                styles.append(style)
        segments = [Segment("".join(parts), style) for parts, style in zip(texts, styles, strict=True)]
        length = sum(cell_width(segment.text) for segment in segments)
        room = max(0, width - self._hidden)
        if length > room:
            segments, length = self._cut(segments, length, room), room
        if length < width:
            segments.append(Segment(" " * (width - length), self._style_of("plain", backdrop)))
        self.painted += 1
        return Strip(segments, width)

    def _cut(self, segments: list[Segment], length: int, width: int) -> list[Segment]:
        """The start of a line that is too long; where more than blanks is left out that is to be seen."""
        strip = Strip(segments, length)
        kept = list(strip.crop(0, width))
        if width < MARKED_FROM or not strip.crop(width, length).text.strip():
            return kept
        start = list(strip.crop(0, width - 1))
        return [*start, Segment(self._ellipsis, start[-1].style)]

    @property
    def _ellipsis(self) -> str:
        look = getattr(self._widget.app, "look", None)
        return ASCII.ellipsis if look is not None and look.glyph_set.is_ascii else UNICODE.ellipsis

    def _style_of(self, tone: str, backdrop: str | None) -> Style:
        style = self._styles.get((tone, backdrop))
        if style is None:
            widget = self._widget
            paint = widget.app.get_component_styles(class_of(tone))
            style = Style(bgcolor=widget.rich_style.bgcolor) + paint.text_style
            style += Style(color=paint.color.rich_color)
            if backdrop is not None:
                ground = widget.app.get_component_styles(backdrop)
                if (
                    ground.text_style.reverse
                ):  # one colour: runs in the reverse of each tone's would be a patchwork
                    style = Style(bold=style.bold, reverse=True)
                else:
                    style += Style(bgcolor=ground.background.rich_color, bold=ground.text_style.bold)
            sample = [Segment("x", style)]
            # No colours, dim: once for a style, not for each line.
            for line_filter in widget.get_line_filters():
                sample = line_filter.apply(sample, widget.background_colors[1])
            style = self._styles[tone, backdrop] = sample[0].style or Style.null()
        return style
