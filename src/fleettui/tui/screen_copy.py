"""What the terminal should show, what it shows, and the shortest text that makes the second the first.

Textual writes whole lines, and each of its updates builds on those before. With a copy of the screen an
update may come late, in part or never: what is written is what differs when it is written, cell by cell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.cells import cached_cell_len, get_character_cell_size
from rich.color import ColorSystem
from rich.segment import Segment
from textual._compositor import ChopsUpdate, LayoutUpdate

from fleettui.tui.pens import PLAIN, Pen, blank_pen, change_pen, pen_for_blanks, pen_of

_SINGLE = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u21ff\u2500-\u25fc\u2800-\u28ff]*"
)
"""Text of which each character takes one cell, in every terminal."""
MAX_REWRITTEN = 4
"""Cells alike that are rather written again than stepped over, which takes four characters or more."""


class _Line:
    """A line of the screen: one character and one pen for each cell, "" for the right half of a wide one."""

    __slots__ = ("chars", "is_even", "pens")

    def __init__(self, width: int) -> None:
        self.chars = [" "] * width
        self.pens = [PLAIN] * width
        self.is_even = True
        """True when each character takes one cell; else terminals may disagree about what stands where."""

    def copy(self) -> _Line:
        line = _Line(0)
        line.chars, line.pens, line.is_even = self.chars[:], self.pens[:], self.is_even
        return line


class ScreenCopy:
    """Takes Textual's updates, hands out text for the terminal."""

    def __init__(self) -> None:
        self.size = (0, 0)
        """Width, height."""
        self._wanted: list[_Line] = []
        self._shown: list[_Line | None] = []
        """None: unknown."""
        self._due: set[int] = set()
        self._next = 0

    def resize(self, width: int, height: int) -> None:
        """The terminal has this size now; after a change nothing is known of what it shows."""
        if (width, height) == self.size:
            return
        self.size = (width, height)
        self._wanted = [_Line(width) for _ in range(height)]
        self.forget()

    def forget(self) -> None:
        """The terminal may show anything: write all of it again."""
        self._shown = [None] * self.size[1]
        self._due = set(range(self.size[1]))

    @property
    def is_due(self) -> bool:
        """True when something may have to be written."""
        return bool(self._due)

    # What Textual wants

    def take(self, update: LayoutUpdate | ChopsUpdate, system: ColorSystem) -> None:
        """Take over an update."""
        if isinstance(update, LayoutUpdate):
            for y, strips in enumerate(update.strips, update.region.y):
                x = update.region.x
                for strip in strips:
                    self._put(x, y, strip, system)
                    x += strip.cell_length
            return
        for y, x1, x2 in update.spans:
            for end, (x, chop) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if chop is not None and x <= x2 and end > x1:
                    self._put(x, y, chop, system)

    def _put(self, x: int, y: int, segments: Iterable[Segment], system: ColorSystem) -> None:
        if y >= self.size[1]:
            return
        chars: list[str] = []
        pens: list[Pen] = []
        is_even = True
        for text, style, _ in segments:
            pen = pen_of(style, system)
            if _SINGLE.fullmatch(text):
                cells: Iterable[str] = text
            else:
                cells, is_even = _cells_of(text), False
            before = len(chars)
            chars += cells
            blank = blank_pen(pen)
            if blank is pen or " " not in text:
                pens += [pen] * (len(chars) - before)
            else:
                pens += [blank if char == " " else pen for char in chars[before:]]
        line, width = self._wanted[y], self.size[0]
        room = max(0, width - x)
        line.chars[x : x + len(chars)] = chars[:room]
        line.pens[x : x + len(pens)] = pens[:room]
        line.is_even = is_even and (line.is_even or _is_even(line.chars))
        self._due.add(y)

    # What the terminal gets

    def changes(self, limit: int | None = None) -> str:
        """Text that shows what is wanted; after `limit` characters other lines wait for the next call."""
        out: list[str] = []
        held, length = PLAIN, 0
        for y in self._lines_in_turn():
            self._due.discard(y)
            self._next = y + 1
            wanted, shown = self._wanted[y], self._shown[y]
            if shown is None or not (wanted.is_even and shown.is_even):
                spans: Iterable[tuple[int, int]] = [(0, self.size[0])]
                if shown is not None and shown.chars == wanted.chars and shown.pens == wanted.pens:
                    continue
            else:
                spans = _differing(shown, wanted)
            text, held = _write(wanted, y, spans, held)
            if text:
                self._shown[y] = wanted.copy()
                out.append(text)
                length += len(text)
                if limit is not None and length >= limit:
                    break
        return "".join(out) + change_pen(held, PLAIN)

    def _lines_in_turn(self) -> list[int]:
        """Those due, from the one after the last that was written: none waits for ever."""
        lines = sorted(self._due)
        later = [y for y in lines if y >= self._next]
        return later + lines[: len(lines) - len(later)]


def _is_even(chars: list[str]) -> bool:
    return "" not in chars and _SINGLE.fullmatch("".join(chars)) is not None


def _cells_of(text: str) -> Iterator[str]:
    """A character for each cell; what takes none, as accents do, stays with the one before it."""
    cells: list[str] = []
    for char in text:
        width = get_character_cell_size(char)
        if width:
            cells += [char, *[""] * (width - 1)]
        elif cells and char.isprintable():
            cells[-1 if cells[-1] else -2] += char
    return iter(cells)


def _differing(shown: _Line, wanted: _Line) -> Iterator[tuple[int, int]]:
    """Spans of cells that differ; those that lie close together, in one pen, are one."""
    if shown.chars == wanted.chars and shown.pens == wanted.pens:
        return
    cells = enumerate(zip(shown.chars, wanted.chars, shown.pens, wanted.pens, strict=True))
    places = [
        x for x, (char, new, pen, new_pen) in cells if char != new or (pen is not new_pen and pen != new_pen)
    ]
    pens = wanted.pens
    start, end = places[0], places[0] + 1
    for x in places[1:]:
        if x - end > MAX_REWRITTEN or any(pen != pens[end - 1] for pen in pens[end:x]):
            yield start, end
            start = x
        end = x + 1
    yield start, end


def _write(line: _Line, y: int, spans: Iterable[tuple[int, int]], held: Pen) -> tuple[str, Pen]:
    """Text for spans of a line, and the pen that is held after it."""
    out: list[str] = []
    chars = line.chars if line.is_even else _whole(line.chars)
    pens = line.pens
    place: int | None = None
    for start, end in spans:
        step = f"\x1b[{y + 1};{start + 1}H" if place is None else f"\x1b[{start - place}C"
        out.append(step)
        at = start
        while at < end:
            pen, until = pens[at], at + 1
            while until < end and pens[until] is pen:
                until += 1
            text = "".join(chars[at:until])
            wanted = pen_for_blanks(held, pen) if text.isspace() else pen
            if wanted != held:
                out.append(change_pen(held, wanted))
                held = wanted
            out.append(text)
            at = until
        place = end
    return "".join(out), held


def _whole(chars: list[str]) -> list[str]:
    """The cells without halves of wide characters, of which something else took the other half."""
    is_wide = [cached_cell_len(char) > 1 for char in chars]
    is_right_half = [not char for char in chars]
    neighbours = zip(chars, is_wide, [*is_right_half[1:], False], [False, *is_wide], strict=False)
    return [
        " " if (wide and not right_half_follows) or (not char and not wide_before) else char
        for char, wide, right_half_follows, wide_before in neighbours
    ]
