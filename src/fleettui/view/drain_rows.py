"""Rows of the Drain screen before the start: what becomes of each copy, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from fleettui.model.drain import (
    CLASS_WORDS,
    FORCED_CLASSES,
    LOADING_CLASSES,
    DrainOptions,
    DrainPlan,
    PlannedCopy,
)
from fleettui.model.record import dataclass, replace
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.drain_text import (
    CLASS_TONES,
    CLASS_WIDTH,
    copy_name,
    is_context_less,
    line_sentences,
    seconds_text,
    where_text,
)
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.list_lines import heading_cells, in_signs
from fleettui.view.route_text import eviction_text
from fleettui.view.text import cell_width, clean, fit, wrap
from fleettui.view.units import DASH, gib_text

DrainRowKind = Literal["copy", "entry", "more", "heading"]
CopyKey = tuple[str, str, int, str]
"""`SourceCopy.key`."""
Need = Literal["", "class", "degraded", "pull"]
"""What of the operator's word a line needs: for its class, for `accept_degraded`, for `allow_pull`."""
_NAME_LEAST, _NAME_MOST, _WHERE_LEAST, _WHERE_MOST = 12, 30, 7, 22
_FIGURE, _READY = 6, 8
_CONTEXT_FROM = 74
"""Columns of the screen from which contexts are shown."""
_ABOUT_LEAST, _ABOUT_MOST = 24, 60
"""Columns of words behind the figures: with fewer they stand below, beyond them names get more."""
_BELOW, _BELOW_NARROW = 15, 4
"""Where lines below a copy begin."""
_NARROW = 70
"""Columns of the screen below which all but class and model stands on lines below them."""


class DrainRow(NamedTuple):
    """One line of the list."""

    key: str
    kind: DrainRowKind
    machine: str
    """The machine that is drained; empty where the line is about none."""
    copy: CopyKey | None
    """Of lines about a copy."""
    cells: Cells

    @property
    def is_stop(self) -> bool:
        """The cursor can be on it."""
        return self.kind in ("copy", "entry")


@dataclass(frozen=True, slots=True)
class DrainLayout:
    """Where the columns stand."""

    width: int
    name: int
    where: int
    context: int = 0
    """Columns of contexts; 0: they are not shown."""
    glyphs: Glyphs = UNICODE

    @property
    def is_narrow(self) -> bool:
        """There is no room for columns behind the model."""
        return self.width < _NARROW

    @property
    def below(self) -> int:
        """Where lines below a copy begin."""
        return _BELOW_NARROW if self.is_narrow else _BELOW

    @property
    def head(self) -> int:
        """Columns of sign, class, model and target, with the gap behind them."""
        return 2 + CLASS_WIDTH + 2 + self.name + 2 + self.where + 2


def drain_layout(
    width: int,
    names: Iterable[str],
    wheres: Iterable[str],
    contexts: Iterable[str] = (),
    glyphs: Glyphs = UNICODE,
    *,
    figures: int | None = None,
) -> DrainLayout:
    """The layout for a width, all names of copies, targets and contexts. `figures`: columns behind the
    target; None: those of a preview."""
    if width < _NARROW:
        return DrainLayout(width, max(5, width - (2 + CLASS_WIDTH + 2 + 2)), 0, 0, glyphs)
    where = min(max((cell_width(item) for item in wheres), default=0), _WHERE_MOST)
    context = max((cell_width(item) for item in contexts), default=0)
    context = max(context, len("context")) if width >= _CONTEXT_FROM else 0
    rest = figures or 2 * _FIGURE + 1 + 2 + _READY + (context + 2 if context else 0)
    room = width - 1 - rest - (2 + CLASS_WIDTH + 2 + 2 + 2)
    longest = max((cell_width(item) for item in names), default=0)
    name = min(longest, max(_NAME_MOST, room - where - _ABOUT_MOST))
    where = max(min(where, room - _NAME_LEAST), min(where, 10), _WHERE_LEAST)
    name = max(min(name, room - where), min(name, _NAME_LEAST), 5)
    return DrainLayout(width, name, where, context, glyphs)


# The preview


def needed_word(line: PlannedCopy) -> Need:
    """What the operator has to allow before anything is done about the copy."""
    if line.drain_class in FORCED_CLASSES:
        return "class"
    if line.drain_class == "degraded":
        return "degraded"
    return "pull" if line.drain_class == "pull" else ""


