"""What stands around the bars of the Plan screen: title, options, what is known of a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleettui.model.catalog import Catalog
from fleettui.model.machine import ConfigProblem
from fleettui.model.placement import Assignment, PlacementPlan, PlanRole, UnplacedRole
from fleettui.model.placement_answers import NodeLoss, PlanComparison
from fleettui.view.cells import Cell, Cells, Tone, fit_cells, width_of
from fleettui.view.glyphs import Glyphs
from fleettui.view.plan_rows import GpuState, PlanRow, need_text
from fleettui.view.problems import problem_line
from fleettui.view.route_page import Chip
from fleettui.view.text import clean
from fleettui.view.units import count, gib_text

_NAMED = 2
"""Machines at risk that the title names."""
_ERRORS = 3
"""Errors of the catalog that are told one by one."""
_WORDS_FROM = 100
"""Columns of the screen from which the title says all words."""


def plan_title(
    comparison: PlanComparison | None,
    plan: PlacementPlan | None,
    losses: Sequence[NodeLoss] | None,
    right: Cells,
    width: int,
    glyphs: Glyphs,
) -> Cells:
    """How many copies have a place, greedy beside optimal, what the loss of one machine would cost."""
    cells: list[Cell] = [Cell(" Plan  ", "strong")]
    is_brief = width < _WORDS_FROM
    if plan is not None and comparison is not None:
        placed, wanted = len(plan.assignments), len(plan.assignments) + plan.missing
        said = (
            f"{placed}/{wanted} copies"
            if is_brief
            else f"{placed} of {count(wanted, 'copy', 'copies')} placed"
        )
        cells.append(Cell(said, "warn" if plan.missing else "good"))
        best = "optimal" if comparison.optimal.method == "optimal" else "heuristic"
        figures = f"greedy {comparison.greedy_copies}, {best} {comparison.optimal_copies}"
        cells.append(Cell(f" {glyphs.dot} {'' if is_brief else 'on GPUs: '}{figures}", "dim"))
        if plan.unplaced:
            number = len(plan.unplaced)
            cells.append(Cell(f" {glyphs.dot} ", "dim"))
            cells.append(Cell(f"{number if is_brief else count(number, 'role')} unplaced", "warn"))
        cells += _risk_cells(losses, glyphs, is_brief=is_brief)
    room = max(0, width - width_of(right) - 1)
    return (*fit_cells(tuple(cells), room, "left", glyphs.ellipsis), *right)


def _risk_cells(losses: Sequence[NodeLoss] | None, glyphs: Glyphs, *, is_brief: bool) -> Cells:
    if losses is None:
        return ()
    risky = [loss for loss in losses if not loss.is_safe]
    start = Cell(f" {glyphs.dot} N-1: ", "dim")
    if not risky:
        return (start, Cell("safe", "good"))
    roles = {role.role for loss in risky for role in loss.left_unplaced}
    if is_brief:
        return (start, Cell(f"{len(roles)} at risk", "warn"))
    names = ", ".join(clean(loss.node) for loss in risky[:_NAMED])
    more = f" and {len(risky) - _NAMED} more" if len(risky) > _NAMED else ""
    return (start, Cell(f"{count(len(roles), 'role')} at risk", "warn"), Cell(f" ({names}{more})", "dim"))


def plan_chips(view: str, is_optimal: bool, switched: Sequence[str]) -> tuple[Chip, ...]:
    """Every option in the order of the line. `switched`: what is otherwise in this what-if."""
    what_if = f"what if: {', '.join(map(clean, switched))}" if switched else ""
    return (
        Chip("toggle_optimal", "optimal", "optimal", is_optimal),
        Chip("show_changes", "changes from now", "changes", view == "changes"),
        Chip("show_losses", "loss of a machine", "N-1", view == "losses"),
        *((Chip("clear_what_if", what_if, what_if, True),) if switched else ()),
    )


def broken_lines(problems: Sequence[ConfigProblem], *, is_planned: bool = False) -> list[tuple[str, Tone]]:
    """What is wrong with the catalog; `is_planned`: by its last good version."""
    own = [problem for problem in problems if problem.is_of_catalog]
    said: list[tuple[str, Tone]] = [(problem_line(problem), "bad") for problem in own[:_ERRORS]]
    if len(own) > _ERRORS:
        said.append((f"and {len(own) - _ERRORS} more: fleettui config validate", "bad"))
    if said and is_planned:
        said.append(("This plan is by the last version that was right.", "warn"))
    return said


def no_plan_lines(
    catalog: Catalog, problems: Sequence[ConfigProblem], *, has_machines: bool
) -> list[tuple[str, Tone]]:
    """Why there is nothing to plan, and what to do; empty where there are roles."""
    said = broken_lines(problems)
    if catalog.roles:
        return (
            said
            if has_machines
            else [*said, ("No machine is declared, so there is no place for a role.", "dim")]
        )
    if said:
        return [*said, ("No role is planned until that is right.", "dim")]
    if catalog.roles_file:
        said.append((f"{clean(catalog.roles_file)} has no roles.", "plain"))
    elif catalog.file:
        said.append(
            (f"No role is to be planned: there is no roles.yaml beside {clean(catalog.file)}.", "plain")
        )
    else:
        said.append(("No role is to be planned: there is no catalog with a roles.yaml.", "plain"))
    said.append(
        ("Describe there which roles the fleet has to serve, how many copies, and what each needs:", "dim")
    )
    said.append(("  roles: {chat: {needs: {engine: vllm, min_vram_gb: 20}, count: 2}}", "accent"))
    said.append(("The plan is here as soon as the file is. All its keys: docs/catalog.md.", "dim"))
    return said


def gpu_detail(
    row: PlanRow, mine: Sequence[Assignment], roles: Mapping[str, PlanRole], state: GpuState
) -> tuple[str, str]:
    """(what the line is about, all that is known of it)."""
    head = row.machine if row.gpu is None else f"{row.machine}/{row.gpu}"
    words = [f"not planned: {state.off}"] if state.off else [_copy_words(item, roles) for item in mine]
    if not words:
        words = ["nothing is planned here"]
    if row.gpu is not None:
        words.append(f"{gib_text(state.used_mib)} GiB used now")
    if state.is_offline:
        words.append("offline: planned by what was read last")
    return head, " · ".join(words)


def _copy_words(item: Assignment, roles: Mapping[str, PlanRole]) -> str:
    role = roles.get(item.role)
    need = need_text(role.min_vram_gb) if role is not None and item.gpus else ""
    words = [f"{item.label}{f' {need} GiB' if need else ''}"]
    if item.shared_with:
        words.append(f"shares with {item.shared_with}")
    if len(item.gpus) > 1:
        words.append(f"on GPUs {' and '.join(map(str, item.gpus))}")
    if item.fallback:
        words.append("no GPU was left")
    if item.slots > 1:
        words.append(f"{item.slots} slots")
    fits = ", ".join(item.models_fitting[:4]) or "no model of the catalog"
    return f"{', '.join(words)}, fits {fits}"


def role_detail(item: UnplacedRole, most: int = 4) -> tuple[str, str]:
    """(the role, what fails on each GPU)."""
    told = [f"{miss.node}/{miss.gpu_index}: {miss.reason}" for miss in item.per_gpu[:most]]
    more = len(item.per_gpu) - most
    return item.role, "; ".join(told) + (f"; and {more} more" if more > 0 else "")
