"""Splits a line of the filter language into terms, each with its place for errors. Any text; what is wrong
is one `WrongPlace`."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.view.filter_fields import BY_NAME, Field, find_field

OPERATORS = ("!~=", "~=", "!=", ">=", "<=", ":", "=", ">", "<")
"""Longer ones first: the first that fits is meant."""
LISTS = frozenset({":", "=", "!=", "~=", "!~="})
"""Operators that take more than one value."""
QUOTES = "\"'"
MAX_LENGTH = 2000
"""Characters of a line; nobody types more."""
_ENDS = " \t\r\n|,"


class WrongPlace(Exception):
    """Where a line cannot be read, and why."""

    def __init__(self, column: int, length: int, text: str) -> None:
        super().__init__(text)
        self.column, self.length, self.text = column, max(1, length), text


class Value(NamedTuple):
    """One value of a term, or a word."""

    text: str
    column: int
    length: int
    """With its quotes."""
    is_quoted: bool = False


class Term(NamedTuple):
    """`!` field operator values, or words alone."""

    column: int
    length: int
    is_inverted: bool
    values: tuple[Value, ...]
    field: Field | None = None
    operator: str = ""
    operator_column: int = 0


def scan(text: str) -> list[list[Term]]:
    """Terms of each alternative. Raises WrongPlace."""
    if len(text) > MAX_LENGTH:
        raise WrongPlace(MAX_LENGTH, len(text) - MAX_LENGTH, f"a filter has at most {MAX_LENGTH} characters")
    return _Scanner(text).alternatives()


def nearest_field(name: str, likeness: float = 0.5) -> str | None:
    """The field that is most like a name."""
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), BY_NAME, 1, likeness)
    return near[0] if near else None


def operator_at(text: str, at: int) -> str | None:
    """The operator that begins there."""
    return next((operator for operator in OPERATORS if text.startswith(operator, at)), None)


def is_mistyped(name: str) -> bool:
    """True when the part before a colon looks like a field: names of models have colons too (`qwen3:8b`)."""
    lowered = name.lower()
    if not (lowered.isascii() and lowered.isalpha()):
        return False
    letters = sorted(lowered)
    return nearest_field(name, 0.75) is not None or any(sorted(known) == letters for known in BY_NAME)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def alternatives(self) -> list[list[Term]]:
        """The whole line."""
        groups: list[list[Term]] = [[]]
        bar = 0
        while self._skip_blanks():
            if self._next() == "|":
                bar = self.at
                if not groups[-1]:
                    raise WrongPlace(bar, 1, "`|` stands between two terms; one is missing before it")
                groups.append([])
                self.at += 1
            else:
                groups[-1].append(self._term())
        if len(groups) > 1 and not groups[-1]:
            raise WrongPlace(bar, 1, "`|` stands between two terms; one is missing after it")
        return groups

    def _term(self) -> Term:
        start, is_inverted = self.at, False
        while self._next() == "!" and operator_at(self.text, self.at) is None:
            is_inverted = not is_inverted
            self.at += 1
        if self.at > start and (self.at == len(self.text) or self._next() in _ENDS):
            raise WrongPlace(start, self.at - start, "`!` stands directly before what it inverts")
        first = self.at
        if self._next() in QUOTES:
            return self._finish(start, is_inverted, [self._value("")])
        if self._next() in "()":
            raise WrongPlace(first, 1, "there are no brackets; write alternatives with `|`")
        name = self._read_until_operator()
        end = self.at
        self._skip_blanks()
        operator, place = operator_at(self.text, self.at), self.at
        if operator is None:
            self.at = end
            if not name:
                raise WrongPlace(first, 1, "a value is missing before the comma")
            return self._finish(start, is_inverted, [Value(name, first, end - first)])
        field = self._field_of(name, first, operator, place)
        if field is None:  # the name of a model
            self.at = first
            return self._finish(start, is_inverted, [self._value("")])
        self.at += len(operator)
        values = [self._value(f"{name}{operator}")]
        return self._finish(start, is_inverted, values, field, operator, place)

    def _finish(
        self,
        start: int,
        is_inverted: bool,
        values: list[Value],
        field: Field | None = None,
        operator: str = "",
        place: int = 0,
    ) -> Term:
        """The term with the values behind commas, or behind bars that stand without blanks."""
        while self._next() == "," or (operator in LISTS and self._bar_goes_on()):
            self.at += 1
            values.append(self._value(","))
        return Term(start, self.at - start, is_inverted, tuple(values), field, operator, place)

    def _bar_goes_on(self) -> bool:
        """`health=degraded|unhealthy`: behind the bar stands another value, no term of its own."""
        if self._next() != "|" or self.text[self.at + 1 : self.at + 2] in {"", " ", "\t", "|", "!"}:
            return False
        end = self.at + 1
        while end < len(self.text) and self.text[end] not in _ENDS and operator_at(self.text, end) is None:
            end += 1
        operator = operator_at(self.text, end) if end < len(self.text) else None
        return operator is None or (operator == ":" and find_field(self.text[self.at + 1 : end]) is None)

    def _field_of(self, name: str, first: int, operator: str, place: int) -> Field | None:
        """None: no field is meant."""
        if not name:
            raise WrongPlace(place, len(operator), f"the name of a field is missing before `{operator}`")
        field = find_field(name)
        if field is not None:
            return field
        if operator == ":" and not is_mistyped(name):
            return None
        near = nearest_field(name)
        hint = f"did you mean {near}?" if near else "words alone look at names, tags and models"
        raise WrongPlace(first, len(name), f"there is no field {name}: {hint}")

    def _read_until_operator(self) -> str:
        start = self.at
        while self.at < len(self.text) and self._next() not in _ENDS:
            if operator_at(self.text, self.at) is not None:
                break
            self.at += 1
        return self.text[start : self.at]

    def _value(self, after: str) -> Value:
        """A value at this place; blanks before it do not count."""
        before = self.at
        self._skip_blanks()
        start = self.at
        mark = self._next()
        if mark and mark in QUOTES:
            end = self.text.find(mark, start + 1)
            if end < 0:
                raise WrongPlace(start, len(self.text) - start, f"the quote {mark} is not closed")
            self.at = end + 1
            return Value(self.text[start + 1 : end], start, self.at - start, True)
        while self.at < len(self.text) and self._next() not in _ENDS:
            self.at += 1
        if self.at == start:
            raise WrongPlace(before, 1, f"a value is missing after `{after}`")
        text = self.text[start : self.at]
        if after and after != "," and text[0] in "=<>~":
            raise WrongPlace(start, 1, f"after `{after}` comes a value; quote it if it begins with {text[0]}")
        return Value(text, start, self.at - start)

    def _skip_blanks(self) -> bool:
        """False at the end of the line."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at < len(self.text)

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]
