"""The frame of whatever opens over a screen and closes again."""

from __future__ import annotations

from textual.containers import Vertical


class Box(Vertical):
    """A column with a border that leaves no painted line behind."""

    def on_unmount(self) -> None:
        """Textual 8.2.8 remembers the last 1024 caches of bordered widgets, with every line they painted."""
        self._styles_cache.clear()
