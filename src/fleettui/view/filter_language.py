"""The filter language: `free>24 tag:edge !model~=qwen | health=offline`. Parsed once, matched often.

Terms side by side must all hold; `|` separates alternatives; values behind commas are alternatives of one
term; `!` inverts one. A value that is unknown matches no comparison and can be asked for: `free=unknown`.
docs/filter.md is the page for operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fleettui.model.names import canonical_name, family_of
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.view.filter_fields import Field, find_field, model_names
from fleettui.view.filter_scanner import Term, Value, WrongPlace, operator_at, scan
from fleettui.view.filter_units import EXAMPLES, Quantity, parse_quantity
from fleettui.view.text import cell_width, clean

Test = Callable[[MachineSnapshot, float], bool]
"""(machine, now) -> it matches."""
UNKNOWN_WORD = "unknown"


class FilterError(NamedTuple):
    """Why a line cannot be read."""

    column: int
    """Index of the first wrong character, from 0."""
    length: int
    """Characters that are wrong, at least 1; the place may be behind the end of the line."""
    text: str
    """One sentence: what is wrong and what to write."""


class Filter(NamedTuple):
    """A line, ready to match."""

    text: str
    alternatives: tuple[tuple[Test, ...], ...]
    """One of them must hold; all tests of it. Empty: everything matches."""

    @property
    def is_empty(self) -> bool:
        """True when everything matches because nothing is asked."""
        return not self.alternatives

    def matches(self, snapshot: MachineSnapshot, now: float) -> bool:
        """True when the machine is one of those asked for."""
        if not self.alternatives:
            return True
        for tests in self.alternatives:
            for test in tests:
                if not test(snapshot, now):
                    break
            else:
                return True
        return False

    def select(self, fleet: FleetSnapshot, now: float) -> tuple[MachineSnapshot, ...]:
        """The machines that match, in the fleet's order."""
        return tuple([item for item in fleet.machines if self.matches(item, now)])


EVERYTHING = Filter("", ())


def parse_filter(text: str) -> Filter | FilterError:
    """Read a line. Never raises."""
    try:
        groups = scan(text)
        alternatives = tuple([tuple([_test_of(term) for term in group]) for group in groups if group])
    except WrongPlace as wrong:
        return FilterError(wrong.column, wrong.length, clean(wrong.text))
    return Filter(text, alternatives)


def caret_lines(text: str, error: FilterError) -> tuple[str, str]:
    """The line, and below it carets under the bad place."""
    shown = clean(text)
    start = cell_width(shown[: error.column])
    width = cell_width(shown[error.column : error.column + error.length])
    return shown, " " * start + "^" * max(1, width)


def _test_of(term: Term) -> Test:
    field = term.field
    if field is None:
        test = _words_test(term)
    elif _asks_for_unknown(term, field):
        test = _unknown_test(field, is_wanted=not term.operator.startswith("!"))
    elif field.kind == "number":
        test = _number_test(term, field)
    else:
        test = _texts_test(term, field)
    return _inverted(test) if term.is_inverted else test


def _inverted(test: Test) -> Test:
    return lambda snapshot, now: not test(snapshot, now)


# -- words ------------------------------------------------------------------------------------------


def _words_test(term: Term) -> Test:
    """A part of the name, of a tag, or of a model that is loaded or declared."""
    for value in term.values:
        _refuse_term_in_list(value)
    needles = [value.text.casefold() for value in term.values]

    def test(snapshot: MachineSnapshot, _: float) -> bool:
        machine = snapshot.machine
        names = (machine.name, *machine.tags, *model_names(snapshot))
        text = "\n".join(names).casefold()
        return _has_one(text, needles)

    return test


def _has_one(text: str, needles: list[str]) -> bool:
    return any(map(text.__contains__, needles))


def _refuse_term_in_list(value: Value) -> None:
    if value.is_quoted:
        return
    for at in range(1, len(value.text)):
        operator = operator_at(value.text, at)
        if operator is not None:
            if find_field(value.text[:at]) is not None:
                raise WrongPlace(
                    value.column, value.length, "commas separate values; put a blank or `|` between terms"
                )
            return


# -- unknown ----------------------------------------------------------------------------------------


def _asks_for_unknown(term: Term, field: Field) -> bool:
    """`free=unknown`; where `unknown` is a value of the field, as in health, it is compared as one."""
    words = [value.text.lower() for value in term.values if not value.is_quoted]
    if UNKNOWN_WORD not in words or UNKNOWN_WORD in field.choices:
        return False
    if term.operator not in (":", "=", "!="):
        if field.kind == "number":
            place = term.values[words.index(UNKNOWN_WORD)]
            text = f"unknown is no number; write {field.name}=unknown or {field.name}!=unknown"
            raise WrongPlace(place.column, place.length, text)
        return False
    if len(term.values) > 1:
        last = term.values[-1]
        text = f"unknown stands alone; write {field.name}=unknown | {field.name}=…"
        raise WrongPlace(term.values[0].column, last.column + last.length - term.values[0].column, text)
    return True


def _unknown_test(field: Field, *, is_wanted: bool) -> Test:
    number, texts = field.number, field.texts
    if number is not None:
        return lambda snapshot, now: isinstance(number(snapshot, now), Unknown) is is_wanted
    if texts is None:
        return lambda *_: False
    return lambda snapshot, _: isinstance(texts(snapshot), Unknown) is is_wanted


# -- numbers ----------------------------------------------------------------------------------------


