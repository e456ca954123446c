"""LM Studio: `/api/v0/models` (0.3.6 and later), `/api/v1/models` (0.4 and later).

Shapes: lmstudio.ai/docs/developer/rest. It answers HTTP 200 with `{"error": "Unexpected endpoint …"}` to any
path it has not. `/v1/models` lists everything on the disk when models are loaded on demand, so it tells of no
copy. There is no harmless question about requests in work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel, ModelState, ModelTraits
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.engines import model_lists
from fleettui.probes.engines.answers import (
    Answer,
    as_dict,
    as_dicts,
    is_lmstudio_refusal,
    judge_answer,
    read_count,
    read_name,
    read_names,
)
from fleettui.probes.engines.draft import Draft, failure_of
from fleettui.probes.engines.probe import AskedBy, EngineProbe, Question, unless_refused

V0_MODELS: Final = "/api/v0/models"
V1_MODELS: Final = "/api/v1/models"

_NOT_REPORTED = model_lists.NOT_REPORTED
_STATES: Mapping[str, ModelState] = {"loaded": "loaded", "loading": "loading"}


@dataclass(frozen=True, slots=True)
class StudioModels:
    """What either list said."""

    loaded: tuple[LoadedModel, ...]
    installed: tuple[InstalledModel, ...]


def parse_v0(document: object) -> StudioModels | None:
    """Entries of `data` with a `state`; None: not that list. OpenAI's list, which has none, is not it."""
    rows = model_lists.read_rows(document)
    if rows is None or (rows and not any("state" in row for row in rows)):
        return None
    loaded, installed = [], []
    for row in rows:
        name = str(model_lists.read_id(row))
        quantization = read_name(row.get("quantization"), _NOT_REPORTED)
        words = read_names(row.get("capabilities"))
        model = _as_installed(name, row, quantization, words)
        installed.append(model)
        word = row.get("state")
        state = _STATES.get(word) if isinstance(word, str) else None
        if state is not None:
            loaded.append(_as_copy(name, model, row.get("loaded_context_length"), state))
    return StudioModels(tuple(loaded), tuple(installed))


def parse_v1(document: object) -> StudioModels | None:
    """Entries of `models` with a `key` and `loaded_instances`; None: not that list."""
    items = as_dict(document).get("models")
    if not isinstance(items, list):
        return None
    rows = [row for row in as_dicts(items[: model_lists.MAX_MODELS]) if "loaded_instances" in row]
    if items and not rows:
        return None
    loaded, installed = [], []
    for row in rows:
        name = read_name(row.get("key"), _NOT_REPORTED)
        if isinstance(name, Unknown):
            continue
        quantization = read_name(as_dict(row.get("quantization")).get("name"), _NOT_REPORTED)
        flags = as_dict(row.get("capabilities"))
        words = tuple(word for word in read_names(list(flags)) if flags.get(word) is True)
        model = _as_installed(name, row, quantization, words)
        installed.append(model)
        for instance in as_dicts(row.get("loaded_instances"))[: model_lists.MAX_MODELS]:
            identifier = read_name(instance.get("id"), _NOT_REPORTED)
            context = as_dict(instance.get("config")).get("context_length")
            loaded.append(
                _as_copy(name if isinstance(identifier, Unknown) else identifier, model, context, "loaded")
            )
    return StudioModels(tuple(loaded), tuple(installed))


def _as_installed(
    name: str, row: dict[str, Any], quantization: Maybe[str], words: tuple[str, ...]
) -> InstalledModel:
    longest = read_count(row.get("max_context_length"), _NOT_REPORTED) or _NOT_REPORTED
    kind = row.get("type")
    if kind in ("embeddings", "embedding"):
        words = ("embedding", *words)
    elif kind == "vlm" and "vision" not in words:
        words = ("vision", *words)
    family = row.get("arch", row.get("architecture"))
    return InstalledModel(
        name,
        "lmstudio",
        _NOT_REPORTED,
        read_count(row.get("size_bytes"), _NOT_REPORTED) or _NOT_REPORTED,
        None,
        read_name(family, _NOT_REPORTED),
        read_name(row.get("params_string"), _NOT_REPORTED),
        quantization,
        ModelTraits(max_context=longest, capabilities=words),
    )


def _as_copy(name: str, model: InstalledModel, context: object, state: ModelState) -> LoadedModel:
    """A copy; its own identifier, where it has one, is what a request uses."""
    traits = model.traits
    if name != model.name and traits is not None:
        traits = ModelTraits((model.name,), (), traits.max_context, traits.capabilities)
    return LoadedModel(
        name,
        "lmstudio",
        _NOT_REPORTED,
        model.size_bytes,
        _NOT_REPORTED,
        read_count(context, _NOT_REPORTED) or _NOT_REPORTED,
        _NOT_REPORTED,
        False,
        state,
        model.parameter_size,
        model.quantization,
        traits,
    )


def read_answers(
    port: int,
    answers: Mapping[str, Answer],
    previous: EngineReading | None = None,
    path: AskedBy = "tunnel",
) -> EngineReading:
    """The reading after `answers` (by path) came in; what was not asked now stays as in `previous`."""
    draft = Draft("lmstudio", port, previous, path)
    for asked, parse in ((V0_MODELS, parse_v0), (V1_MODELS, parse_v1)):
        answer = answers.get(asked)
        if answer is None:
            continue
        verdict = judge_answer(answer.status, answer.headers, answer.body)
        if is_lmstudio_refusal(verdict.reason):
            draft.refuse(asked)
            _judge_refusals(draft)
            continue
        if verdict.state != "ok":
            draft.fail_by(verdict)
            continue
        said = parse(verdict.document)
        if said is None:
            draft.fail("not_an_engine", "the port answers with JSON that is not LM Studio's")
            continue
        draft.succeed(has_key=True)
        draft.set(loaded=said.loaded, installed=said.installed)
    return draft.finish()


def _judge_refusals(draft: Draft) -> None:
    """Its own words for a missing path: it is up, and too old to tell when it has neither list."""
    if {V0_MODELS, V1_MODELS} <= set(draft.traits.refused):
        draft.succeed()
        draft.set(loaded=Unknown("LM Studio is too old to tell (before 0.3.6)"))


def may_ask_v1(reading: EngineReading | None) -> bool:
    """Only where the older list is gone."""
    refused = () if reading is None or reading.traits is None else reading.traits.refused
    return V0_MODELS in refused and V1_MODELS not in refused


def recognise(path: str, answer: Answer) -> bool | None:
    """By its words for a path it has not, or by what only its lists hold."""
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if is_lmstudio_refusal(verdict.reason):
        return True
    if verdict.state != "ok":
        return None
    if path == V0_MODELS:
        said = parse_v0(verdict.document)
        return (said is not None and bool(said.installed)) or None
    if path == V1_MODELS:
        said = parse_v1(verdict.document)
        return (said is not None and bool(said.installed)) or None
    if path == model_lists.MODELS:
        owner = model_lists.find_owner(model_lists.read_rows(verdict.document) or [])
        return None if owner is None else owner == "lmstudio"
    return None


PROBE = EngineProbe(
    "lmstudio",
    "LM Studio",
    1234,
    (
        Question(V0_MODELS, is_vital=True, may_ask=unless_refused(V0_MODELS)),
        Question(V1_MODELS, is_vital=True, may_ask=may_ask_v1),
    ),
    read_answers,
    failure_of("lmstudio"),
    recognise,
    (model_lists.MODELS, V0_MODELS),
)
