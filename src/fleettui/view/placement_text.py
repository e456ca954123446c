"""A plan as text: each node with its GPUs, how full the roles make them, and what has no place and why."""

from __future__ import annotations

from fleettui.model.order import natural_key
from fleettui.model.placement import Assignment, PlacementPlan, PlanGpu, PlanNode, PlanRole, UnplacedRole
from fleettui.model.placement_answers import PlanComparison
from fleettui.model.unknown import Unknown
from fleettui.view.bars import bar_text
from fleettui.view.cells import Cell, Cells, Tone, fit_cells, width_of
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.gpu_cells import short_gpu_name
from fleettui.view.plan_rows import need_text
from fleettui.view.text import cell_width, clean, fit, wrap
from fleettui.view.units import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PIPE_WIDTH = 100
"""Columns where there is no terminal."""
_LEAST_WIDTH = 60
_BAR = 12
_NAME_MAX = 22


def plan_lines(
    plan: PlacementPlan,
    nodes: Iterable[PlanNode],
    roles: Iterable[PlanRole],
    comparison: PlanComparison | None = None,
    width: int | None = None,
    glyphs: Glyphs = UNICODE,
) -> list[Cells]:
    """The whole page. `nodes` and `roles` are those that the plan was made from."""
    total = page_width(width)
    needs = {role.name: role.min_vram_gb for role in roles}
    ordered = sorted(nodes, key=lambda node: natural_key(node.name))
    page = _Page(plan, needs, ordered, total, glyphs)
    lines: list[Cells] = wrapped_lines(_headline(plan, ordered), total, "strong")
    if comparison is not None:
        lines += wrapped_lines(comparison_text(comparison), total, "dim")
    lines.append(())
    for node in ordered:
        lines += page.node_lines(node)
    lines += page.unplaced_lines()
    for item in plan.excluded_nodes:
        lines += wrapped_lines(f"not planned: {clean(item.node)} ({clean(item.reason)})", total, "dim")
    if plan.switched_off:
        lines += wrapped_lines(f"switched off: {', '.join(map(clean, plan.switched_off))}", total, "dim")
    for warning in plan.warnings:
        lines += wrapped_lines(f"warning: {clean(warning)}", total, "warn")
    return cut_lines(lines, total, glyphs)


def page_width(width: int | None) -> int:
    """Columns of a page: those of the terminal, where there is one."""
    return max(width or _PIPE_WIDTH, _LEAST_WIDTH)


def wrapped_lines(text: str, total: int, tone: Tone, indent: str = "") -> list[Cells]:
    """As many lines as it takes, each `indent` in."""
    return [(Cell(indent + part, tone),) for part in wrap(text, total - len(indent))]


def cut_lines(lines: Iterable[Cells], total: int, glyphs: Glyphs) -> list[Cells]:
    """In signs that the terminal has, none wider than it."""
    plain = [tuple(Cell(glyphs.plain(cell.text), cell.tone) for cell in line) for line in lines]
    return [
        line if width_of(line) <= total else fit_cells(line, total, ellipsis=glyphs.ellipsis)
        for line in plain
    ]


def _headline(plan: PlacementPlan, nodes: list[PlanNode]) -> str:
    """`plan: 6 of 8 copies placed, 4 of 6 GPUs taken`."""
    placed = len(plan.assignments)
    taken = {(item.node, index) for item in plan.assignments for index in item.gpus}
    excluded = {item.node for item in plan.excluded_nodes}
    gpus = [gpu for node in nodes if node.name not in excluded for gpu in node.gpus if not gpu.disabled]
    text = f"plan: {placed} of {count(placed + plan.missing, 'copy', 'copies')} placed"
    text += f", {len(taken)} of {count(len(gpus), 'GPU')} taken"
    return text if plan.method == "greedy" else f"{text} ({plan.method})"


def comparison_text(comparison: PlanComparison) -> str:
    """`copies on GPUs: greedy 54, optimal 60 (6 more)`; `kept 52` in front where a former plan is kept."""
    kept = comparison.kept_copies
    more = comparison.optimal_copies - (comparison.greedy_copies if kept is None else kept)
    text = "copies on GPUs: " + ("" if kept is None else f"kept {kept}, ")
    text += f"greedy {comparison.greedy_copies}, {comparison.optimal.method} {comparison.optimal_copies}"
    return f"{text} ({more} more)" if more > 0 else text