def is_allowed(line: PlannedCopy, options: DrainOptions) -> bool:
    """Nothing of the operator's word is missing for it."""
    need = needed_word(line)
    if need == "class":
        return line.drain_class in options.forced
    return not need or (options.accept_degraded if need == "degraded" else options.allow_pull)


def preview_wheres(plans: Iterable[DrainPlan]) -> list[str]:
    """All targets as they stand in their column."""
    return [_where(line) for plan in plans for line in plan.copies]


def preview_contexts(plans: Iterable[DrainPlan]) -> list[str]:
    """All contexts as they stand in their column."""
    return [context_text(line) for plan in plans for line in plan.of_class(*LOADING_CLASSES)]


def preview_header(layout: DrainLayout) -> Cells:
    """Titles of the columns."""
    if layout.is_narrow:
        return narrow_header(layout)
    context = fit("  context", layout.context + 2) if layout.context else ""
    figures = f"{'GiB':>{_FIGURE}} {'free':>{_FIGURE}}{context}  {'ready in':>{_READY}}"
    return (Cell(f"  {fit('', CLASS_WIDTH)}  {head_words(layout)}{figures}".rstrip(), "title"),)


def narrow_header(layout: DrainLayout) -> Cells:
    """Where there is no room for columns."""
    return (Cell(f"  {fit('', CLASS_WIDTH)}  model", "title"),)


def head_words(layout: DrainLayout) -> str:
    """Titles that stand in front of the figures."""
    return f"{fit('model', layout.name)}  {fit('goes to', layout.where)}  "


def preview_rows(plan: DrainPlan, options: DrainOptions, layout: DrainLayout) -> list[DrainRow]:
    """A line for each copy; below those that nobody takes, why."""
    rows: list[DrainRow] = []
    told = {item.machine for item in plan.excluded}
    for line in plan.copies:
        if any(item.machine in told for item in line.rejected):  # above the list, once for all lines
            line = replace(line, rejected=tuple([r for r in line.rejected if r.machine not in told]))  # noqa: PLW2901
        rows += _preview_row(line, options, layout)
    return rows


def _preview_row(line: PlannedCopy, options: DrainOptions, layout: DrainLayout) -> list[DrainRow]:
    glyphs = layout.glyphs
    skipped, allowed = options.skips_copy(line.copy), is_allowed(line, options)
    class_tone: Tone = "dim" if skipped else CLASS_TONES[line.drain_class]
    sign = Cell("  ")
    if skipped:
        sign = Cell(f"{glyphs.dash} ", "dim")
    elif needed_word(line):
        sign = Cell(f"{glyphs.healthy if allowed else glyphs.hollow} ", "warn" if allowed else "bad")
    cells: list[Cell] = [
        sign,
        Cell(fit(CLASS_WORDS[line.drain_class], CLASS_WIDTH) + "  ", class_tone),
        Cell(fit(copy_name(line), layout.name, glyphs.ellipsis) + "  ", "dim" if skipped else "strong"),
    ]
    if not layout.is_narrow:
        cells.append(Cell(fit(_where(line), layout.where, glyphs.ellipsis) + "  "))
    below: list[tuple[str, Tone]] = []
    sentences = [] if skipped else line_sentences(line)
    if layout.is_narrow:
        below += [_narrow_words(line, is_skipped=skipped, is_allowed=allowed)]
        below += [(text, "warn") for text in _costs(line)] + [(text, "dim") for text in sentences]
    elif skipped:
        cells.append(Cell("stays where it is", "dim"))
    elif line.drain_class in LOADING_CLASSES and line.target is not None:
        cells += _figures(line, layout)
        costs = _costs(line)
        if layout.width - layout.head - _figures_width(layout) >= _ABOUT_LEAST:
            words = [*costs, *sentences] or [_basis(line)]
            cells += [Cell("  "), Cell("; ".join(words), "warn" if costs else "dim")]
        else:
            below += [(text, "warn") for text in costs] + [(text, "dim") for text in sentences]
    elif line.drain_class == "covered":
        cells.append(Cell("; ".join(sentences), "dim"))
    else:
        cells.append(Cell("by your word" if allowed else "needs your word", "dim" if allowed else "warn"))
        below += [(sentence, "dim") for sentence in sentences]
    if not skipped and not allowed and needed_word(line) != "class":
        below.insert(0, (_asks_for(line), "warn"))
    key = copy_row_key(line.copy.key)
    rows = [DrainRow(key, "copy", line.copy.machine, line.copy.key, in_signs(tuple(cells), layout))]
    rows += below_rows(key, line.copy.machine, line.copy.key, below, layout)
    return rows


