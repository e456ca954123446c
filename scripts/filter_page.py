"""Writes the table of fields in docs/filter.md from their declaration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fleettui.view.filter_fields import FIELDS, Field, file_field

PAGE = Path(__file__).resolve().parents[1] / "docs" / "filter.md"
BEGIN = "<!-- fields: made by `make pages` from view/filter_fields.py -->\n"
END = "<!-- end of fields -->\n"


def table() -> str:
    """The table in Markdown."""
    rows = ["| field | is | of | example |", "| --- | --- | --- | --- |"]
    rows += [_row(field.name, field) for field in FIELDS]
    rows.append(_row("file.KEY", file_field("file.rack")))
    return "".join(f"{row}\n" for row in rows)


def page(text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _row(name: str, field: Field) -> str:
    return f"| `{name}` | {field.meaning} | {', '.join(_values(field))} | `{field.example}` |"


def _values(field: Field) -> Iterator[str]:
    if field.kind == "number":
        yield "number" if field.unit == "count" else field.unit
    elif field.choices:
        yield from (f"`{choice}`" for choice in field.choices)
    elif field.colon == "model":
        yield "models"
    else:
        yield "text"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