class _Page:
    __slots__ = (
        "_by_node",
        "_excluded",
        "_glyphs",
        "_label_width",
        "_name_width",
        "_needs",
        "_plan",
        "_total",
    )

    def __init__(
        self,
        plan: PlacementPlan,
        needs: Mapping[str, float],
        nodes: list[PlanNode],
        total: int,
        glyphs: Glyphs,
    ) -> None:
        self._plan = plan
        self._needs = needs
        self._total = total
        self._glyphs = glyphs
        self._excluded = {item.node for item in plan.excluded_nodes}
        self._by_node: dict[str, list[Assignment]] = {}
        for item in plan.assignments:
            self._by_node.setdefault(item.node, []).append(item)
        labels = (cell_width(clean(item.label)) for item in plan.assignments)
        self._label_width = min(max(labels, default=0), _NAME_MAX)
        names = (cell_width(short_gpu_name(gpu.name)) for node in nodes for gpu in node.gpus)
        self._name_width = min(max(names, default=4), _NAME_MAX, max(6, total - 62))

    def node_lines(self, node: PlanNode) -> list[Cells]:
        """A heading, a line for each GPU (more where it is shared), one for copies on the CPU."""
        if node.name in self._excluded:
            return []
        mine = self._by_node.get(node.name, [])
        ram = "" if isinstance(node.memory_gb, Unknown) else f"{node.memory_gb} GB RAM"
        words = [word for word in (ram, "offline" if node.is_offline else "", node.unavailable) if word]
        lines: list[Cells] = [
            (Cell(clean(node.name), "strong"), Cell(f"  {', '.join(words)}".rstrip(), "dim"))
        ]
        for gpu in sorted(node.gpus, key=lambda gpu: gpu.index):
            lines += self._gpu_lines(gpu, [item for item in mine if gpu.index in item.gpus])
        on_cpu = [item for item in mine if not item.gpus]
        if on_cpu:
            head = (Cell(f"  {fit('CPU', self._name_width + _BAR + 15, self._glyphs.ellipsis)}", "dim"),)
            lines += self._copies(head, on_cpu, None)
        return lines

    def _gpu_lines(self, gpu: PlanGpu, mine: list[Assignment]) -> list[Cells]:
        glyphs = self._glyphs
        used = sum(self._needs.get(item.role, 0) for item in mine)
        share = min(1.0, used / gpu.memory_gb) if gpu.memory_gb > 0 else 0.0
        name = fit(short_gpu_name(gpu.name), self._name_width, glyphs.ellipsis)
        head = (
            Cell(f"  {gpu.index:>2}  ", "dim"),
            Cell(name),
            Cell(f" {gpu.memory_gb:>4} GB ", "dim"),
            Cell(glyphs.bar_left, "faint"),
            Cell(bar_text(share, _BAR - 2, glyphs.bar_parts), "bar_good" if mine else "bar_dim"),
            Cell(f"{glyphs.bar_right}  ", "faint"),
        )
        if gpu.disabled:
            return [(*head, Cell("disabled", "dim"))]
        if not mine:
            return [(*head, Cell("free", "dim"))]
        return self._copies(head, mine, gpu)

    def _copies(self, head: Cells, mine: list[Assignment], gpu: PlanGpu | None) -> list[Cells]:
        """A line for each copy; the head stands before the first."""
        lines = []
        width = self._label_width
        for item in mine:
            need = self._needs.get(item.role, 0) if gpu is not None else 0
            words = [f"with {item.shared_with}"] if item.shared_with else []
            words += ["no GPU free"] if item.fallback else []
            words += [f"of {len(item.gpus)} GPUs"] if len(item.gpus) > 1 else []
            models = item.models_fitting
            words += [models[0] + (f" +{len(models) - 1}" if len(models) > 1 else "")] if models else []
            lines.append(
                (
                    *(head if item is mine[0] else (Cell(" " * width_of(head)),)),
                    Cell(fit(clean(item.label), width, self._glyphs.ellipsis), "good"),
                    Cell(f" {need_text(need) + ' GB' if need else '':>6}  "),
                    Cell(", ".join(map(clean, words)), "dim"),
                )
            )
        return lines

    def unplaced_lines(self) -> list[Cells]:
        """Each role with missing copies: the summary, the nearest miss, what would help."""
        lines: list[Cells] = []
        for item in self._plan.unplaced:
            lines += [(), *self._unplaced(item)]
        return (
            [*lines, ()]
            if self._plan.warnings or self._plan.excluded_nodes or self._plan.switched_off
            else lines
        )

    def _unplaced(self, item: UnplacedRole) -> list[Cells]:
        title = f"{self._glyphs.offline} {clean(item.role)}: {count(item.missing, 'copy', 'copies')} unplaced"
        lines: list[Cells] = [(Cell(title, "bad"), Cell(f"  ({item.code})", "dim"))]
        lines += wrapped_lines(clean(item.reason), self._total, "plain", "  ")
        if item.nearest:
            lines += wrapped_lines(f"nearest miss: {clean(item.nearest)}", self._total, "dim", "  ")
        if item.fixes:
            told = f"would fit {'; or '.join(map(clean, item.fixes))}"
            lines += wrapped_lines(told, self._total, "accent", "  ")
        return lines
