"""The lines of the Models screen in an order, and those of them that a filter asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from fleettui.model.order import natural_key
from fleettui.view.columns import known_value
from fleettui.view.filter_fields import find_field
from fleettui.view.filter_language import FilterError
from fleettui.view.model_matrix import ModelLine
from fleettui.view.sorting import SortOrder
from fleettui.view.text import clean

FILTER_HINT = "words of models or machines · on:ada · is:loaded is:missing is:duplicate · ! excludes"


class ModelSort(NamedTuple):
    """Something to sort by."""

    key: str
    title: str
    """For the menu."""
    column: str
    """Key of the column that shows it."""
    order: Callable[[ModelLine], Any]
    """None: there is nothing to compare; such lines come last in either direction."""
    is_descending_first: bool = True


def _or_none(number: int) -> int | None:
    return number or None


MODEL_SORTS: tuple[ModelSort, ...] = (
    ModelSort("model", "name", "model", lambda line: natural_key(line.name), False),
    ModelSort("copies", "copies", "copies", lambda line: _or_none(line.figures.copies)),
    ModelSort("vram", "VRAM", "vram", lambda line: known_value(line.figures.vram_bytes)),
    ModelSort("gpu", "share on the GPU", "gpu", lambda line: known_value(line.figures.gpu_percent), False),
    ModelSort("expiry", "next expiry", "expiry", lambda line: line.figures.expires_at, False),
    ModelSort("installed", "installed on", "installed", lambda line: _or_none(line.figures.installed)),
    ModelSort("declared", "declared on", "declared", lambda line: _or_none(line.figures.declared)),
    ModelSort("spare", "more than one needs", "note", lambda line: known_value(line.figures.spare_bytes)
              if line.figures.spare_copies else None),
)  # fmt: skip
"""In the order of the table."""
DEFAULT_ORDER = SortOrder("vram", True)
_BY_KEY = {sort.key: sort for sort in MODEL_SORTS}


def model_sort_named(key: str) -> ModelSort | None:
    """The sort of that key."""
    return _BY_KEY.get(key)


def choose_model_sort(order: SortOrder, key: str) -> SortOrder:
    """A sort chosen in the menu or by its header; chosen again it turns. An unknown key changes nothing."""
    sort = _BY_KEY.get(key)
    if sort is None:
        return order
    if key == order.column:
        return order._replace(is_descending=not order.is_descending)
    return SortOrder(key, sort.is_descending_first)


def next_model_sort(order: SortOrder, shown: Sequence[str], step: int = 1) -> SortOrder:
    """The sort of the next column (step 1) or of the one before (-1) among the shown ones, around the end."""
    sorts = [sort for sort in MODEL_SORTS if sort.column in shown]
    if not sorts:
        return order
    keys = [sort.key for sort in sorts]
    place = (keys.index(order.column) + step) % len(keys) if order.column in keys else 0
    return SortOrder(keys[place], sorts[place].is_descending_first)


def sort_lines(lines: Iterable[ModelLine], order: SortOrder) -> list[ModelLine]:
    """Lines by a sort; equals by name, those with nothing to compare last. `lines`: by name, as
    `ModelIndex` gives them."""
    named = list(lines)
    sort = _BY_KEY.get(order.column)
    if sort is None or sort.key == "model":
        return named[::-1] if sort is not None and order.is_descending else named
    known = [(value, line) for line in named if (value := sort.order(line)) is not None]
    rest = [line for line in named if sort.order(line) is None]
    known.sort(key=lambda pair: pair[0], reverse=order.is_descending)
    return [line for _, line in known] + rest


# -- filter -----------------------------------------------------------------------------------------

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
        wrong = next((value for value in values if value not in _STATES), None)
        if wrong is not None:
            return FilterError(column, len(term), f"there is no is:{clean(wrong)}: {', '.join(_STATES)}")
        states = [_STATES[value] for value in values]
        test = lambda line: any(state(line) for state in states)  # noqa: E731
    else:
        test = _text_test(field, values)
    return test if body == term else lambda line: not test(line)


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
