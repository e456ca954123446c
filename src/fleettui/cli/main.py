"""Entry point: parse, dispatch, turn errors into one clear text and an exit code."""

from __future__ import annotations

import gc
import os
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
_TITLES = frozenset(
    {
        "status",
        "route",
        "fit",
        "pick",
        "machines",
        "inventory",
        "placement",
        "maintenance",
        "drain",
        "undrain",
        "config",
        "events",
        "logs",
        "serve",
        "mcp",
        "demo",
    }
)


def run() -> None:
    """The `fleettui` command."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could come next
        from fleettui.cli.completion import complete

        complete()
    exit_code = main(sys.argv[1:])
    gc.freeze()  # what is about to go need not be searched for garbage first
    raise SystemExit(exit_code)


def main(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code. Never lets a traceback out."""
    arguments = None
    try:
        arguments = parse_arguments(argv)
        return _command_of(arguments)(arguments)
    except CommandError as error:
        _print_failure(error, arguments)
        diagnostics.say_error(_title(argv), error.text, *error.drawing, *error.hints)
        return error.exit_code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else EXIT_OK if stop.code is None else EXIT_NEGATIVE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        output.discard()
        return EXIT_PIPE
    except OSError as error:
        output.discard()
        where = f"{error.filename}: " if error.filename else ""
        diagnostics.say_error(_title(argv), f"{where}{error.strerror or error}")
        return EXIT_NEGATIVE
    except Exception as error:  # noqa: BLE001 - a defect of ours: the operator gets a sentence with its place
        output.discard()
        diagnostics.say_error(_title(argv), *_defect_lines(error))
        return EXIT_NEGATIVE


def _print_failure(error: CommandError, arguments: Namespace | None) -> None:
    """`--json` always prints a document: where the command printed none, one that says what failed."""
    is_json = getattr(arguments, "json", False) or getattr(arguments, "format", None) == "json"
    if is_json and not output.has_written():
        output.write_document(error.document(getattr(arguments, "command", None)))


def _defect_lines(error: Exception) -> tuple[str, str]:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_globals.get('__name__')}:{place.tb_lineno}" if place is not None else "?"
    return f"internal error in {where}: {type(error).__name__}: {error}", "please report it with this text"


def _title(argv: Sequence[str]) -> str:
    if any(word == "--route" or word.startswith("--route=") for word in argv):
        return "route"
    return next((word for word in argv if word in _TITLES), "")


def _command_of(arguments: Namespace) -> Callable[[Namespace], int]:
    """The function of a command; imported here so that each command pays only for itself."""
    if arguments.command == "route":
        gc.disable()  # a warm answer is there before there is any garbage
        from fleettui.cli.route_choice import route_command

        return route_command
    if arguments.command == "machines":
        if arguments.verb == "doctor":
            from fleettui.cli.doctor import doctor_command

            return doctor_command
        from fleettui.cli.machines import machines_command

        return machines_command
    if arguments.command == "events":
        from fleettui.cli.events import events_command

        return events_command
    if getattr(arguments, "print_completion", None):
        from fleettui.cli.completion import completion_command

        return completion_command
    if arguments.command == "fit":
        from fleettui.cli.fit import fit_command

        return fit_command
    if arguments.command == "pick":
        from fleettui.cli.pick import pick_command

        return pick_command
    if arguments.command == "logs":
        from fleettui.cli.logs import logs_command

        return logs_command
    if arguments.command == "inventory":
        from fleettui.cli.inventory import inventory_command

        return inventory_command
    if arguments.command == "placement":
        from fleettui.cli.placement import placement_command

        return placement_command
    if arguments.command == "config":
        from fleettui.cli.config import config_command

        return config_command
    if arguments.command == "maintenance":
        from fleettui.cli.maintenance import maintenance_command

        return maintenance_command
    if arguments.command in ("drain", "undrain"):
        from fleettui.cli.drain import drain_command

        return drain_command
    if arguments.command == "serve":
        from fleettui.cli.serve import serve_command

        return serve_command
    if arguments.command == "mcp":
        from fleettui.cli.mcp import mcp_command

        return mcp_command
    if arguments.command == "demo":
        from fleettui.cli.demo import demo_command

        return demo_command
    if arguments.command == "status" or not output.is_terminal():
        from fleettui.cli.status import status_command

        return status_command
    from fleettui.cli.dashboard import dashboard_command

    return dashboard_command
