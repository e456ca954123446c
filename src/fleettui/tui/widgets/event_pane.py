"""The timeline with its filter and all about the event under the cursor: of the fleet or of one machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.containers import Vertical

from fleettui.model.event import Event
from fleettui.tui.actions import bindings_for
from fleettui.tui.memory import text_in, texts_in
from fleettui.tui.typed import note_line
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.cursor_view import CursorView
from fleettui.tui.widgets.event_list import EventList
from fleettui.tui.widgets.painting import Line
from fleettui.tui.widgets.prompt import Question
from fleettui.view.cells import Cell, Cells, fit_cells, width_of
from fleettui.view.detail import LOW, detail_lines, detail_room
from fleettui.view.event_filter import EVERY_EVENT, EventFilter, complete_event_filter, parse_event_filter
from fleettui.view.event_rows import EventLayout, Timeline, event_detail, event_layout, header_of
from fleettui.view.filter_language import FilterError
from fleettui.view.text import clean
from fleettui.view.units import count

if TYPE_CHECKING:
    from fleettui.tui.live import LiveScreen

HINT = "words, or kind: machine: model: by: severity:  , is or  ! inverts  Tab completes"
MEMORY = "events"
"""The part of the app's memory: `typed` filters, and the `filter` of the Events screen."""


