"""`/api/plan`: which role belongs on which GPU, as `fleettui placement plan` has it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fleettui.serve.answers import json_answer
from fleettui.serve.endpoint import Endpoint, Parameter, Values, flag
from fleettui.serve.planning import WHERE, PlanQuestion, losses_now, plan_now
from fleettui.view.placement_answers_document import losses_document
from fleettui.view.placement_document import plan_document

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from fleettui.serve.door import Door


async def answer_plan(door: Door, request: Request, values: Values) -> Response:
    """The plan, or with `n_1` what the loss of each machine would do to it."""
    question = PlanQuestion(
        values["optimal"], values["include_unavailable"], values["without"], values["disable"]
    )
    if values["n_1"]:
        losses = await losses_now(door, question)
        return await asyncio.to_thread(lambda: json_answer(losses_document(losses)))
    plan, comparison = await plan_now(door, question)
    return await asyncio.to_thread(lambda: json_answer(plan_document(plan, comparison)))


def read_gpu(text: str) -> tuple[str, int]:
    """`ada:1`: a machine and the number of its GPU. Raises ValueError."""
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
                "disable", "as if this GPU were out of plans: ada:1", read=read_gpu, is_repeatable=True
            ),
        ),
        answers={
            404: "no machine or GPU of that name",
            503: "no roles, errors in the catalog, or no machine gave usable data",
        },
    ),
)
