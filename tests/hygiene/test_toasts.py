"""Toasts say what machines, files and operators said: nothing in them may be read as Textual's markup."""

from __future__ import annotations

import ast
from pathlib import Path

TUI = Path(__file__).resolve().parents[2] / "src" / "fleettui" / "tui"


def test_every_toast_is_plain_text() -> None:
    toasts = {}
    for path in sorted(TUI.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "notify"
            ):
                words = {word.arg: ast.unparse(word.value) for word in node.keywords}
                toasts[f"{path.relative_to(TUI)}:{node.lineno}"] = words.get("markup")
    assert len(toasts) > 5
    assert [place for place, markup in toasts.items() if markup != "False"] == []
