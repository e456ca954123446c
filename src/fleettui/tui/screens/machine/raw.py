"""The Raw tab: the machine's part of `fleettui status --json`."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical

from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.screens.machine.pane import MachinePane, gone_line
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.find_view import FindView
from fleettui.view.cells import Cell, Cells, fit_cells, width_of
from fleettui.view.document import machine_document
from fleettui.view.json_lines import JsonLine, json_lines, json_text
from fleettui.view.text import cell_width, clean, wrap
from fleettui.view.units import count

_MOST_DETAIL = 4
"""Lines for a value that is wider than the screen."""


class RawPane(MachinePane, Vertical):
    """Lines of JSON with a cursor. Made anew with a new snapshot, and only while it is shown."""

    BINDINGS = bindings_for("raw")
    DEFAULT_CSS = """
    RawPane { height: 1fr; }
    RawPane > #raw-detail { height: 0; display: none; }
    """

    def __init__(self, machine_name: str) -> None:
        super().__init__(machine_name)
        self.text = ""
        """The document as it is copied."""
        self.built = 0
        """How often it was made."""
        self.view: FindView[JsonLine] = FindView(id="raw")
        self._title = CellBlock(id="raw-title")
        self._detail = CellBlock(id="raw-detail")
        self._detail.lines = ()
        self._made_of: MachineSnapshot | None = None

    def compose(self) -> ComposeResult:
        yield self._title
        yield self.view
        yield self._detail

    def take_focus(self) -> None:
        self.view.focus()

    def show_machine(self, machine: MachineSnapshot | None, fleet: FleetSnapshot, now: float) -> None:
        """Make the document anew when the snapshot is another one."""
        if machine is None:
            self._title.show_cells(gone_line(self.machine_name, fleet).cells)
        elif machine is not self._made_of:
            self._made_of = machine
            self.built += 1
            self.text = json_text(machine_document(machine, now))
            self.view.show_found(json_lines(self.text))
            self._show_place()

    def _show_place(self) -> None:
        """The path under the cursor at the left; how many lines there are, or match, at the right."""
        view, glyphs = self.view, self.fleet_app.look.glyph_set
        line = view.found_line
        width = self.screen.size.width
        right: Cells = (Cell(f"{count(len(view.lines), 'line')} ", "dim"),)
        if view.needle:
            right = (Cell(f"/{clean(view.needle)}", "accent"), Cell(f"  {view.place_text} ", "dim"))
            right = fit_cells(right, min(width_of(right), width // 2), "left", glyphs.ellipsis)
        left = (Cell(f" {'' if line is None else line.path}", "strong"),)
        room = max(0, width - width_of(right))
        self._title.show_cells((*fit_cells(left, room, "left", glyphs.ellipsis), *right))
        self._show_detail(line, width)

    def _show_detail(self, line: JsonLine | None, width: int) -> None:
        """The whole of a line that is wider than the screen."""
        text = "" if line is None else clean(line.text.strip())
        lines: list[Cells] = []
        if line is not None and cell_width(clean(line.text)) > width - 3:
            lines = [(Cell(f" {part}"),) for part in wrap(text, width - 2)[:_MOST_DETAIL]]
        self._detail.show_cells(*lines)

    def on_cursor_view_cursor_moved(self) -> None:
        self._show_place()

    def on_find_view_found(self) -> None:
        self._show_place()

    def on_resize(self) -> None:
        self._show_place()

    def action_copy_document(self) -> None:
        self.app.copy_to_clipboard(self.text)
        self.notify(f"Copied {count(self.text.count(chr(10)) + 1, 'line')} of JSON", markup=False)
