"""`GET /v1/models` as servers for OpenAI's clients give it: `{"object": "list", "data": [{"id": …}]}`."""

from __future__ import annotations

from typing import Any

from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.machine import EngineKind
from fleettui.model.readings import InstalledModel, LoadedModel, ModelTraits
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.engines.answers import (
    MAX_NAMES,
    Answer,
    as_dict,
    as_dicts,
    judge_answer,
    read_count,
    read_name,
)
from fleettui.probes.engines.draft import Draft

MODELS = "/v1/models"
MAX_MODELS = 2000

NOT_REPORTED = Unknown("not reported by this server")

_OWNERS: dict[str, EngineKind] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llamacpp",
    "llama-swap": "llamaswap",
    "organization_owner": "lmstudio",
    "library": "ollama",
}
"""`owned_by` of the engines' own lists: ModelCard of vLLM and of SGLang, tools/server of llama.cpp,
internal/server/api.go of llama-swap, captures of LM Studio, and Ollama's namespace for its own library."""


def read_rows(document: object) -> list[dict[str, Any]] | None:
    """The entries of `data` that have an id; None: not such a list."""
    data = as_dict(document).get("data")
    if not isinstance(data, list):
        return None
    rows = [row for row in as_dicts(data[:MAX_MODELS]) if not isinstance(read_id(row), Unknown)]
    return rows if rows or not data else None


def read_id(row: dict[str, Any]) -> Maybe[str]:
    """The name that a request uses."""
    return read_name(row.get("id"), NOT_REPORTED)


def find_owner(rows: list[dict[str, Any]]) -> EngineKind | None:
    """Which engine made the list; None: none that we know, or several."""
    owners = {_OWNERS.get(str(row.get("owned_by"))[:40]) for row in rows[:MAX_NAMES]} - {None}
    return owners.pop() if len(owners) == 1 else None


def find_owner_of(answer: Answer) -> EngineKind | None:
    """Which engine made the list that an answer holds; None: any, none that we know, or no list."""
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    return find_owner(read_rows(verdict.document) or [])


def describe_other(owner: EngineKind | None) -> str:
    """Why a list is not the asked engine's."""
    if owner is None:
        return "the port answers with JSON that is no list of models"
    return f"{ENGINE_TITLES[owner]} answers there"


def as_mirror(copies: tuple[LoadedModel, ...]) -> tuple[InstalledModel, ...]:
    """What a server that serves one model, given at its start, has installed: that one."""
    return tuple(
        InstalledModel(
            copy.name, copy.engine, copy.digest, copy.size_bytes,
            parameter_size=copy.parameter_size, quantization=copy.quantization, traits=copy.traits,
        )
        for copy in copies
    )  # fmt: skip


def read_served(kind: EngineKind, rows: list[dict[str, Any]]) -> tuple[LoadedModel, ...]:
    """vLLM's and SGLang's entries as copies: one weight set is one copy.

    Entries of the same `root` without a `parent` are names of one model, the first is its own; those with a
    `parent` are LoRA adapters on it.
    """
    first_of_root: dict[str, str] = {}
    aliases: dict[str, list[str]] = {}
    adapters: dict[str, list[str]] = {}
    contexts: dict[str, Maybe[int]] = {}
    lone: list[tuple[str, str]] = []
    for row in rows:
        name, parent = str(read_id(row)), read_name(row.get("parent"), NOT_REPORTED)
        if not isinstance(parent, Unknown) and parent != name:
            lone.append((parent, name))
            continue
        root = read_name(row.get("root"), NOT_REPORTED)
        first = first_of_root.setdefault(name if isinstance(root, Unknown) else root, name)
        if first == name:
            contexts.setdefault(name, read_count(row.get("max_model_len"), NOT_REPORTED) or NOT_REPORTED)
        else:
            aliases.setdefault(first, []).append(name)
    owner_of = {alias: first for first, names in aliases.items() for alias in names}
    for parent, name in lone:
        base = parent if parent in contexts else owner_of.get(parent, first_of_root.get(parent, ""))
        if not base and len(contexts) == 1:
            base = next(iter(contexts))  # the parent by its path, which no entry shows
        if base:
            adapters.setdefault(base, []).append(name)
    return tuple(
        LoadedModel(
            name, kind, NOT_REPORTED, NOT_REPORTED, NOT_REPORTED, context, NOT_REPORTED, False, "loaded",
            NOT_REPORTED, NOT_REPORTED, _traits(aliases.get(name, []), adapters.get(name, [])),
        )
        for name, context in contexts.items()
    )  # fmt: skip


def _traits(aliases: list[str], adapters: list[str]) -> ModelTraits | None:
    if not aliases and not adapters:
        return None
    return ModelTraits(tuple(dict.fromkeys(aliases))[:MAX_NAMES], tuple(dict.fromkeys(adapters))[:MAX_NAMES])


def take_served(draft: Draft, kind: EngineKind, answer: Answer) -> tuple[LoadedModel, ...] | None:
    """The copies of an answer that is this engine's list; else None, and the draft says what it is."""
    verdict = judge_answer(answer.status, answer.headers, answer.body)
    if verdict.state != "ok":
        draft.fail_by(verdict)
        return None
    rows = read_rows(verdict.document)
    owner = find_owner(rows or [])
    if rows is None or owner not in (None, kind):
        draft.fail("not_an_engine", describe_other(owner))
        return None
    return read_served(kind, rows)
