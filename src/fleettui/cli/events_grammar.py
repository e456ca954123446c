"""The grammar of `fleettui events`."""

from __future__ import annotations

from argparse import ArgumentParser

from fleettui.cli.verbs import Convert
from fleettui.fleet.moments import past_moment
from fleettui.model.event import EVENT_KINDS

DESCRIPTION = (
    "Print the fleet's timeline: health changes, loads, evictions, decisions, edited files.\n"
    "A running dashboard, `serve` or `status --watch` records it; without --since the last day is printed."
)
CODES = (
    "exit codes:\n  0  printed, also when nothing happened\n  1  the state file cannot be read\n"
    "  2  usage or configuration error\n  3  unknown machine NAME"
)


def add_events_options(parser: ArgumentParser, as_type: Convert) -> None:
    """`as_type`: makes argparse print the sentence of a ValueError."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only events of these machines")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        type=as_type(past_moment),
        help="from then on: 30m, 2h, 1d, 14:00, 2026-11-30 or 2026-11-30T14:00",
    )
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        metavar="K",
        choices=EVENT_KINDS,
        help=f"only this kind (repeatable): {', '.join(EVENT_KINDS)}",
    )
    parser.add_argument(
        "--follow", action="store_true", help="the last 10, or those --since, then each new one as it comes"
    )
    parser.add_argument(
        "--json", action="store_true", help="a JSON document; with --follow one object a line"
    )
