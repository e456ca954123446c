"""The ranking of a model: a line for each machine that can serve it, then the others with all reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from fleettui.model.record import dataclass
from fleettui.model.route import RejectedMachine, RouteCandidate
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import card_memory, has_no_gpu, vram_sum
from fleettui.view.bars import DEFAULT_THRESHOLDS, Thresholds, bar_cells, fraction_of
from fleettui.view.cells import Cell, Cells, Tone, fit_cells
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.list_lines import heading_cells, in_signs
from fleettui.view.route_words import TIER_WIDTH, basis_of, ready_in, tier_cells, why_cells
from fleettui.view.text import cell_width, clean, fit, wrap
from fleettui.view.units import count, gib_short

RowKind = Literal["candidate", "rejected", "model", "more", "heading"]
_FREE_WIDTH, _FREE_NARROW, _FREE_NARROW_BELOW = 16, 14, 100
"""Columns of `141.2 on GPU 15` and of the header; nearly that many on narrower screens than the last."""
_READY_FROM, _BASIS_FROM, _BAR_FROM = 60, 110, 130
"""Columns of the screen from which there is a column for it."""
_SAID_FROM = 64
"""The same for all words of the heading."""
_WHY_LEAST = 12
"""Columns below which the reason is left out; it is told of the line under the cursor anyway."""


class RouteRow(NamedTuple):
    """One line of the list."""

    key: str
    """Of a machine's first line its name."""
    kind: RowKind
    machine: str
    """Of a model its name."""
    cells: Cells

    @property
    def is_stop(self) -> bool:
        """The cursor can be on it."""
        return self.kind not in ("more", "heading")


@dataclass(frozen=True, slots=True)
class RouteLayout:
    """Where the columns stand. One for each width and set of names."""

    width: int
    rank: int
    name: int
    ready: int
    """0: not there, as below."""
    basis: int
    bar: int
    free: int
    """Columns of the figure, the bar not counted."""
    why: int
    glyphs: Glyphs = UNICODE
    thresholds: Thresholds = DEFAULT_THRESHOLDS


