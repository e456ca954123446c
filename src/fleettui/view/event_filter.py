"""The filter of the timeline: `bora kind:offline,back !by:mia qwen3:8b`. Parsed once, matched often.

Words and terms side by side must all hold; values behind commas are alternatives; `!` inverts one; quotes
keep blanks. A word is looked for in the machine's name, the kind, the text, the model and who decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import NamedTuple

from fleettui.model.event import EVENT_KINDS, Event, EventSeverity
from fleettui.view.completion import shared_start
from fleettui.view.filter_language import FilterError
from fleettui.view.text import clean

Test = Callable[[Event], bool]

KIND, SEVERITY = "kind", "severity"
FIELDS = (KIND, "machine", "model", "by", SEVERITY)
SEVERITIES: tuple[str, ...] = EventSeverity.__args__  # type: ignore[attr-defined]
MAX_LENGTH = 2000
"""Characters of a line; nobody types more."""
_MISTYPED = 0.75
_VALUES: dict[str, tuple[str, ...]] = {KIND: EVENT_KINDS, SEVERITY: SEVERITIES}
"""Fields of few values: a beginning is enough, `kind:engine` is `engine_down` and `engine_up`."""


class EventFilter(NamedTuple):
    """A line, ready to match."""

    text: str
    tests: tuple[Test, ...]
    """All must hold; empty: everything matches."""

    def matches(self, event: Event) -> bool:
        """True when the event is one of those asked for."""
        return all(test(event) for test in self.tests)


EVERY_EVENT = EventFilter("", ())


class _Token(NamedTuple):
    text: str
    """Without its quotes."""
    column: int
    length: int
    is_quoted: bool


def parse_event_filter(text: str) -> EventFilter | FilterError:
    """Read a line. Never raises."""
    if len(text) > MAX_LENGTH:
        over = len(text) - MAX_LENGTH
        return FilterError(MAX_LENGTH, over, f"a filter has at most {MAX_LENGTH} characters")
    tests: list[Test] = []
    for token in _tokens(text):
        test = _test_of(token)
        if isinstance(test, FilterError):
            return test
        tests.append(test)
    return EventFilter(text.strip(), tuple(tests))


def complete_event_filter(text: str, machines: tuple[str, ...] = ()) -> str:
    """The last word completed as far as it can be: a field, a kind, a severity, the name of a machine."""
    start = max(text.rfind(" "), text.rfind(",")) + 1
    head, word = text[:start], text[start:]
    mark = "!" if word.startswith("!") else ""
    name, colon, value = word.removeprefix("!").partition(":")
    last_term = text[text.rfind(" ") + 1 :].removeprefix("!").partition(":")
    if not colon and text[start - 1 : start] == ",":
        name, value, colon = last_term[0], word, ":"
        mark, shown = "", ""
    else:
        shown = f"{name}:"
    if not colon:
        return head + mark + _completed(name, (*(f"{field}:" for field in FIELDS), *machines))
    choices = machines if name == "machine" else _VALUES.get(name, ())
    return head + mark + shown + _completed(value, choices)


def _completed(start: str, choices: tuple[str, ...]) -> str:
    """What all choices that begin so have in common."""
    return shared_start([choice for choice in choices if choice.startswith(start)]) or start


def _tokens(text: str) -> Iterator[_Token]:
    """Words between blanks; a quote that is not closed ends with the line."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        start, quote, kept, is_quoted = at, "", "", False
        while at < len(text) and (quote or not text[at].isspace()):
            character = text[at]
            if quote:
                quote, kept = ("", kept) if character == quote else (quote, kept + character)
            elif character in "\"'":
                quote, is_quoted = character, is_quoted or at - start in (0, 1)
            else:
                kept += character
            at += 1
        yield _Token(kept, start, at - start, is_quoted)


def _test_of(token: _Token) -> Test | FilterError:
    is_inverted = token.text.startswith("!")
    body = token.text.removeprefix("!")
    if not body:
        return FilterError(token.column, token.length, "`!` stands directly before what it inverts")
    name, colon, written = body.partition(":")
    field = name.lower()
    test: Test | FilterError
    if colon and field in FIELDS and not token.is_quoted:
        test = _field_test(token, field, tuple(value.lower() for value in written.split(",") if value))
    elif colon and not token.is_quoted and name.isalpha() and get_close_matches(field, FIELDS, 1, _MISTYPED):
        near = get_close_matches(field, FIELDS, 1, _MISTYPED)[0]
        return FilterError(token.column, token.length, f"no field {clean(name)!r}; did you mean {near}:?")
    else:
        word = body.lower()
        test = lambda event: word in _haystack(event)  # noqa: E731 - one line
    if is_inverted and not isinstance(test, FilterError):
        inverted = test
        return lambda event: not inverted(event)
    return test


def _field_test(token: _Token, field: str, values: tuple[str, ...]) -> Test | FilterError:
    known = _VALUES.get(field)
    if not values:
        hint = f"one of {', '.join(known)}" if known else "a value"
        return FilterError(token.column + token.length, 1, f"{field}: takes {hint}")
    if known is None:
        part_of = _PARTS[field]
        return lambda event: any(value in part_of(event).lower() for value in values)
    wanted: set[str] = set()
    for value in values:
        meant = [one for one in known if one.startswith(value)]
        if not meant:
            near = get_close_matches(value, known, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            return FilterError(token.column, token.length, f"no {field} {clean(value)!r}; {hint}")
        wanted.update(meant)
    if field == KIND:
        return lambda event: event.kind in wanted
    return lambda event: event.severity in wanted


def _model_of(event: Event) -> str:
    """Models that the event names; of what was not watched all of them."""
    inner = event.details.get("events")
    parts = [event.details, *(inner if isinstance(inner, list) else [])]
    return " ".join(str(part["model"]) for part in parts if isinstance(part, dict) and part.get("model"))


_PARTS: dict[str, Callable[[Event], str]] = {
    "machine": lambda event: event.machine,
    "model": _model_of,
    "by": lambda event: event.by or "",
}


def _haystack(event: Event) -> str:
    parts = (event.machine, event.kind, event.text, event.by or "", _model_of(event))
    return "\n".join(parts).lower()
