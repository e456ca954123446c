"""The tools that a language model may call, whatever carries them: arguments in, a document and lines out.

Those here only look, and answer from what the addresses of the API answer from; `agent_actions` has those
that change something.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fleettui.model.fit import CACHE_TYPES, MAX_PARALLEL, FitQuery
from fleettui.model.route import EXIT_NONE_ELIGIBLE, EXIT_UNKNOWN_MODEL, RouteQuery
from fleettui.serve import agent_arguments as args
from fleettui.serve.agent_actions import TOOLS as CHANGING_TOOLS
from fleettui.serve.agent_actions import WAY
from fleettui.serve.agent_tool import CONTEXT_MOST, Tool, ToolError
from fleettui.serve.answers import ApiError
from fleettui.serve.deciding import decide_now, fit_now
from fleettui.serve.plan_routes import read_gpu
from fleettui.serve.planning import PlanQuestion, losses_now, plan_now
from fleettui.view import agent_document as documents
from fleettui.view import agent_text as texts
from fleettui.view.filter_language import Filter, FilterError, parse_filter
from fleettui.view.fit_text import conclusion
from fleettui.view.route_text import route_lines

if TYPE_CHECKING:
    from fleettui.model.snapshot import MachineSnapshot
    from fleettui.serve.door import Door
    from fleettui.serve.permission import Caller
    from fleettui.view.json_values import Document

MACHINES_MOST = 300


def find_tool(name: str) -> Tool | None:
    """The tool of that name."""
    return next((tool for tool in TOOLS if tool.name == name), None)


def nearest_tools(name: str) -> list[str]:
    """Names that may be meant."""
    return get_close_matches(name, [tool.name for tool in TOOLS], 2, 0.5)


def tools_for(caller: Caller) -> tuple[Tool, ...]:
    """Those that this caller may call."""
    return tuple([tool for tool in TOOLS if tool.action is None or caller.may_act])


async def call_tool(
    door: Door, caller: Caller, tool: Tool, given: Mapping[str, Any]
) -> tuple[Document, list[str]]:
    """The answer of a tool, cleaned, as a document and as lines. Raises ToolError."""
    try:
        if tool.action is not None and not caller.may_act:
            tool.action.admit(door, caller, WAY)
        return await _answer(door, caller, tool, given)
    except ApiError as error:
        told = error.error
        hint = told["next"] or "look again: get_infrastructure and drain_status have how it stands"
        if told["code"] == "unknown_machine":
            hint = told["next"] if "did you mean" in told["next"] else "names: list_machines"
        elif told["code"] == "usage":
            hint = f"see the input schema of {tool.name}"
        raise ToolError(told["code"], told["what"], told["why"], hint) from None


async def _answer(
    door: Door, caller: Caller, tool: Tool, given: Mapping[str, Any]
) -> tuple[Document, list[str]]:
    try:
        values = args.read_arguments(tool.arguments, given)
    except ValueError as error:
        raise ToolError("usage", str(error), "", f"see the input schema of {tool.name}") from None
    document = await tool.handler(door, caller, values)
    cleaned: Document = documents.cleaned(document)
    return cleaned, tool.lines(cleaned)


# -- machines ---------------------------------------------------------------------------------------------


async def _list_machines(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    fleet = await door.fleet()
    chosen = _choose(fleet.machines, (), values["filter"])
    shown = chosen[: values["limit"]]
    return {
        "machines_total": len(chosen),
        "machines": [documents.declared_document(snapshot) for snapshot in shown],
        "machines_more": len(chosen) - len(shown),
    }


async def _infrastructure(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    await door.wait_until_ready()
    fleet = await door.fleet()
    chosen = _choose(fleet.machines, values["machines"], values["filter"])
    shown = chosen[: values["limit"]]
    make = documents.details_document if values["details"] else documents.summary_document
    now = time.time()
    return {
        "totals": documents.totals_document(chosen),
        "machines": await asyncio.to_thread(lambda: [make(snapshot, now) for snapshot in shown]),
        "machines_more": len(chosen) - len(shown),
    }


async def _system(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    return documents.details_document(await door.own.look(), time.time())


def _choose(
    machines: Sequence[MachineSnapshot], names: Sequence[str], line: Filter | None
) -> list[MachineSnapshot]:
    """Those that are named and match. Raises ToolError for a name that nobody has."""
    _check_names(machines, names)
    now = time.time()
    return [
        snapshot
        for snapshot in machines
        if (not names or snapshot.name in names) and (line is None or line.matches(snapshot, now))
    ]


def _check_names(machines: Sequence[MachineSnapshot], names: Sequence[str]) -> None:
    known = [snapshot.name for snapshot in machines]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known)
            raise ToolError(
                "unknown_machine",
                f"no machine is named {documents.cleaned(name)!r}",
                "no file declares it",
                f"did you mean {', '.join(near)}?" if near else "all names: list_machines",
                {"nearest_names": near},
            )


def _read_filter(line: str) -> Filter:
    found = parse_filter(line)
    if isinstance(found, FilterError):
        raise ValueError(f"{found.text} (at character {found.column + 1})")
    return found


# -- decisions --------------------------------------------------------------------------------------------


async def _find_machine(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    fleet = await door.fleet()
    _check_names(fleet.machines, values["exclude"])
    decision = await decide_now(
        door,
        RouteQuery(
            model=values["model"],
            min_free_vram_mib=math.ceil(values["min_free_vram_gib"] * 1024),
            context=values["context_tokens"],
            require_loaded=values["require_loaded"],
            avoid_busy=values["avoid_busy"],
            allow_pull=values["allow_pull"],
            tags=values["tags"],
            exclude=values["exclude"],
            top=values["top"],
        ),
    )
    document = documents.route_choice_document(decision)
    if decision.chosen is None:
        what = route_lines(decision)[-1].removeprefix("error: ")
        why = "; ".join(f"{item['machine']}: {item['why']}" for item in document["not_eligible"])
        raise _negative(decision.exit_code, what, why, document)
    return document


async def _fit(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    fleet = await door.fleet()
    _check_names(fleet.machines, values["machines"])
    report = await fit_now(
        door,
        FitQuery(
            values["model"],
            values["context_tokens"],
            values["requests_at_once"],
            values["kv_cache_type"],
            values["machines"],
            values["tags"],
        ),
    )
    document = documents.fit_verdicts_document(report, values["limit"])
    if report.exit_code not in (0, EXIT_NONE_ELIGIBLE):  # that it fits nowhere is an answer
        why = "; ".join(f"{item['machine']}: {item['why']}" for item in document["machines"])
        is_unknown = report.exit_code == EXIT_UNKNOWN_MODEL
        raise _negative(report.exit_code, conclusion(report), "" if is_unknown else why, document)
    return document


def _negative(exit_code: int, what: str, why: str, document: Document) -> ToolError:
    """No machine, no such model, or no data, as the command line tells them apart."""
    if exit_code == EXIT_UNKNOWN_MODEL:
        near = document["nearest_names"]
        meant = f"did you mean {', '.join(near)}?" if near else "correct the name"
        why = "it is on no machine, in no machine file and in no catalog"
        return ToolError("unknown_model", what, why, meant, {"nearest_names": near})
    if exit_code == EXIT_NONE_ELIGIBLE:
        hint = "ask again later, or with fewer conditions; fit says what would have to go"
        return ToolError("none_eligible", what, why, hint, document)
    return ToolError("no_telemetry", what, why, "get_infrastructure has the state of each machine", document)


# -- plans ------------------------------------------------------------------------------------------------


async def _plan(door: Door, caller: Caller, values: Mapping[str, Any]) -> Document:
    question = PlanQuestion(
        values["optimal"], values["include_unavailable"], values["without_machines"], values["without_gpus"]
    )
    if values["loss_of_each_machine"]:
        return documents.loss_rows_document(await losses_now(door, question))
    plan, comparison = await plan_now(door, question)
    return documents.plan_summary_document(plan, comparison)


def _plan_lines(document: Document) -> list[str]:
    return texts.loss_lines(document) if "is_safe" in document else texts.plan_lines(document)


def _read_gpus(given: Sequence[str]) -> tuple[tuple[str, int], ...]:
    return tuple(read_gpu(text) for text in given)


_FILTER = args.text(
    "filter",
    "Only machines that match, e.g. 'free>24 tag:edge', 'model~=qwen', 'health=offline', '!maintenance:on'",
    most=500,
    read=_read_filter,
)
_MODEL = args.text("model", "Name of the model, e.g. llama3.1:70b; `x` is `x:latest`", is_required=True)
_CONTEXT = args.whole("context_tokens", "Context that will be asked for, in tokens", 1, CONTEXT_MOST)
_TAGS = args.names("tags", "Only machines that have all these tags")

TOOLS: tuple[Tool, ...] = (
    Tool(
        "list_machines",
        "List machines",
        "Machines of the fleet as their files declare them: name, role, address, tags, declared models, "
        "health. For live figures use get_infrastructure.",
        _list_machines,
        texts.declared_lines,
        (_FILTER, args.whole("limit", "How many machines at most", 1, MACHINES_MOST, 100)),
    ),
    Tool(
        "get_infrastructure",
        "Live state of the fleet",
        "Live state of machines, one line each: health with reasons, maintenance and drain, GPUs, total and "
        "free VRAM, loaded models. With details: each GPU and loaded copy, CPU, RAM, disks. Null is unknown.",
        _infrastructure,
        texts.fleet_lines,
        (
            args.names("machines", "Only these machines, by name"),
            _FILTER,
            args.flag("details", "Each GPU and each loaded copy too; name few machines with it"),
            args.whole("limit", "How many machines at most", 1, MACHINES_MOST, 50),
        ),
    ),
    Tool(
        "get_system_resources",
        "Resources of fleettui's own computer",
        "CPU, memory, disks and GPUs of the computer that fleettui itself runs on (the jump host), which "
        "need not be a machine of the fleet.",
        _system,
        texts.machine_lines,
    ),
    Tool(
        "find_machine_for_model",
        "Find a machine for a model",
        "The machine that should serve a model now, with the URL to send requests to, why, how long until "
        "it is ready, and alternatives. Loads nothing and reserves nothing.",
        _find_machine,
        texts.route_choice_lines,
        (
            _MODEL,
            _CONTEXT,
            args.number(
                "min_free_vram_gib", "Free VRAM wanted on one GPU on top of the model, GiB", 0, 100_000, 0
            ),
            args.flag("require_loaded", "Only machines where the model is resident"),
            args.flag("avoid_busy", "Only machines without a sign that requests are in work"),
            args.flag("allow_pull", "Machines without the model count too, behind all others"),
            _TAGS,
            args.names("exclude", "Not these machines"),
            args.whole("top", "How many candidates the answer lists", 1, 50, 3),
        ),
    ),
    Tool(
        "plan",
        "Plan roles on GPUs",
        "Which role of the catalog belongs on which GPU of the fleet, what has no place and what would "
        "help; also what-if. Changes nothing.",
        _plan,
        _plan_lines,
        (
            args.flag("optimal", "As many copies on GPUs as possible, not one role after the other"),
            args.flag("include_unavailable", "Machines too that are pending, in maintenance or drained"),
            args.names("without_machines", "As if these machines were not there"),
            args.names("without_gpus", "As if these GPUs were not there, each as MACHINE:INDEX", _read_gpus),
            args.flag(
                "loss_of_each_machine", "Instead of the plan: what the loss of each machine would leave"
            ),
        ),
    ),
    Tool(
        "fit",
        "Where a model fits",
        "On which machines a model fits: on one GPU, on several, with evictions, with CPU offload, or not; "
        "with what it needs and what is free. Loads nothing.",
        _fit,
        texts.fit_verdict_lines,
        (
            _MODEL,
            _CONTEXT,
            args.whole("requests_at_once", "Requests at once on the copy", 1, MAX_PARALLEL),
            args.text("kv_cache_type", "Type of the KV cache", choices=CACHE_TYPES),
            args.names("machines", "Only these machines, by name"),
            _TAGS,
            args.whole("limit", "How many machines at most, best first", 1, MACHINES_MOST, 30),
        ),
    ),
    *CHANGING_TOOLS,
)
