"""Which columns a table of some width has, and where each stands."""

from __future__ import annotations

from collections.abc import Iterable

from fleettui.model.record import dataclass
from fleettui.model.snapshot import FleetSnapshot
from fleettui.view.bars import DEFAULT_THRESHOLDS, Thresholds
from fleettui.view.cells import Cell, Cells, fit_cells
from fleettui.view.column_cells import blank_gpu
from fleettui.view.columns import COLUMNS, EXTRA, Column
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.sorting import sort_named
from fleettui.view.text import cell_width, clean

NARROW = 80
"""Below, the table collapses to machine, health and VRAM."""
ROOMY = 100
"""From here columns stand two blanks apart and figures have a blank before their unit."""
_NARROW_KEYS = ("machine", "health", "vram")
_WORDLESS = 54
"""Below, health is a sign without its word."""
_MACHINE_INDENT = 3
_MACHINE_MIN, _MACHINE_ROOMY, _MACHINE_MAX = 14, 16, 28
"""The roomy one has place for `RTX A5000` and `A100-SXM4` below the machine's name."""


@dataclass(frozen=True, slots=True)
class Place:
    """One column at its place."""

    column: Column
    start: int
    width: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is drawn. Keep one until width, columns or settings change, and compare it with `is`."""

    width: int
    places: tuple[Place, ...]
    gap: int
    interval_s: float
    glyphs: Glyphs = UNICODE
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    utc_offset_s: int | None = None
    has_hints: bool = True
    """Name keys to press, as in `a to review`."""
    card_places: tuple[Place, ...] = ()
    """The same of a card's line: what lies on it may take columns behind that say nothing of a card."""
    paused_at: float | None = None
    """Since then nobody is asked: ages grow, and nothing turns stale by that."""

    def place_of(self, key: str) -> Place | None:
        """Where a column stands, None when it is not shown."""
        return next((place for place in self.places if place.column.key == key), None)

    def has(self, key: str) -> bool:
        """True when the column is shown."""
        return self.place_of(key) is not None

    def column_at(self, x: int) -> str | None:
        """Key of the column under a screen column, for clicks on the header."""
        for place in reversed(self.places):
            if x >= place.start:
                return place.column.key
        return None

    @property
    def fresh_s(self) -> float:
        """Age up to which a value counts as now."""
        return 2 * self.interval_s


