"""Writes docs/keys.md and the keys on the pages of the screens from the declared actions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from textual.keys import key_to_character

from fleettui.tui.action import Action
from fleettui.tui.actions import ACTIONS

DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN = re.compile(r"<!-- keys: ([a-z ]+); made by `make pages` from tui/actions\.py -->\n")
END = "<!-- end of keys -->\n"
_NAMES = {
    "pageup": "PgUp", "pagedown": "PgDn", "escape": "Esc", "backspace": "Backspace", "space": "Space",
    "tab": "Tab", "enter": "Enter", "plus": "+", "minus": "-", "slash": "/", "comma": ",",
    "up": "↑", "down": "↓", "left": "←", "right": "→",
}  # fmt: skip


def pages() -> Iterator[Path]:
    """The pages that have keys."""
    yield DOCS / "keys.md"
    yield from sorted((DOCS / "screens").glob("*.md"))


def page(text: str) -> str:
    """The page with its tables made anew."""
    parts, at = [], 0
    for begin in BEGIN.finditer(text):
        end = text.index(END, begin.end())
        parts += [text[at : begin.end()], "\n", _table(begin[1].split()), "\n"]
        at = end
    return "".join(parts) + text[at:]


def _table(places: list[str]) -> str:
    rows = ["| key | does | `:` | in `keys:` |", "| --- | --- | --- | --- |"]
    rows += [_row(action) for action in ACTIONS if set(places) & set(action.places)]
    return "".join(f"{row}\n" for row in rows)


def _row(action: Action) -> str:
    keys = " ".join(f"`{spell(key)}`" for key in action.keys.split(",") if key)
    takes = f" {action.takes}" if action.takes else ""
    command = f"`{action.name}{takes}`" if action.is_command else ""
    return f"| {keys} | {action.description} | {command.replace('|', chr(92) + '|')} | `{action.id}` |"


def spell(key: str) -> str:
    """A key as keyboards name it: `Ctrl+F`, `PgDn`, `?`."""
    *modifiers, name = key.split("+")
    if name in _NAMES:
        spelled = _NAMES[name]
    elif len(name) == 1:
        spelled = name.upper() if modifiers else name
    else:
        spelled = key_to_character(name) or name.capitalize()
    return "+".join([*(modifier.capitalize() for modifier in modifiers), spelled])


if __name__ == "__main__":
    for path in pages():
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
