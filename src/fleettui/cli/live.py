"""A block of lines on the terminal that is drawn again in place. The cursor stays visible below it, so that
nothing has to be given back when the command is killed."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.cli import output

_UP = "\x1b[{lines}F"
_CLEAR_LINE = "\x1b[K"
_CLEAR_BELOW = "\x1b[J"


class LiveBlock:
    """Draws lines over those drawn last."""

    def __init__(self) -> None:
        self._lines = 0

    def draw(self, lines: Sequence[str]) -> None:
        """Each line must be narrower than the terminal, and all of them fewer than its lines."""
        rows = "".join(f"{line}{_CLEAR_LINE}\n" for line in lines)
        output.write_text(f"{self._start()}{rows}{_CLEAR_BELOW}")
        self._lines = len(lines)

    def erase(self) -> None:
        """Leave nothing of it. Line by line: tmux keeps a screen cleared as a whole in its history."""
        if self._lines:
            blank = f"{_CLEAR_LINE}\n" * self._lines
            output.write_text(f"{self._start()}{blank}{self._start()}")
            self._lines = 0

    def _start(self) -> str:
        return _UP.format(lines=self._lines) if self._lines else ""
