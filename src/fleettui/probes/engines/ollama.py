"""Ollama: `/api/ps` (resident models), `/api/tags` (models on disk), `/api/version`.

Shapes: ollama/ollama docs/api.md. Only these GETs are ever sent by a poll: any other call may load a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from fleettui.model.machine import DEFAULT_ENGINE_PORT
from fleettui.model.readings import (
    EngineReading,
    EngineState,
    InstalledModel,
    LoadedModel,
    ModelState,
    ModelTraits,
)
from fleettui.model.record import dataclass, replace
from fleettui.model.unknown import NOT_READ, Maybe, Unknown
from fleettui.probes.engines.answers import (
    Answer,
    Headers,
    as_dict,
    as_dicts,
    get_header,
    judge_answer,
    parse_http_date,
    parse_time,
    read_count,
    read_name,
    read_names,
)
from fleettui.probes.engines.probe import RARELY_S, AskedBy, EngineProbe, Question

PS: Final = "/api/ps"
TAGS: Final = "/api/tags"
VERSION: Final = "/api/version"

_NEVER_S = 7258118400.0
"""2200-01-01: keep_alive -1 gives a date some 292 years ahead."""
_CACHED_BODY_BYTES = 64 << 10
_CLOCK_TOLERANCE_S = 5.0
"""Clocks that differ by less are taken as equal: the Date header has whole seconds and answers take time."""

_GIN_NOT_FOUND = "404 page not found"
"""What Ollama's own web framework says of a path it has not."""
_NOT_REPORTED = Unknown("not reported by this server")
_NO_EXPIRY = Unknown("no expiry time reported")
_CLOUD_SIZE = Unknown("cloud model, not on this disk")


@dataclass(frozen=True, slots=True)
class PsAnswer:
    """What `/api/ps` said."""

    state: EngineState
    loaded: Maybe[tuple[LoadedModel, ...]]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TagsAnswer:
    """What `/api/tags` said."""

    installed: Maybe[tuple[InstalledModel, ...]]
    error: str | None = None


def parse_ps(status: int, headers: Headers, body: bytes, received_at: float) -> PsAnswer:
    """The resident models. Null and empty lists are none loaded; 404 is a server that has no `/api/ps`.

    The server's Date header is its clock: it decides what has expired, and moves `expires_at` to the
    operator's clock where the two differ by 5 s or more.
    """
    is_small = status == 200 and len(body) <= _CACHED_BODY_BYTES
    copies = _read_again(body) if is_small else _read_copies(status, headers, body)
    if not isinstance(copies, tuple):
        copies = _read_copies(status, headers, body)
    if isinstance(copies, PsAnswer):
        return copies
    server_now = parse_http_date(get_header(headers, "date") or "")
    if server_now is None:
        server_now = received_at
    offset = received_at - server_now
    if abs(offset) < _CLOCK_TOLERANCE_S:
        if not any(isinstance(copy.expires_at, float) and copy.expires_at < server_now for copy in copies):
            return PsAnswer("ok", copies)
        offset = 0.0
    return PsAnswer("ok", tuple(_judge_time(copy, server_now, float(round(offset))) for copy in copies))


def _read_copies(status: int, headers: Headers, body: bytes) -> tuple[LoadedModel, ...] | PsAnswer:
    """The copies with times by the server's clock, or why there are none."""
    verdict = judge_answer(status, headers, body)
    if status == 404 and verdict.reason == _GIN_NOT_FOUND:  # others answer 404 in JSON: not by the code alone
        return PsAnswer("ok", Unknown("server is too old to tell (no /api/ps)"))
    if status == 404:
        error = verdict.error or "HTTP 404"
        return PsAnswer("not_an_engine", Unknown(error), error)
    if verdict.state == "loading":
        error = "llama.cpp answers there, loading its model"
        return PsAnswer("not_an_engine", Unknown(error), error)
    if verdict.state != "ok":
        return PsAnswer(verdict.state, Unknown(verdict.error or "no answer"), verdict.error)
    models = _as_models(verdict.document)
    if models is None:
        error = "the port answers with JSON that is not Ollama's"
        return PsAnswer("not_an_engine", Unknown(error), error)
    found = (_read_loaded(item) for item in models)
    return tuple(copy for copy in found if copy is not None)


def _as_models(document: object) -> list[dict[str, Any]] | None:
    """The objects of `models`; null, an empty list and `{}` are none. None: not Ollama's shape."""
    models = document.get("models", 0 if document else None) if isinstance(document, dict) else 0
    if models is not None and not isinstance(models, list):
        return None
    found = as_dicts(models)
    return found if found or not models else None


