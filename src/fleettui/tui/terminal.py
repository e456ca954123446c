"""The terminal that the dashboard writes to, which may be gone at any moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any

from textual.drivers.linux_driver import LinuxDriver

TERMINAL_GONE_EXIT = 129
"""As after SIGHUP, which says the same where somebody sends it."""


class LosableOutput:
    """A terminal's output; once it cannot be written to, `on_lost` is called and the rest goes nowhere."""

    def __init__(self, file: IO[str], on_lost: Callable[[], None]) -> None:
        self._file = file
        self._on_lost = on_lost
        self._is_lost = False

    def write(self, text: str) -> None:
        """Write, or drop."""
        self._try(lambda: self._file.write(text))

    def flush(self) -> None:
        """Hand on what was written."""
        self._try(self._file.flush)

    def fileno(self) -> int:
        """Of the terminal."""
        return self._file.fileno()

    def isatty(self) -> bool:
        """Whether it is one."""
        return self._file.isatty()

    def _try(self, step: Callable[[], object]) -> None:
        if self._is_lost:
            return
        try:
            step()
        except OSError:
            self._is_lost = True
            self._on_lost()


class TerminalDriver(LinuxDriver):
    """Textual's own, which ends the dashboard when the terminal is gone.

    Textual's writer would die of the error, and the event loop then wait for ever for room in its queue: a
    dashboard without a terminal would go on holding its connections, deaf to SIGTERM.
    """

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, **options)
        self._file: Any = LosableOutput(self._file, self._end)

    def _end(self) -> None:
        """Called by the writer's thread."""
        self._loop.call_soon_threadsafe(lambda: self._app.exit(return_code=TERMINAL_GONE_EXIT))
