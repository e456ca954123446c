"""What stands around the ranking: title, options, notes, what is known of the line under the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fleettui.model.route import EXIT_NO_DATA, EXIT_UNKNOWN_MODEL, RouteCandidate, RouteDecision, RouteQuery
from fleettui.view.cells import Cell, Cells, Tone, fit_cells, width_of
from fleettui.view.glyphs import Glyphs
from fleettui.view.route_rows import RouteLayout, text_rows
from fleettui.view.route_words import about_candidate, data_age_text, eligible_text
from fleettui.view.text import clean, wrap
from fleettui.view.units import gib_text

_NAMES_FROM = 100
"""Columns of the screen below which options have shorter names."""


class Chip(NamedTuple):
    """One option of the question."""

    action: str
    """What changes it."""
    text: str
    short: str
    """Where there is less room."""
    is_on: bool


class ChipLine(NamedTuple):
    """The options on one line, and where each stands."""

    cells: Cells
    spots: tuple[tuple[range, str], ...]
    """(columns, action)."""


def route_title(
    model: str, decision: RouteDecision | None, right: Cells, width: int, glyphs: Glyphs
) -> Cells:
    """What is asked, how many can serve it, how old that is; at the right what is going on."""
    cells: list[Cell] = [Cell(" Route  ", "strong")]
    if not model:
        cells.append(Cell("which model?", "dim"))
    else:
        cells.append(Cell(clean(model), "accent"))
    if decision is not None and (decision.candidates or decision.rejected):
        tone: Tone = "good" if decision.candidates else "warn"
        cells += [Cell("   "), Cell(eligible_text(decision), tone)]
        age = data_age_text(decision)
        if age:
            cells.append(Cell(f" {glyphs.dot} {age}", "dim"))
    room = max(0, width - width_of(right) - 1)
    return (*fit_cells(tuple(cells), room, "left", glyphs.ellipsis), *right)


def chips_of(query: RouteQuery) -> tuple[Chip, ...]:
    """Every option in the order of the line."""
    context, free = query.context, query.min_free_vram_mib
    has_context = context is not None
    context_text = f"context {context}" if has_context else "any context"
    free_text = f"{gib_text(free)} GiB free" if free else "any free VRAM"
    return (
        Chip("ask_context", context_text, context_text if has_context else "context", has_context),
        Chip("ask_free", free_text, free_text if free else "free VRAM", free > 0),
        Chip("toggle_loaded", "loaded only", "loaded", query.require_loaded),
        Chip("toggle_idle", "avoid busy", "not busy", query.avoid_busy),
        Chip("toggle_pull", "allow pull", "pull", query.allow_pull),
    )


def chip_line(query: RouteQuery, keys: Mapping[str, str], width: int, glyphs: Glyphs) -> ChipLine:
    """The options of a question on one line."""
    return lay_chips(chips_of(query), keys, width, glyphs)


def lay_chips(chips: Sequence[Chip], keys: Mapping[str, str], width: int, glyphs: Glyphs) -> ChipLine:
    """Key, sign and words of each; what is off is dim. `keys`: of each action as bound now."""
    cells: list[Cell] = [Cell("  ")]
    spots: list[tuple[range, str]] = []
    column = 2
    for chip in chips:
        sign = glyphs.healthy if chip.is_on else glyphs.hollow
        key = keys.get(chip.action, "")
        words = chip.text if width >= _NAMES_FROM else chip.short
        part = (
            Cell(f"{key} " if key else "", "key"),
            Cell(f"{sign} ", "accent" if chip.is_on else "faint"),
            Cell(words, "accent" if chip.is_on else "dim"),
        )
        taken = width_of(part)
        if column + taken > width:
            break
        spots.append((range(column, column + taken), chip.action))
        cells += [*part, Cell("   ")]
        column += taken + 3
    return ChipLine(tuple(cells), tuple(spots))


def decision_notes(decision: RouteDecision) -> list[tuple[str, Tone]]:
    """Sentences that hold for the whole answer: warnings, and why nobody can serve it."""
    if not decision.candidates and not decision.rejected:
        return []  # no machine is declared: the list says so
    notes: list[tuple[str, Tone]] = [(warning.text, "warn") for warning in decision.warnings]
    if decision.chosen is None:
        notes.append((_why_nobody(decision), "warn"))
    return notes


def note_lines(
    decision: RouteDecision, layout: RouteLayout, most: int, *, is_waiting: bool = False, error: str = ""
) -> list[Cells]:
    """Those sentences on at most `most` lines. While somebody is waited for only warnings are told. `error`:
    why what is stored could not be read."""
    lines: list[Cells] = []
    if error:
        text = f"leases and measured figures are not known: {error}"
        lines += [row.cells for row in text_rows("error", text, layout, "warn")]
    for index, (text, tone) in enumerate(decision_notes(decision)):
        if not is_waiting or index < len(decision.warnings):
            lines += [row.cells for row in text_rows(str(index), text, layout, tone)]
    if len(lines) > most:
        cut = tuple(Cell(cell.text.rstrip(), cell.tone) for cell in lines[most - 1])
        lines = [*lines[: most - 1], (*cut, Cell(f" {layout.glyphs.ellipsis}", "dim"))]
    return lines


def _why_nobody(decision: RouteDecision) -> str:
    asked, query = clean(decision.query.model), decision.query
    if decision.exit_code == EXIT_UNKNOWN_MODEL:
        return f"No machine knows {asked}" + ("; did you mean:" if decision.nearest else ".")
    if decision.exit_code == EXIT_NO_DATA:
        return f"No machine gave usable data, so nothing is known of {asked}: look at the network."
    wishes = f" with {gib_text(query.min_free_vram_mib)} GiB of free VRAM" if query.min_free_vram_mib else ""
    wishes += f" with a context of {query.context}" if query.context is not None else ""
    verb = "has" if query.require_loaded else "can serve"
    loaded = " loaded" if query.require_loaded else ""
    return f"No machine {verb} {asked}{loaded}{wishes} now."


def detail_cells(head: str, about: str, tone: Tone, width: int, glyphs: Glyphs, most: int) -> list[Cells]:
    """At most `most` lines: what the keys act on, then what is known of it."""
    start = clean(head)
    lines = wrap(glyphs.plain(f"{start} · {about}" if about else start), max(8, width - 2))
    if len(lines) > most:
        lines = [*lines[: most - 1], " ".join(lines[most - 1 :])]
    if not lines[0].startswith(start):  # an address longer than the line
        return [fit_cells((Cell(f" {line}", tone),), width, "left", glyphs.ellipsis) for line in lines]
    cells: list[Cells] = [(Cell(" "), Cell(start, tone), Cell(lines[0][len(start) :], "dim"))]
    cells += [(Cell(f" {line}", "dim"),) for line in lines[1:]]
    return [fit_cells(line, width, "left", glyphs.ellipsis) for line in cells]


def candidate_detail(candidate: RouteCandidate, width: int, glyphs: Glyphs, most: int) -> list[Cells]:
    """The address, and everything that is known of it."""
    return detail_cells(candidate.address, about_candidate(candidate), "accent", width, glyphs, most)
