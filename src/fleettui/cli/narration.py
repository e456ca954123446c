"""Log lines of the commands that stay, on stderr: under systemd that is the journal."""

from __future__ import annotations

import logging

from fleettui.cli import diagnostics


class _Narration(logging.Handler):
    """A line for each record; a defect is told with its place, never with a traceback."""

    def __init__(self, command: str) -> None:
        super().__init__()
        self._command = command

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            where = (
                "" if place is None else f" in {place.tb_frame.f_globals.get('__name__')}:{place.tb_lineno}"
            )
            text = f"{text}: {type(error).__name__}{where}: {error}"
        diagnostics.say(f"fleettui {self._command}: {record.levelname.lower()}: {text}")


def log_to_stderr(command: str) -> None:
    """Warnings and worse, whoever logs them."""
    logging.raiseExceptions = False  # a full disk below stderr
    logging.basicConfig(level=logging.WARNING, handlers=[_Narration(command)], force=True)
