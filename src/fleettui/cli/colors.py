"""Colours of commands that draw on a terminal: a tone is one of its sixteen colours, never a fixed one."""

from __future__ import annotations

from collections.abc import Iterable

from fleettui.view.cells import Cell, Tone

_CODES: dict[Tone, str] = {
    "strong": "1",
    "title": "1",
    "dim": "2",
    "faint": "2",
    "good": "32",
    "warn": "33",
    "bad": "31",
    "accent": "36",
    "key": "36",
}


def paint(cells: Iterable[Cell], *, has_color: bool) -> str:
    """The cells as text, with SGR codes where colours are wanted; no blanks at the end."""
    kept = [cell for cell in cells if cell.text]
    if not has_color:
        return "".join(cell.text for cell in kept).rstrip()
    return "".join(
        f"\x1b[{_CODES[cell.tone]}m{cell.text}\x1b[0m" if cell.tone in _CODES else cell.text for cell in kept
    ).rstrip()
