"""Rows of the Plan screen: a bar for each GPU, copies on CPUs, roles without a place and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from fleettui.model.placement import Assignment, PlanGpu, PlanNode, PlanRole, UnplacedRole
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.bars import bar_text
from fleettui.view.cells import Cell, Cells, Tone, fit_cells
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.gpu_cells import short_gpu_name
from fleettui.view.list_lines import heading_cells, in_signs
from fleettui.view.plan_bars import Part, stacked_bar
from fleettui.view.text import cell_width, clean, fit, wrap
from fleettui.view.units import DASH, count, gib_text

PlanRowKind = Literal["gpu", "cpu", "machine", "role", "change", "loss", "more", "heading"]
_CARD_FROM, _NOW_BAR_FROM, _MODELS_FROM = 70, 130, 76
"""Columns of the screen from which there is a column for it."""
_CARD_MAX = 18
_NOW = 5
_BAR_LEAST, _BAR_MOST = 9, 60
_MODELS_LEAST = 12


class PlanRow(NamedTuple):
    """One line of the list."""

    key: str
    kind: PlanRowKind
    machine: str
    """Empty where it is about none."""
    gpu: int | None
    """Its number, on lines of GPUs."""
    cells: Cells

    @property
    def is_stop(self) -> bool:
        """The cursor can be on it."""
        return self.kind not in ("more", "heading")


@dataclass(frozen=True, slots=True)
class PlanLayout:
    """Where the columns stand."""

    width: int
    name: int
    card: int
    """Columns of a card's name; 0: not there, as below."""
    bar: int
    now_bar: int
    models: int
    glyphs: Glyphs = UNICODE


