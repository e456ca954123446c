"""Lines typed before, for the history of a prompt."""

from __future__ import annotations

MOST_KEPT = 100
"""Lines of a history."""


def note_line(history: list[str], text: str) -> None:
    """Put a line at the end of a history, once."""
    if text in history:
        history.remove(text)
    history.append(text)
    del history[:-MOST_KEPT]
