"""Completing what is typed, as a shell does."""

from __future__ import annotations

from collections.abc import Sequence


def shared_start(words: Sequence[str]) -> str:
    """What all of them begin with, capitals or not, as the first one writes it."""
    if not words:
        return ""
    start = words[0]
    while not all(word.casefold().startswith(start.casefold()) for word in words):
        start = start[:-1]
    return start