# Between two requests to a model the answer stays the same, byte by byte: then so do the copies, and
# whoever compares readings finds them identical at once.
@lru_cache(maxsize=512)
def _read_again(body: bytes) -> tuple[LoadedModel, ...] | PsAnswer:
    return _read_copies(200, (), body)


def _judge_time(copy: LoadedModel, server_now: float, offset: float) -> LoadedModel:
    """The copy with its expiry by the operator's clock; past expiry means stopping."""
    if isinstance(copy.expires_at, Unknown):
        return copy
    state: ModelState = "stopping" if copy.expires_at < server_now else "loaded"
    return replace(copy, state=state, expires_at=copy.expires_at + offset)


def _read_loaded(item: dict[str, Any]) -> LoadedModel | None:
    name = _read_model_name(item)
    if name is None or _read_remote(item) is not None:
        return None  # a cloud model runs elsewhere, whatever a list says
    text = item.get("expires_at")
    moment = parse_time(text) if isinstance(text, str) else None
    details = as_dict(item.get("details"))
    return LoadedModel(
        name,
        "ollama",
        read_name(item.get("digest"), _NOT_REPORTED),
        read_count(item.get("size"), _NOT_REPORTED),
        read_count(item.get("size_vram"), _NOT_REPORTED),
        read_count(item.get("context_length"), _NOT_REPORTED) or _NOT_REPORTED,
        _NO_EXPIRY if moment is None else moment,
        moment is not None and moment >= _NEVER_S,
        "loaded",
        read_name(details.get("parameter_size"), _NOT_REPORTED),
        read_name(details.get("quantization_level"), _NOT_REPORTED),
    )


def _read_model_name(item: dict[str, Any]) -> str | None:
    for key in ("name", "model"):
        name = read_name(item.get(key), _NOT_REPORTED)
        if not isinstance(name, Unknown):
            return name
    return None


def parse_tags(status: int, headers: Headers, body: bytes) -> TagsAnswer:
    """The models on disk, cloud entries included with their `remote_host`."""
    verdict = judge_answer(status, headers, body)
    if verdict.state != "ok":
        return TagsAnswer(Unknown(verdict.error or "no answer"), verdict.error)
    items = _as_models(verdict.document)
    if items is None:
        error = "/api/tags: JSON that is not Ollama's"
        return TagsAnswer(Unknown(error), error)
    models = (_read_installed(item) for item in items)
    return TagsAnswer(tuple(model for model in models if model is not None))


def _read_remote(item: dict[str, Any]) -> str | None:
    """Where a cloud entry runs; None for a local one. Not by the name: `-cloud` may be anyone's tag."""
    remote = read_name(item.get("remote_host") or item.get("remote_model"), _NOT_REPORTED)
    return None if isinstance(remote, Unknown) else remote


def _read_installed(item: dict[str, Any]) -> InstalledModel | None:
    name = _read_model_name(item)
    if name is None:
        return None
    remote_host = _read_remote(item)
    details = as_dict(item.get("details"))
    return InstalledModel(
        name,
        "ollama",
        read_name(item.get("digest"), _NOT_REPORTED),
        _CLOUD_SIZE if remote_host else read_count(item.get("size"), _NOT_REPORTED),
        remote_host,
        read_name(details.get("family"), _NOT_REPORTED),
        read_name(details.get("parameter_size"), _NOT_REPORTED),
        read_name(details.get("quantization_level"), _NOT_REPORTED),
        _read_traits(item.get("capabilities"), details.get("context_length")),
    )


def _read_traits(capabilities: object, context: object) -> ModelTraits | None:
    """What servers since 0.32 add to `/api/tags`; None where they say nothing."""
    words = read_names(capabilities)
    longest = read_count(context, _NOT_REPORTED) or _NOT_REPORTED
    return _share_traits(words, longest) if words or not isinstance(longest, Unknown) else None


@lru_cache(maxsize=256)
def _share_traits(capabilities: tuple[str, ...], max_context: Maybe[int]) -> ModelTraits:
    """One object for the many models of which it is true."""
    return ModelTraits(max_context=max_context, capabilities=capabilities)


def parse_version(status: int, headers: Headers, body: bytes) -> Maybe[str]:
    """The version as the server writes it; never compared, features are found by trying."""
    verdict = judge_answer(status, headers, body)
    if verdict.state != "ok":
        return Unknown(verdict.error or "no answer")
    return read_name(as_dict(verdict.document).get("version"), Unknown("no version reported"))


