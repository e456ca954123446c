"""SGLang: one model with its adapters, given at the start; load in `/metrics` with `--enable-metrics`.

Shapes: python/sglang/srt/entrypoints (http_server.py, openai/protocol.py) of sgl-project/sglang,
docs.sglang.io "Production Metrics". Two harmless-looking GETs are never asked: `/health` makes an idle server
generate a token and takes a second, `/get_server_info` holds the server's API keys in plain text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fleettui.model.readings import EngineLoad, EngineReading
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.engines import metrics, model_lists
from fleettui.probes.engines.answers import Answer, judge_status
from fleettui.probes.engines.draft import Draft, failure_of, take_answers
from fleettui.probes.engines.probe import OFTEN_S, AskedBy, EngineProbe, Question, unless_refused

MODELS: Final = model_lists.MODELS
METRICS: Final = "/metrics"

_PREFIXES = ("sglang:", "sglang_")
"""A gateway that gathers metrics of several servers writes an underscore."""
_RUNNING, _QUEUED, _CACHE_USE = "num_running_reqs", "num_queue_reqs", "token_usage"
_PROMPT_TOKENS, _GENERATED_TOKENS, _RATE = "prompt_tokens_total", "generation_tokens_total", "gen_throughput"
_NAMES = tuple(
    prefix + name
    for name in (_RUNNING, _QUEUED, _CACHE_USE, _PROMPT_TOKENS, _GENERATED_TOKENS, _RATE)
    for prefix in _PREFIXES
)
_SAME_REQUESTS = ("tp_rank", "pp_rank", "moe_ep_rank", "priority")
"""Ranks of one server tell of the same requests; with priorities there is a line of each and one of all.
`dp_rank`, `worker_addr` and `engine_type` tell servers apart."""

_METRICS_OFF = "metrics off (start SGLang with --enable-metrics)"
_NO_METRICS = Unknown("not in the metrics of this version")


@dataclass(frozen=True, slots=True)
class SglangMetrics:
    """What `/metrics` said."""

    running: Maybe[int]
    waiting: Maybe[int]
    kv_percent: Maybe[float]
    """Of the fullest."""
    load: EngineLoad


def parse_metrics(body: bytes) -> SglangMetrics:
    """Load, as it stands there: no request in work and forty queued is what it says, not what it is."""
    samples = metrics.scan_metrics(body, _NAMES)

    def total(name: str) -> float | None:
        return metrics.first_of(samples, _both(name), lambda found: metrics.add_up(found, _SAME_REQUESTS))

    use = metrics.first_of(samples, _both(_CACHE_USE), metrics.highest)
    return SglangMetrics(
        metrics.as_count(total(_RUNNING), _NO_METRICS),
        metrics.as_count(total(_QUEUED), _NO_METRICS),
        metrics.as_percent(use, _NO_METRICS),
        EngineLoad(
            prompt_tokens=metrics.as_count(total(_PROMPT_TOKENS), _NO_METRICS),
            generated_tokens=metrics.as_count(total(_GENERATED_TOKENS), _NO_METRICS),
            generated_tokens_s=metrics.as_rate(total(_RATE), _NO_METRICS),
        ),
    )


def _both(name: str) -> tuple[str, ...]:
    return tuple(prefix + name for prefix in _PREFIXES)


def read_answers(
    port: int,
    answers: Mapping[str, Answer],
    previous: EngineReading | None = None,
    path: AskedBy = "tunnel",
) -> EngineReading:
    """The reading after `answers` (by path) came in; what was not asked now stays as in `previous`."""
    draft = Draft("sglang", port, previous, path)
    take_answers(draft, answers, _TAKERS)
    return draft.finish()


def _take_models(draft: Draft, answer: Answer) -> None:
    copies = model_lists.take_served(draft, "sglang", answer)
    if copies is not None:
        draft.succeed(has_key=True)
        draft.set(loaded=copies, installed=model_lists.as_mirror(copies))


def _take_metrics(draft: Draft, answer: Answer) -> None:
    verdict = judge_status(answer.status, answer.headers, answer.body)
    if answer.status == 404:
        draft.refuse(METRICS)
        draft.forget_load(_METRICS_OFF)
    elif verdict.state != "ok":
        draft.forget_load(verdict.error or "no metrics")
    else:
        said = parse_metrics(answer.body)
        draft.set(running=said.running, waiting=said.waiting, kv_percent=said.kv_percent, load=said.load)


_TAKERS = {MODELS: _take_models, METRICS: _take_metrics}


def recognise(path: str, answer: Answer) -> bool | None:
    """By the owner of the model list or the names of the metrics."""
    if path == MODELS:
        owner = model_lists.find_owner_of(answer)
        return None if owner is None else owner == "sglang"
    if path == METRICS and answer.status == 200 and metrics.begins_line(answer.body, b"sglang:"):
        return True
    return None


PROBE = EngineProbe(
    "sglang",
    "SGLang",
    30000,
    (
        Question(MODELS, is_vital=True),
        Question(METRICS, OFTEN_S, counts_load=True, may_ask=unless_refused(METRICS), line_starts=_NAMES),
    ),
    read_answers,
    failure_of("sglang"),
    recognise,
    (MODELS, METRICS),
)
