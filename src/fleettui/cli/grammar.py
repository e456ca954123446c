"""The command line's grammar, help and mistakes: argparse, which loads in a third of click's time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from fleettui.cli import diagnostics, output
from fleettui.cli.config_grammar import add_config_verbs
from fleettui.cli.errors import EXIT_USAGE
from fleettui.cli.machines_grammar import add_trust_verbs
from fleettui.cli.maintenance_grammar import add_maintenance_verbs
from fleettui.cli.options import FOLDER_OPTIONS, POLLING_OPTIONS, ROUTE_OPTIONS, positive_seconds
from fleettui.cli.verbs import add_json

if TYPE_CHECKING:
    from fleettui.cli.options import Option

EXIT_CODES = """exit codes:
  0  fine
  1  no answer now, or a negative verdict
  2  usage or configuration error
  3  unknown name
  4  no telemetry: no machine gave usable data"""

ROUTE_EXIT_CODES = """stdout is exactly one line, the answer; reasons go to stderr, one line for each machine.

Each choice leaves a lease for some seconds, so that scripts that ask at the same time are sent to different
machines. Leases are local to the state directory: other jump hosts, and other users of this one, do not see
them, unless all of them ask one server that takes leases (--server). They reject no machine.

exit codes:
  0  routed
  1  nobody is eligible now (maintenance, VRAM, not loaded …): retry later or fall back
  2  usage or configuration error
  3  model unknown: on no machine, in no file or catalog, and every approved machine answered
  4  no machine gave usable data (offline, timeout, stale, pending): check the network

