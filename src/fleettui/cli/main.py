"""Entry point: parse, dispatch, turn errors into one clear text and an exit code."""

from __future__ import annotations

import gc
import sys

from fleettui.cli import diagnostics, output
from fleettui.cli.arguments import parse_arguments
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_OK, CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

EXIT_INTERRUPTED = 130
EXIT_PIPE = 141


def run() -> None:
    """The `fleettui` command."""
    exit_code = main(sys.argv[1:])
    gc.freeze()  # what is about to go need not be searched for garbage first
    raise SystemExit(exit_code)


def main(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code. Never lets a traceback out."""
    try:
        arguments = parse_arguments(argv)
        return _command_of(arguments)(arguments)
    except CommandError as error:
        diagnostics.say_error(_title(argv), error.text, *error.hints)
        return error.exit_code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else EXIT_OK if stop.code is None else EXIT_NEGATIVE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        output.discard()
        return EXIT_PIPE


def _title(argv: Sequence[str]) -> str:
    if any(word == "--route" or word.startswith("--route=") for word in argv):
        return "route"
    return next((word for word in argv if word in {"status", "route", "machines", "demo"}), "")


def _command_of(arguments: Namespace) -> Callable[[Namespace], int]:
    """The function of a command; imported here so that each command pays only for itself."""
    if arguments.command == "route":
        gc.disable()  # a warm answer is there before there is any garbage
        from fleettui.cli.route import route_command

        return route_command
    if arguments.command == "machines":
        from fleettui.cli.machines import machines_command

        return machines_command
    if arguments.command == "demo":
        from fleettui.cli.demo import demo_command

        return demo_command
    if arguments.command == "status" or not output.is_terminal():
        from fleettui.cli.status import status_command

        return status_command
    from fleettui.cli.dashboard import dashboard_command

    return dashboard_command