def plan_layout(width: int, nodes: Sequence[PlanNode], glyphs: Glyphs = UNICODE) -> PlanLayout:
    """The layout for a width, all names of machines and cards."""
    longest = max((cell_width(clean(node.name)) for node in nodes), default=0)
    name = min(max(longest, len("machine")), 24, max(7, width // 6))
    cards = [cell_width(short_gpu_name(gpu.name)) for node in nodes for gpu in node.gpus]
    card = min(max(cards, default=4), _CARD_MAX, max(8, width // 7)) if width >= _CARD_FROM else 0
    now_bar = 14 if width >= _NOW_BAR_FROM else 0
    fixed = 2 + name + 3 + 3 + (card + 1 if card else 0) + 5 + _NOW + 3 + (now_bar + 1 if now_bar else 0) + 1
    room = max(0, width - fixed)
    # Without models the figures of now stand last: not where a scrollbar may be.
    bar = max(_BAR_LEAST, min(_BAR_MOST, room * 6 // 10) if width >= _MODELS_FROM else room - 1)
    models = room - bar - 2 if width >= _MODELS_FROM else 0
    return PlanLayout(width, name, card, bar, now_bar, models if models >= _MODELS_LEAST else 0, glyphs)


def plan_header(layout: PlanLayout) -> Cells:
    """Titles of the columns."""
    first = " " * 2 + fit("machine", layout.name) + "   " + "GPU" + " "
    card = fit("", layout.card) if layout.card else ""
    now = fit("now", layout.now_bar + 1 + _NOW) if layout.now_bar else f"{'now':>{_NOW}}"
    line = first + fit(f"{card}{'GiB':>{4 if layout.card else 3}}", max(layout.card + 4, 3)) + "  "
    line += fit("planned", layout.bar) + "  " + now
    return (Cell(fit(line + ("  models that fit" if layout.models else ""), layout.width).rstrip(), "title"),)


class GpuState(NamedTuple):
    """What is to be said of a GPU or machine beside the plan."""

    used_mib: Maybe[int]
    off: str = ""
    """Why nothing is planned there: `maintenance`, `disabled in the file`; empty: it takes copies."""
    is_what_if: bool = False
    """The operator switched it here, and only here."""
    is_offline: bool = False


def gpu_row(
    node: PlanNode,
    gpu: PlanGpu,
    mine: Sequence[Assignment],
    roles: Mapping[str, PlanRole],
    state: GpuState,
    layout: PlanLayout,
    *,
    is_first: bool = True,
) -> PlanRow:
    """The line of a GPU; the name of its machine stands on the first one."""
    glyphs = layout.glyphs
    cells: list[Cell] = [
        *_name_cells(node, state, layout, is_first=is_first),
        Cell(f"{gpu.index:>3} ", "dim"),
    ]
    is_off = bool(state.off)
    if layout.card:
        name = fit(short_gpu_name(gpu.name), layout.card, glyphs.ellipsis)
        cells.append(Cell(name, "dim" if is_off else "plain"))
    cells.append(Cell(f"{gpu.memory_gb:>4}  ", "dim"))
    parts = [_part(item, roles) for item in mine]
    unnamed: tuple[str, ...] = ()
    if is_off:
        cells += _off_cells(state, layout)
    else:
        bar = stacked_bar(parts, gpu.memory_gb, layout.bar, glyphs)
        unnamed = bar.unnamed
        cells += bar.cells
    cells += [Cell("  "), *_now_cells(state, gpu.memory_gb, layout)]
    if layout.models:
        cells += [Cell("  "), *_about_cells(mine, unnamed, layout)]
    return PlanRow(f"{node.name}\n{gpu.index}", "gpu", node.name, gpu.index, in_signs(tuple(cells), layout))


def cpu_row(
    node: PlanNode,
    mine: Sequence[Assignment],
    state: GpuState,
    layout: PlanLayout,
    *,
    is_first: bool = True,
) -> PlanRow:
    """The line of copies that run on a machine's CPU; of a machine without GPUs in any case."""
    ram = "" if isinstance(node.memory_gb, Unknown) else f"{node.memory_gb}"
    width = (layout.card + 4) if layout.card else 4
    head = fit("RAM", layout.card) + f"{ram:>4}" if layout.card else f"{ram:>4}"
    cells: list[Cell] = [
        *_name_cells(node, state, layout, is_first=is_first),
        Cell("    " if state.off else "CPU ", "dim"),
        Cell(fit("" if state.off else head, width) + "  ", "dim"),
    ]
    if state.off:
        cells += _off_cells(state, layout)
    elif mine:
        for number, item in enumerate(mine):
            cells.append(Cell(f" {layout.glyphs.dot} " if number else "  ", "faint"))
            cells.append(Cell(clean(item.label), "plain"))
            if item.fallback:
                cells.append(Cell(" no GPU left", "warn"))
    else:
        cells.append(Cell("  free", "dim"))
    kept = tuple(cell for cell in cells if cell.text)
    return PlanRow(f"{node.name}\ncpu", "cpu", node.name, None, in_signs(kept, layout))


def unplaced_rows(item: UnplacedRole, layout: PlanLayout) -> list[PlanRow]:
    """A role without a place for all its copies: why, the nearest miss, what would help."""
    glyphs, key = layout.glyphs, f"\nrole {item.role}"
    head = (
        Cell("  "),
        Cell(f"{glyphs.offline} {clean(item.role)}", "bad"),
        Cell(f"  {count(item.missing, 'copy', 'copies')} without a place", "plain"),
    )
    rows = [PlanRow(key, "role", "", None, in_signs(head, layout))]
    said: list[tuple[str, str, Tone]] = [("", item.reason, "dim")]
    if item.nearest:
        said.append(("nearest: ", item.nearest, "plain"))
    said += [("would fit: ", fix, "accent") for fix in item.fixes[:1]]
    said += [("or: ", fix, "accent") for fix in item.fixes[1:3]]
    for label, text, tone in said:
        lines = wrap(glyphs.plain(label + clean(text)), max(8, layout.width - 6))
        for line in lines:
            cells = (Cell("    "), Cell(line, tone))
            rows.append(PlanRow(f"{key}\n{len(rows)}", "more", "", None, in_signs(cells, layout)))
    return rows


def heading(key: str, text: str, layout: PlanLayout) -> PlanRow:
    """A line between parts of the list."""
    return PlanRow(f"\n{key}", "heading", "", None, heading_cells(text, layout))


def text_rows(key: str, text: str, layout: PlanLayout, tone: Tone = "dim") -> list[PlanRow]:
    """A sentence over as many lines as it takes."""
    lines = wrap(layout.glyphs.plain(clean(text)), max(8, layout.width - 5))
    return [
        PlanRow(
            f"\n{key} {number}",
            "heading",
            "",
            None,
            in_signs((Cell(f"  {line}" if number == 0 else f"    {line}", tone),), layout),
        )
        for number, line in enumerate(lines)
    ]


def said_rows(key: str, said: Iterable[tuple[str, Tone]], layout: PlanLayout) -> list[PlanRow]:
    """Sentences, one below the other."""
    return [
        row
        for number, (text, tone) in enumerate(said)
        for row in text_rows(f"{key} {number}", text, layout, tone)
    ]


def need_text(gb: float) -> str:
    """`20`, `4.5`; nothing for nothing."""
    return f"{gb:.1f}".removesuffix(".0") if gb else ""


def _part(item: Assignment, roles: Mapping[str, PlanRole]) -> Part:
    role = roles.get(item.role)
    need = 0.0 if role is None else role.min_vram_gb
    return Part(item.role, f"{item.role} {need_text(need)}".strip(), need)


def _name_cells(node: PlanNode, state: GpuState, layout: PlanLayout, *, is_first: bool) -> Cells:
    glyphs = layout.glyphs
    mark = Cell(f"{glyphs.tagged} ", "accent") if state.is_what_if else Cell("  ")
    if not is_first:
        return (mark, Cell(" " * (layout.name + 3)))
    name = fit(clean(node.name), layout.name, glyphs.ellipsis)
    sign = Cell(f" {glyphs.offline} ", "bad") if state.is_offline else Cell("   ")
    return (mark, Cell(name, "strong"), sign)


def _off_cells(state: GpuState, layout: PlanLayout) -> Cells:
    glyphs = layout.glyphs
    flag = f"{glyphs.flag} " if state.off in ("maintenance", "draining", "drained") else ""
    tone: Tone = "accent" if state.is_what_if or flag else "dim"
    inner = fit_cells((Cell(f" {flag}{state.off}", tone),), layout.bar - 2, "left", glyphs.ellipsis)
    return (Cell(glyphs.bar_left, "faint"), *inner, Cell(glyphs.bar_right, "faint"))


def _now_cells(state: GpuState, memory_gb: int, layout: PlanLayout) -> Cells:
    """What is used of it now, whatever is planned; dim where that was read before the machine went away."""
    glyphs, used_mib = layout.glyphs, state.used_mib
    is_known = not isinstance(used_mib, Unknown)
    cells: list[Cell] = []
    if layout.now_bar:
        share = 0.0 if isinstance(used_mib, Unknown) else min(1.0, used_mib / 1024 / max(1, memory_gb))
        text = bar_text(share, layout.now_bar - 2, glyphs.card_bar_parts)
        cells += [
            Cell(glyphs.bar_left, "faint"),
            Cell(text, "bar_dim"),
            Cell(f"{glyphs.bar_right} ", "faint"),
        ]
    figure = gib_text(used_mib) if is_known else DASH
    tone: Tone = "unknown" if not is_known else "dim" if state.is_offline else "plain"
    cells.append(Cell(f"{figure:>{_NOW}}", tone))
    return tuple(cells)


def _about_cells(mine: Sequence[Assignment], unnamed: Sequence[str], layout: PlanLayout) -> Cells:
    """Roles whose names do not fit the bar, then the models that fit, largest first."""
    cells: list[Cell] = []
    if unnamed:
        cells.append(Cell(", ".join(map(clean, unnamed)), "strong"))
    models = list(dict.fromkeys(model for item in mine for model in item.models_fitting))
    if models:
        cells.append(
            Cell((f" {layout.glyphs.dot} " if unnamed else "") + ", ".join(map(clean, models)), "dim")
        )
    elif mine and not unnamed:
        cells.append(Cell("no model fits", "warn"))
    return fit_cells(tuple(cells), layout.models, "left", layout.glyphs.ellipsis)