def label_version(version: str) -> str:
    """The version as shown: `0.0.0` is what self-built servers say."""
    return f"{version} (unversioned build)" if version == "0.0.0" else version


def parse_show(status: int, headers: Headers, body: bytes) -> Maybe[int]:
    """Longest context in tokens from `/api/show`: `<architecture>.context_length` of model_info."""
    verdict = judge_answer(status, headers, body)
    if verdict.state != "ok":
        return Unknown(verdict.error or "no answer")
    facts = as_dict(as_dict(verdict.document).get("model_info"))
    architecture = facts.get("general.architecture")
    lengths = [facts.get(f"{architecture}.context_length")] if isinstance(architecture, str) else []
    lengths += [value for key, value in facts.items() if key.endswith(".context_length")]
    counts = [read_count(value, _NOT_REPORTED) for value in lengths]
    return next((count for count in counts if count and not isinstance(count, Unknown)), _NOT_REPORTED)


def combine(
    port: int,
    ps: PsAnswer | None = None,
    tags: TagsAnswer | None = None,
    version: Maybe[str] | None = None,
    previous: EngineReading | None = None,
    path: AskedBy = "tunnel",
) -> EngineReading:
    """One reading of the parts asked now; parts not asked (None) stay as in `previous`.

    The state is what `/api/ps` says. A failing `/api/tags` costs the installed list, nothing else.
    """
    base = previous or EngineReading("ollama", port, "ok")
    state, loaded, error = base.state, base.loaded, base.error
    if ps is not None:
        state, loaded, error = ps.state, ps.loaded, ps.error
    known_version = base.version if version is None else version
    if (
        ps is not None
        and state == "ok"
        and isinstance(loaded, Unknown)
        and not isinstance(known_version, Unknown)
    ):
        loaded = Unknown(f"server {label_version(known_version)} is too old to tell (no /api/ps)")
    installed = base.installed if tags is None else tags.installed
    if state == "ok":
        error = _installed_error(installed)
    return EngineReading("ollama", port, state, known_version, loaded, installed, error=error, path=path)


def _installed_error(installed: Maybe[tuple[InstalledModel, ...]]) -> str | None:
    if isinstance(installed, Unknown) and installed is not NOT_READ:
        return f"installed models: {installed.reason}"
    return None


def read_answers(
    port: int,
    answers: Mapping[str, Answer],
    previous: EngineReading | None = None,
    path: AskedBy = "tunnel",
) -> EngineReading:
    """The reading after `answers` (by path) came in; what was not asked now stays as in `previous`."""
    ps, tags, version = answers.get(PS), answers.get(TAGS), answers.get(VERSION)
    return combine(
        port,
        None if ps is None else parse_ps(ps.status, ps.headers, ps.body, ps.received_at),
        None if tags is None else parse_tags(tags.status, tags.headers, tags.body),
        None if version is None else parse_version(version.status, version.headers, version.body),
        previous,
        path,
    )


def read_failure(
    port: int,
    text: str,
    previous: EngineReading | None = None,
    path: AskedBy = "tunnel",
) -> EngineReading:
    """The reading when no answer to `/api/ps` came at all; what is installed stays as it was."""
    base = previous or EngineReading("ollama", port, "down")
    return replace(base, state="down", loaded=Unknown(text), error=text, path=path)


def recognise(path: str, answer: Answer) -> bool | None:
    """By the list of `/api/ps` or the words of `/`; `{}` and an empty list may be anybody's."""
    if path == "/":
        return answer.body[:40].strip() == b"Ollama is running" or None
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if path == PS and verdict.state == "ok" and isinstance(verdict.document, dict):
        models = _as_models(verdict.document)
        return None if models is not None and "models" not in verdict.document else models is not None
    return None


PROBE = EngineProbe(
    "ollama",
    "Ollama",
    DEFAULT_ENGINE_PORT,
    (Question(PS, is_vital=True), Question(TAGS, RARELY_S), Question(VERSION, RARELY_S)),
    read_answers,
    read_failure,
    recognise,
    ("/", PS),
)


def disk_bytes(models: tuple[InstalledModel, ...]) -> int:
    """Bytes the models take on disk: each digest once, cloud entries not at all."""
    sizes: dict[str, int] = {}
    for model in models:
        if model.remote_host is None and not isinstance(model.size_bytes, Unknown):
            sizes[model.name if isinstance(model.digest, Unknown) else model.digest] = model.size_bytes
    return sum(sizes.values())
