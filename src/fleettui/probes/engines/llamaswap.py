"""llama-swap: one address that starts and stops a server for each model.

Shapes: internal/server/api.go of mostlygeek/llama-swap (Aug 2026), proxy/proxymanager.go before. `/unload`
and `/upstream/…` are GETs too and stop or start models: neither is ever asked. `cmd` of a running model may
hold keys and is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel, ModelState, ModelTraits
from fleettui.model.record import dataclass, replace
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.engines import model_lists
from fleettui.probes.engines.answers import (
    Answer,
    as_dict,
    as_dicts,
    judge_answer,
    read_count,
    read_name,
    read_names,
)
from fleettui.probes.engines.draft import Draft, failure_of, take_answers
from fleettui.probes.engines.probe import RARELY_S, AskedBy, EngineProbe, Question, unless_refused

RUNNING: Final = "/running"
MODELS: Final = model_lists.MODELS
VERSION: Final = "/api/version"

_STATES: Mapping[str, ModelState] = {
    "ready": "loaded", "starting": "loading", "stopping": "stopping", "shutdown": "stopping",
}  # fmt: skip
"""internal/process/process.go; `stopped` is no copy."""
_NOT_REPORTED = model_lists.NOT_REPORTED
_ELSEWHERE = Unknown("served elsewhere, not on this disk")


def parse_running(document: object) -> tuple[LoadedModel, ...] | None:
    """`{"running": [{"model", "state", …}]}` as copies; None: not that shape."""
    items = as_dict(document).get("running")
    if not isinstance(items, list):
        return None
    copies = []
    for item in as_dicts(items[: model_lists.MAX_MODELS]):
        name, word = read_name(item.get("model"), _NOT_REPORTED), item.get("state")
        state = _STATES.get(word) if isinstance(word, str) else "loaded"  # early versions gave no state
        if isinstance(name, Unknown) or state is None:
            continue
        copies.append(
            LoadedModel(
                name, "llamaswap", _NOT_REPORTED, _NOT_REPORTED, _NOT_REPORTED, _NOT_REPORTED, _NOT_REPORTED,
                False, state, _NOT_REPORTED, _NOT_REPORTED,
            )
        )  # fmt: skip
    return tuple(copies)


@dataclass(frozen=True, slots=True)
class ListedModel:
    """An entry of `/v1/models`."""

    model: InstalledModel
    context: Maybe[int]
    """Tokens it is started with, where the operator wrote them down."""


def parse_models(document: object) -> tuple[ListedModel, ...] | None:
    """What may be started. Aliases listed as models of their own join theirs; peers run elsewhere.

    Selectors and profiles are no models. None: no such list.
    """
    rows = model_lists.read_rows(document)
    if rows is None:
        return None
    found: dict[str, ListedModel] = {}
    aliases: dict[str, list[str]] = {}
    for row in rows:
        name = str(model_lists.read_id(row))
        facts = as_dict(as_dict(row.get("meta")).get("llamaswap"))
        kind = facts.get("type")
        if kind in ("selector", "profile"):
            continue
        owner = read_name(facts.get("modelID"), _NOT_REPORTED)
        if kind == "alias" and not isinstance(owner, Unknown):
            aliases.setdefault(owner, []).append(name)
            continue
        aliases.setdefault(name, []).extend(read_names(facts.get("aliases")))
        found[name] = _read_listed(row, name, facts)
    return tuple(_with_aliases(listed, aliases[name]) for name, listed in found.items())


def _read_listed(row: dict[str, Any], name: str, facts: dict[str, Any]) -> ListedModel:
    peer = read_name(facts.get("peerID"), _NOT_REPORTED)
    remote_host = None if isinstance(peer, Unknown) else peer
    size = _NOT_REPORTED if remote_host is None else _ELSEWHERE
    context = read_count(as_dict(row.get("meta")).get("n_ctx"), _NOT_REPORTED) or _NOT_REPORTED
    model = InstalledModel(
        name, "llamaswap", _NOT_REPORTED, size, remote_host, _NOT_REPORTED, _NOT_REPORTED, _NOT_REPORTED
    )
    return ListedModel(model, context)


def _with_aliases(listed: ListedModel, aliases: list[str]) -> ListedModel:
    names = tuple(dict.fromkeys(alias for alias in aliases if alias != listed.model.name))
    if not names:
        return listed
    return replace(listed, model=replace(listed.model, traits=ModelTraits(names)))


def read_answers(
    port: int,
    answers: Mapping[str, Answer],
    previous: EngineReading | None = None,
    path: AskedBy = "tunnel",
) -> EngineReading:
    """The reading after `answers` (by path) came in; what was not asked now stays as in `previous`."""
    draft = Draft("llamaswap", port, previous, path)
    draft.set_traits(is_router=True)
    take_answers(draft, answers, _TAKERS)
    _join_lists(draft)
    return draft.finish()


def _take_running(draft: Draft, answer: Answer) -> None:
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if verdict.state != "ok":
        draft.fail_by(verdict)
        return
    copies = parse_running(verdict.document)
    if copies is None:
        draft.fail("not_an_engine", "the port answers with JSON that is not llama-swap's")
        return
    draft.succeed(has_key=True)
    draft.set(loaded=copies)


def _take_models(draft: Draft, answer: Answer) -> None:
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    listed = parse_models(verdict.document)
    if listed is None:
        draft.set(installed=Unknown(verdict.error or "a list that is not llama-swap's"))
        return
    draft.set(installed=tuple(one.model for one in listed))


def _take_version(draft: Draft, answer: Answer) -> None:
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if answer.status == 404:
        draft.refuse(VERSION)
    missing = Unknown(verdict.error or "no version reported")
    draft.set_version(read_name(as_dict(verdict.document).get("version"), missing))


_TAKERS = {RUNNING: _take_running, MODELS: _take_models, VERSION: _take_version}


def _join_lists(draft: Draft) -> None:
    """Copies under the further names that the list gives their models."""
    loaded, installed = draft.get("loaded"), draft.get("installed")
    if isinstance(loaded, Unknown) or isinstance(installed, Unknown):
        return
    traits = {model.name: model.traits for model in installed if model.traits is not None}
    draft.set(loaded=tuple(replace(copy, traits=traits.get(copy.name)) for copy in loaded))


def recognise(path: str, answer: Answer) -> bool | None:
    """By the key of `/running` or the owner of the model list."""
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if verdict.state != "ok":
        return None
    if path == RUNNING:
        return parse_running(verdict.document) is not None or None
    if path == MODELS:
        owner = model_lists.find_owner(model_lists.read_rows(verdict.document) or [])
        return None if owner is None else owner == "llamaswap"
    return None


PROBE = EngineProbe(
    "llamaswap",
    "llama-swap",
    8080,
    (
        Question(RUNNING, is_vital=True),
        Question(MODELS, RARELY_S),
        Question(VERSION, RARELY_S, may_ask=unless_refused(VERSION)),
    ),
    read_answers,
    failure_of("llamaswap"),
    recognise,
    (MODELS, RUNNING),
)
