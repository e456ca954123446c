"""A few lines of cells that do not scroll; painted only when they change: summary, footer, notices."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from fleettui.tui.widgets.painting import NO_LINE, Line, Painting
from fleettui.view.cells import Cells


class CellBlock(Widget):
    """As high as it has lines; without any it takes no room."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    CellBlock {
        height: 1;
        background: $background;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: tuple[Cells, ...] = ((),)
        """What it shows."""
        self._painting = Painting(self)

    def show_cells(self, *lines: Cells) -> bool:
        """Take over the lines and repaint those that changed; True when any did."""
        if lines == self.lines:
            return False
        before, self.lines = self.lines, lines
        if len(before) != len(lines):
            self.styles.height = len(lines)
            self.display = bool(lines)
            self.refresh()
        else:
            width = self.size.width
            self.refresh(*(Region(0, y, width, 1) for y, line in enumerate(lines) if line != before[y]))
        return True

    @property
    def text(self) -> str:
        """The lines without their tones."""
        return "\n".join("".join(cell.text for cell in line).rstrip() for line in self.lines)

    def render_line(self, y: int) -> Strip:
        """One line, as wide as the widget."""
        if y >= len(self.lines):
            return self._painting.strip_of(NO_LINE, self.size.width)
        return self._painting.strip_of(Line(str(y), self.lines[y]), self.size.width)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lines without Textual's pass for borders, padding and filters: none here, or done when painted."""
        strips = [self.render_line(y) for y in crop.line_range]
        start, end = crop.column_span
        return (
            strips if (start, end) == (0, self.size.width) else [strip.crop(start, end) for strip in strips]
        )

    def notify_style_update(self) -> None:
        """Textual applied style sheets again, for example those of another theme."""
        super().notify_style_update()
        self._painting.forget()


def shorten(lines: Sequence[Cells], limit: int, more: Cells) -> tuple[Cells, ...]:
    """At most `limit` lines; `more` in place of what does not fit."""
    return tuple(lines) if len(lines) <= limit else (*lines[: limit - 1], more)