class EventPane(Vertical):
    """Newest first. Rows are made when they come into view; what is read does not move."""

    BINDINGS = bindings_for("timeline")
    DEFAULT_CSS = """
    EventPane { height: 1fr; }
    EventPane > #event-detail { height: 3; }
    """

    only: str | None = None
    """Name of a machine: only events of this one; None: of all."""
    title = ""
    """In front of the figures."""
    keeps_filter = False
    """True: the next run begins with the filter."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._title = CellBlock(id="event-title")
        self.event_list = EventList(id="events")
        self._detail = CellBlock(id="event-detail")
        self.filter: EventFilter = EVERY_EVENT
        self._typed: list[str] = []
        """Filters typed so far, oldest first."""
        self._timeline = Timeline()
        self._unsubscribe: Callable[[], None] | None = None
        self._news = 0
        """How often something new was heard of."""
        self._made_of: tuple[int, ...] = ()
        self._layout: EventLayout | None = None

    def compose(self) -> ComposeResult:
        yield self._title
        yield self.event_list
        yield self._detail

    @property
    def live_screen(self) -> LiveScreen:
        """The screen, with its type."""
        return cast("LiveScreen", self.screen)

    @property
    def cursor_event(self) -> Event | None:
        """The event under the cursor."""
        return self.event_list.cursor_event

    def on_mount(self) -> None:
        part = self.live_screen.fleet_app.memory.part(MEMORY)
        self._typed = texts_in(part, "typed")
        if self.keeps_filter:
            wanted = parse_event_filter(text_in(part, "filter"))
            self.filter = EVERY_EVENT if isinstance(wanted, FilterError) else wanted
        self._unsubscribe = self.live_screen.fleet_app.service.events.subscribe(lambda _: self._hear())

    def on_unmount(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()

    def _hear(self) -> None:
        """Events came: they are shown with the next painting, at once when somebody looks."""
        self._news += 1
        app = self.live_screen.fleet_app
        if self.is_mounted and self.display and app.screen_stack and app.screen_stack[-1] is self.screen:
            # Not at once: this is a task of the service, and a timer begun there would not know the app.
            app.call_later(app.painter.request)

    # Painting

    def show_events(self, now: float) -> None:
        """Paint what changed. Each second, too: almost nothing is done then."""
        app = self.live_screen.fleet_app
        source, look = app.service.events, app.look
        events, width, is_low = source.events, self.size.width, self.screen.size.height < LOW
        today = int((now + (look.utc_offset_s or 0)) // 86_400)
        newest = id(events[-1]) if events else 0
        made_of = (self._news, len(events), newest, id(self.filter), width, is_low, today)
        if self._layout is None or made_of != self._made_of:
            names = () if self.only is not None else {event.machine for event in events}
            self._layout = event_layout(
                width - 1, names, now, utc_offset_s=look.utc_offset_s, glyphs=look.glyph_set
            )
            self._made_of = made_of
            rows = self._timeline.rows_of(reversed(events), self._layout, self.filter, self.only)
            self.event_list.show_lines(rows, None if is_low else Line("header", header_of(self._layout)))
        self._show_title(source.error, now)
        self._show_detail(now, self._layout)

    def _show_title(self, error: str | None, now: float) -> None:
        app, timeline = self.live_screen.fleet_app, self._timeline
        glyphs, width = app.look.glyph_set, self.size.width
        left: list[Cell] = [Cell(f" {self.title}  " if self.title else " ", "strong")]
        if not self.filter.tests:
            left.append(Cell(count(timeline.total, "event"), "dim"))
        else:
            left.append(Cell(f"/{clean(self.filter.text)}", "accent"))
            left.append(Cell(f"  {timeline.shown} of {count(timeline.total, 'event')}", "dim"))
        newer = self.event_list.newer_count
        right: tuple[Cell, ...] = (Cell("following ", "good"),)
        if not self.event_list.is_following:
            right = (Cell(f"{newer} newer {glyphs.up} g ", "accent") if newer else Cell("held ", "dim"),)
        if self.live_screen.machine_name is None and (
            paused := self.live_screen.pause_cells(app.snapshot, now)
        ):
            right = (*paused, Cell("  "), *right)
        room = max(0, width - width_of(right))
        lines: list[Cells] = [(*fit_cells(left, room, "left", glyphs.ellipsis), *right)]
        if error is not None:
            said = clean(error)
            start = "" if said.startswith("events ") else "events are not kept: "
            text = f" {glyphs.unhealthy} {start}{said}"
            lines.append(fit_cells((Cell(text, "warn"),), width, "left", glyphs.ellipsis))
        self._title.show_cells(*lines)

    def _show_detail(self, now: float, layout: EventLayout) -> None:
        room, event = detail_room(self.screen.size.height), self.cursor_event
        if event is not None:
            self._detail.show_cells(*event_detail(event, now, layout, room))
            return
        text = self._why_empty()
        self._detail.show_cells(*detail_lines(None, text, "dim", layout.width, room, layout.glyphs))

    def _why_empty(self) -> str:
        if self._timeline.total:
            return "no event matches; Esc shows all"
        who = "" if self.only is None else f" to {clean(self.only)}"
        return f"nothing happened{who} yet: changes of health, loads, decisions and edited files stand here"

    def _repaint(self) -> None:
        self.live_screen.fleet_app.painter.paint_now()

    def on_resize(self) -> None:
        self._repaint()

    def on_cursor_view_cursor_moved(self, message: CursorView.CursorMoved) -> None:
        if self._layout is not None:  # the screen hears of it too
            self._show_detail(self.live_screen.fleet_app.clock(), self._layout)

    def on_event_list_follow_changed(self) -> None:
        app = self.live_screen.fleet_app
        self._show_title(app.service.events.error, app.clock())

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A filter can be cleared while there is one."""
        return action != "clear_filter" or bool(self.filter.tests)

    def action_follow(self) -> None:
        self.event_list.set_following(not self.event_list.is_following)
        self._repaint()

    def action_filter(self, text: str = "") -> None:
        """Ask for a filter; or take the one that was typed behind the name."""
        if text:
            self._take(text)
            return
        before = self.filter
        app = self.live_screen.fleet_app
        machines = tuple(sorted(item.name for item in app.snapshot.machines))
        self.live_screen.ask(
            Question(
                "/",
                self._take,
                text=before.text,
                placeholder="filter events",
                on_change=self._try,
                on_cancel=lambda: self._set(before),
                hint_of=_hint_of,
                is_wrong=lambda line: isinstance(parse_event_filter(line), FilterError),
                complete=lambda line: complete_event_filter(line, machines),
                history=tuple(self._typed),
            )
        )

    def action_clear_filter(self) -> None:
        self._set(EVERY_EVENT)
        self._remember()

    def _take(self, text: str) -> None:
        wanted = parse_event_filter(text)
        if isinstance(wanted, FilterError):
            self.app.bell()
            self.notify(f"filter: {wanted.text}", severity="warning", markup=False)
            return
        if wanted.tests:
            note_line(self._typed, wanted.text)
        self._set(wanted)
        self._remember()

    def _remember(self) -> None:
        memory = self.live_screen.fleet_app.memory
        memory.note(MEMORY, typed=list(self._typed))
        if self.keeps_filter:
            memory.note(MEMORY, filter=self.filter.text)

    def _try(self, text: str) -> None:
        """While one types: what can be read already holds."""
        wanted = parse_event_filter(text)
        if not isinstance(wanted, FilterError):
            self._set(wanted)

    def _set(self, wanted: EventFilter) -> None:
        self.filter = wanted if wanted.tests else EVERY_EVENT
        self.live_screen.refresh_bindings()
        self._repaint()


def _hint_of(text: str) -> Cells:
    """What is wrong with the line, below it what can be written."""
    wanted = parse_event_filter(text)
    if isinstance(wanted, FilterError):
        return (Cell(f" {wanted.text}", "warn"),)
    return (Cell(f" {HINT}", "dim"),)
