"""docs/filter.md: its table is the declaration, and every filter on it is one."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from fleettui.view.filter_fields import FIELDS
from fleettui.view.filter_language import Filter, FilterError, caret_lines, parse_filter

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "filter.md").read_text(encoding="utf-8")


def test_the_table_is_made_from_the_declaration() -> None:
    spec = importlib.util.spec_from_file_location("filter_page", ROOT / "scripts" / "filter_page.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.page(PAGE) == PAGE, "run make pages"
    assert all(f"| `{field.name}` |" in PAGE for field in FIELDS)


def first_cells() -> list[str]:
    """What stands under `you write`, with the bars that Markdown wants escaped."""
    table = PAGE.partition("| you write |")[2].partition("\n\n")[0]
    cells = [re.match(r"\| `(.*?)` \|", line) for line in table.splitlines()[2:]]
    return [cell[1].replace(r"\|", "|") for cell in cells if cell is not None]


@pytest.mark.parametrize("line", first_cells() + re.findall(r"--filter '(.*)'$", PAGE, re.MULTILINE))
def test_every_filter_shown_is_taken(line: str) -> None:
    assert isinstance(parse_filter(line), Filter)


def test_there_are_filters_to_test() -> None:
    assert len(first_cells()) == 6


def test_the_mistake_shown_is_the_one_that_is_told() -> None:
    shown = PAGE.partition("```\n--filter: ")[2].partition("```")[0]
    text, line, carets = shown.splitlines()
    error = parse_filter(line.strip())
    assert isinstance(error, FilterError)
    assert error.text == text
    assert [f"  {part}" for part in caret_lines(line.strip(), error)] == [line, carets]