def _number_test(term: Term, field: Field) -> Test:
    if "~" in term.operator:
        text = f"{field.name} is a number: compare it with > >= < <= = or !="
        raise WrongPlace(term.operator_column, len(term.operator), text)
    _refuse_list_of_comparison(term)
    quantities = [_quantity_of(value, field) for value in term.values]
    compares = [_compare(term.operator, quantity, field) for quantity in quantities]
    if len(compares) == 1:
        return compares[0]
    if term.operator == "!=":
        return lambda snapshot, now: all(compare(snapshot, now) for compare in compares)
    return lambda snapshot, now: any(compare(snapshot, now) for compare in compares)


def _refuse_list_of_comparison(term: Term) -> None:
    if len(term.values) > 1 and term.operator[0] in "<>":
        extra = term.values[1]
        raise WrongPlace(extra.column, extra.length, f"`{term.operator}` takes one value")


def _quantity_of(value: Value, field: Field) -> Quantity:
    quantity = parse_quantity(value.text.strip(), field)
    if quantity is None:
        examples = EXAMPLES[field.unit] + (" or 50%" if field.percent is not None else "")
        text = f"{field.name} takes a number such as {examples}, not {value.text or 'nothing'}"
        raise WrongPlace(value.column, value.length, text)
    return quantity


def _compare(operator: str, quantity: Quantity, field: Field) -> Test:
    read = field.percent if quantity.is_percent and field.percent is not None else field.number
    limit, digits = quantity.value, quantity.digits
    if read is None:
        return lambda *_: False
    holds: Callable[[float], bool]
    if operator == ">":
        holds = limit.__lt__
    elif operator == ">=":
        holds = limit.__le__
    elif operator == "<":
        holds = limit.__gt__
    elif operator == "<=":
        holds = limit.__ge__
    elif operator == "!=":
        shown = round(limit, digits)
        holds = lambda number: round(number, digits) != shown  # noqa: E731 - one of six
    else:
        shown = round(limit, digits)
        holds = lambda number: round(number, digits) == shown  # noqa: E731 - one of six

    def test(snapshot: MachineSnapshot, now: float) -> bool:
        number = read(snapshot, now)
        return not isinstance(number, Unknown) and holds(float(number)) is True

    return test


# -- texts ------------------------------------------------------------------------------------------


def _texts_test(term: Term, field: Field) -> Test:
    if term.operator[0] in "<>":
        if not field.name.startswith("file."):
            what = f"one of {', '.join(field.choices)}" if field.choices else "a text"
            text = f"{field.name} is {what}: compare it with : = != ~= or !~="
            raise WrongPlace(term.operator_column, len(term.operator), text)
        return _file_number_test(term, field)
    read = field.texts
    if read is None:
        return lambda *_: False
    if field.choices and "~" not in term.operator:
        for value in term.values:
            _check_choice(value, field)
    is_one_of = _matcher(term, field)
    is_wanted = not term.operator.startswith("!")

    def test(snapshot: MachineSnapshot, _: float) -> bool:
        texts = read(snapshot)
        return not isinstance(texts, Unknown) and is_one_of(texts) is is_wanted

    return test


def _check_choice(value: Value, field: Field) -> None:
    if _choice(value.text) in field.choices:
        return
    from difflib import get_close_matches

    near = get_close_matches(_choice(value.text), field.choices, 1, 0.5)
    hint = f"did you mean {near[0]}?" if near else f"it is one of {', '.join(field.choices)}"
    raise WrongPlace(value.column, value.length, f"{field.name} is never {value.text or 'empty'}: {hint}")


def _choice(text: str) -> str:
    return text.lower().replace("-", "_").replace(" ", "_")


def _matcher(term: Term, field: Field) -> Callable[[Iterable[str]], bool]:
    """Does one of a machine's texts fit one of the values?"""
    words = [value.text for value in term.values]
    if "~" in term.operator or (term.operator == ":" and field.colon == "contains"):
        needles = [word.casefold() for word in words]
        return lambda texts: _has_one("\n".join(texts).casefold(), needles)
    if field.choices:
        chosen = {_choice(word) for word in words}
        return lambda texts: not chosen.isdisjoint(texts)
    if field.colon == "model":
        names = {canonical_name(word) for word in words}
        bare = {family_of(word) for word in words if ":" not in word.rpartition("/")[2]}
        families = bare if term.operator == ":" else set()
        return lambda texts: any(
            canonical_name(text) in names or family_of(text) in families for text in texts
        )
    whole = {word.casefold() for word in words}
    return lambda texts: any(text.casefold() in whole for text in texts)


def _file_number_test(term: Term, field: Field) -> Test:
    """`file.height_u>1`: keys of the file compare as numbers where they are some."""
    _refuse_list_of_comparison(term)
    read, value = field.texts, term.values[0]
    limit = _plain_number(value.text)
    if limit is None:
        text = f"`{term.operator}` compares numbers; {value.text or 'nothing'} is none"
        raise WrongPlace(value.column, value.length, text)

    def as_number(snapshot: MachineSnapshot, _: float) -> float | Unknown:
        texts = Unknown() if read is None else read(snapshot)
        known = [] if isinstance(texts, Unknown) else [_plain_number(text) for text in texts]
        return next((number for number in known if number is not None), Unknown("no number"))

    numeric = Field(field.name, field.meaning, field.example, number=as_number)
    return _compare(term.operator, Quantity(limit, False, 0), numeric)


def _plain_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number - number == 0 else None  # neither NaN nor infinite
