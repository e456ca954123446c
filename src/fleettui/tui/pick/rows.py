"""The list of the picker: of a model the ranking of the Route screen, else a line for each machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fleettui.model.route import RouteCandidate, RouteDecision, ServingList
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.port import Look
from fleettui.tui.widgets.painting import Line, Paintable
from fleettui.view.cells import Cells
from fleettui.view.pick_lines import choice_line, header_cells, pick_layout, snapshots_of
from fleettui.view.picking import Choice
from fleettui.view.route_page import note_lines
from fleettui.view.route_rows import (
    RouteLayout,
    RouteRow,
    RouteRows,
    rejected_heading,
    route_header,
    route_layout,
)


class PickPage(NamedTuple):
    """What the list shows."""

    lines: Sequence[Paintable]
    header: Line
    tells_why: bool
    """There is a column for it."""
    notes: Sequence[Cells] = ()
    """What holds for whichever is picked."""


class PickRows:
    """Rows of each machine are kept until something they depend on changes."""

    def __init__(self) -> None:
        self._kept = RouteRows()

    def page_of(
        self,
        found: RouteDecision | ServingList,
        fleet: FleetSnapshot,
        choices: Sequence[Choice],
        shown: Sequence[Choice],
        now: float,
        width: int,
        look: Look,
    ) -> PickPage:
        """Lines for those that are `shown` of all `choices`."""
        machines = snapshots_of(fleet)
        if isinstance(found, RouteDecision):
            layout = route_layout(width, list(machines), look.glyph_set, look.thresholds)
            rows = self._ranking(found, shown, machines, layout)
            is_waiting = any(choice.is_asked for choice in choices)
            notes = note_lines(found, layout, 2, is_waiting=is_waiting)
            return PickPage(rows, Line("", route_header(layout)), layout.why > 0, notes)
        table = pick_layout(
            width, choices, interval_s=fleet.interval_s, glyphs=look.glyph_set, thresholds=look.thresholds
        )
        lines = [choice_line(choice, machines.get(choice.machine), now, table) for choice in shown]
        return PickPage(lines, Line("", header_cells(table)), table.rest > 0)

    def _ranking(
        self,
        decision: RouteDecision,
        choices: Sequence[Choice],
        machines: Mapping[str, MachineSnapshot],
        layout: RouteLayout,
    ) -> list[RouteRow]:
        """Lines of the choices; the heading stands above those of which none can be picked any more."""
        rejected = {item.machine: item for item in decision.rejected}
        open_places = [place for place, choice in enumerate(choices) if choice.answer is not None]
        closed_from = open_places[-1] + 1 if open_places else 0
        waiting = any(choice.is_asked for choice in choices[closed_from:])
        rows: list[RouteRow] = []
        for place, choice in enumerate(choices):
            if place == closed_from and not waiting:
                rows.append(rejected_heading(len(choices) - closed_from, layout))
            if isinstance(choice.answer, RouteCandidate):
                rows += self._kept.of_candidate(
                    choice.answer, choice.rank, machines.get(choice.machine), layout
                )
            elif choice.machine in rejected:
                rows += self._kept.of_rejected(rejected[choice.machine], layout, is_asked=choice.is_asked)
        self._kept.keep_only(machines)
        return rows