def route_layout(
    width: int,
    names: Sequence[str],
    glyphs: Glyphs = UNICODE,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> RouteLayout:
    """The layout for a width and all names of the fleet."""
    rank = len(str(max(1, len(names))))
    longest = max((cell_width(clean(name)) for name in names), default=0)
    name = min(max(longest, len("machine")), 28, max(8, width // 4))
    ready = 8 if width >= _READY_FROM else 0
    basis = 8 if width >= _BASIS_FROM else 0
    bar = 16 if width >= _BAR_FROM else 0
    free = _FREE_NARROW if width < _FREE_NARROW_BELOW else _FREE_WIDTH
    used = 1 + rank + 2 + name + 2 + TIER_WIDTH + free + 2
    used += sum(columns + 2 for columns in (ready, basis) if columns) + (bar + 1 if bar else 0)
    why = width - used - 3
    why = why if why >= _WHY_LEAST else 0
    return RouteLayout(width, rank, name, ready, basis, bar, free, why, glyphs, thresholds)


def route_header(layout: RouteLayout) -> Cells:
    """Titles of the columns."""
    parts = [" " * (1 + layout.rank + 2) + fit("machine", layout.name), fit("tier", TIER_WIDTH)]
    if layout.ready:
        parts.append(f"{'ready in':>{layout.ready}}")
    if layout.basis:
        parts.append(fit("basis", layout.basis))
    parts.append(fit("free VRAM, GiB", layout.free + (layout.bar + 1 if layout.bar else 0)))
    if layout.why:
        parts.append("why")
    return (Cell("  ".join(parts).rstrip(), "title"),)


def candidate_row(
    candidate: RouteCandidate,
    rank: int,
    snapshot: MachineSnapshot | None,
    layout: RouteLayout,
    *,
    is_marked: bool = False,
) -> RouteRow:
    """The line of a machine that can serve the model; the best one has its rank in colour."""
    best = rank == 1
    name = fit(clean(candidate.machine), layout.name, layout.glyphs.ellipsis)
    cells: list[Cell] = [
        _mark(layout, is_marked),
        Cell(f"{rank:>{layout.rank}}  ", "good" if best else "dim"),
        Cell(name, "strong"),
        Cell("  "),
        *tier_cells(candidate.tier),
    ]
    if layout.ready:
        cells += [Cell("  "), *fit_cells((ready_in(candidate),), layout.ready, "right")]
    if layout.basis:
        cells.append(Cell(f"  {basis_of(candidate):<{layout.basis}}", "dim"))
    cells += [Cell("  "), *_free_cells(candidate, snapshot, layout)]
    if layout.why:
        cells.append(Cell("  "))
        cells += fit_cells(
            why_cells(candidate, is_brief=layout.ready > 0), layout.why, "left", layout.glyphs.ellipsis
        )
    return RouteRow(candidate.machine, "candidate", candidate.machine, in_signs(tuple(cells), layout))


def rejected_rows(
    rejected: RejectedMachine, layout: RouteLayout, *, is_marked: bool = False
) -> tuple[RouteRow, ...]:
    """A machine with all that speaks against it, on as many lines as that takes; dim."""
    indent = 1 + layout.rank + 2 + layout.name + 2
    room = max(8, layout.width - indent - 2)
    glyphs, name = layout.glyphs, rejected.machine
    first, *others = wrap(glyphs.plain(clean(rejected.text)), room)
    start = f"{glyphs.dash:>{layout.rank}}  {fit(clean(name), layout.name, glyphs.ellipsis)}  "
    head = in_signs((_mark(layout, is_marked), Cell(start + first, "dim")), layout)
    rows = [RouteRow(name, "rejected", name, head)]
    for number, text in enumerate(others, 1):
        cells = in_signs((Cell(" " * indent + text, "dim"),), layout)
        rows.append(RouteRow(f"{name}\n{number}", "more", name, cells))
    return tuple(rows)


def asked_row(name: str, layout: RouteLayout) -> RouteRow:
    """A machine that has not answered yet and is waited for."""
    glyphs = layout.glyphs
    start = f" {glyphs.dot:>{layout.rank}}  {fit(clean(name), layout.name, glyphs.ellipsis)}  "
    cells = in_signs((Cell(f"{start}asking{glyphs.ellipsis}", "dim"),), layout)
    return RouteRow(name, "rejected", name, cells)


def rejected_heading(number: int, layout: RouteLayout) -> RouteRow:
    """Between those that can serve it and those that cannot."""
    said = f"{count(number, 'machine')} not eligible"
    said += ", each with all that speaks against it" if layout.width >= _SAID_FROM else ""
    return RouteRow("\nrejected", "heading", "", heading_cells(said, layout))


def text_rows(key: str, text: str, layout: RouteLayout, tone: Tone = "plain") -> tuple[RouteRow, ...]:
    """A sentence over as many lines as it takes."""
    lines = wrap(layout.glyphs.plain(clean(text)), max(8, layout.width - 4))
    return tuple(
        RouteRow(f"\n{key} {number}", "heading", "", in_signs((Cell(f"   {line}", tone),), layout))
        for number, line in enumerate(lines)
    )


def _mark(layout: RouteLayout, is_marked: bool) -> Cell:
    return Cell(layout.glyphs.tagged, "accent") if is_marked else Cell(" ")


def _free_cells(candidate: RouteCandidate, snapshot: MachineSnapshot | None, layout: RouteLayout) -> Cells:
    """A bar of what is taken, and what is free: on the card with most room, or of all of them."""
    width = layout.free + (layout.bar + 1 if layout.bar else 0)
    if snapshot is not None and has_no_gpu(snapshot):
        return fit_cells((Cell("cpu only", "dim"),), width)
    free = candidate.free_mib
    total, place = _whole(candidate, snapshot)
    cells: Cells = ()
    if layout.bar:
        taken: Maybe[int] = Unknown()
        if not isinstance(free, Unknown) and not isinstance(total, Unknown):
            taken = max(0, total - free)
        limits = layout.thresholds.memory
        cells = (*bar_cells(fraction_of(taken, total), layout.bar, limits, layout.glyphs), Cell(" "))
    tone: Tone = "unknown" if isinstance(free, Unknown) else "plain"
    cells = (*cells, Cell(f"{gib_short(free):>5}", tone), Cell(place, "dim"))
    return fit_cells(cells, width, "left", layout.glyphs.ellipsis)


def _whole(candidate: RouteCandidate, snapshot: MachineSnapshot | None) -> tuple[Maybe[int], str]:
    """MiB in all where the free ones were counted, and which card that is."""
    if snapshot is None:
        return Unknown(), ""
    cards = snapshot.gpu.cards if snapshot.gpu is not None else ()
    card = next((item for item in cards if item.index == candidate.free_gpu), None)
    if card is None:
        return vram_sum(snapshot).total_mib, " in all" if len(cards) > 1 else ""
    place = f" on GPU {candidate.free_gpu}" if len(cards) > 1 else ""
    return card_memory(snapshot, card).total_mib, place


class RouteRows:
    """Rows of each machine, kept until something they depend on changes."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, tuple[RouteRow, ...]]] = {}
        self.built = 0
        """How many machines' rows were built so far."""

    def of_candidate(
        self,
        candidate: RouteCandidate,
        rank: int,
        snapshot: MachineSnapshot | None,
        layout: RouteLayout,
        *,
        is_marked: bool = False,
    ) -> tuple[RouteRow, ...]:
        """Its one row."""
        made_of = (
            layout, rank, is_marked, _whole(candidate, snapshot), candidate.tier, candidate.reason,
            candidate.free_mib, candidate.eta_s, candidate.eta_basis, candidate.evicts, candidate.busy,
            candidate.leases,
        )  # fmt: skip
        kept = self._kept.get(candidate.machine)
        if kept is None or kept[0] != made_of:
            row = candidate_row(candidate, rank, snapshot, layout, is_marked=is_marked)
            kept = self._keep(candidate.machine, made_of, (row,))
        return kept[1]

    def of_rejected(
        self,
        rejected: RejectedMachine,
        layout: RouteLayout,
        *,
        is_marked: bool = False,
        is_asked: bool = False,
    ) -> tuple[RouteRow, ...]:
        """Its rows."""
        made_of = (layout, rejected.text, is_marked, is_asked)
        kept = self._kept.get(rejected.machine)
        if kept is None or kept[0] != made_of:
            rows = (
                (asked_row(rejected.machine, layout),)
                if is_asked
                else rejected_rows(rejected, layout, is_marked=is_marked)
            )
            kept = self._keep(rejected.machine, made_of, rows)
        return kept[1]

    def keep_only(self, machines: Mapping[str, MachineSnapshot]) -> None:
        """Drop rows of machines that are gone."""
        if len(self._kept) > len(machines):
            self._kept = {name: kept for name, kept in self._kept.items() if name in machines}

    def _keep(
        self, machine: str, made_of: object, rows: tuple[RouteRow, ...]
    ) -> tuple[object, tuple[RouteRow, ...]]:
        before = self._kept.get(machine)
        if before is not None and before[1] == rows:
            rows = before[1]  # the same objects: nothing to compare, nothing to paint
        self.built += 1
        kept = self._kept[machine] = (made_of, rows)
        return kept
