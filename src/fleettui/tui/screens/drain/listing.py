"""Which rows stand on the Drain screen, from the plans and statuses of its machines."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.drain import WORKING, CopyProgress, DrainOptions, DrainPlan, DrainStatus, PlannedCopy
from fleettui.tui.widgets.block_list import BlockList
from fleettui.view.drain_page import preview_heading, status_heading
from fleettui.view.drain_rows import (
    DrainLayout,
    DrainRow,
    drain_layout,
    heading_row,
    note_row,
    preview_contexts,
    preview_rows,
    preview_wheres,
)
from fleettui.view.drain_text import copy_name, source_name
from fleettui.view.drain_work_rows import (
    WORK_FIGURES,
    journal_rows,
    progress_rows,
    progress_wheres,
)
from fleettui.view.glyphs import Glyphs
from fleettui.view.text import clean


class DrainList(BlockList[DrainRow]):
    """Copies, or steps of the journal."""

    def group_of(self, line: DrainRow) -> str:
        return line.key


def layout_of(
    width: int, plans: Sequence[DrainPlan], statuses: Sequence[DrainStatus], glyphs: Glyphs
) -> DrainLayout:
    """Columns that hold all of them."""
    names = [copy_name(line) for plan in plans for line in plan.copies]
    names += [source_name(copy.copy) for status in statuses for copy in status.copies]
    wheres = [*preview_wheres(plans), *progress_wheres(statuses)]
    if not plans:
        return drain_layout(width, names, wheres, (), glyphs, figures=WORK_FIGURES)
    return drain_layout(width, names, wheres, preview_contexts(plans), glyphs)


def preview_list(
    plans: Sequence[DrainPlan], options: DrainOptions, layout: DrainLayout, *, has_headings: bool
) -> list[DrainRow]:
    """What becomes of each copy."""
    rows: list[DrainRow] = []
    for plan in plans:
        if has_headings:
            rows.append(heading_row(plan.machine, preview_heading(plan), layout))
        rows += preview_rows(plan, options, layout)
        if not plan.copies and not plan.problem:
            rows += note_row(plan.machine, "nothing is loaded: it is drained as soon as that is seen", layout)
    return rows


def work_list(
    statuses: Sequence[DrainStatus], now: float, layout: DrainLayout, *, has_headings: bool
) -> list[DrainRow]:
    """How far each copy is."""
    rows: list[DrainRow] = []
    for status in statuses:
        name = status.drain.machine
        if has_headings:
            rows.append(heading_row(name, status_heading(status), layout))
        rows += progress_rows(status.copies, now, layout)
        if not status.copies:
            is_new = status.drain.state in WORKING
            rows += note_row(name, "no copy yet" if is_new else "no copy was loaded there", layout)
    return rows


def return_list(
    machine: str, copies: Sequence[CopyProgress], now: float, layout: DrainLayout
) -> list[DrainRow]:
    """How far what is moved back is."""
    heading = heading_row(f"back {machine}", f"moved back to {clean(machine)}", layout)
    return [heading, *progress_rows(copies, now, layout)]


def journal_list(
    statuses: Sequence[DrainStatus], layout: DrainLayout, utc_offset_s: int | None, *, has_headings: bool
) -> list[DrainRow]:
    """All steps, newest first."""
    rows: list[DrainRow] = []
    for status in statuses:
        name = status.drain.machine
        if has_headings:
            rows.append(heading_row(name, name, layout))
        rows += journal_rows(status.journal, layout, utc_offset_s) or note_row(
            name, "nothing is written down yet", layout
        )
    return rows


def planned_of(plans: Sequence[DrainPlan], row: DrainRow | None) -> PlannedCopy | None:
    """The line of the preview that a row shows."""
    if row is None or row.copy is None:
        return None
    return next((line for plan in plans for line in plan.copies if line.copy.key == row.copy), None)


def progress_of(statuses: Sequence[DrainStatus], row: DrainRow | None) -> CopyProgress | None:
    """The copy in work that a row shows."""
    if row is None or row.copy is None:
        return None
    return next((copy for status in statuses for copy in status.copies if copy.copy.key == row.copy), None)
