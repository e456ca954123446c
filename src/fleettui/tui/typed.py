"""Typed lines: those before, for the history of a prompt; machines named at the beginning of one."""

from __future__ import annotations

from fleettui.model.snapshot import FleetSnapshot

MOST_KEPT = 100
"""Lines of a history."""


def note_line(history: list[str], text: str) -> None:
    """Put a line at the end of a history, once."""
    if text in history:
        history.remove(text)
    history.append(text)
    del history[:-MOST_KEPT]


def split_named(fleet: FleetSnapshot, text: str) -> tuple[tuple[str, ...], str]:
    """Machines that a command names first, each once, and the rest: whoever types `drain bora` means bora,
    wherever the cursor is."""
    words = text.split()
    place = next((at for at, word in enumerate(words) if fleet.find(word) is None), len(words))
    return tuple(dict.fromkeys(words[:place])), " ".join(words[place:])
