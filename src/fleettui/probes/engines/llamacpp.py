"""llama.cpp's llama-server: one model, or a router in front of one server for each.

Shapes: tools/server/README.md of ggml-org/llama.cpp; captured in 2026. By that README `/health`, `/props`,
`/models` and `/metrics` neither wake a sleeping server nor reset its idle timer; `/slots` does both. In
router mode a question that names a model may load it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from fleettui.model.readings import EngineLoad, EngineReading
from fleettui.model.record import dataclass, replace
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.engines import metrics, model_lists
from fleettui.probes.engines.answers import (
    Answer,
    Verdict,
    as_dict,
    as_dicts,
    judge_answer,
    judge_status,
    read_count,
    read_name,
)
from fleettui.probes.engines.draft import KEY_NEEDED, Draft, failure_of, take_answers
from fleettui.probes.engines.llamacpp_models import parse_models
from fleettui.probes.engines.probe import OFTEN_S, AskedBy, EngineProbe, Question

MODELS: Final = model_lists.MODELS
METRICS: Final = "/metrics"
PROPS: Final = "/props"
SLOTS: Final = "/slots"
HEALTH: Final = "/health"
MODEL_METRICS: Final = "/metrics?autoload=false&model="
"""Of one model of a router; only where it is loaded."""

_RUNNING, _WAITING = "llamacpp:requests_processing", "llamacpp:requests_deferred"
_CACHE_USE = "llamacpp:kv_cache_usage_ratio"
"""A share from 0 to 1; builds of 2025 and later do not have it."""
_PROMPT_TOKENS, _GENERATED_TOKENS = "llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total"
_PROMPT_RATE, _GENERATED_RATE = "llamacpp:prompt_tokens_seconds", "llamacpp:predicted_tokens_seconds"
_NAMES = (
    _RUNNING, _WAITING, _CACHE_USE, _PROMPT_TOKENS, _GENERATED_TOKENS, _PROMPT_RATE, _GENERATED_RATE,
)  # fmt: skip

_METRICS_OFF = "metrics off (start llama-server with --metrics)"
_NO_METRICS = Unknown("not in the metrics of this build")
_NOT_REPORTED = model_lists.NOT_REPORTED
_LOADING = Unknown("loading the model")
_MAX_SLOTS = 4096


@dataclass(frozen=True, slots=True)
class LlamaMetrics:
    """What `/metrics` said."""

    running: Maybe[int]
    waiting: Maybe[int]
    kv_percent: Maybe[float]
    load: EngineLoad


def parse_metrics(body: bytes) -> LlamaMetrics:
    """Load; the rates are averages of the engine's own, since the last look at them or since its start."""
    samples = metrics.scan_metrics(body, _NAMES)

    def total(name: str) -> float | None:
        return metrics.add_up(samples.get(name, ()))

    return LlamaMetrics(
        metrics.as_count(total(_RUNNING), _NO_METRICS),
        metrics.as_count(total(_WAITING), _NO_METRICS),
        metrics.as_percent(total(_CACHE_USE), _NO_METRICS),
        EngineLoad(
            prompt_tokens=metrics.as_count(total(_PROMPT_TOKENS), _NO_METRICS),
            generated_tokens=metrics.as_count(total(_GENERATED_TOKENS), _NO_METRICS),
            prompt_tokens_s=metrics.as_rate(total(_PROMPT_RATE), _NO_METRICS),
            generated_tokens_s=metrics.as_rate(total(_GENERATED_RATE), _NO_METRICS),
        ),
    )


def read_answers(
    port: int,
    answers: Mapping[str, Answer],
    previous: EngineReading | None = None,
    path: AskedBy = "tunnel",
) -> EngineReading:
    """The reading after `answers` (by path) came in; what was not asked now stays as in `previous`."""
    draft = Draft("llamacpp", port, previous, path)
    take_answers(draft, answers, _TAKERS)
    of_models = [answer for asked, answer in answers.items() if asked.startswith(MODEL_METRICS)]
    if of_models:
        _take_model_metrics(draft, of_models)
    if not draft.traits.is_router:
        draft.set_copies_state()
    return draft.finish()


