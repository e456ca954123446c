"""A terminal of a few sequences: those that the dashboard writes."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from typing import NamedTuple

from rich.cells import get_character_cell_size

_TOKEN = re.compile(
    r"\x1b\[(?P<private>[?<=>]?)(?P<numbers>[\d;]*)[ $]?(?P<final>[@-~])"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[()][A-Z0-9]|\x1b[=>78]"
    r"|(?P<cut>\x1b(?:\[[?<=>]?[\d;]*[ $]?|\][^\x07\x1b]*\x1b?|[()])?$)"
    r"|(?P<other>[\s\S])"
)
_OFF = {22: {1, 2}, 23: {3}, 24: {4, 21}, 25: {5}, 27: {7}, 28: {8}, 29: {9}, 55: {53}}
_SEEN_ON_BLANKS = {4, 21, 7, 9, 53}


class Cell(NamedTuple):
    """What one cell of the screen shows; a blank has no colour of its own, unless it is underlined or so."""

    char: str
    attributes: frozenset[int] = frozenset()
    color: str = ""
    ground: str = ""


class LittleTerminal:
    """Fed with what a program writes, it knows what is seen."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.is_alternate = False
        self.left: list[str] = []
        """What was seen when a program gave back the screen."""
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._cut = ""
        self._attributes: frozenset[int] = frozenset()
        self._color = self._ground = ""
        self._clear()

    def feed(self, data: bytes) -> None:
        """Take what was written, cut anywhere."""
        text, self._cut = self._cut + self._decode(data), ""
        for token in _TOKEN.finditer(text):
            if token["cut"]:
                self._cut = token["cut"]
            elif token["other"]:
                self._write(token["other"])
            elif token["final"]:
                self._control(token["private"], token["numbers"], token["final"])

    @property
    def lines(self) -> list[str]:
        """The text that is seen, without blanks at the end of lines."""
        return ["".join(cell.char for cell in row).rstrip() for row in self.cells]

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(self.lines)

    def _clear(self) -> None:
        self.cells = [[Cell(" ")] * self.width for _ in range(self.height)]
        self._x = self._y = 0

    def _write(self, char: str) -> None:
        if char == "\n":
            self._x, self._y = 0, min(self._y + 1, self.height - 1)
            return
        if char == "\r":
            self._x = 0
            return
        if char < " ":
            return
        row, width = self.cells[self._y], get_character_cell_size(char)
        if width == 0:
            before = next((x for x in range(self._x - 1, -1, -1) if row[x].char), None)
            if before is not None:
                row[before] = row[before]._replace(char=row[before].char + char)
            return
        cell = Cell(char, self._attributes, self._color, self._ground)
        if char == " " and _SEEN_ON_BLANKS.isdisjoint(self._attributes):
            cell = Cell(char, ground=self._ground)
        if self._x + width <= self.width:
            row[self._x] = cell
            for x in range(self._x + 1, self._x + width):
                row[x] = Cell("")
            self._x += width

    def _control(self, private: str, numbers: str, final: str) -> None:
        values = [int(number or 0) for number in numbers.split(";")]
        if private == "?" and numbers == "1049":
            self.is_alternate = final == "h"
            self.left = self.lines
            self._clear()
        if private:
            return
        if final == "H":
            self._y, self._x = (max(1, value) - 1 for value in [*values, 1][:2])
        elif final == "C":
            self._x += max(1, values[0])
        elif final == "m":
            self._take_pen(values)

    def _take_pen(self, values: list[int]) -> None:
        numbers = iter(values)
        for number in numbers:
            if number == 0:
                self._attributes, self._color, self._ground = frozenset(), "", ""
            elif number in (38, 48):
                kind = next(numbers)
                color = ";".join(str(next(numbers)) for _ in range(3 if kind == 2 else 1))
                if number == 38:
                    self._color = color
                else:
                    self._ground = color
            elif 30 <= number <= 39 or 90 <= number <= 97:
                self._color = "" if number == 39 else f"ansi {number}"
            elif 40 <= number <= 49 or 100 <= number <= 107:
                self._ground = "" if number == 49 else f"ansi {number - 10}"
            elif number in _OFF:
                self._attributes -= _OFF[number]
            else:
                self._attributes |= {number}
