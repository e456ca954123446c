"""What holds for every reading, whatever came in: clean texts, no invented number, not larger than that."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Any

from parser_table import Given, Reader

from fleettui.model.unknown import Unknown

LONGEST_TEXT = 520
_PLAIN = re.compile(r"\d+")
_FRACTION = re.compile(r"\d*[.,]\d+(?:[eE][+-]?\d+)?|\d+\.|\d+[eE][+-]?\d+")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}")


def values(thing: Any) -> Iterator[Any]:
    """All strings and numbers in a reading; a reason for an Unknown is text too."""
    if isinstance(thing, Unknown):
        yield thing.reason
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            yield from values(getattr(thing, field.name))
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield from values(key)
            yield from values(value)
    elif isinstance(thing, tuple | list | set | frozenset):
        for item in thing:
            yield from values(item)
    elif isinstance(thing, str | int | float) and not isinstance(thing, bool):
        yield thing


def check_clean(thing: Any) -> None:
    """No control code, no endless text, no NaN."""
    for value in values(thing):
        if isinstance(value, str):
            assert value.isprintable(), repr(value)
            assert len(value) <= LONGEST_TEXT, value
        elif isinstance(value, float):
            assert math.isfinite(value)


def numbers_in(text: str) -> set[float]:
    """Every number of the text: digits, with a decimal point or comma, with an exponent, in hex."""
    found: set[float] = {int(word) for word in _PLAIN.findall(text) if len(word) < 300}
    for word in _FRACTION.findall(text):
        try:
            found.add(float(word.replace(",", ".")))
        except ValueError:
            continue
    found |= {int(word, 16) for word in _HEX.findall(text)}
    return found


def check_numbers(thing: Any, text: str, formulas: tuple[Any, ...] = ()) -> None:
    """Each number stands in the text, or follows from one that does by a formula."""
    wanted = {value for value in values(thing) if not isinstance(value, str)}
    if not wanted:
        return
    known = numbers_in(text)
    missing = wanted - known
    if missing:
        missing -= {formula(number) for formula in formulas for number in known if number < 1e300}
    assert not missing, f"not in the input: {sorted(missing)[:5]}"


def weight(thing: Any) -> int:
    """Size of a reading: letters, and eight for each number."""
    return sum(len(value) if isinstance(value, str) else 8 for value in values(thing))


def check_reader(reader: Reader, given: Given) -> None:
    """All of it for one call. Raises AssertionError, or whatever the reader raised."""
    result = reader.read(given)
    if reader.is_raw:
        return
    check_clean(result)
    if not reader.why_any_number:
        text = "\n".join(part.decode("utf-8", "replace") for part in (given.a, given.b, given.c))
        check_numbers(result, text, reader.formulas)
