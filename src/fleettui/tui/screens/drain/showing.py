"""What the Drain screen shows: the preview, how far it is, the journal."""

from __future__ import annotations

import os
from typing import Literal

from textual.app import ComposeResult

from fleettui.model.drain import WORKING, DrainOptions, DrainStatus
from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.drain_watch import is_under_way
from fleettui.tui.live import LiveScreen
from fleettui.tui.screens.drain.listing import (
    DrainList,
    journal_list,
    layout_of,
    planned_of,
    preview_list,
    progress_of,
    return_list,
    work_list,
)
from fleettui.tui.screens.drain.preview import Previews
from fleettui.tui.screens.drain.starting import StartKeys
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.drain_page import (
    age_words,
    drain_title,
    drain_words,
    flag_words,
    line_about,
    option_chips,
    preview_notes,
    preview_words,
    progress_about,
    time_words,
    work_notes,
)
from fleettui.view.drain_rows import DrainLayout, DrainRow, note_row, preview_header
from fleettui.view.drain_work_rows import progress_header
from fleettui.view.route_page import ChipLine, detail_cells, lay_chips

LOW, HIGH = 20, 40
"""Lines of the screen below which nothing is to spare, and from which there is room for more words."""
NARROW = 60
"""Columns of the screen below which the title tells no times."""
_KEYS = ("drain_start", "drain_abort", "drain_take_over", "undrain")


