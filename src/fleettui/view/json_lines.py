"""A JSON document as lines of cells: the text that `--json` prints, each line with the path to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from fleettui.model.written import dump_json
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.text import clean

_LINE = re.compile(r'( *)(?:("(?:[^"\\]|\\.)*")(: ))?(.*?)(,?)')
"""Indent, name, colon, value, comma: all that a line of a document laid out by `json` has."""
_PLAIN_NAME = re.compile(r'"[A-Za-z_][A-Za-z0-9_]*"')
_BRACKETS = ("{", "}", "[", "]", "{}", "[]")


class JsonLine(NamedTuple):
    """One line. Equal while it says the same."""

    key: str
    """The path, with the bracket where one is closed: stays when other lines come and go."""
    text: str
    path: str
    """What the line is about, as jq writes it: `.telemetry.gpu[0].name`."""

    @property
    def cells(self) -> Cells:
        """Names, values and punctuation in tones of their own."""
        found = _LINE.fullmatch(self.text)
        if found is None:
            return (Cell(clean(f" {self.text}")),)
        indent, name, colon, value, comma = found.groups()
        cells = [Cell(f" {indent}")]
        if name is not None:
            cells += [Cell(clean(name), "accent"), Cell(colon, "dim")]
        cells.append(Cell(clean(value), _tone_of(value)))
        if comma:
            cells.append(Cell(comma, "dim"))
        return tuple(cells)


def json_text(document: Any) -> str:
    """As the command line prints a document with --json."""
    return dump_json(document, ensure_ascii=False, allow_nan=False, indent=2)


def json_lines(text: str) -> list[JsonLine]:
    """Lines of `json_text`."""
    return list(_lines(text))


def _lines(text: str) -> Iterator[JsonLine]:
    path: list[str] = []
    places: list[int | None] = []
    """Of each open bracket: the place in its list, None in an object."""
    for number, line in enumerate(text.split("\n")):
        found = _LINE.fullmatch(line)
        name, value = (found[2], found[4]) if found is not None else (None, "")
        if value in ("}", "]") and places:
            places.pop()
            here = _joined(path)
            yield JsonLine(f"{here} {value}", line, here)
            path[-1:] = []
            continue
        step, place = "", places[-1] if places else None
        if place is not None:
            step, places[-1] = f"[{place}]", place + 1
        elif name is not None:
            step = f".{name[1:-1]}" if _PLAIN_NAME.fullmatch(name) else f"[{clean(name)}]"
        here = _joined([*path, step])
        yield JsonLine(here if found is not None else f"line {number}", line, here)
        if value in ("{", "["):
            places.append(0 if value == "[" else None)
            path.append(step)


def _joined(steps: list[str]) -> str:
    path = "".join(steps)
    return path if path.startswith(".") else f".{path}"


def _tone_of(value: str) -> Tone:
    return "dim" if value == "null" or value in _BRACKETS else "plain"
