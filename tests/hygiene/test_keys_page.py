"""docs/keys.md and the keys on the pages of the screens are the declared actions."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from fleettui.tui.action import Place
from fleettui.tui.actions import ACTIONS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("keys_page", ROOT / "scripts" / "keys_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_made_from_the_declarations(script: ModuleType) -> None:
    for path in script.pages():
        text = path.read_text(encoding="utf-8")
        assert script.page(text) == text, f"{path.name}: run make pages"


def test_every_place_has_its_table_and_every_screen_its_keys(script: ModuleType) -> None:
    text = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    placed = {place for begin in script.BEGIN.finditer(text) for place in begin[1].split()}
    assert placed == set(get_args(Place))
    assert all(f"| `{action.id}` |" in text for action in ACTIONS)
    for path in script.pages():
        assert script.BEGIN.search(path.read_text(encoding="utf-8")), path.name


@pytest.mark.parametrize(
    ("key", "spelled"),
    [
        ("ctrl+f", "Ctrl+F"),
        ("question_mark", "?"),
        ("pagedown", "PgDn"),
        ("G", "G"),
        ("shift+tab", "Shift+Tab"),
    ],
)
def test_keys_are_spelled_as_on_keyboards(script: ModuleType, key: str, spelled: str) -> None:
    assert script.spell(key) == spelled
