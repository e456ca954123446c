"""Tools that change the fleet: each asks an `Action` of the API, with the permission, the rate and the
timeline of a POST. Trust in host keys has no tool: a person compares fingerprints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fleettui.serve import agent_arguments as args
from fleettui.serve import drain_actions, lease_actions, machine_actions
from fleettui.serve.action import Action
from fleettui.serve.agent_tool import CONTEXT_MOST, Tool, ToolError
from fleettui.serve.fleet_routes import unknown_machine
from fleettui.view import agent_change_document as documents

if TYPE_CHECKING:
    from fleettui.serve.door import Door
    from fleettui.serve.permission import Caller
    from fleettui.view.json_values import Document

WAY = "MCP"
"""In the timeline."""
DAY_S = 86_400

_MAINTENANCE = machine_actions.ACTIONS[0]
_DRAIN, _CANCEL, _UNDRAIN = drain_actions.ACTIONS
_LEASE, _, _RELEASE = lease_actions.ACTIONS


async def _ask(
    door: Door, caller: Caller, action: Action, name: str, fields: Mapping[str, Any]
) -> tuple[Document, dict[str, str] | None]:
    """The document of an action, and the error in it. Raises ApiError."""

    async def load() -> Mapping[str, Any]:
        return {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}

    answer = await action.perform(door, caller, name, load, WAY)
    document: Document = json.loads(bytes(answer.body))
    return document, document.get("error")


def _error(error: Mapping[str, str], hint: str, document: Document | None = None) -> ToolError:
    return ToolError(error["code"], error["what"], error["why"], hint, document)


async def _set_maintenance(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    fields = {name: values[name] for name in ("on", "reason", "until")}
    whole, _ = await _ask(door, caller, _MAINTENANCE, values["machine"], fields)
    return documents.maintenance_change_document(whole)


async def _drain(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    names = ("dry_run", "reason", "until", "force_class", "allow_pull", "accept_degraded", "to", "skip")
    fields = {name: values[name] for name in names} | {"deadline": values["deadline_s"]}
    whole, error = await _ask(door, caller, _DRAIN, values["machine"], fields)
    if error is not None:
        hint = error["next"]
        if error["code"] == "refused":
            hint += ", if the person who wants the drain says so"
        raise _error(error, hint, documents.drain_preview_document(whole))
    if values["dry_run"]:
        return documents.drain_preview_document(whole)
    return documents.drains_document(whole)


async def _drain_status(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    whole = await drain_actions.drains_document(door)
    known = [item.name for item in door.service.snapshot.machines]
    known += [item["name"] for item in whole["machines"]]
    for name in values["machines"]:
        if name not in known:
            raise unknown_machine(name, known, name)
    return documents.drains_document(whole, values["machines"])


async def _cancel_drain(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    fields = {"now": values["now"], "eligible": values["eligible"]}
    whole, _ = await _ask(door, caller, _CANCEL, values["machine"], fields)
    return documents.drains_document(whole)


async def _undrain(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    fields = {"return": values["move_back"]}
    whole, _ = await _ask(door, caller, _UNDRAIN, values["machine"], fields)
    return documents.drains_document(whole)


async def _take_lease(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    fields = {
        "model": values["model"],
        "context": values["context_tokens"],
        "min_free_vram": f"{values['min_free_vram_gib']}GiB" if values["min_free_vram_gib"] else None,
        "require_loaded": values["require_loaded"],
        "avoid_busy": values["avoid_busy"],
        "allow_pull": values["allow_pull"],
        "tag": values["tags"],
        "exclude": values["exclude"],
        "hold": values["hold_s"],
    }
    whole, error = await _ask(door, caller, _LEASE, "", fields)
    if error is None:
        return documents.lease_document(whole)
    near = whole["nearest"]
    hint = (
        f"did you mean {', '.join(near)}?"
        if near
        else "find_machine_for_model has the reasons of each machine"
    )
    raise _error(error, hint, {"nearest_names": near} if near else None)


async def _release_lease(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    whole, _ = await _ask(door, caller, _RELEASE, values["lease"], {})
    return {"released": whole["released"]}


_MACHINE = args.text("machine", "Name of the machine", is_required=True)
_UNTIL = args.text(
    "until", "When it should be over: 2h, 14:00, 2026-12-01T08:00; nothing ends by itself", most=40
)

TOOLS: tuple[Tool, ...] = (
    Tool(
        "drain_status",
        "Drains that are on",
        "Machines that are being emptied or are empty: state, reason, who, and how far each copy is.",
        _drain_status,
        documents.drains_lines,
        (args.names("machines", "Only these machines, by name"),),
    ),
    Tool(
        "set_maintenance",
        "Maintenance on or off",
        "Take a machine out of routing for everybody, or bring it back. Nothing is unloaded or moved: what "
        "it serves now goes on; to empty it use drain_machine.",
        _set_maintenance,
        documents.maintenance_change_lines,
        (
            _MACHINE,
            args.decision("on", "true: in maintenance from now on; false: back in routing"),
            args.text("reason", "Why, for everybody who sees the machine missing; only with on"),
            _UNTIL,
        ),
        _MAINTENANCE,
    ),
    Tool(
        "drain_machine",
        "Empty a machine",
        "Empty a machine without an outage: its models are loaded elsewhere, then unloaded here, and it "
        "gets no new requests. Without dry_run false it only previews: show that to the person first. "
        "Answers when the work has begun; follow it with drain_status.",
        _drain,
        documents.drain_lines,
        (
            _MACHINE,
            args.flag("dry_run", "Only preview what would happen", default=True),
            args.text("reason", "Why, for everybody; wanted with dry_run false"),
            _UNTIL,
            args.names(
                "force_class",
                "Go on though such copies end without another: last-copy, cannot, unmanaged. Only if the "
                "person has seen the preview and says so",
            ),
            args.flag("allow_pull", "Targets may download files they have not"),
            args.flag("accept_degraded", "Copies may lie partly in main memory there, or have less context"),
            args.names("to", "Only to these machines"),
            args.names("skip", "Models that are left where they are"),
            args.number("deadline_s", "Then it is blocked, in seconds", 1, 365 * DAY_S),
        ),
        _DRAIN,
        is_destructive=True,
        is_idempotent=False,
    ),
    Tool(
        "cancel_drain",
        "Stop the work of a drain",
        "End the work of a drain; what was moved stays moved. The machine gets no requests until "
        "undrain_machine, unless eligible.",
        _cancel_drain,
        documents.drains_lines,
        (
            _MACHINE,
            args.flag("now", "Give up a load that is under way"),
            args.flag("eligible", "It takes requests again at once"),
        ),
        _CANCEL,
        is_destructive=True,
    ),
    Tool(
        "undrain_machine",
        "Bring a drained machine back",
        "Routing and plans take the machine again from now on.",
        _undrain,
        documents.drains_lines,
        (_MACHINE, args.flag("move_back", "Move back what was moved away")),
        _UNDRAIN,
        is_destructive=True,
    ),
    Tool(
        "take_lease",
        "Route a model and take a lease",
        "As find_machine_for_model, and whoever asks next is sent elsewhere for a while. For requests that "
        "you are about to send; release_lease ends it.",
        _take_lease,
        documents.lease_lines,
        (
            args.text("model", "Name of the model, e.g. llama3.1:70b; `x` is `x:latest`", is_required=True),
            args.whole("context_tokens", "Context that will be asked for, in tokens", 1, CONTEXT_MOST),
            args.whole("min_free_vram_gib", "Free VRAM wanted on one GPU on top, GiB", 0, 100_000, 0),
            args.flag("require_loaded", "Only machines where the model is resident"),
            args.flag("avoid_busy", "Only machines without a sign that requests are in work"),
            args.flag("allow_pull", "Machines without the model count too, behind all others"),
            args.names("tags", "Only machines that have all these tags"),
            args.names("exclude", "Not these machines"),
            args.number("hold_s", "How long the lease holds, in seconds", 1, DAY_S),
        ),
        _LEASE,
        is_idempotent=False,
    ),
    Tool(
        "release_lease",
        "End a lease",
        "End a lease by the name that take_lease gave.",
        _release_lease,
        documents.released_lines,
        (args.text("lease", "Name of the lease", is_required=True, most=64),),
        _RELEASE,
    ),
)