def _narrow_words(line: PlannedCopy, *, is_skipped: bool, is_allowed: bool) -> tuple[str, Tone]:
    """`→ bora GPU 0+1  42.8 of 61.2 GiB  32k → 4k (!)  ~29 s`."""
    target = line.target
    if is_skipped:
        return "stays where it is", "dim"
    if target is None:
        return ("by your word", "dim") if is_allowed else ("needs your word", "warn")
    if line.drain_class not in LOADING_CLASSES:
        return f"→ {_where(line)}", "plain"
    need = DASH if target.need is None else gib_text(target.need.mib)
    size = f"{need} of {gib_text(target.free_mib)} GiB"
    parts = [f"→ {_where(line)}", size, context_text(line), seconds_text(target.eta_s)]
    return ", ".join(filter(None, parts)), "plain"


def copy_row_key(key: CopyKey) -> str:
    """Of the row of a copy, in the preview and while it is worked on."""
    return "\n".join(map(str, key))


def _where(line: PlannedCopy) -> str:
    if line.target is None:
        return DASH
    if line.drain_class == "covered":
        return clean(line.target.machine)
    return where_text(line.target).removeprefix("-> ")


def _figures_width(layout: DrainLayout) -> int:
    return 2 * _FIGURE + 1 + (layout.context + 2 if layout.context else 0) + 2 + _READY + 2


def _figures(line: PlannedCopy, layout: DrainLayout) -> list[Cell]:
    """What it takes, what is free, tokens here and there, seconds."""
    target = line.target
    if target is None:
        return []
    need = DASH if target.need is None else gib_text(target.need.mib)
    cells = [Cell(f"{need:>{_FIGURE}} "), Cell(f"{gib_text(target.free_mib):>{_FIGURE}}", "dim")]
    if layout.context:
        tone: Tone = "warn" if is_context_less(line) else "dim"
        cells += [Cell("  "), Cell(fit(context_text(line), layout.context), tone)]
    return [*cells, Cell(f"  {seconds_text(target.eta_s):>{_READY}}")]


def context_text(line: PlannedCopy) -> str:
    """`32k`, `32k → 4k (!)` where it has fewer tokens there; empty where nobody knows either."""
    here, there = line.copy.context, line.context_there
    if isinstance(here, Unknown) and isinstance(there, Unknown):
        return ""
    if not isinstance(here, Unknown) and here == there:
        return _tokens(here)
    return f"{_tokens(here)} → {_tokens(there)}{' (!)' if is_context_less(line) else ''}"


def _tokens(value: Maybe[int]) -> str:
    if isinstance(value, Unknown):
        return DASH
    return f"{value // 1024}k" if value >= 1024 and value % 1024 == 0 else str(value)


def _costs(line: PlannedCopy) -> list[str]:
    """What goes for it."""
    return [f"evicts {eviction_text(line.target)}"] if line.target is not None and line.target.evicts else []


def _basis(line: PlannedCopy) -> str:
    """What its need rests on."""
    return "" if line.target is None or line.target.need is None else f"need: {clean(line.target.need.basis)}"


def _asks_for(line: PlannedCopy) -> str:
    what = "allow the pull" if needed_word(line) == "pull" else "accept a degraded copy"
    return f"stays here unless you {what}"


def below_rows(
    key: str, machine: str, copy: CopyKey | None, texts: Sequence[tuple[str, Tone]], layout: DrainLayout
) -> list[DrainRow]:
    """Sentences below a line, over as many lines as they take."""
    rows: list[DrainRow] = []
    for text, tone in texts:
        for part in wrap(layout.glyphs.plain(clean(text)), max(8, layout.width - layout.below - 1)):
            cells = in_signs((Cell(" " * layout.below), Cell(part, tone)), layout)
            rows.append(DrainRow(f"{key}\n+{len(rows)}", "more", machine, copy, cells))
    return rows


# Between copies


def heading_row(key: str, text: str, layout: DrainLayout) -> DrainRow:
    """A line between machines."""
    return DrainRow(f"heading\n{key}", "heading", "", None, heading_cells(text, layout))


def note_row(key: str, text: str, layout: DrainLayout, tone: Tone = "dim") -> list[DrainRow]:
    """A sentence over as many lines as it takes."""
    parts = wrap(layout.glyphs.plain(clean(text)), max(8, layout.width - 3))
    return [
        DrainRow(f"note\n{key}\n{number}", "heading", "", None, in_signs((Cell(f"  {part}", tone),), layout))
        for number, part in enumerate(parts)
    ]
