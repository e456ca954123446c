"""Rows of the other two views of a plan: changes from what is loaded now, and the loss of each machine."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.clock import duration
from fleettui.model.placement_answers import NodeLoss, PlanChange, PlanDiff
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone, fit_cells
from fleettui.view.list_lines import in_signs
from fleettui.view.placement_answers_text import HOW_LONG
from fleettui.view.plan_rows import PlanLayout, PlanRow, heading, text_rows
from fleettui.view.text import cell_width, clean, fit
from fleettui.view.units import DASH, count

_TONES: dict[str, Tone] = {"keep": "dim", "move": "accent", "add": "good", "remove": "warn"}
_SIGNS = {"keep": "=", "move": "→", "add": "+", "remove": "-"}


def change_rows(diff: PlanDiff, layout: PlanLayout) -> list[PlanRow]:
    """What would be done, one line each; a sum above."""
    rows = [heading("sum", _sum_text(diff, layout.width - 8), layout)]
    labels = [_label(item) for item in diff.changes]
    width = min(max(map(cell_width, labels), default=8), max(10, layout.width // 4))
    places = [_place_text(item) for item in diff.changes]
    place_width = min(max(map(cell_width, places), default=4), max(12, layout.width // 3))
    for number, item in enumerate(diff.changes):
        node = item.after or item.before
        cells: list[Cell] = [
            Cell("  "),
            Cell(f"{_SIGNS[item.kind]} {item.kind:<6}  ", _TONES[item.kind]),
            Cell(fit(labels[number], width, layout.glyphs.ellipsis), "strong" if item.role else "plain"),
            Cell("  "),
            *fit_cells((Cell(places[number]),), place_width, "left", layout.glyphs.ellipsis),
            Cell(f"  {_cost_text(item):>14}", "dim"),
        ]
        if item.model and item.role:
            cells.append(Cell(f"  {clean(item.model)}", "dim"))
        key = f"{item.role}/{item.copy}" if item.role else f"{item.model} {places[number]}"
        rows.append(
            PlanRow(
                f"\nchange {key} {number}", "change", node.node if node else "", None,
                in_signs(tuple(cells), layout),
            )
        )  # fmt: skip
    return [*rows, *text_rows("how long", HOW_LONG, layout)] if diff.load_gb else rows


def _sum_text(diff: PlanDiff, room: int) -> str:
    if not diff.changes:
        return "nothing is loaded, and nothing is planned"
    if not diff.has_changes:
        return "what is loaded now is what is planned"
    kinds = [(kind, diff.count(kind)) for kind in ("keep", "move", "add", "remove")]
    said = ", ".join(f"{kind} {number}" for kind, number in kinds if number)
    text = f"{said}; {diff.load_gb:.0f} GiB to load, about {duration(diff.seconds)}"
    if diff.unknown:
        text += f", {count(diff.unknown, 'copy', 'copies')} of unknown size"
    whole = f"from what is loaded now: {text}"
    return whole if cell_width(whole) <= room else text


def _label(item: PlanChange) -> str:
    return clean(f"{item.role}/{item.copy}" if item.role else item.model or "a loaded model")


def _place_text(item: PlanChange) -> str:
    before, after = (None if one is None else clean(one.place) for one in (item.before, item.after))
    if item.kind == "move":
        return f"{before} → {after}"
    return after or before or DASH


def _cost_text(item: PlanChange) -> str:
    if item.kind in ("keep", "remove"):
        return ""
    if isinstance(item.load_gb, Unknown) or isinstance(item.seconds, Unknown):
        return "size unknown" if item.model else "no model fits"
    return f"{item.load_gb:.1f} GiB {duration(item.seconds):>4}"


def loss_rows(losses: Sequence[NodeLoss] | None, layout: PlanLayout) -> list[PlanRow]:
    """Each machine: what stands on it, and which roles would have fewer copies without it."""
    if losses is None:
        return text_rows("wait", "working it out for each machine…", layout)
    risky = sum(not loss.is_safe for loss in losses)
    said = f"without {count(risky, 'machine')} of {len(losses)} some role has fewer copies"
    rows = [
        heading("sum", said if risky else "every role keeps its copies, whichever machine is lost", layout)
    ]
    width = min(max((cell_width(clean(loss.node)) for loss in losses), default=7), max(7, layout.width // 4))
    for loss in sorted(losses, key=lambda loss: -sum(role.missing for role in loss.left_unplaced)):
        cells: list[Cell] = [
            Cell("  "),
            Cell(fit(clean(loss.node), width, layout.glyphs.ellipsis), "strong"),
            Cell("  "),
            *_loss_cells(loss, layout),
        ]
        rows.append(PlanRow(f"\nloss {loss.node}", "loss", loss.node, None, in_signs(tuple(cells), layout)))
    return rows


def _loss_cells(loss: NodeLoss, layout: PlanLayout) -> Cells:
    glyphs = layout.glyphs
    if not loss.lost:
        return (Cell(f"{glyphs.healthy} ", "good"), Cell("nothing is planned on it", "dim"))
    moved = f"  {glyphs.dot} {count(loss.moved, 'other')} would move" if loss.moved else ""
    on_it = f"  {glyphs.dot} has {', '.join(clean(item.label) for item in loss.lost)}"
    if loss.is_safe:
        return (Cell(f"{glyphs.healthy} safe", "good"), Cell(on_it + moved, "dim"))
    lost = ", ".join(f"{clean(role.role)} {glyphs.plain('–')}{role.missing}" for role in loss.left_unplaced)
    return (Cell(f"{glyphs.unhealthy} loses {lost}", "warn"), Cell(on_it + moved, "dim"))
