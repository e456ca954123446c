"""Drains by HTTP: as `fleettui drain start|status|cancel` and `fleettui undrain`. The work is done in this
server, beside its polls, as in a dashboard."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from fleettui.fleet.drain.desk import DrainDesk, DrainError
from fleettui.model.drain import DrainOptions, DrainPlan, DrainStatus, read_forced_class
from fleettui.serve.action import Action
from fleettui.serve.answers import ApiError, json_answer
from fleettui.serve.endpoint import Endpoint, Parameter, Values, flag, positive_count, positive_seconds
from fleettui.serve.fleet_routes import unknown_machine
from fleettui.serve.machine_actions import NOTHING_DONE, no_state, read_until, refuse
from fleettui.store.database import Store, StoreError
from fleettui.store.drains import load_drain, load_drains
from fleettui.view.drain_document import off_document, one_status_document, preview_document, status_document
from fleettui.view.drain_text import refused_text

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from fleettui.serve.door import Door
    from fleettui.serve.permission import Caller
    from fleettui.view.json_values import Document

EXIT_OF_STATUS = {200: 0, 409: 1, 503: 4}
"""The documents are those of the command line, with its exit codes."""


async def start(door: Door, caller: Caller, name: str, values: Values) -> Response:
    """Preview; unless that is all that is wanted, or something stands against it: flag, and begin to work."""
    desk, options = _desk(door), _options(values)
    names = tuple(dict.fromkeys((name, *values["also"])))
    reason = (values["reason"] or "").strip()
    if not reason and not values["dry_run"]:
        raise ApiError(
            400, "reason", "a drain wants its reason", where=name[:200], why=NOTHING_DONE,
            hint="it is for everybody who sees the machine missing; or look first: dry_run",
        )  # fmt: skip
    for target in options.targets:
        if target in names:
            raise ApiError(400, "usage", "to: a machine that is emptied is no target", where=target[:200])
        if door.service.snapshot.find(target) is None:
            refuse(door, "unknown_name", target, "")
    await door.wait_until_ready()
    await door.fleet()
    try:
        plans = await desk.preview(names, options)
        refusal = _refusal(name, plans, options)
        if values["dry_run"]:
            status = 503 if refusal is not None and refusal.status == 503 else 200
            return _preview(plans, options, reason, status, refusal if status == 503 else None)
        if refusal is not None:
            return _preview(plans, options, reason, refusal.status, refusal)
        await desk.start(names, reason, options, until=values["until"], by=caller.name)
        return await _tell(desk, names, 202)
    except DrainError as error:
        refuse(door, error.kind, error.name or name, error.text)


def _refusal(name: str, plans: tuple[DrainPlan, ...], options: DrainOptions) -> ApiError | None:
    """What keeps it from being started: nobody knows what is loaded there, or copies would be lost."""
    blind = [f"{plan.machine}: {plan.problem}" for plan in plans if plan.problem]
    if blind:
        return ApiError(
            503, "no_data", "what is loaded there is not known", where=name[:200],
            why="; ".join(blind)[:2000],
            hint="to keep it out of routing meanwhile: its maintenance", headers={"retry-after": "5"},
        )  # fmt: skip
    refused = [line for plan in plans for line in plan.refused(options)]
    if not refused:
        return None
    words = dict.fromkeys(line.drain_class.replace("_", "-") for line in refused)
    return ApiError(
        409, "refused", "copies would be lost, or stay", where=name[:200],
        why=f"{refused_text(refused)}; {NOTHING_DONE}",
        hint=f"to go on all the same: force_class {', '.join(words)}",
    )  # fmt: skip


def _preview(
    plans: tuple[DrainPlan, ...], options: DrainOptions, reason: str, status: int, error: ApiError | None
) -> Response:
    document = preview_document(
        plans, options, time.time(), reason=reason or None, exit_code=EXIT_OF_STATUS[status]
    )
    if error is None:
        return json_answer(document)
    return json_answer({**document, "error": error.error}, status, error.headers)


async def cancel(door: Door, caller: Caller, name: str, values: Values) -> Response:
    """The work ends; the flag stays, unless `eligible`."""
    desk = _desk(door)
    try:
        await desk.cancel(name, aborts_load=values["now"], is_eligible=values["eligible"], by=caller.name)
        return await _tell(desk, (name,), 200)
    except DrainError as error:
        _check_known(door, error, name)
        refuse(door, error.kind, name, error.text)


async def undrain(door: Door, caller: Caller, name: str, values: Values) -> Response:
    """Back into service; with `return` what was moved away is moved back beside the answer."""
    desk = _desk(door)
    try:
        if await desk.status(name) is None:
            _check_known(door, None, name)
            return await _tell(desk, (name,), 200)
        await desk.undrain(name, returns=values["return"], by=caller.name)
        return await _tell(desk, (name,), 202 if desk.returning(name) else 200)
    except DrainError as error:
        refuse(door, error.kind, name, error.text)


def _check_known(door: Door, error: DrainError | None, name: str) -> None:
    """Raises ApiError, 404, where nobody knows the name: there is nothing to be said of its drain."""
    known = [item.name for item in door.service.snapshot.machines]
    if name not in known and (error is None or error.kind == "no_drain"):
        raise unknown_machine(name, known, name)


async def _tell(desk: DrainDesk, names: tuple[str, ...], status: int) -> Response:
    """How these drains stand."""
    document = status_document((), time.time(), exit_code=0)
    document["machines"] = [_machine(desk, name, await desk.status(name)) for name in names]
    return json_answer(document, status)


def _machine(desk: DrainDesk, name: str, status: DrainStatus | None) -> dict[str, Any]:
    return off_document(name) if status is None else one_status_document(status)


async def answer_drains(door: Door, request: Request, values: Values) -> Response:
    """As `fleettui drain status --json`."""
    return json_answer(await drains_document(door))


async def drains_document(door: Door) -> Document:
    """Drains that are on, as machines show them. Raises ApiError."""
    fleet = await door.fleet()
    try:
        found = await _statuses(door)
    except (StoreError, DrainError) as error:
        raise ApiError(
            503, "state", "drains cannot be read", where="/api/drains", why=str(error),
            hint="check the disk and the rights of the state folder: fleettui config path",
        ) from None  # fmt: skip
    shown = []
    for status in found:
        machine = fleet.find(status.drain.machine)
        shown.append(status.as_shown(None if machine is None else machine.drain))
    return status_document(shown, time.time(), exit_code=0)


async def _statuses(door: Door) -> tuple[DrainStatus, ...]:
    desk = door.service.drains
    if desk is not None:
        return await desk.statuses()
    return await asyncio.to_thread(_read_statuses, door)


def _read_statuses(door: Door) -> tuple[DrainStatus, ...]:
    """As they are stored; where nobody drains from here, others do."""
    store = Store.open_readonly(door.state_dir)
    if store is None:
        return ()
    with store:
        names = load_drains(store, door.machines_dir) if store.has_table("drains") else ()
        found = [load_drain(store, door.machines_dir, name) for name in names]
    return tuple([status for status in found if status is not None])


def _desk(door: Door) -> DrainDesk:
    if door.service.drains is None:
        raise no_state("drain")
    return door.service.drains


def _options(values: Values) -> DrainOptions:
    return DrainOptions(
        allow_pull=values["allow_pull"],
        accept_degraded=values["accept_degraded"],
        keeps_context=values["keep_context"],
        idle_wait_s=values["idle_wait"],
        deadline_s=values["deadline"],
        probes=values["probe"],
        forced=tuple(dict.fromkeys(values["force_class"])),
        targets=tuple(dict.fromkeys(values["to"])),
        serial=values["serial"],
        skips=tuple(dict.fromkeys(values["skip"])),
    )


def _read_wait(text: str) -> float:
    return 0.0 if text in ("0", "0.0", "0s") else positive_seconds(text)


_STATE = "the state file cannot be written"
ENDPOINTS = (
    Endpoint(
        "/api/drains", "Drains that are on: how far each copy is, and what was done.", answer_drains,
        answers={503: "the state file cannot be read"},
    ),
)  # fmt: skip
ACTIONS = (
    Action(
        "/api/machines/{name:path}/drain", "drain",
        "Empty a machine without an outage, or see what that would do (dry_run). Answered 202 when the work "
        "has begun; follow it by GET /api/drains.", start,
        parameters=(
            Parameter("reason", "why; wanted unless dry_run"),
            flag("dry_run", "answer what would be done, and do nothing"),
            Parameter(
                "force_class", "go on though there are such copies: last-copy, cannot, unmanaged",
                read=read_forced_class, is_repeatable=True,
            ),
            flag("allow_pull", "targets may fetch files they have not"),
            flag("accept_degraded", "keep copies that lie partly in main memory there, or have less context"),
            flag("keep_context", "load with the context they have now"),
            flag("probe", "have targets generate one token first"),
            Parameter(
                "idle_wait", "how long a copy at work is waited for before its unload; 0: until it is idle",
                "number", _read_wait, 60.0,
            ),
            Parameter("deadline", "then the drain is blocked: 30m, 2h", "number", positive_seconds),
            Parameter("to", "only to these machines", is_repeatable=True),
            Parameter("skip", "models that are left where they are", is_repeatable=True),
            Parameter("until", "when the work should be over: 2h, 14:00", read=read_until),
            Parameter("also", "machines to empty with it, planned together", is_repeatable=True),
            Parameter("serial", "empty so many of them at a time", "number", positive_count, 0),
        ),
        answers={
            202: "the work has begun", 404: "no machine has this name",
            409: "copies would be lost (force_class), or somebody else drains it",
            503: f"nobody knows what is loaded there, or {_STATE}",
        },
    ),
    Action(
        "/api/machines/{name:path}/drain/cancel", "drain cancel",
        "End the work of a drain. The machine takes no requests until it is undrained.", cancel,
        parameters=(
            flag("now", "give up a load under way"),
            flag("eligible", "take requests again at once"),
        ),
        answers={404: "no machine has this name", 409: "it has no drain", 503: _STATE},
    ),
    Action(
        "/api/machines/{name:path}/undrain", "undrain",
        "Bring a machine back: routing and plans take it from now on.", undrain,
        parameters=(flag("return", "move back what was moved away; answered 202 where there is some"),),
        answers={
            202: "copies are on their way back", 404: "no machine has this name",
            409: "somebody else drains it anew", 503: _STATE,
        },
    ),
)  # fmt: skip
