"""What is wrong outside the machines: files that cannot be used, words of the service."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.widgets.cell_block import CellBlock, shorten
from fleettui.view.cells import Cell, Cells
from fleettui.view.problems import check_lines, problem_lines
from fleettui.view.text import cell_width

MAX_LINES = 3


class Notices(CellBlock):
    """At most three lines; none while all is well."""

    DEFAULT_CSS = """
    Notices {
        height: 0;
        margin: 0 0 1 0;
    }
    """

    def __init__(self) -> None:
        super().__init__(id="notices")
        self.lines = ()
        self.display = False

    def show_problems(self, fleet: FleetSnapshot, notices: Sequence[str], sign: str) -> None:
        """Take them over; repaints only when they changed."""
        told = problem_lines(fleet.problems)
        if any(cell_width(text) + 3 > self.screen.size.width for text in told):
            told = [
                text.removeprefix(f"{fleet.machines_dir}/") for text in told
            ]  # what is wrong matters more
        lines: list[Cells] = [(Cell(f" {sign} {text}", "warn"),) for text in told]
        if fleet.seq and not fleet.machines and all(problem.is_of_catalog for problem in fleet.problems):
            lines += [(Cell(f" {text}", "accent"),) for text in check_lines((), (), fleet.machines_dir)]
        lines += [(Cell(f" {text}", "accent"),) for text in notices]
        hidden = len(lines) - MAX_LINES + 1
        self.show_cells(
            *shorten(lines, MAX_LINES, (Cell(f"   and {hidden} more: fleettui machines check", "dim"),))
        )
