"""`/api/plan`: which role belongs on which GPU, as `fleettui placement plan` has it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fleettui.decide.placement.optimal import compare
from fleettui.decide.placement.what_if import lose_each_node, without_parts
from fleettui.decide.plan_nodes import NO_PROFILE, plan_nodes, plan_notes
from fleettui.model.record import replace
from fleettui.serve.answers import ApiError, json_answer
from fleettui.serve.endpoint import Endpoint, Parameter, Values, flag
from fleettui.view.placement_answers_document import losses_document
from fleettui.view.placement_document import plan_document
from fleettui.view.problems import problem_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from fleettui.model.placement import PlanNode
    from fleettui.model.profile import Profile
    from fleettui.model.snapshot import FleetSnapshot
    from fleettui.serve.door import Door
    from fleettui.view.json_values import Document

WHERE = "/api/plan"


async def answer_plan(door: Door, request: Request, values: Values) -> Response:
    """A plan on the newest snapshot; what no machine tells now is from stored profiles."""
    await door.wait_until_ready()
    fleet = await door.fleet()
    _check_catalog(fleet)
    profiles: Mapping[str, Profile] = {}
    if door.service.profiles is not None:
        profiles = await door.service.profiles.read()
    async with door.planning:
        return await asyncio.to_thread(lambda: json_answer(_plan(fleet, profiles, values)))


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


def _plan(fleet: FleetSnapshot, profiles: Mapping[str, Profile], values: Values) -> Document:
    nodes = plan_nodes(fleet.machines, profiles)
    if nodes and all(node.unavailable == NO_PROFILE for node in nodes):
        raise ApiError(
            503, "no_telemetry", "no machine gave usable data, and none has a stored profile",
            where=WHERE, hint="why: fleettui machines doctor",
        )  # fmt: skip
    nodes = _what_if(nodes, values)
    names, also = {node.name for node in nodes}, values["include_unavailable"]
    roles, catalog, optimal = fleet.catalog.roles, fleet.catalog, values["optimal"]
    if values["n_1"]:
        return losses_document(
            lose_each_node(nodes, roles, catalog, include_unavailable=also, optimal=optimal)
        )
    comparison = compare(nodes, roles, catalog, include_unavailable=also)
    planned = comparison.optimal if optimal else comparison.greedy
    machines = (machine for machine in fleet.machines if machine.name in names)
    notes = [note for machine in machines for note in plan_notes(machine, profiles.get(machine.name))]
    return plan_document(replace(planned, warnings=(*notes, *planned.warnings)), comparison)


def _what_if(nodes: tuple[PlanNode, ...], values: Values) -> tuple[PlanNode, ...]:
    try:
        return without_parts(nodes, values["disable"], values["without"])
    except LookupError as error:
        raise ApiError(
            404, "unknown_machine", str(error.args[0])[:300], where=WHERE,
            why="without and disable name what the fleet has", hint="all names: GET /api/machines",
        ) from None  # fmt: skip


def _read_gpu(text: str) -> tuple[str, int]:
    name, _, index = text.rpartition(":")
    if not name or not (index.isascii() and index.isdigit()) or len(index) > 5:
        raise ValueError(f"{text!r} is not a machine and the number of its GPU, as in ada:1")
    return name, int(index)


ENDPOINTS = (
    Endpoint(
        WHERE,
        "Which role of the catalog belongs on which GPU.",
        answer_plan,
        parameters=(
            flag("optimal", "as many copies on GPUs as possible, not one role after the other"),
            flag("include_unavailable", "plan machines too that are pending, in maintenance or drained"),
            flag("n_1", "instead of the plan: what the loss of each machine would leave without a place"),
            Parameter("without", "as if this machine were not there", is_repeatable=True),
            Parameter(
                "disable", "as if this GPU were out of plans: ada:1", read=_read_gpu, is_repeatable=True
            ),
        ),
        answers={
            404: "no machine or GPU of that name",
            503: "no roles, errors in the catalog, or no machine gave usable data",
        },
    ),
)
