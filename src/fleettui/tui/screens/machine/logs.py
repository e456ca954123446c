"""The Logs tab: what the machine's kernel, engines and GPU driver wrote in the last 15 minutes."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.worker import Worker

from fleettui.fleet.machine_log import LogQuery, LogWords
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.screens.machine.log_reader import LogReader
from fleettui.tui.screens.machine.pane import MachinePane
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.find_view import FindView
from fleettui.view.cells import Cell, Cells, fit_cells, width_of
from fleettui.view.detail import detail_lines, detail_room
from fleettui.view.glyphs import Glyphs
from fleettui.view.log_page import (
    LogLayout,
    LogRow,
    log_detail,
    log_layout,
    log_rows_by_group,
    log_rows_by_time,
)
from fleettui.view.text import clean, wrap
from fleettui.view.units import count

QUERY = LogQuery(words=LogWords("fleettui logs has --since and --unit", "without following (f)"))
_NOT_ASKED = {
    "pending": "its host key waits for your decision: nothing is asked of it before it is approved",
    "rejected": "it was rejected: nothing is asked of it",
    "key_changed": "its host key has changed: nothing is asked of it until you decide",
}


class LogList(FindView[LogRow]):
    """Rows of the log; while it follows, the newest stays at the bottom as long as the cursor is there."""

    @property
    def is_at_end(self) -> bool:
        """The cursor is on the newest line, and that in sight."""
        return self.cursor >= len(self.lines) - 1 and self.scroll_offset.y >= self.max_scroll_y

    def show_log(self, rows: list[LogRow], *, stays_at_end: bool) -> None:
        """Take over the rows."""
        self.show_found(rows)
        if stays_at_end and rows:
            self.move_cursor(len(rows) - 1)


class LogsPane(MachinePane, Vertical):
    """Read when the tab comes up, once; `f` follows. Nothing runs on the machine when the tab is left."""

    BINDINGS = bindings_for("logs")
    DEFAULT_CSS = """
    LogsPane { height: 1fr; }
    LogsPane > #log-said { height: 0; display: none; }
    LogsPane > #log-detail { height: 0; display: none; }
    """

    def __init__(self, machine_name: str) -> None:
        super().__init__(machine_name)
        self.view = LogList(id="log")
        self._title = CellBlock(id="log-title")
        self._said = CellBlock(id="log-said")
        self._said.lines = ()
        self._detail = CellBlock(id="log-detail")
        self._detail.lines = ()
        self._reader: LogReader | None = None
        self._worker: Worker[None] | None = None
        self._wants_follow = False
        self._begun_on: float | None = None
        """Since when the connection was there that it was read over."""
        self._machine: MachineSnapshot | None = None
        self._rows: list[LogRow] = []
        self._made_of: tuple[object, ...] = ()
        self._layout: LogLayout | None = None

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._said
        yield self.view
        yield self._detail

    def take_focus(self) -> None:
        self.view.focus()

    @property
    def reader(self) -> LogReader:
        """What was read."""
        if self._reader is None:
            self._reader = LogReader(self.fleet_app.service, self.machine_name, self._hear)
        return self._reader

    def on_mount(self) -> None:
        self.app.mode_change_signal.subscribe(self, lambda _: self._note_mode())

    def on_hide(self) -> None:
        self._leave()

    def on_unmount(self) -> None:
        self.app.mode_change_signal.unsubscribe(self)  # which would keep the pane for ever
        self._leave()

    def _note_mode(self) -> None:
        """Another top screen came up, and this one may lie below it for long."""
        if self.screen not in self.app.screen_stack:
            self._leave()

    def _leave(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
            self._worker = None
        self.reader.stop()

    def _hear(self) -> None:
        self.fleet_app.painter.request()

    # Reading

    def show_machine(self, machine: MachineSnapshot | None, fleet: FleetSnapshot, now: float) -> None:
        """Begin to read where that can be, and paint what changed."""
        self._machine = machine
        if self._why_not() is not None:
            if self._worker is not None:
                self._leave()
        elif self._worker is None and self._is_to_begin():
            self._begin()
        self._show()

    def _why_not(self) -> str | None:
        """Why nothing may be asked of the machine."""
        if self._machine is None:
            return "it is no longer declared"
        return _NOT_ASKED.get(self._machine.trust)

    def _is_to_begin(self) -> bool:
        """True when the machine answers and nothing was read yet, it was followed before one went away, or
        it failed on an earlier connection."""
        machine, reader = self._machine, self.reader
        if machine is None or machine.link.state != "up":
            return False
        if reader.state == "failed":
            return machine.link.since != self._begun_on
        return reader.state == "idle" or (self._wants_follow and reader.state == "read")

    def _begin(self) -> None:
        self._begun_on = None if self._machine is None else self._machine.link.since
        work = self.reader.follow(QUERY) if self._wants_follow else self.reader.read(QUERY)
        self._worker = self.run_worker(work, group="log", exclusive=True, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        event.stop()
        if event.worker is self._worker and event.worker.is_finished:
            self._worker = None
            if event.worker.error is not None:
                self.reader.fail(event.worker.error)

    # Painting

    def _show(self) -> None:
        reader, look = self.reader, self.fleet_app.look
        width = self.screen.size.width
        made_of = (reader.reading, reader.dropped, len(reader.lines), reader.state, width)
        if made_of != self._made_of:
            is_new = self._made_of[:1] != made_of[:1] or reader.state != self._made_of[3]
            self._made_of = made_of
            self._make_rows(width - 1, look.utc_offset_s or 0, look.glyph_set)
            is_following = reader.state == "following"
            self.view.show_log(self._rows, stays_at_end=is_following and (is_new or self.view.is_at_end))
            if is_new and reader.state == "read" and not self._wants_follow and self._rows:
                has_first = self._rows[0].line is None
                self.view.move_cursor(0 if has_first else len(self._rows) - 1)
        self._show_title(width, look.glyph_set)
        self._show_said(width)
        self._show_detail()

    def _make_rows(self, width: int, utc_offset_s: int, glyphs: Glyphs) -> None:
        """While it is followed in order of time, rows are added; else the GPU driver's come first."""
        reader = self.reader
        layout = log_layout(width, reader.lines, utc_offset_s, glyphs)
        if not self._wants_follow:
            self._rows, self._layout = log_rows_by_group(reader.lines, layout), layout
            return
        first = f"line {reader.dropped}"
        kept = self._rows if layout == self._layout and reader.lines else []
        start = next((index for index, row in enumerate(kept[:2000]) if row.key == first), None)
        kept = kept[start:] if start is not None and kept[start].line is reader.lines[0] else []
        more = log_rows_by_time(reader.lines[len(kept) :], layout, reader.dropped + len(kept))
        self._rows, self._layout = [*kept, *more], layout

    def _show_title(self, width: int, glyphs: Glyphs) -> None:
        reader, view = self.reader, self.view
        left: list[Cell] = [Cell(" last 15 minutes", "strong")]
        if reader.lines:
            from_there = f", from {reader.source}" if reader.source != "journal" else ""
            left.append(Cell(f"  {count(len(reader.lines), 'line')}{from_there}", "dim"))
        if view.needle:
            left += [Cell(f"  /{clean(view.needle)}", "accent"), Cell(f"  {view.place_text}", "dim")]
        right: Cells = ()
        if reader.state == "reading":
            right = (Cell(f"reading{glyphs.ellipsis} ", "dim"),)
        elif reader.state == "following":
            newer = len(view.lines) - 1 - view.cursor
            right = (Cell("following ", "good"),)
            if newer > 0:
                right = (Cell("following ", "good"), Cell(f"{newer} newer {glyphs.down} G ", "accent"))
        room = max(0, width - width_of(right))
        self._title.show_cells((*fit_cells(left, room, "left", glyphs.ellipsis), *right))

    def _show_said(self, width: int) -> None:
        """What the operator should know: why there is no log, what to do, what is missing."""
        reader, machine = self.reader, self._machine
        why_not = self._why_not()
        said: list[tuple[str, str]] = []
        if why_not is not None:
            said.append((f"no log of {self.machine_name}: {why_not}", "warn"))
        elif reader.problem:
            said += [(f"{'no more' if reader.lines else 'no log'}: {reader.problem}", "warn")]
            said += [(reader.hint, "plain")] if reader.hint else []
        elif machine is not None and machine.link.state != "up" and reader.state == "idle":
            error = f": {machine.link.error}" if machine.link.error else ""
            said.append((f"not connected{error}; the log is read once the machine answers", "warn"))
        elif reader.state == "read" and not reader.lines:
            said.append(("no line of kernel, engines and NVIDIA's services in this time", "dim"))
        if why_not is None:
            said += [(note, "accent") for note in reader.notes]
        lines: list[Cells] = []
        for text, tone in said:
            lines += [(Cell(f" {part}", tone),) for part in wrap(clean(text), max(1, width - 2))]  # type: ignore[arg-type]
        self._said.show_cells(*lines[: max(2, self.size.height - 4)])

    def _show_detail(self) -> None:
        layout, row = self._layout, self.view.found_line
        if layout is None or not self._rows:
            self._detail.show_cells()
            return
        room = detail_room(self.screen.size.height)
        if row is None or row.line is None:
            self._detail.show_cells(*detail_lines(None, "", "dim", layout.width, room, layout.glyphs))
        else:
            self._detail.show_cells(*log_detail(row.line, layout, room))

    def on_cursor_view_cursor_moved(self) -> None:
        self._show_detail()
        self._show_title(self.screen.size.width, self.fleet_app.look.glyph_set)

    def on_find_view_found(self) -> None:
        self._show_title(self.screen.size.width, self.fleet_app.look.glyph_set)

    # Actions

    def action_follow(self) -> None:
        """Go on with what comes, or stop and read once more."""
        self._wants_follow = not self._wants_follow
        self._again()

    def action_refresh(self) -> None:
        self._again()

    def _again(self) -> None:
        self._leave()
        if self._why_not() is None:
            self._begin()
        self.fleet_app.painter.paint_now()