example:
  OLLAMA_HOST=$(fleettui --route llama3.1:70b) ollama run llama3.1:70b"""


class Parser(argparse.ArgumentParser):
    """argparse that writes through output and diagnostics."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if not message:
            return
        if file is sys.stderr:
            diagnostics.say(message.rstrip("\n"))
        else:
            output.write_lines(message.rstrip("\n").split("\n"))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """A command's own parser refuses what it does not know, so that the hint names its help."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """`--option=--` has the value `--`: argparse drops it and hands out an empty list, unchecked."""
        if action.option_strings and action.nargs is None and arg_strings == ["--"]:
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        diagnostics.say_error(self.prog.partition(" ")[2], message, f"see: {self.prog} --help")
        raise SystemExit(EXIT_USAGE)


def build_parser() -> Parser:
    """The whole grammar."""
    from fleettui import __version__

    options = _global_options()
    parser = Parser(
        prog="fleettui",
        description="One terminal for a fleet of GPU machines that serve language models.\n"
        "Without a command: the dashboard; when stdout is no terminal, `status` once.",
        epilog="`fleettui --route MODEL …` is the same as `fleettui route MODEL …`.\n\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[options],
        allow_abbrev=False,
    )
    parser.add_argument(
        "--print-completion",
        choices=("bash", "zsh", "fish"),
        default=argparse.SUPPRESS,
        help="print what a shell has to read to complete fleettui's command lines",
    )
    parser.add_argument("--version", action="version", version=f"fleettui {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", prog="fleettui")
    _add_status(commands, options)
    _add_route(commands, options)
    _add_fit(commands, options)
    _add_pick(commands, options)
    _add_maintenance(commands, options)
    _add_drain(commands, options)
    _add_machines(commands, options)
    _add_inventory(commands, options)
    _add_placement(commands, options)
    _add_events(commands, options)
    _add_logs(commands, options)
    _add_serve(commands, options)
    _add_mcp(commands, options)
    _add_config(commands, options)
    _add_demo(commands, _global_options(has_folders=False))
    return parser


def _global_options(*, has_folders: bool = True) -> argparse.ArgumentParser:
    # SUPPRESS: the options stand before and after the command; the later parser must not reset the earlier.
    options = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = options.add_argument_group("global options (before or after the command)")
    _add_options(group, (*FOLDER_OPTIONS, *POLLING_OPTIONS) if has_folders else POLLING_OPTIONS)
    return options


def _add_options(parser: argparse._ActionsContainer, options: Iterable[Option]) -> None:
    for names, settings in options:
        convert = {"type": _argument_type(settings["type"])} if "type" in settings else {}
        parser.add_argument(*names, **{**settings, **convert})


def _argument_type(read: Callable[[str], object]) -> Callable[[str], object]:
    """The reader of a value as argparse wants it: the sentence of a ValueError is what the user sees."""

    def convert(text: str) -> object:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _add(
    commands: Any, name: str, options: argparse.ArgumentParser, text: str, epilog: str = EXIT_CODES
) -> Parser:
    parser: Parser = commands.add_parser(
        name,
        help=text[0].lower() + text[1:].split(". ", maxsplit=1)[0].rstrip("."),
        description=text,
        epilog=epilog,
        parents=[options],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    return parser


def _add_status(commands: Any, options: argparse.ArgumentParser) -> None:
    parser = _add(
        commands,
        "status",
        options,
        "Print the fleet once.",
        "exit codes:\n  0  the fleet was printed\n  2  usage or configuration error\n"
        "  3  unknown machine NAME\n  4  machines are declared and none answered",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these machines")
    parser.add_argument("--json", action="store_true", help="a JSON document (schema 1; null is unknown)")
    parser.add_argument(
        "--watch", action="store_true", help="again at each interval; with --json one document a line"
    )
    parser.add_argument(
        "--filter",
        metavar="EXPR",
        default="",
        help="only machines that match: 'free>24 tag:edge !maintenance:on' (docs/filter.md)",
    )
    parser.add_argument(
        "--deadline",
        metavar="S",
        type=_argument_type(positive_seconds),
        default=10.0,
        help="seconds to wait for machines (default 10)",
    )


def _add_route(commands: Any, options: argparse.ArgumentParser) -> None:
    parser = _add(
        commands, "route", options, "Print the machine that should serve MODEL now.", ROUTE_EXIT_CODES
    )
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="name[:tag]; `x` is `x:latest`, case does not matter"
    )
    _add_options(parser, ROUTE_OPTIONS)


def _add_fit(commands: Any, options: argparse.ArgumentParser) -> None:
    from fleettui.cli.fit_grammar import CODES, DESCRIPTION, add_fit_options

    add_fit_options(_add(commands, "fit", options, DESCRIPTION, CODES), _argument_type)


def _add_pick(commands: Any, options: argparse.ArgumentParser) -> None:
    from fleettui.cli.pick_grammar import CODES, DESCRIPTION, add_pick_options

    add_pick_options(_add(commands, "pick", options, DESCRIPTION, CODES))


def _add_machines(commands: Any, options: argparse.ArgumentParser) -> None:
    parser = _add(commands, "machines", options, "Show, check, add, approve and remove machines.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listing = _add(verbs, "list", options, "List the machines that the files declare.")
    listing.add_argument("--json", action="store_true", help="a JSON document with every key of the files")
    listing.add_argument(
        "--pending", action="store_true", help="only machines that wait for approval, with their host keys"
    )
    check = _add(
        verbs,
        "check",
        options,
        "Check every machine file and print all errors at once.",
        "exit codes:\n  0  every file is fine\n  2  at least one error",
    )
    add_json(check)
    _add_doctor(verbs, options)
    add_trust_verbs(lambda name, text, epilog: _add(verbs, name, options, text, epilog))


def _add_doctor(verbs: Any, options: argparse.ArgumentParser) -> None:
    doctor = _add(
        verbs,
        "doctor",
        options,
        "Check each machine step by step: file, name, TCP, host key, login, shell, GPU tool, engines and\n"
        "more; each step has 3 s. One login for each machine, nothing is changed on it.",
        "exit codes:\n  0  nothing failed; there may be warnings\n  1  at least one check failed\n"
        "  2  usage or configuration error, a broken machine file too\n  3  unknown machine NAME",
    )
    doctor.add_argument("names", nargs="*", metavar="NAME", help="only these machines, each in full")
    add_json(doctor)
    doctor.add_argument(
        "-v", "--verbose", action="store_true", help="every check of every machine, also where all is well"
    )
    doctor.add_argument(
        "--deadline",
        metavar="S",
        type=_argument_type(positive_seconds),
        help="seconds for all; what is not done by then has failed (default: 3 s for each check)",
    )


def _add_maintenance(commands: Any, options: argparse.ArgumentParser) -> None:
    parser = _add(commands, "maintenance", options, "Take machines out of routing and bring them back.")
    verbs = parser.add_subparsers(dest="verb", metavar="on|off", required=True)
    add_maintenance_verbs(lambda name, text, epilog: _add(verbs, name, options, text, epilog))


def _add_drain(commands: Any, options: argparse.ArgumentParser) -> None:
    from fleettui.cli.drain_grammar import UNDRAIN, UNDRAIN_CODES, add_drain_verbs, add_undrain_options

    parser = _add(commands, "drain", options, "Empty machines without an outage, and see how far that is.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    add_drain_verbs(lambda name, text, epilog: _add(verbs, name, options, text, epilog), _argument_type)
    add_undrain_options(_add(commands, "undrain", options, UNDRAIN, UNDRAIN_CODES))


def _add_inventory(commands: Any, options: argparse.ArgumentParser) -> None:
    from fleettui.cli.inventory_grammar import add_inventory_verbs

    parser = _add(commands, "inventory", options, "Measure the hardware of machines.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    add_inventory_verbs(lambda name, text, epilog: _add(verbs, name, options, text, epilog), _argument_type)


def _add_placement(commands: Any, options: argparse.ArgumentParser) -> None:
    from fleettui.cli.placement_grammar import add_placement_verbs

    parser = _add(commands, "placement", options, "Plan which role belongs on which GPU.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    add_placement_verbs(lambda name, text, epilog: _add(verbs, name, options, text, epilog), _argument_type)


def _add_config(commands: Any, options: argparse.ArgumentParser) -> None:
    parser = _add(commands, "config", options, "Show and check the settings.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    add_config_verbs(lambda name, text, epilog: _add(verbs, name, options, text, epilog))


def _add_events(commands: Any, options: argparse.ArgumentParser) -> None:
    from fleettui.cli.events_grammar import CODES, DESCRIPTION, add_events_options

    add_events_options(_add(commands, "events", options, DESCRIPTION, CODES), _argument_type)


def _add_logs(commands: Any, options: argparse.ArgumentParser) -> None:
    from fleettui.cli.logs_grammar import CODES, DESCRIPTION, add_logs_options

    add_logs_options(_add(commands, "logs", options, DESCRIPTION, CODES), _argument_type)


def _add_serve(commands: Any, options: argparse.ArgumentParser) -> None:
    from fleettui.cli.serve_grammar import CODES, DESCRIPTION, add_serve_options

    add_serve_options(_add(commands, "serve", options, DESCRIPTION, CODES), _argument_type)


def _add_mcp(commands: Any, options: argparse.ArgumentParser) -> None:
    from fleettui.cli.mcp_grammar import CODES, DESCRIPTION, add_mcp_options

    add_mcp_options(_add(commands, "mcp", options, DESCRIPTION, CODES))


def _add_demo(commands: Any, options: argparse.ArgumentParser) -> None:
    parser = _add(
        commands,
        "demo",
        options,
        "Run the dashboard on an embedded simulated fleet. The machines are real SSH and HTTP servers on\n"
        "loopback. Without a terminal: prints the fleet once and one routed answer.",
    )
    parser.add_argument(
        "--machines",
        dest="machine_count",
        metavar="N",
        type=_argument_type(_machine_count),
        default=8,
        help="number of simulated machines, 1 to 300 (default 8)",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=7, help="seed of the simulation (default 7)")
    parser.add_argument(
        "--serve-only",
        action="store_true",
        help="no dashboard: print what to export so that another terminal can use the fleet",
    )
    parser.add_argument(
        "--pending", action="store_true", help="the first machine waits for its host key to be approved"
    )
    parser.add_argument(
        "--calm",
        action="store_true",
        help="no clients, and no machine goes away: nothing happens but what you do",
    )


def _machine_count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not 1 <= count <= 300:
        raise ValueError(f"{count} machines: choose 1 to 300")
    return count
