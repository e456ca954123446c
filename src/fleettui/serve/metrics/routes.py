"""`/metrics`: what Prometheus scrapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from fleettui.serve.endpoint import Endpoint, Values
from fleettui.serve.metrics.exposition import choose_form

if TYPE_CHECKING:
    from starlette.requests import Request

    from fleettui.serve.door import Door


async def answer_metrics(door: Door, request: Request, values: Values) -> Response:
    """In the text format or OpenMetrics, as the reader takes it."""
    headers = request.headers
    form = choose_form(headers.get("accept", ""), headers.get("accept-encoding", ""))
    told = {"content-type": form.content_type, "vary": "Accept, Accept-Encoding"}
    if form.is_gzip:
        told["content-encoding"] = "gzip"
    return Response(await door.exposition.read(form), headers=told)


ENDPOINTS = (
    Endpoint(
        "/metrics",
        "The fleet for Prometheus, in its text format or OpenMetrics.",
        answer_metrics,
        media_type="text/plain",
    ),
)
