"""`/api/route`: which machine should serve a model now, as `fleettui route` decides it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse

from fleettui.model.route import (
    EXIT_NO_DATA,
    EXIT_NONE_ELIGIBLE,
    EXIT_UNKNOWN_MODEL,
    RouteDecision,
    RouteQuery,
)
from fleettui.model.sizes import parse_tokens, parse_vram_mib
from fleettui.serve.answers import json_answer
from fleettui.serve.deciding import decide_now
from fleettui.serve.endpoint import Endpoint, Parameter, Values, flag, positive_count, positive_seconds
from fleettui.view.route_text import ANSWER_FORMATS, format_answer, route_document, route_lines

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from fleettui.model.lease import Lease
    from fleettui.serve.door import Door

STATUS_OF_EXIT = {0: 200, EXIT_NONE_ELIGIBLE: 503, EXIT_UNKNOWN_MODEL: 404, EXIT_NO_DATA: 503}
_CODES = {
    EXIT_NONE_ELIGIBLE: "none_eligible",
    EXIT_UNKNOWN_MODEL: "unknown_model",
    EXIT_NO_DATA: "no_telemetry",
}
_NEXT = {
    EXIT_NONE_ELIGIBLE: "retry later or fall back; `rejected` has the reasons of each machine",
    EXIT_UNKNOWN_MODEL: "correct the name; `nearest` has those most like it",
    EXIT_NO_DATA: "check the network; `rejected` has the reasons of each machine",
}


async def answer_route(door: Door, request: Request, values: Values) -> Response:
    """Decided on the newest snapshot, with the leases of others in view."""
    began = time.perf_counter()
    decision = await decide_now(door, query_of(values))
    return await asyncio.to_thread(answer_decision, decision, began, None, values["format"])


def query_of(values: Values) -> RouteQuery:
    """What was asked for."""
    return RouteQuery(
        model=values["model"],
        min_free_vram_mib=values["min_free_vram"],
        free_scope=values["free_scope"],
        context=values["context"],
        require_loaded=values["require_loaded"],
        avoid_busy=values["avoid_busy"],
        tags=values["tag"],
        exclude=values["exclude"],
        max_age_s=values["max_age"],
        top=values.get("top", 1),
        allow_pull=values["allow_pull"],
        sticky=values["sticky"],
        takes_lease=not values["no_lease"],
    )


def answer_decision(
    decision: RouteDecision, began: float, lease: Lease | None = None, form: str = "json"
) -> Response:
    """The status is its exit code's; `began` by `time.perf_counter`, `lease` as it was taken."""
    status = STATUS_OF_EXIT[decision.exit_code]
    if status == 200 and form != "json":
        return PlainTextResponse(format_answer(decision, form) + "\n")
    took_ms = (time.perf_counter() - began) * 1000.0
    document: dict[str, Any] = route_document(decision, took_ms=took_ms, lease=lease)
    if status != 200:
        document["error"] = _error(decision)
    return json_answer(document, status, {"retry-after": "2"} if status == 503 else None)


def _error(decision: RouteDecision) -> dict[str, str]:
    lines = route_lines(decision)
    return {
        "code": _CODES[decision.exit_code],
        "what": lines[-1].removeprefix("error: "),
        "where": "/api/route",
        "why": "; ".join(f"{item.machine}: {item.text}" for item in decision.rejected[:20]),
        "next": _NEXT[decision.exit_code],
    }


def _read_model(text: str) -> str:
    if not text.strip() or len(text) > 512:
        raise ValueError("the name is empty" if not text.strip() else "the name is too long")
    return text


_NO_POLL = "this server polls by itself at its own pace; nothing is asked for one answer"
_NO_CHANGE = "a GET changes nothing: POST /api/leases, or `fleettui route` on this machine"

ENDPOINTS = (
    Endpoint(
        "/api/route",
        "The machine that should serve a model now. Takes no lease.",
        answer_route,
        parameters=(
            Parameter(
                "model",
                "name[:tag]; `x` is `x:latest`, case does not matter",
                read=_read_model,
                is_required=True,
            ),
            Parameter(
                "min_free_vram",
                "free VRAM wanted on top of the model: 4, 4GiB, 4000MiB",
                read=parse_vram_mib,
                default=0,
            ),
            Parameter(
                "free_scope",
                "one GPU must have it free, or all GPUs of the machine together",
                default="gpu",
                choices=("gpu", "host"),
            ),
            Parameter("context", "tokens that will be sent as num_ctx: 8192, 32k", "number", parse_tokens),
            flag("require_loaded", "only machines where the model is resident"),
            flag("avoid_busy", "only machines without a sign that requests are in work"),
            flag("allow_pull", "machines without the model count too, behind all others"),
            Parameter("tag", "only machines with this tag", is_repeatable=True),
            Parameter("exclude", "not this machine", is_repeatable=True),
            Parameter("sticky", "calls with the same key come to the same of equally good machines"),
            Parameter(
                "top",
                "how many lines the answer has in the formats that are text",
                "number",
                positive_count,
                default=1,
            ),
            Parameter(
                "format", "form of the answer; text unless json", default="json", choices=ANSWER_FORMATS
            ),
            Parameter("max_age", "oldest data to answer from, in seconds", "number", positive_seconds),
            flag("no_lease", "with require_loaded: leases of others count for nothing, most free VRAM wins"),
        ),
        answers={
            404: "no machine knows the model",
            503: "nobody is eligible now, or no machine gave usable data",
        },
        refused={
            "check_reachable": "whether you reach it is only known where you are: `fleettui route`",
            "deadline": _NO_POLL,
            "exhaustive": _NO_POLL,
            "wait": "ask again after the seconds of Retry-After, or follow /api/stream",
            "warm": _NO_CHANGE,
            "hold": _NO_CHANGE,
            "release": _NO_CHANGE,
            "json": "it is the format without one",
            "quiet": "reasons stand in the document only",
        },
    ),
)
