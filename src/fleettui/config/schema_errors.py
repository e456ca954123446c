"""Errors of pydantic in the operator's words: what is wrong with a key, and what to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fleettui.config.yaml_builder import dotted
from fleettui.config.yaml_document import YamlDocument
from fleettui.model.machine import ConfigProblem

_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "model_type": "a map of keys",
    "dict_type": "a map of keys",
}


def describe_error(
    error: Any, where: Sequence[str | int], example: str | None, document: YamlDocument, path: str
) -> ConfigProblem:
    """One error of `ValidationError.errors()` about the key at `where`; `example`: a right line."""
    key = dotted(where)
    message = f"{key} {_say(error, key, example)}."
    return ConfigProblem(path, document.line_of(where), key, message)


def _say(error: Any, key: str, example: str | None) -> str:
    kind: str = error["type"]
    write = f"write `{example}`" if example else "correct it"
    value = error.get("input")
    if kind == "operator":
        return str(error["ctx"]["message"])
    if kind == "missing":
        return f"is missing; add `{example}`" if example else "is missing; add it"
    if kind == "string_type" and isinstance(value, int | float):
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        return f'must be text; put it in quotes: "{shown[:60]}"'
    if kind in ("int_type", "float_type", "int_from_float") and isinstance(value, str):
        return f"must be {_KINDS[kind]} without quotes or unit; {write}"
    if kind in _KINDS:
        return f"must be {_KINDS[kind]}, not {_name_of(value)}; {write}"
    context = error.get("ctx") or {}
    if kind == "literal_error":
        return f"must be one of {str(context.get('expected')).replace(chr(39), '')}; {write}"
    if kind in ("greater_than_equal", "less_than_equal") and key.endswith("port"):
        return f"must be between 1 and 65535; {write}"
    if kind in ("greater_than", "greater_than_equal", "finite_number"):
        return (
            f"must be a number above 0; {write}"
            if kind != "greater_than_equal"
            else f"must not be negative; {write}"
        )
    return f"is wrong ({error['msg']}); {write}"


def _name_of(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "a map"
