"""Sparklines: a row of block signs, or rows of braille dots with two samples a column. Newest at the right.

A known value always shows, a 0 by the lowest sign; an Unknown one is a blank, so that gaps are seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.bars import Limits, tone_for
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.glyphs import Glyphs

Values = Sequence[Maybe[float]]

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_MARKS = "_.-~=+*#"
"""Eight levels as well, so that both sets show the same."""
GAP = " "
_DOTS = ((0x40, 0x80), (0x04, 0x20), (0x02, 0x10), (0x01, 0x08))
"""Bits of the left and the right dot, from the lowest line up. Source: Unicode 15, Braille Patterns."""
_DOT_LINES = len(_DOTS)
_SIGNS = [
    [
        chr(0x2800 + sum(dot for dot, _ in _DOTS[:left]) + sum(dot for _, dot in _DOTS[:right]))
        for right in range(_DOT_LINES + 1)
    ]
    for left in range(_DOT_LINES + 1)
]
_ASCII_FILL = (" ", ".", ":", "|")
"""Of a column in a row of a graph: empty to full."""
_TONES: dict[Tone, Tone] = {"good": "bar_good", "warn": "bar_warn", "bad": "bar_bad"}


@dataclass(frozen=True, slots=True)
class Scale:
    """What the lowest and the highest sign stand for."""

    low: float = 0.0
    high: float = 100.0


PERCENT = Scale()


def spark_text(values: Values, width: int, scale: Scale = PERCENT, marks: str = BLOCKS) -> str:
    """`width` signs, one for each of the newest values; blanks in front where there are fewer."""
    levels = _levels(values, width, scale, len(marks))
    return "".join([GAP if level is None else marks[level] for level in levels])


def marks_of(glyphs: Glyphs) -> str:
    """The signs of a set, lowest first."""
    return ASCII_MARKS if glyphs.is_ascii else BLOCKS


def spark_cells(
    values: Values,
    width: int,
    limits: Limits,
    glyphs: Glyphs,
    scale: Scale = PERCENT,
    *,
    is_dim: bool = False,
    is_stacked: bool = False,
) -> Cells:
    """The sparkline in the tones of its values' limits; `is_dim`: they are old; `is_stacked`: others stand
    right above and below, from which it keeps apart."""
    marks = marks_of(glyphs)
    marks = marks[:-1] if is_stacked and not glyphs.is_ascii else marks
    text, shown = spark_text(values, width, scale, marks), values[-width:] if width > 0 else ()
    cells: list[Cell] = []
    start, last = 0, None
    for at, value in enumerate(shown, width - len(shown)):
        if isinstance(value, Unknown):
            continue  # a blank has no colour: it goes on with the run
        tone: Tone = "bar_dim" if is_dim else _TONES.get(tone_for(value, limits), "bar_dim")
        if last is not None and tone != last:
            cells.append(Cell(text[start:at], last))
            start = at
        last = tone
    return (*cells, Cell(text[start:], last or "bar_dim")) if text else ()


def braille_rows(values: Values, width: int, height: int = 2, scale: Scale = PERCENT) -> tuple[str, ...]:
    """`height` rows of `width` braille signs, the uppermost first: two values a column, four levels a row."""
    lines = height * _DOT_LINES
    filled = [0 if level is None else level + 1 for level in _levels(values, width * 2, scale, lines)]
    rows = []
    for row in range(height - 1, -1, -1):
        base = row * _DOT_LINES
        signs = [_braille_sign(filled[at] - base, filled[at + 1] - base) for at in range(0, len(filled), 2)]
        rows.append("".join(signs))
    return tuple(rows)


def graph_rows(
    values: Values, width: int, height: int, glyphs: Glyphs, scale: Scale = PERCENT
) -> tuple[str, ...]:
    """Rows of a graph in the signs of a set: braille, or ASCII with one value a column. `values_in` says how
    many values it shows."""
    if not glyphs.is_ascii:
        return braille_rows(values, width, height, scale)
    parts = len(_ASCII_FILL) - 1
    levels = _levels(values, width, scale, height * parts)
    heights = [0 if level is None else level + 1 for level in levels]
    return tuple(
        "".join([_ASCII_FILL[min(parts, max(0, filled - row * parts))] for filled in heights])
        for row in range(height - 1, -1, -1)
    )


def values_in(width: int, glyphs: Glyphs) -> int:
    """Values that a graph of that width shows."""
    return width if glyphs.is_ascii else 2 * width


def _braille_sign(left: int, right: int) -> str:
    """Two columns of dots, each filled that high from below."""
    return _SIGNS[min(_DOT_LINES, max(0, left))][min(_DOT_LINES, max(0, right))]


def _levels(values: Values, count: int, scale: Scale, levels: int) -> list[int | None]:
    """Level of each of the newest `count` values, 0 to levels - 1, each of the same height; what is beyond
    the scale stays at its end. None for a gap; gaps in front where there are fewer."""
    shown = values[-count:] if count > 0 else ()
    found: list[int | None] = [None] * (max(0, count) - len(shown))
    low, top = scale.low, levels - 1
    factor = levels / (scale.high - low) if scale.high > low else 0.0
    for value in shown:
        if isinstance(value, Unknown) or value - value != 0:  # NaN and infinity are no values
            found.append(None)
            continue
        level = (value - low) * factor
        found.append(0 if level <= 0 else top if level >= top else int(level))
    return found
