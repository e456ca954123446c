"""Errors of the command line that end a command with a clear text and an exit code."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.model.machine import ConfigProblem

EXIT_OK = 0
EXIT_NEGATIVE = 1
"""No answer now, or a negative verdict."""
EXIT_USAGE = 2
"""Usage or configuration."""
EXIT_UNKNOWN_NAME = 3
EXIT_NO_TELEMETRY = 4


class CommandError(Exception):
    """Ends a command. `text`: what failed, where, why; `hints`: what to do next; `drawing`: lines that show
    the place, for people only; `problems`: all that is wrong in files, for documents."""

    def __init__(
        self,
        text: str,
        *hints: str,
        exit_code: int = EXIT_USAGE,
        drawing: tuple[str, ...] = (),
        problems: tuple[ConfigProblem, ...] = (),
    ) -> None:
        super().__init__(text)
        self.problems = problems
        self.text = text
        self.hints = hints
        self.drawing = drawing
        self.exit_code = exit_code

    def document(self, command: str | None) -> dict[str, object]:
        """The document of a `--json` command that found nothing else to print."""
        message = "; ".join((self.text, *self.hints))
        errors: list[dict[str, object]] = [
            {"file": item.file, "line": item.line, "key": item.key, "message": item.message}
            for item in self.problems
        ] or [{"file": None, "line": None, "key": None, "message": message}]
        bodies: dict[str | None, dict[str, object]] = {
            "route": {"chosen": None, "candidates": [], "rejected": []},
            "events": {"events": []},
            "logs": {"lines": []},
            "inventory": {"nodes": []},
            "placement": {"assignments": [], "unplaced": []},
        }
        body: dict[str, object] = bodies.get(command, {"machines": []})
        return {"schema": 1, **body, "errors": errors, "exit_code": self.exit_code}
