"""Arguments of tools for language models: a JSON Schema with bounds, by which requests are read too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from fleettui.model.record import dataclass

NAMES_MAX = 64
"""Of one argument that is a list."""
NAME_MAX = 200
"""Characters of a name."""
_SHOWN = 80

_WORDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool. Null is as if it were left out."""

    name: str
    schema: Mapping[str, Any]
    """JSON Schema of its value, with a description."""
    default: Any = None
    is_required: bool = False
    read: Callable[[Any], Any] | None = None
    """Of a value that is as the schema has it. Raises ValueError with the sentence to answer."""


def text(
    name: str,
    about: str,
    *,
    is_required: bool = False,
    most: int = NAME_MAX,
    choices: Sequence[str] = (),
    read: Callable[[Any], Any] | None = None,
) -> Argument:
    """A text of at most so many characters, or one of few words."""
    schema: dict[str, Any] = {"type": "string", "description": about, "minLength": 1, "maxLength": most}
    if choices:
        schema = {"type": "string", "description": about, "enum": list(choices)}
    return Argument(name, schema, None, is_required, read)


def flag(name: str, about: str, *, default: bool = False) -> Argument:
    """True or false."""
    return Argument(name, {"type": "boolean", "description": about, "default": default}, default)


def decision(name: str, about: str) -> Argument:
    """True or false, without a default."""
    return Argument(name, {"type": "boolean", "description": about}, is_required=True)


def whole(name: str, about: str, least: int, most: int, default: int | None = None) -> Argument:
    """A whole number within bounds."""
    schema: dict[str, Any] = {"type": "integer", "description": about, "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default
    return Argument(name, schema, default)


def number(name: str, about: str, least: float, most: float, default: float | None = None) -> Argument:
    """A number within bounds."""
    schema: dict[str, Any] = {"type": "number", "description": about, "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default
    return Argument(name, schema, default)


def names(name: str, about: str, read: Callable[[Any], Any] | None = None) -> Argument:
    """A list of texts."""
    item = {"type": "string", "minLength": 1, "maxLength": NAME_MAX}
    schema = {"type": "array", "description": about, "items": item, "maxItems": NAMES_MAX}
    return Argument(name, schema, (), read=read)


def input_schema(arguments: Sequence[Argument]) -> dict[str, Any]:
    """JSON Schema of all arguments of a tool."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {item.name: dict(item.schema) for item in arguments},
        "additionalProperties": False,
    }
    required = [item.name for item in arguments if item.is_required]
    return {**schema, "required": required} if required else schema


def read_arguments(arguments: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name, with defaults. Raises ValueError for what is not known, missing or no such value."""
    known = [item.name for item in arguments]
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1, 0.5)
            meant = f"; did you mean {near[0]}?" if near else ""
            takes = ", ".join(known) if known else "none"
            raise ValueError(f"there is no argument {name[:_SHOWN]!r}{meant} (known: {takes})")
    values: dict[str, Any] = {}
    for item in arguments:
        value = given.get(item.name)
        if value is None:
            if item.is_required:
                raise ValueError(f"the argument {item.name} is required")
            values[item.name] = item.default
            continue
        try:
            _check(value, item.schema)
            plain = _plain(value, item.schema)
            values[item.name] = plain if item.read is None else item.read(plain)
        except ValueError as error:
            raise ValueError(f"{item.name}: {error}") from None
    return values


def _plain(value: Any, schema: Mapping[str, Any]) -> Any:
    """3.0 where a whole number is meant is 3; lists do not change any more."""
    if isinstance(value, list):
        return tuple(value)
    return int(value) if schema["type"] == "integer" else value


def _check(value: Any, schema: Mapping[str, Any]) -> None:
    """Raises ValueError unless the value is as this schema has it."""
    kind = schema["type"]
    if not _is_of(value, kind):
        raise ValueError(f"{repr(value)[:_SHOWN]} is not {_WORDS[kind]}")
    if kind == "string":
        _check_text(value, schema)
    elif kind in ("integer", "number"):
        if not schema["minimum"] <= value <= schema["maximum"]:
            raise ValueError(f"{value} is not from {schema['minimum']:g} to {schema['maximum']:g}")
    elif kind == "array":
        if len(value) > schema["maxItems"]:
            raise ValueError(f"{len(value)} values; {schema['maxItems']} are taken")
        for item in value:
            _check(item, schema["items"])


def _check_text(value: str, schema: Mapping[str, Any]) -> None:
    choices = schema.get("enum")
    if choices is not None:
        if value not in choices:
            raise ValueError(f"{value[:_SHOWN]!r} is none of {', '.join(choices)}")
    elif not value.strip():
        raise ValueError("the text is empty")
    elif len(value) > schema["maxLength"]:
        raise ValueError(f"the text has {len(value)} characters; {schema['maxLength']} are taken")


def _is_of(value: Any, kind: str) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "integer":
        return (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, float) and value.is_integer()
        )
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str if kind == "string" else list)
