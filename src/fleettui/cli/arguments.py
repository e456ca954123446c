"""Reads the command line: a plain `--route` by itself, everything else with argparse."""

from __future__ import annotations

from fleettui.cli.options import plain_route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence


def parse_arguments(argv: Sequence[str]) -> Namespace:
    """Parse a command line. Raises SystemExit with argparse's codes (0 help, 2 usage)."""
    words = _expand_route_option(list(argv))
    if words[:1] == ["route"]:
        arguments = plain_route(words[1:])
        if arguments is not None:
            return arguments
    from fleettui.cli.grammar import build_parser

    arguments = build_parser().parse_args(words)
    arguments.command = getattr(arguments, "command", None)
    return arguments


def _expand_route_option(argv: list[str]) -> list[str]:
    """`--route MODEL …` is `route MODEL …`, wherever the option stands."""
    for position, word in enumerate(argv):
        if word == "--":
            break
        if word == "--route":
            return ["route", *argv[:position], *argv[position + 1 :]]
        if word.startswith("--route="):
            return ["route", word.removeprefix("--route="), *argv[:position], *argv[position + 1 :]]
    return argv
