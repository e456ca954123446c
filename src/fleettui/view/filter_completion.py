"""What can stand next on a filter line: names of fields, values that the fleet has."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.model.order import natural_key
from fleettui.model.snapshot import FleetSnapshot
from fleettui.model.unknown import Unknown
from fleettui.view.completion import shared_start
from fleettui.view.filter_fields import FIELDS, Field, find_field
from fleettui.view.filter_scanner import QUOTES, operator_at
from fleettui.view.text import clean

MOST = 20
"""Suggestions given at most."""
_UNPLAIN = frozenset(" \t|,!<>=~()\"'")


class _Unfinished(NamedTuple):
    """The piece of a line that is being typed."""

    start: int
    text: str
    field: Field | None
    """None: the name of a field, or a word."""


def suggestions(text: str, fleet: FleetSnapshot) -> tuple[str, ...]:
    """What the last piece of the line can become: `free>`, `tag:`; behind an operator values."""
    piece = _unfinished(text)
    if piece is None:
        return ()
    typed = piece.text.casefold()
    if piece.field is None:
        found = [_begin(field) for field in FIELDS if field.name.startswith(typed)]
        names = [quoted(item.name) for item in fleet.machines if item.name.casefold().startswith(typed)]
        return tuple((found + names if typed else found)[:MOST])
    values = [value for value in _values(piece.field, fleet) if typed in value.casefold()]
    values.sort(key=lambda value: (not value.casefold().startswith(typed), natural_key(value)))
    return tuple([quoted(value) for value in values[:MOST]])


def complete(text: str, suggestion: str) -> str:
    """The line with its last piece replaced by a suggestion."""
    piece = _unfinished(text)
    return text if piece is None else text[: piece.start] + suggestion


def unfinished_field(text: str) -> Field | None:
    """The field whose value is being typed at the end of the line; None: a name of a field, or a word."""
    piece = _unfinished(text)
    return None if piece is None else piece.field


def unfinished_start(text: str) -> int:
    """Where the piece that is being typed begins; the end of the line inside of a quote."""
    piece = _unfinished(text)
    return len(text) if piece is None else piece.start


def begins_field(text: str) -> bool:
    """True when the last piece of the line is a word that may become the name of a field."""
    piece = _unfinished(text)
    if piece is None or piece.field is not None or not piece.text:
        return False
    typed = piece.text.casefold()
    return any(field.name.startswith(typed) for field in FIELDS)


def complete_line(text: str, fleet: FleetSnapshot) -> str:
    """The line as far as everything agrees that it can become, as a shell completes."""
    start = unfinished_start(text)
    typed = text[start:].casefold()
    found = suggestions(text, fleet)
    begun = [item for item in found if item.casefold().startswith(typed)] or list(found)
    if not begun:
        return text
    common = shared_start(begun)
    return text if len(common) < len(text) - start or not common else text[:start] + common


def quoted(value: str) -> str:
    """The value as the language reads it back."""
    value = clean(value)
    if value and _UNPLAIN.isdisjoint(value):
        return value
    return f"'{value}'" if '"' in value else f'"{value}"'


def _begin(field: Field) -> str:
    return f"{field.name}>" if field.kind == "number" else f"{field.name}:"


def _values(field: Field, fleet: FleetSnapshot) -> set[str]:
    """Values that some machine has, or all that the field can have."""
    if field.choices:
        return set(field.choices)
    if field.texts is None:
        return {"unknown"}
    found: set[str] = set()
    for snapshot in fleet.machines:
        texts = field.texts(snapshot)
        if not isinstance(texts, Unknown):
            found.update(texts)
    return {text for text in found if len(text) <= 80}


def _unfinished(text: str) -> _Unfinished | None:
    """The piece at the end of the line; None inside of a quote."""
    start, at, quote = 0, 0, ""
    while at < len(text):
        character = text[at]
        if quote:
            quote = "" if character == quote else quote
        elif character in QUOTES and (at == start or operator_at(text, at - 1) or text[at - 1] == ","):
            quote = character
        elif character.isspace() or character == "|":
            start = at + 1
        at += 1
    if quote:
        return None
    while text[start : start + 1] == "!":
        start += 1
    for at in range(start, len(text)):
        operator = operator_at(text, at)
        if operator is not None:
            field = find_field(text[start:at])
            if field is not None:
                begin = max(at + len(operator), text.rfind(",", start) + 1)
                return _Unfinished(begin, text[begin:], field)
            break
    return _Unfinished(start, text[start:], None)
