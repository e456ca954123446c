"""Differences, the N-1 table and findings of lint as JSON has them."""

from __future__ import annotations

from fleettui.model.placement import Assignment
from fleettui.model.placement_answers import LintFinding, NodeLoss, PlanChange, PlanComparison, PlanDiff
from fleettui.view.json_values import Document, rounded
from fleettui.view.placement_document import SCHEMA, assignment_document, counts_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_KINDS = ("keep", "move", "add", "remove")


def diff_document(diff: PlanDiff, comparison: PlanComparison | None = None) -> Document:
    """What is to be done; null is unknown."""
    return {
        "schema": SCHEMA,
        **counts_document(comparison),
        "changes": [_change(item) for item in diff.changes],
        "counts": {kind: sum(item.kind == kind for item in diff.changes) for kind in _KINDS},
        "load_gb": round(diff.load_gb, 1),
        "seconds": round(diff.seconds, 1),
        "unknown_loads": diff.unknown,
        "has_changes": diff.has_changes,
    }


def _change(item: PlanChange) -> Document:
    return {
        "kind": item.kind,
        "role": item.role or None,
        "copy": item.copy if item.role else None,
        "model": item.model or None,
        "from": _place(item.before),
        "to": _place(item.after),
        "load_gb": rounded(item.load_gb),
        "seconds": rounded(item.seconds),
    }


def _place(item: Assignment | None) -> Document | None:
    if item is None:
        return None
    whole = assignment_document(item)
    return {key: whole[key] for key in ("node", "gpu_index", "gpu_indices") if key in whole}


def losses_document(losses: Iterable[NodeLoss]) -> Document:
    """The N-1 table."""
    rows = [_loss(item) for item in losses]
    return {"schema": SCHEMA, "nodes": rows, "is_safe": all(row["is_safe"] for row in rows)}


def _loss(item: NodeLoss) -> Document:
    return {
        "node": item.node,
        "copies_lost": len(item.lost),
        "lost": [{"role": copy.role, "copy": copy.copy} for copy in item.lost],
        "left_unplaced": [{"role": loss.role, "missing": loss.missing} for loss in item.left_unplaced],
        "moved": item.moved,
        "is_safe": item.is_safe,
    }


def lint_document(findings: Iterable[LintFinding]) -> Document:
    """All findings."""
    return {
        "schema": SCHEMA,
        "findings": [{"code": item.code, "subject": item.subject, "text": item.text} for item in findings],
    }
