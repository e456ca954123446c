"""`/health`, `/api/machines`, `/api/machines/NAME`, `/api/infrastructure`, `/api/system`."""

from __future__ import annotations

import asyncio
import time
from difflib import get_close_matches
from typing import TYPE_CHECKING

from fleettui import __version__
from fleettui.model.clock import iso_utc
from fleettui.serve.answers import SCHEMA, ApiError, bytes_answer, json_answer
from fleettui.serve.endpoint import Endpoint, Values
from fleettui.view.document import machine_document, machines_document
from fleettui.view.figures import is_answering

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from fleettui.serve.door import Door


async def answer_health(door: Door, request: Request, values: Values) -> Response:
    """Asks nothing and nobody."""
    fleet, now = door.service.snapshot, time.time()
    return json_answer(
        {
            "schema": SCHEMA,
            "status": "ok" if door.is_ready else "starting",
            "version": __version__,
            "started_at": iso_utc(door.started_at),
            "uptime_s": round(now - door.started_at, 1),
            "interval_s": fleet.interval_s,
            "snapshot": {
                "seq": fleet.seq,
                "taken_at": iso_utc(fleet.taken_at),
                "age_s": round(now - fleet.taken_at, 1),
            },
            "machines": {
                "total": len(fleet.machines),
                "online": sum(1 for machine in fleet.machines if is_answering(machine)),
            },
            "notices": list(door.service.notices),
        }
    )


async def answer_machines(door: Door, request: Request, values: Values) -> Response:
    """The files as the operator wrote them."""
    fleet = await door.fleet()
    problems = [problem for problem in fleet.problems if not problem.is_of_catalog]
    machines = [item.machine for item in fleet.machines]
    return await asyncio.to_thread(lambda: json_answer(machines_document(machines, problems)))


async def answer_machine(door: Door, request: Request, values: Values) -> Response:
    """One machine, as `/api/infrastructure` has it."""
    fleet = await door.fleet()
    name: str = request.path_params["name"]
    for snapshot in fleet.machines:
        if snapshot.name == name:
            return json_answer({"schema": SCHEMA, **machine_document(snapshot, time.time())})
    raise unknown_machine(name, [item.name for item in fleet.machines], request.url.path)


async def answer_infrastructure(door: Door, request: Request, values: Values) -> Response:
    """The whole fleet."""
    return bytes_answer(await door.infrastructure())


async def answer_system(door: Door, request: Request, values: Values) -> Response:
    """The machine that this server runs on."""
    snapshot = await door.own.look()
    return json_answer({"schema": SCHEMA, **machine_document(snapshot, time.time())})


def unknown_machine(name: str, known: list[str], where: str) -> ApiError:
    """404, with the nearest names."""
    near = get_close_matches(name, known)
    hint = f"did you mean {', '.join(near)}?" if near else "all names: GET /api/machines"
    return ApiError(
        404, "unknown_machine", f"no machine is named {name[:200]!r}", where=where[:300],
        why="no file declares it", hint=hint,
    )  # fmt: skip


ENDPOINTS = (
    Endpoint("/health", "Whether the server runs, and how old its data is.", answer_health),
    Endpoint("/api/machines", "Machine files, every key unmodified.", answer_machines),
    Endpoint(
        "/api/machines/{name:path}", "One machine with its telemetry.", answer_machine,
        answers={404: "no machine has this name"},
    ),
    Endpoint("/api/infrastructure", "All machines with their telemetry.", answer_infrastructure),
    Endpoint("/api/system", "The machine that this server runs on, with its telemetry.", answer_system),
)  # fmt: skip
