"""Words of routing on the screen: what a tier means, how long it takes, what speaks for and against."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.model.clock import duration, duration_words
from fleettui.model.route import RouteCandidate, RouteDecision
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.text import clean
from fleettui.view.units import DASH, count, gib_text


class TierWord(NamedTuple):
    """How a tier is called on the screen."""

    word: str
    """Short: it stands beside the tier's number in each line."""
    tone: Tone


TIERS: tuple[TierWord, ...] = (
    TierWord("ready", "good"),  # resident, wholly on the GPU, idle
    TierWord("busy", "warn"),  # the same, at work
    TierWord("slow", "warn"),  # resident, partly in RAM
    TierWord("reload", "warn"),  # resident with another context, loading, or asleep
    TierWord("cold", "plain"),  # installed, fits
    TierWord("evicts", "warn"),  # installed, fits once idle copies are gone
    TierWord("on CPU", "warn"),  # installed, with a part in RAM or without a GPU
    TierWord("pull", "dim"),  # not installed
)
TIER_WIDTH = 8
"""Columns of `5 evicts`."""


def tier_cells(tier: int) -> Cells:
    """`0 ready`, exactly `TIER_WIDTH` columns."""
    word, tone = TIERS[tier] if 0 <= tier < len(TIERS) else TierWord("", "plain")
    return (Cell(f"{tier} ", "dim"), Cell(f"{word:<{TIER_WIDTH - 2}}", tone))


def ready_in(candidate: RouteCandidate) -> Cell:
    """When it takes a request: `now`, `~27 s`, `2 min`; a dash where nobody can tell."""
    seconds = candidate.eta_s
    if isinstance(seconds, Unknown):
        return Cell(DASH, "unknown")
    if seconds < 0.5:
        return Cell("now", "good")
    return Cell(f"~{seconds:.0f} s" if seconds < 100 else f"~{seconds / 60:.0f} min")


def basis_of(candidate: RouteCandidate) -> str:
    """What that time rests on, where it is more than a look: `measured`, `assumed`."""
    return candidate.eta_basis if candidate.eta_basis in {"measured", "assumed"} else ""


def eviction_texts(candidate: RouteCandidate) -> list[str]:
    """`qwen3:8b (idle 41 min, 5.2 GiB)` for each copy that has to go, in the order in which they go."""
    texts = []
    for eviction in candidate.evicts:
        about = [] if isinstance(eviction.idle_s, Unknown) else [f"idle {duration_words(eviction.idle_s)}"]
        if not isinstance(eviction.vram_mib, Unknown):
            about.append(f"{gib_text(eviction.vram_mib)} GiB")
        texts.append(clean(eviction.model) + (f" ({', '.join(about)})" if about else ""))
    return texts


def why_cells(candidate: RouteCandidate, *, is_brief: bool = False) -> Cells:
    """What it costs first, then the reason, then who is sent there already. Nothing is said twice; brief
    beside columns that tell tier and time."""
    reason = clean(candidate.reason)
    if is_brief:
        reason = _without_figures(reason, candidate)
    parts: list[Cell] = []
    if candidate.evicts:
        parts.append(Cell(f"evicts {', '.join(eviction_texts(candidate))}", "warn"))
    parts.append(Cell(reason))
    signs = [clean(sign) for sign in candidate.busy if clean(sign) not in reason]
    if signs:
        parts.append(Cell(", ".join(signs), "warn"))
    if candidate.leases:
        parts.append(Cell(f"{count(candidate.leases, 'lease')} held", "accent"))
    cells: list[Cell] = []
    for part in filter(lambda cell: cell.text, parts):
        cells += [Cell("; ", "dim"), part] if cells else [part]
    return tuple(cells)


def _without_figures(reason: str, candidate: RouteCandidate) -> str:
    """The reason of a cold copy without its time, and without the words that its tier says."""
    if candidate.is_resident:
        return reason
    basis = clean(candidate.eta_text)
    if basis:
        reason = reason.replace(f" ({basis})", "", 1)
    if not isinstance(candidate.eta_s, Unknown):
        reason = reason.replace(f"~{candidate.eta_s:.0f} s cold", "cold", 1)
    return reason.removeprefix("installed, cold, ").removeprefix("installed, ")


def about_candidate(candidate: RouteCandidate) -> str:
    """Everything that is known of one, in one sentence; its tier stands in its line."""
    text = "".join(cell.text for cell in why_cells(candidate, is_brief=True))
    if not isinstance(candidate.eta_s, Unknown) and candidate.eta_s >= 0.5:
        basis = clean(candidate.eta_text) or basis_of(candidate)
        text += f"; ready in {ready_in(candidate).text}" + (f" ({basis})" if basis else "")
    return f"{text}; {clean(candidate.model)} on {candidate.engine}"


def data_age_text(decision: RouteDecision) -> str:
    """`data 0.4 s old`: of the best machine; empty where nobody was heard."""
    for group in (decision.candidates, decision.rejected):
        age_s = next((item.age_s for item in group if item.age_s is not None), None)
        if age_s is not None:
            return f"data {age_s:.1f} s old" if age_s < 100 else f"data {duration(age_s)} old"
    return ""


def eligible_text(decision: RouteDecision) -> str:
    """`2 eligible of 6`."""
    total = len(decision.candidates) + len(decision.rejected)
    return f"{len(decision.candidates)} eligible of {total}"