def _fail_or_wait(draft: Draft, verdict: Verdict) -> None:
    if verdict.state == "loading":
        draft.set(state="loading", error=None, loaded=_LOADING)
        draft.forget_load(_LOADING.reason)
    else:
        draft.fail_by(verdict)


def _take_health(draft: Draft, answer: Answer) -> None:
    """`{"status": "ok"}`, or 503 with `Loading model`."""
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if verdict.state != "ok":
        _fail_or_wait(draft, verdict)
    elif as_dict(verdict.document).get("status") == "ok" and draft.get("state") in ("loading", "down"):
        draft.succeed()


def _take_models(draft: Draft, answer: Answer) -> None:
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if verdict.state != "ok":
        _fail_or_wait(draft, verdict)
        return
    said = parse_models(verdict.document)
    owner = model_lists.find_owner(model_lists.read_rows(verdict.document) or [])
    if said is None or owner not in (None, "llamacpp"):
        draft.fail("not_an_engine", model_lists.describe_other(owner))
        return
    draft.succeed()
    draft.set_traits(is_router=said.is_router)
    loaded = said.loaded
    if not said.is_router and any(copy.state == "loading" for copy in loaded):
        if draft.get("is_sleeping") is True:  # asleep it has no figures of its model either
            loaded = tuple(replace(copy, state="sleeping") for copy in loaded)
        else:
            draft.set(state="loading")
            draft.forget_load(_LOADING.reason)
    draft.set(loaded=loaded, installed=said.installed)
    if said.failed and draft.get("state") == "ok":
        names = ", ".join(said.failed[:3]) + (" …" if len(said.failed) > 3 else "")
        draft.set(error=f"could not load {names}: see its log")


def _take_props(draft: Draft, answer: Answer) -> None:
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if verdict.state == "unauthorized":  # /v1/models and /health are open all the same
        draft.set_traits(needs_key=True)
        draft.set(state="unauthorized", error=KEY_NEEDED)
        return
    if verdict.state != "ok":
        return
    props = as_dict(verdict.document)
    draft.set_traits(needs_key=False)
    if draft.get("state") == "unauthorized":
        draft.succeed()
    draft.set_version(read_name(props.get("build_info"), _NOT_REPORTED))
    if props.get("role") == "router":
        draft.set_traits(is_router=True, max_loaded=read_count(props.get("max_instances"), _NOT_REPORTED))
        return
    sleeping = props.get("is_sleeping")
    is_known = isinstance(sleeping, bool)
    draft.set(is_sleeping=sleeping if is_known else Unknown("this build cannot sleep"))
    draft.set_traits(can_sleep=is_known, slots=read_count(props.get("total_slots"), _NOT_REPORTED))
    if sleeping is True:  # nothing is worked on, and nobody asks any more
        draft.set(running=0, waiting=0)
    elif draft.base.is_sleeping is True:
        draft.forget_load(_METRICS_OFF if METRICS in draft.traits.refused else "not asked since it woke up")


def _take_metrics(draft: Draft, answer: Answer) -> None:
    verdict = judge_status(answer.status, answer.headers, answer.body)
    if answer.status in (404, 501):
        draft.refuse(METRICS)
        draft.forget_load(_METRICS_OFF)
    elif verdict.state == "unauthorized":
        draft.refuse(METRICS)
        draft.set_traits(needs_key=True)
        draft.forget_load(KEY_NEEDED)
    elif verdict.state != "ok":
        draft.forget_load(verdict.error or "no metrics")
    else:
        said = parse_metrics(answer.body)
        draft.set(running=said.running, waiting=said.waiting, kv_percent=said.kv_percent, load=said.load)


def _take_slots(draft: Draft, answer: Answer) -> None:
    """`is_processing` of each slot."""
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if answer.status in (404, 501):
        draft.refuse(SLOTS)
    if not isinstance(verdict.document, list):
        return
    slots = [slot.get("is_processing") for slot in as_dicts(verdict.document[:_MAX_SLOTS])]
    if slots and all(isinstance(slot, bool) for slot in slots):
        draft.set(running=sum(slots))
        draft.set_traits(slots=len(slots))


