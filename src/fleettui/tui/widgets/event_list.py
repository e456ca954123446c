"""The timeline as a list: newest first, the cursor on an event, never on the heading of a day."""

from __future__ import annotations

from collections.abc import Sequence

from textual.message import Message

from fleettui.model.event import Event
from fleettui.tui.widgets.cursor_view import CursorView
from fleettui.tui.widgets.painting import Paintable
from fleettui.view.event_rows import TimelineRow


class EventList(CursorView[TimelineRow]):
    """While it follows, the cursor stays on the newest event; otherwise what one reads stays in place."""

    class FollowChanged(Message):
        """It follows from now on, or no longer."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, EventList.FollowChanged)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.is_following = True
        self._newest_seen: TimelineRow | None = None
        """The newest one when it ceased to follow."""
        self._is_showing = False

    @property
    def cursor_event(self) -> Event | None:
        """The event under the cursor."""
        row = self.cursor_line
        return None if row is None else row.event

    @property
    def newest(self) -> int:
        """Index of the newest event; behind the heading of its day."""
        return 1 if self.lines and self.lines[0].event is None else 0

    @property
    def newer_count(self) -> int:
        """Events that came since it ceased to follow."""
        seen = self._newest_seen
        place = None if self.is_following or seen is None else self._places.get(seen.key)
        if place is None:
            return 0
        return sum(row.event is not None for row in self.lines[:place])

    def show_lines(self, lines: Sequence[TimelineRow], header: Paintable | None = None) -> int:
        """As CursorView; while it follows the newest stays under the cursor."""
        is_following = self.is_following
        self._is_showing = True
        changed = super().show_lines(lines, header)
        if is_following and (self.cursor != self.newest or self.scroll_offset.y):
            super().move_cursor(self.newest)
            self.scroll_to(y=0, animate=False, force=True)
        elif self.cursor_event is None and lines:  # its event is gone, and a heading took its place
            super().move_cursor(self.cursor + 1)
        self._is_showing = False
        return changed

    def on_resize(self) -> None:
        """Less room, for a long text below: the cursor stays in sight."""
        self.show_cursor()

    def set_following(self, is_following: bool) -> None:
        """Go to the newest and stay there, or hold the list as it is."""
        if is_following:
            self.action_top()
        self._follow(is_following)

    def move_cursor(self, index: int) -> None:
        """Headings are passed over in the direction of the move."""
        index = max(0, min(index, len(self.lines) - 1))
        if index < len(self.lines) and self.lines[index].event is None:
            index += -1 if 0 < index < self.cursor else 1
        super().move_cursor(index)
        self._follow(self.cursor == self.newest and self.scroll_offset.y == 0)

    def show_cursor(self) -> None:
        super().show_cursor()
        if self.cursor == self.newest and self.scroll_offset.y:
            self.scroll_to(y=0, animate=False, force=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Whoever turns the wheel reads; new events wait."""
        super().watch_scroll_y(old_value, new_value)
        if not self._is_showing:
            self._follow(round(new_value) == 0 and self.cursor == self.newest)

    def _follow(self, is_following: bool) -> None:
        if is_following == self.is_following:
            return
        self.is_following = is_following
        has_rows = self.newest < len(self.lines)
        self._newest_seen = self.lines[self.newest] if has_rows and not is_following else None
        self.post_message(self.FollowChanged())
