"""`/api/attach/…`: for a fleettui of the same version that uses this server instead of polling itself.

What it gets is whole, so that the same code prints and draws it: snapshots and events as they are stored,
a routed answer as the command would print it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse, Response, StreamingResponse

from fleettui import __version__
from fleettui.model.event import EVENT_KINDS
from fleettui.model.route import RouteDecision
from fleettui.model.written import dump_json
from fleettui.serve.answers import SCHEMA, ApiError, json_answer
from fleettui.serve.deciding import decide_now
from fleettui.serve.endpoint import Endpoint, Parameter, Values
from fleettui.serve.route_routes import ENDPOINTS as ROUTE_ENDPOINTS
from fleettui.serve.route_routes import query_of
from fleettui.store.codec import MachineEncoder
from fleettui.store.database import Store, StoreError
from fleettui.store.event_text import event_row
from fleettui.store.events import READ_ROWS, known_machines, read_events, read_writer
from fleettui.store.fleet_text import WIRE_FORMAT, encode_fleet
from fleettui.store.load_rates import load_load_rates
from fleettui.view.profile_document import profile_document
from fleettui.view.route_text import excluded_lines, format_answer, lease_line, route_document, route_lines

if TYPE_CHECKING:
    from starlette.requests import Request

    from fleettui.model.lease import Lease
    from fleettui.model.snapshot import FleetSnapshot
    from fleettui.serve.door import Door


async def answer_fleet(door: Door, request: Request, values: Values) -> Response:
    """The newest snapshot, once every machine has answered, failed, or had its time."""
    await door.wait_until_ready()
    return PlainTextResponse(await asyncio.to_thread(_fleet_text, await door.fleet()))


def _fleet_text(fleet: FleetSnapshot) -> str:
    return f"fleettui {__version__} {WIRE_FORMAT}\n{encode_fleet(fleet, MachineEncoder())}"


async def answer_plan_inputs(door: Door, request: Request, values: Values) -> Response:
    """Stored profiles, and how fast machines were measured to load."""
    book = door.service.profiles
    profiles = {} if book is None else await book.read()
    rates = await asyncio.to_thread(_rates, door)
    return json_answer(
        {
            "schema": SCHEMA,
            "profiles": [profile_document(profile) for profile in profiles.values()],
            "rates": rates,
        }
    )


def _rates(door: Door) -> dict[str, float]:
    try:
        store = Store.open_readonly(door.state_dir)
        if store is None:
            return {}
        with store:
            return load_load_rates(store, door.machines_dir)
    except StoreError:
        return {}  # told among the notices of /health


async def answer_events(door: Door, request: Request, values: Values) -> Response:
    """The timeline from a moment, or from an event, on."""
    try:
        return await asyncio.to_thread(_events, door, values)
    except StoreError as error:
        raise ApiError(
            503, "state", "the timeline cannot be read", where="/api/attach/events", why=str(error),
            hint="check the disk and the rights of the server's state folder",
        ) from None  # fmt: skip


def _events(door: Door, values: Values) -> Response:
    document: dict[str, Any] = {"schema": SCHEMA, "last_id": values["after_id"], "events": []}
    store = Store.open_readonly(door.state_dir)
    if store is not None:
        with store:
            last_id, events = read_events(
                store,
                door.machines_dir,
                since=values["since"],
                machines=values["machine"],
                kinds=values["kind"],
                after_id=values["after_id"],
                limit=values["limit"],
            )
            writer = read_writer(store, door.machines_dir)
            known = known_machines(store, door.machines_dir) if values["machine"] else set()
        document |= {"last_id": last_id, "events": list(map(event_row, events)), "known": sorted(known)}
        if writer is not None:
            is_alive = writer.is_alive(time.time())
            document["writer"] = {"kind": writer.kind, "pid": writer.pid, "alive": is_alive}
    return json_answer(document)


async def answer_route(door: Door, request: Request, values: Values) -> Response:
    """What `route` prints: the answer for stdout, the reasons for stderr, the exit code."""
    began = time.perf_counter()
    decision = await decide_now(door, query_of(values))
    return await asyncio.to_thread(printed_answer, decision, values["format"], began)


def printed_answer(decision: RouteDecision, form: str, began: float, lease: Lease | None = None) -> Response:
    """`lease` as it was taken."""
    text = ""
    if form == "json":
        took_ms = (time.perf_counter() - began) * 1000.0
        document = route_document(decision, took_ms=took_ms, lease=lease)
        text = dump_json(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    elif decision.chosen is not None:
        text = format_answer(decision, form) + "\n"
    reasons = [*route_lines(decision), *excluded_lines(decision)]
    if lease is not None:
        reasons.append(lease_line(lease, time.time()))
    return json_answer(
        {
            "schema": SCHEMA,
            "exit_code": decision.exit_code,
            "stdout": text,
            "reasons": reasons,
            "leased": lease is not None,
        }
    )


async def answer_stream(door: Door, request: Request, values: Values) -> Response:
    """As `/api/stream`, with snapshots and events whole."""
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    last_id = request.headers.get("last-event-id", "")
    messages = door.hub.for_attached.read(last_id[:100])
    return StreamingResponse(messages, media_type="text/event-stream", headers={"cache-control": "no-store"})


def _read_number(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1e15:
        raise ValueError(f"{text!r} is out of range")
    return value


def _read_count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


ENDPOINTS = (
    Endpoint(
        "/api/attach/fleet",
        "For fleettui of the same version: the newest snapshot, whole.",
        answer_fleet,
        media_type="text/plain",
    ),
    Endpoint(
        "/api/attach/plan", "For fleettui: what plans are made of beside the fleet.", answer_plan_inputs
    ),
    Endpoint(
        "/api/attach/events",
        "For fleettui: the timeline, and who records it.",
        answer_events,
        parameters=(
            Parameter("since", "epoch seconds", "number", _read_number),
            Parameter("after_id", "only what was stored since that number", "number", _read_count, default=0),
            Parameter("machine", "only events of this machine", is_repeatable=True),
            Parameter("kind", "only events of this kind", is_repeatable=True, choices=EVENT_KINDS),
            Parameter(
                "limit", "the newest so many", "number", lambda text: min(READ_ROWS, _read_count(text)),
                default=READ_ROWS,
            ),
        ),
        answers={503: "the state file cannot be read"},
    ),
    Endpoint(
        "/api/attach/stream",
        "For dashboards of the same version: `/api/stream` with snapshots and events whole.",
        answer_stream,
        media_type="text/event-stream",
    ),
    Endpoint(
        "/api/attach/route",
        "For fleettui: a routed answer as `fleettui route` prints it, with its exit code.",
        answer_route,
        parameters=ROUTE_ENDPOINTS[0].parameters,
    ),
)  # fmt: skip
