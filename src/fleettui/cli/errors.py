"""Errors of the command line that end a command with a clear text and an exit code."""

from __future__ import annotations

EXIT_OK = 0
EXIT_NEGATIVE = 1
"""No answer now, or a negative verdict."""
EXIT_USAGE = 2
"""Usage or configuration."""
EXIT_UNKNOWN_NAME = 3
EXIT_NO_TELEMETRY = 4


class CommandError(Exception):
    """Ends a command. `text`: what failed, where, why; `hints`: what to do next; `drawing`: lines that show
    the place, for people only."""

    def __init__(
        self, text: str, *hints: str, exit_code: int = EXIT_USAGE, drawing: tuple[str, ...] = ()
    ) -> None:
        super().__init__(text)
        self.text = text
        self.hints = hints
        self.drawing = drawing
        self.exit_code = exit_code

    def document(self, command: str | None) -> dict[str, object]:
        """The document of a `--json` command that found nothing else to print."""
        message = "; ".join((self.text, *self.hints))
        problem = {"file": None, "line": None, "key": None, "message": message}
        bodies: dict[str | None, dict[str, object]] = {
            "route": {"chosen": None, "candidates": [], "rejected": []},
            "events": {"events": []},
            "logs": {"lines": []},
        }
        body: dict[str, object] = bodies.get(command, {"machines": []})
        return {"schema": 1, **body, "errors": [problem], "exit_code": self.exit_code}
