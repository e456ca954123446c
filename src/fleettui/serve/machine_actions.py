"""Maintenance and trust by POST: the same decisions as by `fleettui maintenance` and `fleettui machines`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NoReturn

from fleettui.fleet.maintenance import FlagError
from fleettui.fleet.trust_words import TrustError, TrustResult
from fleettui.fleet.until import parse_until
from fleettui.model.approval import is_fingerprint
from fleettui.model.clock import iso_utc
from fleettui.serve.action import Action
from fleettui.serve.answers import SCHEMA, ApiError, json_answer
from fleettui.serve.endpoint import Endpoint, Parameter, Values
from fleettui.serve.fleet_routes import unknown_machine
from fleettui.view.maintenance_text import change_document

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from fleettui.model.snapshot import MachineSnapshot
    from fleettui.serve.door import Door
    from fleettui.serve.permission import Caller

_STATUSES = {
    "unknown_name": 404, "until": 400, "reason": 400, "changed_meanwhile": 409, "other_key": 409,
    "not_shown": 409, "file_decides": 409, "no_drain": 409, "no_contact": 503, "no_data": 503, "state": 503,
}  # fmt: skip
"""Of what an operation says no to, by its kind."""
NOTHING_DONE = "nothing was changed"


async def set_maintenance(door: Door, caller: Caller, name: str, values: Values) -> Response:
    """As `fleettui maintenance on|off`."""
    flags = door.service.flags
    if flags is None:
        raise no_state(name)
    is_on, until = values["on"], values["until"]
    if not is_on and (values["reason"] is not None or until is not None):
        raise ApiError(400, "usage", "reason and until belong to maintenance that is on", where=name[:200])
    try:
        change = await flags.set_maintenance(
            (name,), is_on=is_on, reason=values["reason"], until=until, by=caller.name
        )
    except FlagError as error:
        refuse(door, error.kind, error.name or name, error.text)
    return json_answer(change_document(change, time.time()))


async def approve(door: Door, caller: Caller, name: str, values: Values) -> Response:
    """As `fleettui machines approve NAME --fingerprint …`."""
    if door.service.trust is None:
        raise no_state(name)
    try:
        return _decided(await door.service.trust.approve(name, values["fingerprint"], caller.name))
    except TrustError as error:
        refuse(door, error.kind, name, error.text)


async def reject(door: Door, caller: Caller, name: str, values: Values) -> Response:
    """As `fleettui machines reject NAME --yes`."""
    if door.service.trust is None:
        raise no_state(name)
    try:
        return _decided(await door.service.trust.reject(name, caller.name))
    except TrustError as error:
        refuse(door, error.kind, name, error.text)


def _decided(result: TrustResult) -> Response:
    return json_answer({"schema": SCHEMA, **result.document()})


async def answer_pending(door: Door, request: Request, values: Values) -> Response:
    """Machines that wait for a decision about their host key, with the key to compare."""
    fleet = await door.fleet()
    waiting = [_waiting(item) for item in fleet.machines if item.trust != "approved"]
    return json_answer({"schema": SCHEMA, "machines": waiting})


def _waiting(snapshot: MachineSnapshot) -> dict[str, object]:
    offer = snapshot.link.offer
    expires_at = None if offer is None else offer.expires_at
    return {
        "name": snapshot.name,
        "trust": snapshot.trust,
        "address": snapshot.link.address,
        "key_type": None if offer is None else offer.key_type,
        "fingerprint": None if offer is None else offer.fingerprint,
        "code": None if offer is None else offer.code,
        "expected": [] if offer is None else list(offer.expected),
        "expires_at": None if expires_at is None else iso_utc(expires_at),
    }


def refuse(door: Door, kind: str, name: str, text: str) -> NoReturn:
    """Raises what an operation said no to, as ApiError."""
    if kind == "unknown_name":
        raise unknown_machine(name, [item.name for item in door.service.snapshot.machines], name)
    raise ApiError(_STATUSES.get(kind, 409), kind, text, where=name[:200], why=NOTHING_DONE)


def no_state(where: str) -> ApiError:
    """503: decisions are kept in a state folder."""
    return ApiError(503, "state", "this server has no state folder", where=where[:200], why=NOTHING_DONE)


def read_until(text: str) -> float:
    """Epoch seconds of `2h`, `14:00`. Raises ValueError."""
    return parse_until(text, time.time())


def _read_fingerprint(text: str) -> str:
    fingerprint = text.strip().rstrip("=")
    if not is_fingerprint(fingerprint):
        raise ValueError("it is SHA256: and 43 characters, as `ssh-keygen -lf` prints it on the machine")
    return fingerprint


_NO_MACHINE = {404: "no machine has this name", 503: "the state file cannot be written"}
_BY_FILE = "somebody else decided meanwhile, or the machine's file decides"

ENDPOINTS = (
    Endpoint("/api/pending", "Machines whose host key waits for a decision, and that key.", answer_pending),
)
ACTIONS = (
    Action(
        "/api/machines/{name:path}/maintenance", "maintenance",
        "Take a machine out of routing, or bring it back; nothing is unloaded.", set_maintenance,
        parameters=(
            Parameter("on", "true: in maintenance from now on; false: back", "flag", is_required=True),
            Parameter("reason", "why; shown wherever the machine is"),
            Parameter("until", "when it should be over: 2h, 14:00, 2026-12-01T08:00", read=read_until),
        ),
        answers={**_NO_MACHINE, 409: "somebody else changed the flag meanwhile"},
    ),
    Action(
        "/api/machines/{name:path}/approve", "approval",
        "Approve the host key of a machine: from now on it is logged in to.", approve,
        parameters=(
            Parameter(
                "fingerprint", "the whole fingerprint (SHA256:…) that was compared; no other key is approved",
                read=_read_fingerprint, is_required=True,
            ),
        ),
        answers={
            404: "no machine has this name", 409: f"it shows another key, {_BY_FILE}",
            503: "it does not answer, or the state file cannot be written",
        },
    ),
    Action(
        "/api/machines/{name:path}/reject", "rejection",
        "Reject the host key of a machine: nothing is asked of it any more.", reject,
        answers={**_NO_MACHINE, 409: _BY_FILE},
    ),
)  # fmt: skip
