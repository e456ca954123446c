"""What is made of plans as text: the way to a plan, the loss of each machine, findings of lint."""

from __future__ import annotations

from fleettui.model.placement import Assignment
from fleettui.model.placement_answers import (
    ChangeKind,
    LintFinding,
    NodeLoss,
    PlanChange,
    PlanComparison,
    PlanDiff,
)
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.placement_text import comparison_text, cut_lines, page_width, wrapped_lines
from fleettui.view.tables import table
from fleettui.view.text import clean, wrap
from fleettui.view.units import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

HOW_LONG = (
    "Seconds are by measured rates of loading where there are any, else by 1.5 GB/s; machines load side by "
    "side, each one copy after another."
)
_TONES: dict[ChangeKind, Tone] = {"keep": "dim", "move": "warn", "add": "good", "remove": "bad"}


def diff_lines(
    diff: PlanDiff,
    width: int | None = None,
    glyphs: Glyphs = UNICODE,
    comparison: PlanComparison | None = None,
) -> list[Cells]:
    """What is to be done, in the order of the new plan; then what goes."""
    total = page_width(width)
    lines = wrapped_lines(diff_headline(diff), total, "strong")
    if comparison is not None:
        lines += wrapped_lines(comparison_text(comparison), total, "dim")
    if diff.changes:
        head = ("CHANGE", "COPY", "MODEL", "FROM", "TO", "GB", "SECONDS")
        rows = [_change_row(item, glyphs) for item in diff.changes]
        lines += [(), *table(head, rows, frozenset((5, 6)))]
    if diff.load_gb:
        lines.append(())
        lines += wrapped_lines(HOW_LONG, total, "dim")
    return cut_lines(lines, total, glyphs)


def diff_headline(diff: PlanDiff) -> str:
    """`diff: 2 to add, 1 to move, 3 to remove, 4 stay; 58.9 GB to load, about 41 s`."""
    if not diff.changes:
        return "diff: nothing stands and nothing is planned"
    verbs = (("add", "to add"), ("move", "to move"), ("remove", "to remove"))
    parts = [f"{diff.count(kind)} {words}" for kind, words in verbs if diff.count(kind)]  # type: ignore[arg-type]
    kept = diff.count("keep")
    if not parts:
        return f"diff: nothing to do, {count(kept, 'copy stays', 'copies stay')}"
    text = f"diff: {', '.join(parts)}" + (f", {kept} {'stays' if kept == 1 else 'stay'}" if kept else "")
    if diff.load_gb:
        text += f"; {diff.load_gb:.1f} GB to load, about {diff.seconds:.0f} s"
    return text + (f"; {count(diff.unknown, 'load')} of unknown size" if diff.unknown else "")


def _change_row(item: PlanChange, glyphs: Glyphs) -> list[Cells]:
    label = clean(f"{item.role}/{item.copy}") if item.role else glyphs.dash
    is_load = item.kind in ("add", "move")
    return [
        (Cell(item.kind, _TONES[item.kind]),),
        (Cell(label),),
        (Cell(clean(item.model) or glyphs.dash, "dim" if item.kind == "keep" else "plain"),),
        _place(item.before),
        _place(item.after),
        _figure(item.load_gb, 1) if is_load else (),
        _figure(item.seconds, 0) if is_load else (),
    ]


def _place(item: Assignment | None) -> Cells:
    return () if item is None else (Cell(clean(item.place)),)


def _figure(value: Maybe[float], digits: int) -> Cells:
    return (Cell(str(value), "unknown"),) if isinstance(value, Unknown) else (Cell(f"{value:.{digits}f}"),)


def losses_lines(
    losses: Iterable[NodeLoss], width: int | None = None, glyphs: Glyphs = UNICODE
) -> list[Cells]:
    """The N-1 table: a row for each machine that takes copies now."""
    total = page_width(width)
    rows = list(losses)
    lines = wrapped_lines(losses_headline(rows), total, "strong")
    if rows:
        head = ("WITHOUT", "COPIES", "LEFT UNPLACED", "OTHERS THAT MOVE")
        cells = [_loss_row(item) for item in rows]
        lines += [(), *table(head, cells, frozenset((1,)))]
    return cut_lines(lines, total, glyphs)


def losses_headline(losses: list[NodeLoss]) -> str:
    """`N-1: 2 of 6 machines cannot be spared: ada, dora`."""
    if not losses:
        return "N-1: no machine is planned, so none can be lost"
    needed = [clean(item.node) for item in losses if not item.is_safe]
    whole = count(len(losses), "machine")
    if not needed:
        each = f"each of {whole}" if len(losses) > 1 else whole
        return f"N-1: {each} can be spared, every role keeps its copies"
    return f"N-1: {len(needed)} of {whole} cannot be spared: {', '.join(needed)}"


def _loss_row(item: NodeLoss) -> list[Cells]:
    words = [
        loss.role if loss.missing == 1 else f"{loss.role} x{loss.missing}" for loss in item.left_unplaced
    ]
    return [
        (Cell(clean(item.node), "strong"),),
        (Cell(str(len(item.lost)), "plain" if item.lost else "dim"),),
        (Cell(clean(", ".join(words)), "bad"),) if words else (Cell("none", "good"),),
        (Cell(str(item.moved)),) if item.moved else (),
    ]


def lint_lines(
    findings: Iterable[LintFinding], width: int | None = None, glyphs: Glyphs = UNICODE
) -> list[Cells]:
    """Each finding with its code."""
    total = page_width(width)
    found = list(findings)
    headline = f"lint: {count(len(found), 'finding')}" if found else "lint: nothing to say"
    lines = wrapped_lines(headline, total, "strong")
    for item in found:
        lines += [(), (Cell(item.code, "warn"),)]
        lines += [(Cell(f"  {part}"),) for part in wrap(clean(item.text), total - 2)]
    return cut_lines(lines, total, glyphs)
