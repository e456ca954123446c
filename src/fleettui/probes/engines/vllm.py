"""vLLM: one base model with its adapters, given at the start; load in `/metrics`.

Shapes: vllm/entrypoints/openai (ModelCard, /load, /version), vllm/v1/metrics/loggers.py, docs.vllm.ai
"Production Metrics"; captured from 0.32. Only GETs that load and wake nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fleettui.model.readings import EngineLoad, EngineReading
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.engines import metrics, model_lists
from fleettui.probes.engines.answers import Answer, as_dict, judge_answer, judge_status, read_count, read_name
from fleettui.probes.engines.draft import Draft, failure_of, take_answers
from fleettui.probes.engines.probe import (
    OFTEN_S,
    RARELY_S,
    AskedBy,
    EngineProbe,
    Question,
    unless_refused,
)

HEALTH: Final = "/health"
LOAD: Final = "/load"
MODELS: Final = model_lists.MODELS
METRICS: Final = "/metrics"
SLEEPING: Final = "/is_sleeping"
VERSION: Final = "/version"

RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
CACHE_USE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
"""New name first; 0.10 and older have the second one. A share from 0 to 1, whatever the name says."""
SLEEP_STATE = "vllm:engine_sleep_state"
CACHE_CONFIG = "vllm:cache_config_info"
PROMPT_TOKENS = "vllm:prompt_tokens_total"
GENERATED_TOKENS = "vllm:generation_tokens_total"
NAMES = (
    RUNNING, WAITING, *CACHE_USE, SLEEP_STATE, CACHE_CONFIG, PROMPT_TOKENS, GENERATED_TOKENS,
)  # fmt: skip

_DEAD = "dead or not ready yet (/health says 503)"
_NO_METRICS = Unknown("metrics not available (stats logging is off)")
_NOT_COUNTED = Unknown("not told apart from those in work")
_NOT_SAID = Unknown("not in the metrics of this version")


@dataclass(frozen=True, slots=True)
class VllmMetrics:
    """What `/metrics` said; all series of one engine in all its processes together."""

    running: Maybe[int]
    waiting: Maybe[int]
    kv_percent: Maybe[float]
    """Of the fullest engine."""
    is_sleeping: Maybe[bool]
    cache_tokens: Maybe[int]
    """Of all engines together."""
    load: EngineLoad | None


def parse_metrics(body: bytes) -> VllmMetrics:
    """Load and sleep state. Without any series of vLLM everything is unknown, never idle."""
    samples = metrics.scan_metrics(body, NAMES)
    missing = _NOT_SAID if RUNNING in samples else _NO_METRICS
    prompt = metrics.as_count(metrics.add_up(samples.get(PROMPT_TOKENS, ())), missing)
    generated = metrics.as_count(metrics.add_up(samples.get(GENERATED_TOKENS, ())), missing)
    has_counts = not (isinstance(prompt, Unknown) and isinstance(generated, Unknown))
    return VllmMetrics(
        metrics.as_count(metrics.add_up(samples.get(RUNNING, ())), missing),
        metrics.as_count(metrics.add_up(samples.get(WAITING, ())), missing),
        metrics.as_percent(metrics.first_of(samples, CACHE_USE, metrics.highest), missing),
        _read_sleep_state(samples.get(SLEEP_STATE, ())),
        _read_cache_tokens(samples.get(CACHE_CONFIG, ())),
        EngineLoad(prompt_tokens=prompt, generated_tokens=generated) if has_counts else None,
    )


def _read_sleep_state(samples: metrics.SampleList) -> Maybe[bool]:
    """Asleep when any engine is not awake: `awake` is 0 then."""
    awake = [sample.value for sample in samples if sample.labels.get("sleep_state") == "awake"]
    return any(value == 0 for value in awake) if awake else _NOT_SAID


def _read_cache_tokens(samples: metrics.SampleList) -> Maybe[int]:
    """`kv_cache_size_tokens`, in older versions blocks times their size."""
    sizes = []
    for sample in samples:
        size = _read_label(sample.labels, "kv_cache_size_tokens")
        if size is None:
            blocks = _read_label(sample.labels, "num_gpu_blocks")
            block = _read_label(sample.labels, "block_size")
            size = None if blocks is None or block is None else blocks * block
        if size is None:
            return _NOT_SAID
        sizes.append(size)
    return sum(sizes) or _NOT_SAID


def _read_label(labels: metrics.Labels, name: str) -> int | None:
    text = labels.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None


def read_answers(
    port: int,
    answers: Mapping[str, Answer],
    previous: EngineReading | None = None,
    path: AskedBy = "tunnel",
) -> EngineReading:
    """The reading after `answers` (by path) came in; what was not asked now stays as in `previous`."""
    draft = Draft("vllm", port, previous, path)
    take_answers(draft, answers, _TAKERS)
    draft.set_copies_state()
    return draft.finish()


def _take_health(draft: Draft, answer: Answer) -> None:
    """An empty 200 is healthy; 503 is a dead engine, though `/v1/models` may still list what it had.

    Every vLLM has the path, so 404 is somebody else's, whom the list may have named.
    """
    verdict = judge_status(answer.status, answer.headers, answer.body)
    if answer.status == 503:
        draft.fail("down", _DEAD)
    elif answer.status == 404:
        if draft.get("state") != "not_an_engine":
            draft.fail("not_an_engine", "the port answers without /health, which every vLLM has")
    elif verdict.state != "ok":
        draft.fail_by(verdict)
    elif draft.get("state") != "not_an_engine":  # an empty 200 may be anybody's
        draft.succeed()


def _take_models(draft: Draft, answer: Answer) -> None:
    if answer.status >= 500:  # whether it lives /health says
        draft.set(loaded=Unknown(f"/v1/models: HTTP {answer.status}"))
        return
    copies = model_lists.take_served(draft, "vllm", answer)
    if copies is not None and draft.get("error") != _DEAD:  # only /health knows better
        draft.succeed(has_key=True)
        draft.set(loaded=copies, installed=model_lists.as_mirror(copies))


def _take_metrics(draft: Draft, answer: Answer) -> None:
    verdict = judge_status(answer.status, answer.headers, answer.body)
    if verdict.state != "ok":
        if answer.status == 404:
            draft.refuse(METRICS)
        draft.forget_load(verdict.error or "metrics not available")
        return
    said = parse_metrics(answer.body)
    draft.set(running=said.running, waiting=said.waiting, kv_percent=said.kv_percent)
    if draft.traits.can_sleep is not True or isinstance(draft.get("is_sleeping"), Unknown):
        draft.set(is_sleeping=said.is_sleeping)
    draft.set_traits(cache_tokens=said.cache_tokens)
    if said.load is not None:
        draft.set_load(prompt_tokens=said.load.prompt_tokens, generated_tokens=said.load.generated_tokens)


def _take_load(draft: Draft, answer: Answer) -> None:
    """Requests not yet answered. It stays 0 unless they are counted, so 0 says nothing before a first 1."""
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if answer.status == 404:
        draft.refuse(LOAD)
    count = read_count(as_dict(verdict.document).get("server_load"), _NO_METRICS)
    if isinstance(count, Unknown) and draft.traits.counts_load:
        draft.forget_load(verdict.error or "/load tells no number")
    if isinstance(count, Unknown) or not (count or draft.traits.counts_load):
        return
    draft.set_traits(counts_load=True)
    draft.set_load(in_flight=count)
    running, waiting = draft.get("running"), draft.get("waiting")
    if not isinstance(running, Unknown) and not isinstance(waiting, Unknown) and running + waiting == count:
        return
    if not count:
        draft.set(running=0, waiting=0)
    elif isinstance(waiting, Unknown) or waiting >= count:
        draft.set(running=count, waiting=_NOT_COUNTED)
    else:
        draft.set(running=count - waiting)


def _take_sleeping(draft: Draft, answer: Answer) -> None:
    """Development mode only: 404 elsewhere, which is neither awake nor an error."""
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    said = as_dict(verdict.document).get("is_sleeping")
    if isinstance(said, bool):
        draft.set(is_sleeping=said)
        draft.set_traits(can_sleep=True)
    elif answer.status == 404:
        draft.refuse(SLEEPING)


def _take_version(draft: Draft, answer: Answer) -> None:
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    missing = Unknown(verdict.error or "no version reported")
    draft.set_version(read_name(as_dict(verdict.document).get("version"), missing))


_TAKERS = {
    HEALTH: _take_health,
    MODELS: _take_models,
    METRICS: _take_metrics,
    LOAD: _take_load,
    SLEEPING: _take_sleeping,
    VERSION: _take_version,
}


def recognise(path: str, answer: Answer) -> bool | None:
    """By the owner of the model list or the names of the metrics."""
    if answer.status != 200:
        return None
    if path == MODELS:
        owner = model_lists.find_owner_of(answer)
        return None if owner is None else owner == "vllm"
    if path == METRICS and metrics.begins_line(answer.body, b"vllm:"):
        return True
    return None


PROBE = EngineProbe(
    "vllm",
    "vLLM",
    8000,
    (
        Question(HEALTH, is_vital=True),
        Question(LOAD, counts_load=True, may_ask=unless_refused(LOAD)),
        Question(MODELS, OFTEN_S, lists_copies=True),
        Question(METRICS, OFTEN_S, counts_load=True, may_ask=unless_refused(METRICS), line_starts=NAMES),
        Question(SLEEPING, OFTEN_S, may_ask=unless_refused(SLEEPING)),
        Question(VERSION, RARELY_S, may_ask=unless_refused(VERSION)),
    ),
    read_answers,
    failure_of("vllm"),
    recognise,
    (MODELS, METRICS),
)  # fmt: skip
