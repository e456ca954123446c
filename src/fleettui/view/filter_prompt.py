"""The line above a filter that is being typed: what is wrong at its place, or what can stand next."""

from __future__ import annotations

from fleettui.model.snapshot import FleetSnapshot
from fleettui.view.cells import Cell, Cells, fit_cells
from fleettui.view.filter_completion import suggestions, unfinished_field, unfinished_start
from fleettui.view.filter_fields import Field
from fleettui.view.filter_language import FilterError, parse_filter
from fleettui.view.filter_units import EXAMPLES
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.text import cell_width, clean

PLACEHOLDER = "free>24  tag:edge  health!=healthy  model~=qwen"
_ANY_WORD = "part of a name, of a tag or of a model that is loaded or declared"


def filter_hint(
    text: str,
    fleet: FleetSnapshot,
    width: int,
    indent: int,
    glyphs: Glyphs = UNICODE,
    *,
    is_final: bool = False,
) -> Cells:
    """At most `width` columns, never empty: a line that came and went would move the table.

    `indent`: columns in front of the typed text, so that signs stand above it. What may still become right
    is no mistake before Enter: `is_final`.
    """
    error = parse_filter(text)
    if isinstance(error, FilterError) and (is_final or not _may_become_right(text, error, fleet)):
        return _mistake(text, error, width, indent, glyphs)
    field = unfinished_field(text)
    found = suggestions(text, fleet)
    if field is not None and (field.kind == "number" or not found):
        cells: Cells = _about(field)
    elif found:
        cells = (Cell(" " + " ".join(found), "dim"),)
    else:
        cells = (Cell(f" {_ANY_WORD}", "dim"),)
    shown = tuple(Cell(glyphs.plain(cell.text), cell.tone) for cell in cells)
    return fit_cells(shown, width, "left", glyphs.ellipsis)


def _may_become_right(text: str, error: FilterError, fleet: FleetSnapshot) -> bool:
    """The line ends too early, or in the middle of a word that there is."""
    if error.column >= len(text.rstrip()):
        return True
    field = unfinished_field(text)
    if field is None or field.kind == "number":
        return False
    return error.column >= unfinished_start(text) and bool(suggestions(text, fleet))


def _about(field: Field) -> Cells:
    cells = (Cell(f" {field.name}", "strong"), Cell(f"  {field.meaning.replace('`', '')}", "plain"))
    if field.kind == "number":
        unit = "" if field.unit == "count" else f"{field.unit}: "
        return (*cells, Cell(f"  {unit}{EXAMPLES[field.unit]}", "dim"))
    return (*cells, Cell(f"  {field.example}", "dim"))


def _mistake(text: str, error: FilterError, width: int, indent: int, glyphs: Glyphs) -> Cells:
    """The sentence beside signs that point at the wrong characters; by number where that has no room."""
    shown = clean(text)
    start = indent + cell_width(shown[: error.column])
    marks = glyphs.descending * max(1, cell_width(shown[error.column : error.column + error.length]))
    sentence = Cell(glyphs.plain(error.text), "warn")
    wide = cell_width(sentence.text)
    if indent + cell_width(shown) < width:  # else the text has scrolled under the signs
        if start + len(marks) + 1 + wide <= width:
            return (Cell(" " * start), Cell(f"{marks} ", "bad"), sentence)
        if wide + 2 <= start and start + len(marks) <= width:
            return (Cell(" " * (start - wide - 1)), sentence, Cell(f" {marks}", "bad"))
    place = Cell(f" column {error.column + 1}: ", "bad")
    return fit_cells((place, sentence), width, "left", glyphs.ellipsis)
