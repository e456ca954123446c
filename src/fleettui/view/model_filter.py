"""The filter of the Models screen: words of models or machines, `model:`, `on:` and `is:`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from fleettui.view.cells import Cell, Cells
from fleettui.view.completion import shared_start
from fleettui.view.filter_fields import find_field
from fleettui.view.filter_language import FilterError
from fleettui.view.model_matrix import ModelLine
from fleettui.view.text import clean

PLACEHOLDER = "llama  on:ada  is:duplicate"
FILTER_HINT = (
    "part of a model or machine, on:ada, is:loaded, is:missing, is:duplicate; ! excludes; Tab completes"
)

Test = Callable[[ModelLine], bool]

_STATES: dict[str, Test] = {
    "loaded": lambda line: any(holding.is_loaded for holding in line.holdings),
    "installed": lambda line: any(holding.installed_bytes is not None for holding in line.holdings),
    "declared": lambda line: line.figures.declared > 0,
    "missing": lambda line: line.figures.missing > 0,
    "duplicate": lambda line: line.figures.spare_copies > 0,
    "pinned": lambda line: any(copy.is_pinned for holding in line.holdings for copy in holding.copies),
    "offloaded": lambda line: any(holding.state in {"partly", "in_ram"} for holding in line.holdings),
    "drifting": lambda line: line.figures.drifting > 0,
    "cloud": lambda line: any(holding.state == "cloud" for holding in line.holdings),
}
_HEAD = re.compile(r"(model|on|machine|is)(?:~=|:|=)", re.I)
_FIELD = re.compile(r"([a-z_.]+)\s*(!~=|~=|!=|>=|<=|:|=|>|<)", re.I)


class ModelFilter(NamedTuple):
    """A line, ready to match."""

    text: str
    tests: tuple[Test, ...]
    """All must hold."""

    @property
    def is_empty(self) -> bool:
        """True when everything matches because nothing is asked."""
        return not self.tests

    def select(self, lines: Iterable[ModelLine]) -> list[ModelLine]:
        """The lines that match, in their order."""
        return [line for line in lines if all(test(line) for test in self.tests)]


NO_FILTER = ModelFilter("", ())


def parse_model_filter(text: str) -> ModelFilter | FilterError:
    """Read `llama on:ada !is:loaded`; values behind commas are alternatives. Never raises."""
    tests: list[Test] = []
    for match in re.finditer(r"\S+", text):
        found = _parse_term(match.group(), match.start())
        if isinstance(found, FilterError):
            return found
        tests.append(found)
    return ModelFilter(text, tuple(tests))


def _parse_term(term: str, column: int) -> Test | FilterError:
    body = term.removeprefix("!")
    head = _HEAD.match(body)
    field = "" if head is None else head[1].lower()
    said = body if head is None else body[head.end() :]
    values = [value for value in said.casefold().split(",") if value]
    if not values:
        what = f"say which: {', '.join(_STATES)}" if field == "is" else "say a part of a name"
        return FilterError(column, len(term), what)
    if not field:
        other = _FIELD.match(body)
        if other is not None and (other[2] != ":" or find_field(other[1]) is not None):
            text = f"{clean(other[1])} asks for machines; here: words, model:, on: and is:"
            return FilterError(column, len(term), text)
    test: Test
    if field == "is":
        wrong = next((value for value in values if not _states(value)), None)
        if wrong is not None:
            return FilterError(column, len(term), f"there is no is:{clean(wrong)}: {', '.join(_STATES)}")
        states = [state for value in values for state in _states(value)]
        test = lambda line: any(state(line) for state in states)  # noqa: E731
    else:
        test = _text_test(field, values)
    return test if body == term else lambda line: not test(line)


def _states(start: str) -> list[Test]:
    """The beginning of a word is enough, so that the table follows while one types."""
    return [test for name, test in _STATES.items() if name.startswith(start)]


def _text_test(field: str, values: list[str]) -> Test:
    def test(line: ModelLine) -> bool:
        texts: list[str] = []
        if field in {"", "model"}:
            texts += [line.title.name, *line.title.aliases]
        if field in {"", "on", "machine"}:
            texts += [holding.machine for holding in line.holdings]
        text = "\n".join(texts).casefold()
        return any(value in text for value in values)

    return test


def filter_cells(text: str) -> Cells:
    """The line above a filter that is being typed: what is wrong with it, else what can be written."""
    found = parse_model_filter(text)
    if isinstance(found, ModelFilter):
        return (Cell(f" {FILTER_HINT}", "dim"),)
    is_unfinished = text.endswith((":", "=", "!"))
    return (Cell(f" {found.text}", "dim" if is_unfinished else "warn"),)


def complete_model_filter(text: str, lines: Iterable[ModelLine]) -> str:
    """The line with its last word completed as far as all that can follow agrees."""
    start = len(text) - len(text.rsplit(" ", maxsplit=1)[-1])
    start += text.startswith("!", start)
    head = _HEAD.match(text, start)
    field = "" if head is None else head[1].lower()
    start = max(start if head is None else head.end(), text.rfind(",") + 1)
    typed = text[start:].casefold()
    words: set[str] = set(_STATES) if field == "is" else set()
    for line in lines:
        if field in {"", "model"}:
            words.add(line.name)
        if field in {"", "on", "machine"}:
            words.update(holding.machine for holding in line.holdings)
    if not field:
        words.update(("on:", "is:", "model:"))
    found = sorted(word for word in words if word.casefold().startswith(typed) and " " not in word)
    if not found or (not typed and len(found) > 1):
        return text
    return text[:start] + shared_start(found)
