"""Plans of roles on the newest snapshot, whoever asks. What no machine tells now is from stored profiles."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from fleettui.decide.placement.optimal import compare
from fleettui.decide.placement.what_if import lose_each_node, without_parts
from fleettui.decide.plan_nodes import NO_PROFILE, plan_nodes, plan_notes
from fleettui.model.record import dataclass, replace
from fleettui.serve.answers import ApiError
from fleettui.view.problems import problem_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleettui.model.placement import PlacementPlan, PlanNode
    from fleettui.model.placement_answers import NodeLoss, PlanComparison
    from fleettui.model.profile import Profile
    from fleettui.model.snapshot import FleetSnapshot
    from fleettui.model.unknown import T
    from fleettui.serve.door import Door

WHERE = "/api/plan"


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """What is asked of the planner."""

    optimal: bool = False
    """As many copies on GPUs as possible, not one role after the other."""
    include_unavailable: bool = False
    """Machines too that are pending, in maintenance or drained."""
    without: tuple[str, ...] = ()
    """Machines that are left out."""
    disabled: tuple[tuple[str, int], ...] = ()
    """GPUs that are left out: machine and index."""


@dataclass(frozen=True, slots=True)
class _Inputs:
    fleet: FleetSnapshot
    profiles: Mapping[str, Profile]
    nodes: tuple[PlanNode, ...]


async def plan_now(door: Door, question: PlanQuestion) -> tuple[PlacementPlan, PlanComparison]:
    """The plan with what its inputs lack, and how many copies have a GPU by either way. Raises ApiError."""
    return await _work_out(door, question, lambda inputs: _plan(inputs, question))


async def losses_now(door: Door, question: PlanQuestion) -> tuple[NodeLoss, ...]:
    """What the loss of each machine would leave without a place. Raises ApiError."""
    return await _work_out(door, question, lambda inputs: _losses(inputs, question))


async def _work_out(door: Door, question: PlanQuestion, work: Callable[[_Inputs], T]) -> T:
    await door.wait_until_ready()
    fleet = await door.fleet()
    _check_catalog(fleet)
    profiles: Mapping[str, Profile] = {}
    if door.service.profiles is not None:
        profiles = await door.service.profiles.read()
    async with door.planning:
        return await asyncio.to_thread(lambda: work(_inputs(fleet, profiles, question)))


def _check_catalog(fleet: FleetSnapshot) -> None:
    problems = [problem for problem in fleet.problems if problem.is_of_catalog]
    if problems:
        why = "; ".join(problem_line(problem) for problem in problems[:20])
        raise ApiError(
            503, "catalog", "the catalog has errors", where=WHERE, why=why, hint="correct its files"
        )
    if not fleet.catalog.roles_file:
        raise ApiError(
            503, "no_roles", "there is no roles.yaml, so there is nothing to plan", where=WHERE,
            hint="write one (docs/catalog.md); this server sees it at once",
        )  # fmt: skip


def _inputs(fleet: FleetSnapshot, profiles: Mapping[str, Profile], question: PlanQuestion) -> _Inputs:
    nodes = plan_nodes(fleet.machines, profiles)
    if nodes and all(node.unavailable == NO_PROFILE for node in nodes):
        raise ApiError(
            503, "no_telemetry", "no machine gave usable data, and none has a stored profile",
            where=WHERE, hint="why: fleettui machines doctor",
        )  # fmt: skip
    try:
        return _Inputs(fleet, profiles, without_parts(nodes, question.disabled, question.without))
    except LookupError as error:
        raise ApiError(
            404, "unknown_machine", str(error.args[0])[:300], where=WHERE,
            why="without and disable name what the fleet has", hint="all names: GET /api/machines",
        ) from None  # fmt: skip


def _plan(inputs: _Inputs, question: PlanQuestion) -> tuple[PlacementPlan, PlanComparison]:
    catalog = inputs.fleet.catalog
    comparison = compare(
        inputs.nodes, catalog.roles, catalog, include_unavailable=question.include_unavailable
    )
    planned = comparison.optimal if question.optimal else comparison.greedy
    names = {node.name for node in inputs.nodes}
    machines = (machine for machine in inputs.fleet.machines if machine.name in names)
    notes = [note for machine in machines for note in plan_notes(machine, inputs.profiles.get(machine.name))]
    return replace(planned, warnings=(*notes, *planned.warnings)), comparison


def _losses(inputs: _Inputs, question: PlanQuestion) -> tuple[NodeLoss, ...]:
    catalog = inputs.fleet.catalog
    return tuple(
        lose_each_node(
            inputs.nodes,
            catalog.roles,
            catalog,
            include_unavailable=question.include_unavailable,
            optimal=question.optimal,
        )
    )
