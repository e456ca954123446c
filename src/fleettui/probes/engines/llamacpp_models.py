"""llama-server's `/v1/models`: the one model of a server, or those of a router with their load states.

Shape: tools/server/README.md of ggml-org/llama.cpp, "Using multiple models"; captured in 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleettui.model.readings import InstalledModel, LoadedModel, ModelState, ModelTraits
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.engines import model_lists
from fleettui.probes.engines.answers import as_dict, read_count, read_name, read_names

_NOT_REPORTED = model_lists.NOT_REPORTED
_COPY_STATES: Mapping[str, ModelState] = {"loaded": "loaded", "loading": "loading", "sleeping": "sleeping"}
"""Of a router's `status.value`; `unloaded` and `downloading` are no copies."""


@dataclass(frozen=True, slots=True)
class LlamaModels:
    """What `/v1/models` said."""

    loaded: tuple[LoadedModel, ...]
    installed: tuple[InstalledModel, ...]
    is_router: bool
    failed: tuple[str, ...]
    """Models that a router could not load."""


def parse_models(document: object) -> LlamaModels | None:
    """Entries of `data`; those of `models` repeat them for Ollama's clients. None: no such list."""
    rows = model_lists.read_rows(document)
    if rows is None:
        return None
    is_router = any("value" in as_dict(row.get("status")) for row in rows)
    loaded, installed, failed = [], [], []
    for row in rows:
        status = as_dict(row.get("status"))
        model = _read_installed(row, is_router)
        state = _read_state(row, status, is_router)
        if state is not None:
            loaded.append(_as_copy(model, row, state))
        if status.get("value") != "downloading":
            installed.append(model)
        if status.get("failed") is True:
            failed.append(model.name)
    return LlamaModels(tuple(loaded), tuple(installed), is_router, tuple(failed))


def _read_state(row: dict[str, Any], status: dict[str, Any], is_router: bool) -> ModelState | None:
    """Of a copy; None: not resident. `meta` of a single server is null while the model loads."""
    if is_router:
        value = status.get("value")
        return _COPY_STATES.get(value) if isinstance(value, str) else None
    return "loading" if row.get("meta", {}) is None else "loaded"


def _read_installed(row: dict[str, Any], is_router: bool) -> InstalledModel:
    name = str(model_lists.read_id(row))
    name, path = (name, ()) if is_router else _short_name(name)
    meta = as_dict(row.get("meta"))
    aliases = tuple(alias for alias in (*path, *read_names(row.get("aliases"))) if alias != name)
    longest = read_count(meta.get("n_ctx_train"), _NOT_REPORTED) or _NOT_REPORTED
    words = read_names(as_dict(row.get("architecture")).get("input_modalities"))
    capabilities = tuple(word for word in words if word != "text")
    traits = None
    if aliases or capabilities or not isinstance(longest, Unknown):
        traits = ModelTraits(tuple(dict.fromkeys(aliases)), (), longest, capabilities)
    return InstalledModel(
        name,
        "llamacpp",
        _NOT_REPORTED,
        read_count(meta.get("size"), _NOT_REPORTED) or _NOT_REPORTED,
        None,
        _NOT_REPORTED,
        _read_parameters(meta.get("n_params")),
        read_name(meta.get("ftype"), _NOT_REPORTED),
        traits,
    )


def _short_name(name: str) -> tuple[str, tuple[str, ...]]:
    """Without `--alias` the id is the path of the file: its last part, and the path as a further name."""
    last = name.replace("\\", "/").rpartition("/")[2]
    is_path = name[:1] in ("/", ".") or name[1:3] in (":\\", ":/")
    return (last, (name,)) if is_path and last else (name, ())


def _read_parameters(value: object) -> Maybe[str]:
    """`8.19B` as other engines write it."""
    count = read_count(value, _NOT_REPORTED)
    if isinstance(count, Unknown) or not count:
        return _NOT_REPORTED
    for unit, size in (("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if count >= size:
            return f"{count / size:.2f}{unit}"
    return str(count)


def _as_copy(model: InstalledModel, row: dict[str, Any], state: ModelState) -> LoadedModel:
    context = read_count(as_dict(row.get("meta")).get("n_ctx"), _NOT_REPORTED) or _NOT_REPORTED
    return LoadedModel(
        model.name,
        "llamacpp",
        _NOT_REPORTED,
        model.size_bytes,
        _NOT_REPORTED,
        context,
        _NOT_REPORTED,
        False,
        state,
        model.parameter_size,
        model.quantization,
        model.traits,
    )
