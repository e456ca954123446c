"""The terminal of a command whose answer goes to a pipe: stderr, or whatever /dev/tty is."""

from __future__ import annotations

import os
import sys
from typing import IO, Any, NamedTuple

from fleettui.tui.terminal import TerminalDriver

TTY = "/dev/tty"


class Terminal(NamedTuple):
    """Where it is drawn and where keys come from."""

    output: IO[str]
    input_fd: int


def find_terminal() -> Terminal | None:
    """The terminal somebody sits at, whatever the standard streams are; None: there is none to draw on."""
    if os.environ.get("TERM", "") == "dumb":
        return None
    shown, typed = sys.__stderr__, sys.__stdin__
    output = shown if shown is not None and shown.isatty() else None
    input_fd = typed.fileno() if typed is not None and typed.isatty() else None
    if output is None or input_fd is None:
        try:
            fd = os.open(TTY, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:  # no controlling terminal
            if output is None:
                return None
            input_fd = output.fileno()  # open for both, as a shell leaves it
        else:
            output = output or os.fdopen(os.dup(fd), "w", encoding="utf-8")
            input_fd = fd if input_fd is None else input_fd
    if sys.__stdin__ is None:  # closed by the caller; Textual's driver looks at it all the same
        sys.__stdin__ = os.fdopen(os.dup(input_fd), "r", encoding="utf-8")  # type: ignore[misc]
    return Terminal(output, input_fd)


class PickDriver(TerminalDriver):
    """Draws on that terminal and asks that one for its size: Textual would ask stdout, which is a pipe."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, **options)
        terminal: Terminal | None = app.terminal
        if terminal is not None:
            self._file: Any = terminal.output
            self.fileno = terminal.input_fd
            self.input_tty = True

    def _get_terminal_size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self._file.fileno())
        except (OSError, ValueError):
            return super()._get_terminal_size()
        return size.columns or 80, size.lines or 24