class ShowingScreen(LiveScreen):
    """Everything but what the keys do."""

    def __init__(self, names: tuple[str, ...], text: str = "") -> None:
        super().__init__()
        self.names = names
        """All machines it is about."""
        self.machine_name = names[0] if len(names) == 1 else None
        self.options = DrainOptions()
        self.view_now: Literal["copies", "journal"] = "copies"
        self.is_again = False
        """What a drain would do is looked at once more, of machines whose drain has ended."""
        self.starting = StartKeys(self, text)
        self.statuses: tuple[DrainStatus, ...] = ()
        """Of those machines that have a drain, as shown."""
        self.preview_names: tuple[str, ...] = ()
        """Machines that the preview is about; empty: all are worked on, or were."""
        self.chips = ChipLine((), ())
        self.had_offers: object = None

    def compose_body(self) -> ComposeResult:
        yield CellBlock(id="title")
        yield CellBlock(id="options")
        yield CellBlock(id="notes")
        yield DrainList(id="drain")
        yield CellBlock(id="detail")

    def on_mount(self) -> None:
        self.previews = Previews(self.fleet_app)
        self.set_focus(self.drain_list)

    @property
    def drain_list(self) -> DrainList:
        return self.query_one(DrainList)

    @property
    def current_row(self) -> DrainRow | None:
        """The line under the cursor, where it can be on one."""
        return self.drain_list.current_row

    @property
    def current_machine(self) -> str | None:
        row = self.current_row if self.is_mounted else None
        return row.machine if row is not None and row.machine else self.names[0]

    @property
    def current_status(self) -> DrainStatus | None:
        """Of the machine that keys act on."""
        name = self.current_machine
        return next((status for status in self.statuses if status.drain.machine == name), None)

    def on_resize(self) -> None:
        self.fleet_app.painter.paint_now()

    # Painting

    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint what changed."""
        drains = self.fleet_app.drains
        watch, desk = drains.watch, drains.desk
        if not self.size.width:
            return
        watch.look(self.names)
        found = [watch.status_of(name) for name in self.names]
        self.statuses = tuple([status for status in found if status is not None])
        # What the snapshot shows no drain of is previewed at once; it is read all the same.
        is_known = all(watch.is_known(name) or not drains.is_flagged(name) for name in self.names)
        if self.is_again:
            names = [name for name in self.names if not self._is_at_work(name)]
        else:
            names = [name for name in self.names if watch.status_of(name) is None]
        self.preview_names = tuple(names) if is_known else ()
        if not self.preview_names:
            self.is_again = False
        if self.preview_names and desk is not None:
            self.previews.look(desk, self.preview_names, self.options, snapshot.seq)
        if not self.statuses:
            self.view_now = "copies"
        plans = self.previews.plans if self.preview_names else ()
        layout = layout_of(self.size.width, plans, self.statuses, self.fleet_app.look.glyph_set)
        self._show_rows(layout, now, is_known=is_known)
        self._show_around(snapshot, layout, now)
        self.show_detail()

    def _is_at_work(self, name: str) -> bool:
        status = self.fleet_app.drains.watch.status_of(name)
        return status is not None and status.drain.state in WORKING

    def _show_rows(self, layout: DrainLayout, now: float, *, is_known: bool) -> None:
        view, has_headings = self.drain_list, len(self.names) > 1
        if not is_known:
            view.show_lines(note_row("wait", "looking…", layout), None)
            return
        if self.view_now == "journal":
            offset = self.fleet_app.look.utc_offset_s
            view.show_lines(journal_list(self.statuses, layout, offset, has_headings=has_headings), None)
            return
        rows: list[DrainRow] = []
        header = progress_header(layout)
        if self.preview_names:
            header = preview_header(layout)
            plans = self.previews.plans
            rows += preview_list(plans, self.options, layout, has_headings=has_headings)
            if not plans:
                rows += note_row("wait", self.previews.error or "working it out…", layout)
        at_work = [status for status in self.statuses if status.drain.machine not in self.preview_names]
        rows += work_list(at_work, now, layout, has_headings=has_headings)
        for name in self.names:
            copies = self.fleet_app.drains.watch.returning(name)
            if is_under_way(copies):
                rows += return_list(name, copies, now, layout)
        view.show_lines(rows, Line("header", header))

    def _show_around(self, snapshot: FleetSnapshot, layout: DrainLayout, now: float) -> None:
        """Title, options, notes."""
        width, glyphs = self.size.width, layout.glyphs
        middle: Cells = ()
        right = ""
        if self.preview_names:
            plans = self.previews.plans
            middle = preview_words(plans, glyphs)
            is_new = self.previews.is_of(self.preview_names, self.options)
            right = age_words(plans, snapshot.judged_at(now), width) if is_new else "working it out…"
        elif len(self.statuses) == 1:
            middle = drain_words(self.statuses[0], glyphs)
            right = time_words(self.statuses[0], now)
        if width < NARROW:
            right = ""
        told = self.pause_cells(snapshot, now) or (Cell(glyphs.plain(f"{right} " if right else ""), "dim"),)
        title = drain_title(self.names, middle, told, width, glyphs)
        self.query_one("#title", CellBlock).show_cells(title)
        self._show_options(layout, now)
        self._show_notes(layout, now)

    def _show_options(self, layout: DrainLayout, now: float) -> None:
        """What may be switched before the start; then whose drain it is."""
        chips = option_chips(self.options) if self.preview_names else ()
        keys = {chip.action: self.key_of(chip.action) for chip in chips}
        self.chips = lay_chips(chips, keys, layout.width, layout.glyphs)
        cells = self.chips.cells
        if not chips and len(self.statuses) == 1:
            words = flag_words(self.statuses[0].drain, now, self.fleet_app.look.utc_offset_s)
            cells = note_row("flag", words, layout)[0].cells
        self.query_one("#options", CellBlock).show_cells(cells)

    def _show_notes(self, layout: DrainLayout, now: float) -> None:
        notes: list[tuple[str, Tone]] = []
        watch = self.fleet_app.drains.watch
        if watch.error:
            notes.append((f"drains cannot be read: {watch.error}", "bad"))
        if self.starting.consequence is not None:
            notes.append(self.starting.consequence)
        elif self.preview_names:
            notes += preview_notes(self.previews.plans)
        keys = {action: self.key_of(action) for action in _KEYS}
        for status in self.statuses:
            if status.drain.machine not in self.preview_names:
                notes += [
                    (f"{status.drain.machine}: {text}" if len(self.names) > 1 else text, tone)
                    for text, tone in work_notes(status, now, os.getpid(), keys)
                ]
        most = 2 if self.size.height < LOW else 4 if self.size.height < HIGH else 8
        rows = [
            row
            for number, (text, tone) in enumerate(notes)
            for row in note_row(str(number), text, layout, tone)
        ]
        lines = [row.cells for row in rows]
        if len(lines) > most:
            lines = [*lines[: most - 1], note_row("more", "…", layout)[0].cells]
        if not lines and self.size.height >= LOW:
            lines = [()]  # so that nothing moves when something is to be said
        self.query_one("#notes", CellBlock).show_cells(*lines)

    def show_detail(self) -> None:
        """All that is known of the line under the cursor."""
        width, glyphs, height = self.size.width, self.fleet_app.look.glyph_set, self.size.height
        most = 1 if height < LOW else 2 if height < HIGH else 4
        row, lines = self.current_row, []
        planned = planned_of(self.previews.plans, row) if self.preview_names else None
        copy = progress_of(self.statuses, row)
        if planned is not None:
            lines = detail_cells(*line_about(planned, self.options), "accent", width, glyphs, most)
        elif copy is not None:
            lines = detail_cells(*progress_about(copy), "accent", width, glyphs, most)
        self.query_one("#detail", CellBlock).show_cells(*[()] * (most - len(lines)), *lines)

    def show_again(self) -> None:
        self.fleet_app.painter.paint_now()
        self.note_cursor()

    def note_started(self) -> None:
        """It has begun: show how far it is."""
        self.is_again, self.view_now = False, "copies"
        self.show_again()
