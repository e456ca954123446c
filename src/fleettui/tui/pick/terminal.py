"""The terminal of a command whose answer goes to a pipe: stderr, or whatever /dev/tty is."""

from __future__ import annotations

import os
import sys
from typing import IO, Any, NamedTuple

from fleettui.tui.terminal import TerminalDriver

TTY = "/dev/tty"
_STDIN, _STDERR = 0, 2


class Terminal(NamedTuple):
    """Where it is drawn and where keys come from."""

    output: IO[str] | None
    """None: stderr, as Textual has it."""
    input_fd: int


def find_terminal() -> Terminal | None:
    """The terminal somebody sits at, whatever the standard streams are; None: there is none to draw on."""
    if os.environ.get("TERM", "") == "dumb":
        return None
    is_shown = sys.__stderr__ is not None and sys.__stderr__.isatty()
    is_typed = sys.__stdin__ is not None and sys.__stdin__.isatty()
    output, input_fd = None, _STDIN
    if not (is_shown and is_typed):
        try:
            fd = os.open(TTY, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:  # no controlling terminal
            if not is_shown:
                return None
            input_fd = _STDERR  # open for both, as a shell leaves it
        else:
            output = None if is_shown else os.fdopen(os.dup(fd), "w", encoding="utf-8")
            input_fd = _STDIN if is_typed else fd
    if sys.__stdin__ is None:  # closed by the caller; Textual's driver looks at it all the same
        sys.__stdin__ = os.fdopen(os.dup(input_fd), "r", encoding="utf-8")  # type: ignore[misc]
    return Terminal(output, input_fd)


class PickDriver(TerminalDriver):
    """Draws on that terminal and asks that one for its size: Textual would ask stdout, which is a pipe."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, **options)
        terminal: Terminal | None = app.terminal
        if terminal is not None:
            self._file: Any = terminal.output or self._file
            self.fileno = terminal.input_fd
            self.input_tty = True

    def _get_terminal_size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self._file.fileno())
        except (OSError, ValueError):
            return super()._get_terminal_size()
        return size.columns or 80, size.lines or 24
