"""The frame of whatever opens over a screen and closes again."""

from __future__ import annotations

from textual.containers import Vertical


class Box(Vertical):
    """A column with a border."""
