"""History as lines: a graph for each series with the value of now, mean, peak and scale; now at the right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fleettui.model.gpu import GpuCard
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.cells import Cell, Cells, Tone, fit_cells
from fleettui.view.glyphs import Glyphs
from fleettui.view.history_span import History, Series, Span, choose_span, reach_of
from fleettui.view.sparkline import Scale, graph_rows, marks_of, spark_text, values_in
from fleettui.view.text import cell_width
from fleettui.view.units import DASH

_NAME, _NOW, _FIGURE, _SCALE, _GAP = 7, 9, 6, 9, 2
_LEAST_GRAPH = 16
"""Columns; figures go before a graph gets narrower."""
_BLANK_BRAILLE = "\u2800"
"""Three bytes for a blank, and some fonts draw it as eight hollow dots."""


class Unit(NamedTuple):
    """How the numbers of a series are written."""

    word: str
    decimals: int = 0
    size: float = 1.0
    """Of one unit, in what the history keeps."""

    def figure(self, value: Maybe[float]) -> str:
        """`38.2`; without decimals from 100 on."""
        if isinstance(value, Unknown):
            return DASH
        number = value / self.size
        return f"{number:.{self.decimals if abs(number) < 99.95 else 0}f}"

    def text(self, value: Maybe[float]) -> str:
        """`38.2 GiB`."""
        return DASH if isinstance(value, Unknown) else f"{self.figure(value)} {self.word}"

    def scale(self, top: float) -> str:
        """`24 GiB`: a scale needs no decimals that say nothing."""
        return f"{self.figure(top).removesuffix('.0')} {self.word}"


PERCENT = Unit("%")
RAM_GIB = Unit("GiB", 1, float(1 << 20))
VRAM_GIB = Unit("GiB", 1, 1024.0)
MB_S = Unit("MB/s", 1, 1e6)
CELSIUS = Unit("°C")
WATTS = Unit("W")


class Graph(NamedTuple):
    """One series to draw."""

    name: str
    series: Series
    unit: Unit
    now: Maybe[float]
    tone: Tone = "plain"
    """Of the value of now."""
    top: float | None = None
    """What the whole height stands for; None: a round number above all that is shown."""
    card: GpuCard | None = None
    is_part: bool = False
    """It goes on about what the graph above it is about."""


def round_top(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten: a scale that stays when the peak moves a little."""
    if value <= 0 or value - value != 0:
        return 1.0
    base = 10.0 ** math.floor(math.log10(value))
    return next((step * base for step in (1, 2, 5) if value <= step * base * 1.000001), 10 * base)


def graph_lines(
    graphs: Sequence[Graph], history: History, width: int, height: int, glyphs: Glyphs, *, is_stale: bool
) -> list[Cells]:
    """A line with the axis, then `height` lines for each graph."""
    if not graphs:
        return []
    shape = _shape_for(width)
    per_line = shape.graph if height == 1 else values_in(shape.graph, glyphs)
    reach_s = max(reach_of(history, None), reach_of(history, graphs[0].card))
    span = choose_span(reach_s, history.span_s, history.step_s, per_line)
    used = math.ceil(span.length * shape.graph / per_line)
    lines = [_head(shape, span, used, glyphs)]
    for graph in graphs:
        lines += _lines_of(graph, history, span, shape, height, glyphs, is_stale=is_stale)
    return lines


class _Shape(NamedTuple):
    """Columns of a line."""

    graph: int
    has_mean: bool
    has_scale: bool
    has_peak: bool


def _shape_for(width: int) -> _Shape:
    """What fits beside a graph: the peak goes last."""
    left = _NAME + _NOW + 2 * _GAP
    for has_mean, has_scale, has_peak in (
        (True, True, True),
        (False, True, True),
        (False, False, True),
        (False, False, False),
    ):
        right = has_mean * (_FIGURE + _GAP) + has_peak * (_FIGURE + _GAP) + has_scale * (_SCALE + _GAP)
        if width - left - right >= _LEAST_GRAPH or not has_peak:
            return _Shape(max(1, width - left - right), has_mean, has_scale, has_peak)
    raise AssertionError  # the last one always fits


def _head(shape: _Shape, span: Span, used: int, glyphs: Glyphs) -> Cells:
    """The axis over the `used` columns that have values."""
    words = used - cell_width(span.text) - len("now") - 2
    axis = f"{span.text} {glyphs.rule * words} now" if words > 0 else "now"
    titles = [Cell(title, "title") for title in ("mean", "max", "scale")]
    graph = fit_cells((Cell(axis, "title"),), shape.graph, "right", "")
    return _line(shape, Cell(""), Cell("now", "title"), graph, *titles)


def _lines_of(
    graph: Graph,
    history: History,
    span: Span,
    shape: _Shape,
    height: int,
    glyphs: Glyphs,
    *,
    is_stale: bool,
) -> list[Cells]:
    almost_s = span.seconds - span.step_s / 2  # a rounding error must not make the shares longer
    values = history.values(graph.series, span.length, almost_s, graph.card)
    mean, peak = history.sum_up(graph.series, span.seconds, graph.card)
    top = graph.top
    if top is None:
        size = graph.unit.size
        top = round_top(max(0.0 if isinstance(peak, Unknown) else peak / size, 1.0)) * size
    tone: Tone = "bar_dim" if is_stale else "accent"
    rows = _draw(values, shape.graph, height, glyphs, top)
    name = Cell(f"  {graph.name}" if graph.is_part else graph.name, "dim" if graph.is_part else "plain")
    now = Cell(graph.unit.text(graph.now), "dim" if is_stale else graph.tone)
    lines = [
        _line(
            shape,
            name,
            now,
            (Cell(rows[0], tone),),
            Cell(graph.unit.figure(mean), "dim"),
            Cell(graph.unit.figure(peak), "plain"),
            Cell(graph.unit.scale(top), "dim"),
        )
    ]
    lines += [_line(shape, Cell(""), Cell(""), (Cell(row, tone),)) for row in rows[1:]]
    return lines


def _draw(
    values: Sequence[Maybe[float]], width: int, height: int, glyphs: Glyphs, top: float
) -> tuple[str, ...]:
    """Rows of signs that leave a little above the highest value, so that stacked graphs stay apart."""
    if height == 1:
        marks = marks_of(glyphs)
        return (spark_text(values, width, Scale(0.0, top), marks if glyphs.is_ascii else marks[:-1]),)
    lines = height * (3 if glyphs.is_ascii else 4)
    rows = graph_rows(values, width, height, glyphs, Scale(0.0, top * lines / (lines - 1) * 1.0001))
    return tuple([row.replace(_BLANK_BRAILLE, " ") for row in rows])


def _line(
    shape: _Shape,
    name: Cell,
    now: Cell,
    graph: Cells,
    mean: Cell | None = None,
    peak: Cell | None = None,
    scale: Cell | None = None,
) -> Cells:
    gap = Cell(" " * _GAP)
    cells = [
        *fit_cells((name,), _NAME),
        gap,
        *fit_cells((now,), _NOW, "right"),
        gap,
        *fit_cells(graph, shape.graph, "left", ""),
    ]
    for is_shown, cell, width in (
        (shape.has_mean, mean, _FIGURE),
        (shape.has_peak, peak, _FIGURE),
        (shape.has_scale, scale, _SCALE),
    ):
        if is_shown and cell is not None:
            cells += [gap, *fit_cells((cell,), width, "right")]
    return tuple(cells)
