"""What a command says when a server gives no answer that can be used."""

from __future__ import annotations

from fleettui.cli.errors import EXIT_NO_TELEMETRY, CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.net.server_client import ServerError


def command_error(error: ServerError) -> CommandError:
    """No answer to be had now: exit code 4, as where no machine answers; else 2."""
    if not error.is_absent:
        return CommandError(error.text, *error.hints)
    start = () if error.status else ("start it there: fleettui serve",)
    return CommandError(
        error.text,
        *error.hints,
        *start,
        "or ask the machines from here: --standalone",
        exit_code=EXIT_NO_TELEMETRY,
    )
