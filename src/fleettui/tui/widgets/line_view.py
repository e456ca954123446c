"""A scrolling list of lines that repaints only lines that changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from fleettui.tui.actions import bindings_for
from fleettui.tui.tones import HEADER_CLASS
from fleettui.tui.widgets.painting import NO_LINE, Paintable, Painting

LinePart = TypeVar("LinePart", bound=Paintable)


class LineView(Generic[LinePart], ScrollView, can_focus=True, inherit_bindings=False):
    """Lines with an optional header that stays in place. Without a cursor the keys scroll."""

    ALLOW_SELECT = False
    BINDINGS = bindings_for("lines")
    DEFAULT_CSS = """
    LineView {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        background: $background;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: Sequence[LinePart] = ()
        self.header: Paintable | None = None
        self.nothing: Paintable = NO_LINE
        """Stands in place of the lines when there are none."""
        self.shift = 0
        """Lines by which to scroll along with the next lines shown, so that what the eye is on stays."""
        self._painting = Painting(self)

    # What is shown

    @property
    def header_height(self) -> int:
        """Lines at the top that do not scroll."""
        return 0 if self.header is None else 1

    @property
    def painted(self) -> int:
        """Lines painted so far, those that were at hand not counted."""
        return self._painting.painted

    @property
    def page_height(self) -> int:
        """Lines that fit below the header."""
        return max(1, self.size.height - self.header_height)

    def show_lines(self, lines: Sequence[LinePart], header: Paintable | None = None) -> int:
        """Take over the lines, repaint those that differ on the screen; answers how many did."""
        if (header is None) != (self.header is None):
            self.refresh()
        elif header != self.header:
            self._repaint([0])
        self.header = header
        before = self._visible()
        old_offset = self.scroll_offset.y
        self.lines = lines
        height = len(lines) + self.header_height
        if height != self.virtual_size.height:
            self._painting.keep_only([line.key for line in lines])
            self.virtual_size = Size(0, height)
        self._keep_place()
        if self.scroll_offset.y != old_offset:
            return self.page_height  # scrolling repaints the whole list
        pairs = enumerate(zip(before, self._visible(), strict=True))
        changed = [y for y, (old, new) in pairs if old is not new and old != new]
        self._repaint([y + self.header_height for y in changed])
        return len(changed)

    def show_nothing(self, line: Paintable) -> None:
        """Take over what stands there while there are no lines."""
        if line != self.nothing:
            self.nothing = line
            if not self.lines:
                self._repaint([self.header_height])

    def _keep_place(self) -> None:
        offset = max(0, min(self.scroll_offset.y + self.shift, self.max_scroll_y))
        self.shift = 0
        if offset != self.scroll_offset.y:
            self.scroll_to(y=offset, animate=False, force=True)

    def backdrop_of(self, index: int) -> str | None:
        """Component class of a line's background; None: as everywhere."""
        return None

    def visible_range(self) -> range:
        """Indices of the lines on the screen."""
        start = self.scroll_offset.y
        return range(start, min(len(self.lines), start + self.page_height))

    def _visible(self) -> list[Paintable]:
        shown: list[Paintable] = [self.lines[index] for index in self.visible_range()] or [self.nothing]
        return shown + [NO_LINE] * (self.page_height - len(shown))

    def _repaint(self, rows: Iterable[int]) -> None:
        width = self.size.width
        regions = [Region(0, y, width, 1) for y in rows]
        if regions:
            self.refresh(*regions)

    def repaint_line(self, index: int) -> None:
        """Paint one line again."""
        self._repaint([index - self.scroll_offset.y + self.header_height])

    # Painting

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        return self.render_lines(Region(0, y, self.size.width, 1))[0]

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lines of the screen, those at hand as they are: Textual asks for all, whatever was refreshed.

        Its own pass for borders, padding and filters is left out: there are none, or they are painted in."""
        width, top = self.size.width, self.scroll_offset.y - self.header_height
        self._painting.leave_free(int(self.show_vertical_scrollbar))
        lines, strip_of = self.lines, self._painting.strip_of
        strips = []
        for y in crop.line_range:
            index = top + y
            if y < self.header_height and self.header is not None:
                strips.append(strip_of(self.header, width, HEADER_CLASS))
            elif 0 <= index < len(lines):
                strips.append(strip_of(lines[index], width, self.backdrop_of(index)))
            elif index == 0:
                strips.append(strip_of(self.nothing, width))
            else:
                strips.append(strip_of(NO_LINE, width))
        start, end = crop.column_span
        return strips if (start, end) == (0, width) else [strip.crop(start, end) for strip in strips]

    def notify_style_update(self) -> None:
        """Textual applied style sheets again, for example those of another theme."""
        super().notify_style_update()
        self._painting.forget()

    # Moving

    def scroll_lines(self, count: int) -> None:
        """Scroll by so many lines, down when positive."""
        self.scroll_to(y=self.scroll_offset.y + count, animate=False, force=True)

    def action_cursor_down(self) -> None:
        self.scroll_lines(1)

    def action_cursor_up(self) -> None:
        self.scroll_lines(-1)

    def action_page_down(self) -> None:
        self.scroll_lines(self.page_height - 1)

    def action_page_up(self) -> None:
        self.scroll_lines(1 - self.page_height)

    def action_top(self) -> None:
        self.scroll_to(y=0, animate=False, force=True)

    def action_bottom(self) -> None:
        self.scroll_to(y=self.max_scroll_y, animate=False, force=True)

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        event.prevent_default()
        self.scroll_lines(3)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        event.prevent_default()
        self.scroll_lines(-3)