def _take_model_metrics(draft: Draft, answers: list[Answer]) -> None:
    """Sums over the loaded models of a router; unknown as soon as one did not answer."""
    said = [parse_metrics(answer.body) for answer in answers if answer.status == 200]
    if len(said) < len(answers):
        draft.forget_load("a model of the router gives no metrics")
        return
    running = [one.running for one in said if not isinstance(one.running, Unknown)]
    waiting = [one.waiting for one in said if not isinstance(one.waiting, Unknown)]
    draft.set(
        running=sum(running) if len(running) == len(said) else _NO_METRICS,
        waiting=sum(waiting) if len(waiting) == len(said) else _NO_METRICS,
    )


_TAKERS = {  # in this order: the list knows more than /health
    HEALTH: _take_health,
    MODELS: _take_models,
    PROPS: _take_props,
    METRICS: _take_metrics,
    SLOTS: _take_slots,
}


def _is_single_and_awake(reading: EngineReading | None) -> bool:
    """One model, ready, not asleep."""
    if reading is None or reading.state not in ("ok", "unauthorized") or reading.is_sleeping is True:
        return False
    return not isinstance(reading.loaded, Unknown) and not (reading.traits and reading.traits.is_router)


def _refuses(reading: EngineReading, path: str) -> bool:
    return reading.traits is not None and path in reading.traits.refused


def may_ask_metrics(reading: EngineReading | None) -> bool:
    """Not of a router, which wants a model's name; not of one that sleeps, loads, or said it has none."""
    return reading is not None and _is_single_and_awake(reading) and not _refuses(reading, METRICS)


def may_ask_slots(reading: EngineReading | None) -> bool:
    """At each poll only of a build that cannot sleep, as a look resets the idle timer; instead of metrics."""
    return (
        reading is not None
        and _is_single_and_awake(reading)
        and reading.traits is not None
        and reading.traits.can_sleep is False
        and _refuses(reading, METRICS)
        and not _refuses(reading, SLOTS)
    )


def may_ask_health(reading: EngineReading | None) -> bool:
    """While the list of models does not say that all is well."""
    return reading is None or reading.state != "ok"


def busy_paths(reading: EngineReading) -> tuple[str, ...]:
    """`/slots` of a server that is awake and has no metrics; metrics of each loaded model of a router."""
    if reading.state not in ("ok", "unauthorized") or isinstance(reading.loaded, Unknown):
        return ()
    if reading.traits is not None and reading.traits.is_router:
        names = [copy.name for copy in reading.loaded if copy.state == "loaded"]
        return tuple(MODEL_METRICS + quote(name, safe="") for name in names if not name.endswith("…"))
    is_awake = _is_single_and_awake(reading) and reading.is_sleeping is False
    return (SLOTS,) if is_awake and _refuses(reading, METRICS) and not _refuses(reading, SLOTS) else ()


def recognise(path: str, answer: Answer) -> bool | None:
    """By the owner of the model list, the keys of `/props`, its words while loading, its metrics' names."""
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if verdict.state == "loading":
        return True
    if path == METRICS and answer.status == 200 and metrics.begins_line(answer.body, b"llamacpp:"):
        return True
    if path == MODELS and verdict.state == "ok":
        owner = model_lists.find_owner(model_lists.read_rows(verdict.document) or [])
        return None if owner is None else owner == "llamacpp"
    if path == PROPS and verdict.state == "ok":
        return {"build_info", "default_generation_settings"} <= as_dict(verdict.document).keys() or None
    return None


PROBE = EngineProbe(
    "llamacpp",
    "llama.cpp",
    8080,
    (
        Question(MODELS, is_vital=True),
        Question(HEALTH, may_ask=may_ask_health),
        Question(METRICS, counts_load=True, may_ask=may_ask_metrics, line_starts=_NAMES),
        Question(SLOTS, counts_load=True, may_ask=may_ask_slots),
        Question(PROPS, OFTEN_S),
    ),
    read_answers,
    failure_of("llamacpp"),
    recognise,
    (MODELS, PROPS),
    busy_paths,
)
