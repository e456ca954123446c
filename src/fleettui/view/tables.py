"""Small aligned tables of cells."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.view.cells import Cell, Cells, fit_cells, width_of

Line = Cells
_GAP = "  "


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[Cells]],
    right: frozenset[int] = frozenset(),
    width: int | None = None,
) -> list[Line]:
    """Rows with aligned columns, two blanks between; empty columns vanish. `right`: right-aligned ones;
    `width`: the last columns go where the lines would be wider."""
    if not rows:
        return []
    full: list[Sequence[Cells]] = (
        [tuple((Cell(title, "title"),) for title in head), *rows] if head else list(rows)
    )
    widths = [max(width_of(row[index]) for row in full) for index in range(len(rows[0]))]
    used = [max(width_of(row[index]) for row in rows) > 0 for index in range(len(rows[0]))]
    kept = [index for index in range(len(widths)) if used[index]]
    while (
        width is not None and len(kept) > 2 and sum(widths[i] + len(_GAP) for i in kept) > width + len(_GAP)
    ):
        kept.pop()
    lines = []
    for row in full:
        line: list[Cell] = []
        for index in kept:
            if line:
                line.append(Cell(_GAP))
            is_last = index == kept[-1] and index not in right
            align = "right" if index in right else "left"
            line += (
                row[index]
                if is_last
                else fit_cells(row[index], widths[index], "right" if align == "right" else "left")
            )
        lines.append(tuple(line))
    return lines


def fields(rows: Sequence[tuple[str, Cells]]) -> list[Line]:
    """Names on the left, values on the right."""
    return table((), [((Cell(name, "dim"),), value) for name, value in rows])
