"""models.yaml: bytes -> Catalog, or everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from fleettui.config.catalog_schema import CatalogEnginePart, CatalogModelPart, CatalogPart
from fleettui.config.catalog_words import Path, mistyped_in, unknown_engine
from fleettui.config.schema_errors import describe_error
from fleettui.config.yaml_builder import MAX_PROBLEMS, dotted
from fleettui.config.yaml_document import YamlDocument, read_yaml
from fleettui.model.catalog import Catalog, CatalogEngine, CatalogModel
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.machine import NOT_DECLARED, ConfigProblem
from fleettui.model.names import canonical_name

_EXAMPLES = {
    "engines": "engines: {vllm: {min_cc: 7.0}}",
    "engines.*": "vllm: {min_cc: 7.0}",
    "engines.*.cpu": "cpu: true",
    "models": "models: {llama3.1-8b: {vram_gb: 6.5, names: {ollama: llama3.1:8b}}}",
    "models.*": "llama3.1-8b: {vram_gb: 6.5}",
    "models.*.kind": "kind: llm",
    "models.*.vram_gb": "vram_gb: 6.5",
    "models.*.engines": "engines: [ollama, vllm]",
    "models.*.context": "context: 131072",
    "models.*.lora": "lora: true",
    "models.*.keep": "keep: 2",
    "models.*.num_ctx": "num_ctx: 32768",
    "models.*.names": "names: {ollama: llama3.1:8b}",
    "models.*.names.*": "ollama: llama3.1:8b",
}
"""What a right line looks like, shown in the message about a wrong one."""


def read_catalog_file(data: bytes, path: str) -> tuple[Catalog | None, tuple[ConfigProblem, ...]]:
    """The catalog that `data` declares; None as soon as there is one problem. Never raises."""
    document = read_yaml(data)
    problems = [ConfigProblem(path, item.line, item.key, item.message) for item in document.problems]
    if not isinstance(document.value, dict):
        if not problems:
            message = "The catalog is a map of keys; begin with the line `models:`."
            problems.append(ConfigProblem(path, document.line_of(()), None, message))
        return None, tuple(problems)
    part: CatalogPart | None = None
    try:
        part = CatalogPart.model_validate(document.value)
    except ValidationError as error:
        problems += [_describe(item, document, path) for item in error.errors(include_url=False)]
    for where, text in (*_mistyped_keys(document.value), *_unknown_engines(document.value),
                        *_taken_names(document)):  # fmt: skip
        problems.append(
            ConfigProblem(path, document.line_of(where), dotted(where), f"{dotted(where)} {text}.")
        )
    if part is None or problems:
        return None, tuple(sorted(problems, key=lambda problem: problem.line or 0)[: MAX_PROBLEMS + 1])
    return _catalog(part, path), ()


def _catalog(part: CatalogPart, path: str) -> Catalog:
    engines = tuple(
        CatalogEngine(name, *(() if engine is None else (engine.min_cc, bool(engine.cpu))))
        for name, engine in part.engines.items()
    )
    return Catalog(
        tuple(_model(id, model or CatalogModelPart()) for id, model in part.models.items()), engines, path
    )


def _model(id: str, part: CatalogModelPart) -> CatalogModel:
    return CatalogModel(
        id,
        part.kind or "llm",
        NOT_DECLARED if part.vram_gb is None else float(part.vram_gb),
        part.min_cc,
        tuple(dict.fromkeys(part.engines or ())),
        NOT_DECLARED if part.context is None else part.context,
        bool(part.lora),
        tuple((engine, tuple(dict.fromkeys(names))) for engine, names in (part.names or {}).items()),
        part.keep or 0,
        part.num_ctx,
    )


def _describe(error: Any, document: YamlDocument, path: str) -> ConfigProblem:
    """One error of pydantic in the operator's words."""
    where: Path = tuple(part for part in error["loc"] if part != "[key]")
    pattern = ".".join("*" if place in (1, 3) else str(part) for place, part in enumerate(where[:4]))
    return describe_error(error, where, _EXAMPLES.get(pattern), document, path)


def _entries(value: dict[str, Any], section: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The entries of `engines` or `models` that are maps or empty, whatever else is wrong."""
    entries = value.get(section)
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        if entry is None or isinstance(entry, dict):
            yield name, entry or {}


def _mistyped_keys(value: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Unknown keys are notes of the operator's own, but for those that look like a known one left out."""
    yield from mistyped_in(value, CatalogPart, ())
    for name, entry in _entries(value, "engines"):
        yield from mistyped_in(entry, CatalogEnginePart, ("engines", name))
    for name, entry in _entries(value, "models"):
        yield from mistyped_in(entry, CatalogModelPart, ("models", name))


def declared_engines(value: Any) -> list[str]:
    """The names under `engines` of models.yaml, whatever else is wrong with it."""
    engines = value.get("engines") if isinstance(value, dict) else None
    return list(engines) if isinstance(engines, dict) else []


def _unknown_engines(value: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Engines that neither the catalog nor fleettui knows."""
    known = [*declared_engines(value), *ENGINE_TITLES]
    for id, entry in _entries(value, "models"):
        listed = entry.get("engines")
        listed = [listed] if isinstance(listed, str) else listed
        for place, name in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(name, str) and name.strip() not in known:
                yield ("models", id, "engines", place), unknown_engine(name, known)
        names = entry.get("names")
        for name in names if isinstance(names, dict) else ():
            if name not in known:
                yield ("models", id, "names", name), unknown_engine(name, known)


def _taken_names(document: YamlDocument) -> Iterator[tuple[Path, str]]:
    """Names that another model has already: a name must mean one model.

    Names on Ollama are compared by its rules, and ids too, since an id may be asked of Ollama.
    """
    owners: dict[str, tuple[str, int | None]] = {}
    for id, entry in _entries(document.value, "models"):
        for where, engine, name in _names_of(id, entry):
            keys = {name} if engine not in ("", "ollama") else {name, f"ollama {canonical_name(name)}"}
            found = [owners[key] for key in keys if key in owners and owners[key][0] != id]
            if found:
                owner, line = found[0]
                place = "" if line is None else f" (line {line})"
                yield (
                    where,
                    (
                        f"gives the name {name[:80]}, which the model {owner[:80]} has already{place}; "
                        "a name means one model, so remove one of the two"
                    ),
                )
            for key in keys:
                owners.setdefault(key, (id, document.line_of(where)))


def _names_of(id: str, entry: dict[str, Any]) -> Iterator[tuple[Path, str, str]]:
    """(where, engine or nothing for the id, name)."""
    yield ("models", id), "", id
    names = entry.get("names")
    for engine, listed in names.items() if isinstance(names, dict) else ():
        if isinstance(listed, str):
            yield ("models", id, "names", engine), engine, listed.strip()
        for place, name in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(name, str):
                yield ("models", id, "names", engine, place), engine, name.strip()