def make_layout(
    width: int,
    names: Iterable[str] = (),
    *,
    interval_s: float = 2.0,
    columns: Iterable[str] | None = None,
    glyphs: Glyphs = UNICODE,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    utc_offset_s: int | None = None,
    has_hints: bool = True,
    has_trend: bool = True,
    paused_at: float | None = None,
) -> Layout:
    """The layout for a width. `names`: machines, the longest decides the first column; `columns`: keys to
    choose from, None for all; `has_trend`: a history is kept."""
    shown = max((cell_width(clean(name)) for name in names), default=0)
    least = _MACHINE_MIN if width < ROOMY else _MACHINE_ROOMY
    is_narrow, is_roomy = width < NARROW, width >= ROOMY
    share = max(12, width // 3) if is_narrow else width // 4 - 1  # one long name hides no models of others
    machine_width = min(max(shown + _MACHINE_INDENT, least), _MACHINE_MAX, share)
    gap = 2 if is_roomy else 1
    wanted = set(columns) if columns is not None else {column.key for column in COLUMNS}
    offered = [
        column
        for column in COLUMNS
        if (column.key in _NARROW_KEYS if is_narrow else column.key in wanted or column.key == "machine")
        and (has_trend or column.key != "trend")
    ]
    minima = {
        column.key: column.roomy_width if is_roomy and column.roomy_width else column.min_width
        for column in offered
    }
    minima["machine"] = machine_width
    if width < _WORDLESS:
        minima["health"] = 1
    chosen = _choose(offered, minima, width, gap)
    widths = _grow(chosen, minima, width, gap)
    places, x = [], 0
    for column in chosen:
        places.append(Place(column, x, widths[column.key]))
        x += widths[column.key] + gap
    return Layout(
        width, tuple(places), gap, interval_s, glyphs, thresholds, utc_offset_s, has_hints,
        _places_of_card(places), paused_at,
    )  # fmt: skip


def _places_of_card(places: Iterable[Place]) -> tuple[Place, ...]:
    found: list[Place] = []
    for place in places:
        if place.column.gpu_cells is blank_gpu and found and found[-1].column.key == "models":
            models = found.pop()
            found.append(Place(models.column, models.start, place.start + place.width - models.start))
        else:
            found.append(place)
    return tuple(found)


def fleet_layout(fleet: FleetSnapshot, width: int, glyphs: Glyphs = UNICODE) -> Layout:
    """The layout for a fleet with everything else left as it is."""
    names = [snapshot.name for snapshot in fleet.machines]
    return make_layout(width, names, interval_s=fleet.interval_s, glyphs=glyphs)


def _choose(offered: list[Column], minima: dict[str, int], width: int, gap: int) -> list[Column]:
    """The columns that fit, most important first; order of the table kept.

    What is merely good to know joins only where the others keep a comfortable width.
    """
    room = width - 1
    kept: list[Column] = []
    for column in sorted(offered, key=lambda item: item.priority):
        if column.priority == EXTRA:
            room -= sum(max(0, item.comfort - minima[item.key]) for item in kept)
        need = minima[column.key] + (gap if kept else 0)
        if need > room and kept:
            break
        room -= need
        kept.append(column)
    return [column for column in offered if column in kept]


def _grow(chosen: list[Column], minima: dict[str, int], width: int, gap: int) -> dict[str, int]:
    """Spare room by weight: up to what is comfortable for each column, then up to its largest width."""
    widths = {column.key: minima[column.key] for column in chosen}
    spare = width - 1 - sum(widths.values()) - gap * (len(chosen) - 1)
    for limits in (
        {column.key: column.comfort for column in chosen},
        {column.key: column.max_width for column in chosen},
    ):
        spare = _share_out(chosen, widths, limits, spare)
    return widths


def _share_out(chosen: list[Column], widths: dict[str, int], limits: dict[str, int], spare: int) -> int:
    """Let columns grow up to their limits; answers what is left."""
    while spare > 0:
        growing = [c for c in chosen if c.weight and widths[c.key] < limits[c.key]]
        if not growing:
            break
        weight = sum(column.weight for column in growing)
        share, given = spare, 0
        for column in growing:
            extra = min(
                max(1, share * column.weight // weight),
                limits[column.key] - widths[column.key],
                spare - given,
            )
            widths[column.key] += extra
            given += extra
            if given >= spare:
                break
        spare -= given
    return spare


def header_cells(layout: Layout, sort_key: str | None = None, *, is_descending: bool = False) -> Cells:
    """The header line; the column that shows the sort of that key carries an arrow, and as much of the
    sort's own title as fits: `VRAM free ▾`, `GPU▾`."""
    cells: list[Cell] = []
    glyphs = layout.glyphs
    sort = sort_named(sort_key) if sort_key is not None else None
    arrow = glyphs.descending if is_descending else glyphs.ascending
    for place in layout.places:
        column = place.column
        indent = _MACHINE_INDENT if column.key == "machine" else 0
        if sort is not None and sort.column == column.key:
            title = _sorted_title((sort.title, column.title), arrow, place.width - indent)
        else:
            title = column.title if place.width >= len(column.title) else ""
        if cells:
            cells.append(Cell(" " * layout.gap))
        title_cells = (Cell(" " * indent + title, "title"),)
        cells.extend(fit_cells(title_cells, place.width, column.align, glyphs.ellipsis))
    return tuple(cells)


def _sorted_title(titles: Iterable[str], arrow: str, width: int) -> str:
    """The longest form with the arrow that fits; the arrow is never lost."""
    short = ""
    for title in titles:
        if len(title) + 2 <= width:
            return f"{title} {arrow}"
        short = title
    return short[: max(0, width - 1)] + arrow
