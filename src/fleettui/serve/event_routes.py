"""`/api/events`: the timeline as it is stored; `/api/stream`: what happens from now on."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from starlette.responses import Response, StreamingResponse

from fleettui.fleet.moments import past_moment
from fleettui.model.event import EVENT_KINDS
from fleettui.serve.answers import ApiError, json_answer
from fleettui.serve.endpoint import Endpoint, Parameter, Values, positive_count
from fleettui.serve.fleet_routes import unknown_machine
from fleettui.store.database import Store, StoreError
from fleettui.store.events import READ_ROWS, known_machines, read_events, read_writer
from fleettui.view.event_document import events_document

if TYPE_CHECKING:
    from starlette.requests import Request

    from fleettui.serve.door import Door

DEFAULT_SINCE_S = 86_400.0


async def answer_events(door: Door, request: Request, values: Values) -> Response:
    """As `fleettui events --json`."""
    now = time.time()
    since = values["since"] if values["since"] is not None else now - DEFAULT_SINCE_S
    try:
        answer, known = await asyncio.to_thread(_read, door, since, values, now)
    except StoreError as error:
        raise ApiError(
            503, "state", "the timeline cannot be read", where="/api/events", why=str(error),
            hint="check the disk and the rights of the state folder: fleettui config path",
        ) from None  # fmt: skip
    declared = [item.name for item in door.service.snapshot.machines]
    for name in values["machine"]:
        if name not in known and name not in declared:
            raise unknown_machine(name, sorted({*declared, *known}), "/api/events")
    return answer


def _read(door: Door, since: float, values: Values, now: float) -> tuple[Response, set[str]]:
    """The answer, and machines that stand in the timeline. Reads and writes megabytes: for a thread."""
    store = Store.open_readonly(door.state_dir)
    if store is None:
        return json_answer(events_document((), since, None)), set()
    machines, folder = values["machine"], door.machines_dir
    with store:
        _, events = read_events(
            store, folder, since=since, machines=machines, kinds=values["kind"], limit=values["limit"]
        )
        writer = read_writer(store, folder)
        known = known_machines(store, folder) if machines else set()
    recorder = writer.kind if writer is not None and writer.is_alive(now) else None
    return json_answer(events_document(events, since, recorder)), known


async def answer_stream(door: Door, request: Request, values: Values) -> Response:
    """Server-sent events; a reader that comes back says in Last-Event-ID how far it was."""
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    last_id = request.headers.get("last-event-id", "")
    return StreamingResponse(
        door.hub.read(last_id[:100]), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


def _read_limit(text: str) -> int:
    return min(READ_ROWS, positive_count(text))


ENDPOINTS = (
    Endpoint(
        "/api/events", "The fleet's timeline: of the last day, or since a moment.", answer_events,
        parameters=(
            Parameter("since", "30m, 2h, 1d, 14:00, 2026-11-30 or 2026-11-30T14:00", read=past_moment),
            Parameter("machine", "only events of this machine", is_repeatable=True),
            Parameter("kind", "only events of this kind", is_repeatable=True, choices=EVENT_KINDS),
            Parameter("limit", "the newest so many", "number", _read_limit, default=READ_ROWS),
        ),
        answers={404: "no machine has this name", 503: "the state file cannot be read"},
    ),
    Endpoint(
        "/api/stream",
        "Server-sent events: `snapshot` (the whole fleet, first), `machines` (those that changed), `event`.",
        answer_stream,
        media_type="text/event-stream",
    ),
)  # fmt: skip
