"""Lines of the picker without a model, and what stands around the list with and without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fleettui.model.order import natural_key
from fleettui.model.record import dataclass, replace
from fleettui.model.route import RouteCandidate, RouteDecision, ServingList
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import free_vram, has_no_gpu, vram_sum
from fleettui.view import column_cells, gpu_cells
from fleettui.view.bars import DEFAULT_THRESHOLDS, Thresholds, bar_cells, fraction_of
from fleettui.view.cells import Cell, Cells, Tone, dimmed, fit_cells
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.layout import Layout, make_layout
from fleettui.view.machine_view import MachineView
from fleettui.view.picking import Choice, PickAnswer
from fleettui.view.route_words import about_candidate
from fleettui.view.text import cell_width, clean, wrap
from fleettui.view.units import DASH, count, gib_short

_FIGURE = 14
"""Columns of `141.2 of 141.0`, nearly."""
_MARK = 1
"""Columns of the sign of health."""
_REST_MIN = 12
"""Columns below which the last one is left out; it is told of the line under the cursor anyway."""


class PickLine(NamedTuple):
    """One line of the list."""

    key: str
    cells: Cells


@dataclass(frozen=True, slots=True)
class PickLayout:
    """Where the columns stand. One for each width and set of names."""

    width: int
    name: int
    bar: int
    """0: no bar."""
    rest: int
    """Columns of the models; 0: not there."""
    glyphs: Glyphs
    table: Layout
    """For the cells that the dashboard has too."""


def pick_layout(
    width: int,
    choices: Sequence[Choice],
    *,
    interval_s: float,
    glyphs: Glyphs = UNICODE,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> PickLayout:
    """The layout for a width and these names."""
    longest = max((cell_width(clean(choice.key)) for choice in choices), default=0)
    name = min(max(longest, len("machine")), 28, max(8, width // 4))
    bar = 16 if width >= 100 else 10 if width >= 66 else 0
    used = 1 + _MARK + 1 + name + 2 + (bar + 1 if bar else 0) + _FIGURE + 2 + 7
    rest = width - used - 1
    table = make_layout(width, interval_s=interval_s, glyphs=glyphs, thresholds=thresholds)
    return PickLayout(width, name, bar, rest if rest >= _REST_MIN else 0, glyphs, table)


def header_cells(layout: PickLayout) -> Cells:
    """Titles of the columns."""
    free = f"{'free VRAM, GiB':<{_free_width(layout)}}"
    rest = "models" if layout.rest else ""
    start = " " * (_MARK + 2)
    return (Cell(f"{start}{'machine':<{layout.name}}  {free}  GPU    {rest}".rstrip(), "title"),)


def choice_line(choice: Choice, snapshot: MachineSnapshot | None, now: float, layout: PickLayout) -> PickLine:
    """The line of one choice; dimmed when it cannot be chosen."""
    if snapshot is None:
        return PickLine(choice.key, ())
    if choice.answer is None and not choice.is_asked:
        return PickLine(choice.key, _rejected_cells(choice, layout))
    view = MachineView(_of_engine(snapshot, choice.answer), now, layout.table)
    mark = _mark(choice, view, layout)
    name = fit_cells((Cell(clean(choice.key), "strong"),), layout.name, "left", layout.glyphs.ellipsis)
    free = _free_cells(snapshot, layout)
    cells: Cells = (Cell(" "), *mark, Cell(" "), *name, Cell("  "))
    used = gpu_cells.utilisation(view, 5)
    cells = (*cells, *free, Cell("  "), *fit_cells(used, 5, "right"))
    if layout.rest:
        cells = (*cells, Cell("  "), *_rest_cells(choice, view, layout))
    cells = fit_cells(cells, layout.width, "left", layout.glyphs.ellipsis)
    return PickLine(choice.key, _plain(dimmed(cells) if choice.is_asked else cells, layout))


def pick_title(model: str | None) -> str:
    """What is asked."""
    return "pick a machine" if model is None else f"pick {clean(model)}"


def title_cells(
    found: RouteDecision | ServingList, choices: Sequence[Choice], shown: int, width: int, glyphs: Glyphs
) -> Cells:
    """What is asked, how many machines can be chosen, how many are waited for."""
    machines = {choice.machine for choice in choices}
    open_count = len({choice.machine for choice in choices if choice.answer is not None})
    waiting = sum(choice.is_asked for choice in choices)
    if isinstance(found, RouteDecision):
        what, can = pick_title(found.query.model), "can serve it"
    else:
        what, can = pick_title(None), "can be picked"
    of = f"{open_count} of {count(len(machines), 'machine')} {can}"
    right = f"asking {waiting}{glyphs.ellipsis}" if waiting else ""
    if shown < len(choices):
        right = f"{shown} shown" + (f", {right}" if right else "")
    room = max(0, width - len(right) - 2)
    left = fit_cells((Cell(f" {what}", "strong"), Cell(f"   {of}", "dim")), room, "left", glyphs.ellipsis)
    return (*left, Cell(" "), Cell(right, "accent"))


def about_choice(choice: Choice, snapshot: MachineSnapshot | None) -> str:
    """What is known of a choice."""
    if choice.is_asked:
        return "has not answered yet"
    if choice.answer is None:
        return f"cannot be picked: {clean(choice.why)}"
    about = about_candidate(choice.answer) if isinstance(choice.answer, RouteCandidate) else ""
    if snapshot is not None and not about:
        about = _about(snapshot, choice.answer)
    return about


def detail_lines(
    choice: Choice | None, text: str, about: str, width: int, glyphs: Glyphs, most: int
) -> list[Cells]:
    """At most `most` lines for the choice under the cursor. `text`: what Enter prints for it."""
    if choice is None:
        return [(Cell(" no machine matches what is typed; Ctrl+U clears it", "dim"),)]
    start = clean(text) if choice.answer is not None else clean(choice.machine)
    lines = wrap(glyphs.plain(f"{start} · {about}" if about else start), max(8, width - 2))
    if len(lines) > most:
        lines = [*lines[: most - 1], " ".join(lines[most - 1 :])]
    tone: Tone = "accent" if choice.answer is not None else "dim"
    head, rest = lines[0][: len(start)], lines[0][len(start) :]
    cells: list[Cells] = [(Cell(" "), Cell(head, tone), Cell(rest, "dim"))]
    cells += [(Cell(f" {line}", "dim"),) for line in lines[1:]]
    return [fit_cells(line, width, "left", glyphs.ellipsis) for line in cells]


def _about(snapshot: MachineSnapshot, answer: PickAnswer) -> str:
    """What is wrong with the machine, else what the engine has beside its loaded models."""
    if snapshot.reasons and snapshot.health != "healthy":
        return clean(snapshot.reasons[0].text)
    own = _of_engine(snapshot, answer)
    loaded = {copy.name for copy in own.loaded}
    local = {model.name for model in own.installed if model.remote_host is None}
    names = sorted(local - loaded, key=natural_key)
    return clean(f"also installed: {', '.join(names)}") if names else ""


def _of_engine(snapshot: MachineSnapshot, answer: PickAnswer | None) -> MachineSnapshot:
    """The machine with the chosen engine alone: its models are those that a caller gets there."""
    if answer is None or len(snapshot.engines) < 2:
        return snapshot
    own = [item for item in snapshot.engines if (item.kind, item.port) == (answer.engine, answer.port)]
    return replace(snapshot, engines=tuple(own)) if own else snapshot


def _mark(choice: Choice, view: MachineView, layout: PickLayout) -> Cells:
    if choice.is_asked:
        return fit_cells((Cell(layout.glyphs.dot, "dim"),), _MARK, "right")
    return column_cells.health(view, 1)


def _rest_cells(choice: Choice, view: MachineView, layout: PickLayout) -> Cells:
    if choice.is_asked:
        cells: Cells = (Cell(f"asking{layout.glyphs.ellipsis}", "dim"),)
    else:
        cells = gpu_cells.models(view, layout.rest)
    return fit_cells(cells, layout.rest, "left", layout.glyphs.ellipsis)


def _rejected_cells(choice: Choice, layout: PickLayout) -> Cells:
    mark = f"{layout.glyphs.dash:>{_MARK}}"
    name = fit_cells((Cell(clean(choice.key), "dim"),), layout.name, "left", layout.glyphs.ellipsis)
    cells = (Cell(f" {mark} ", "dim"), *name, Cell(f"  {clean(choice.why)}", "dim"))
    return _plain(fit_cells(cells, layout.width, "left", layout.glyphs.ellipsis), layout)


def _plain(cells: Cells, layout: PickLayout) -> Cells:
    if not layout.glyphs.is_ascii:
        return cells
    plain = tuple(Cell(layout.glyphs.plain(cell.text), cell.tone) for cell in cells)
    return fit_cells(plain, layout.width, "left", layout.glyphs.ellipsis)


def _free_width(layout: PickLayout) -> int:
    return (layout.bar + 1 if layout.bar else 0) + _FIGURE


def _free_cells(snapshot: MachineSnapshot, layout: PickLayout) -> Cells:
    """Bar of what is taken, and what is free, of all cards."""
    width = _free_width(layout)
    if has_no_gpu(snapshot):
        return fit_cells((Cell("cpu only", "dim"),), width)
    free, total, figure = _figures(snapshot)
    taken: Maybe[int] = Unknown()
    if not isinstance(free, Unknown) and not isinstance(total, Unknown):
        taken = max(0, total - free)
    cells: Cells = ()
    if layout.bar:
        fraction = fraction_of(taken, total)
        limits = layout.table.thresholds.memory
        cells = (*bar_cells(fraction, layout.bar, limits, layout.glyphs), Cell(" "))
    tone = Cell(figure, "unknown" if isinstance(free, Unknown) else "plain")
    return fit_cells((*cells, tone), width, "left", layout.glyphs.ellipsis)


def _figures(snapshot: MachineSnapshot) -> tuple[Maybe[int], Maybe[int], str]:
    """Free and total MiB, and the text of them."""
    sums = vram_sum(snapshot)
    free, total = free_vram(snapshot).sum_mib, sums.total_mib
    if isinstance(free, Unknown) and isinstance(total, Unknown):
        return free, total, f"{DASH:>5}"
    return free, total, f"{gib_short(free):>5} of {gib_short(total)}"


def find_choice(choices: Sequence[Choice], key: str | None) -> Choice | None:
    """The choice of a line."""
    return next((choice for choice in choices if choice.key == key), None)


def snapshots_of(fleet: FleetSnapshot) -> dict[str, MachineSnapshot]:
    """Machines by name."""
    return {item.name: item for item in fleet.machines}
