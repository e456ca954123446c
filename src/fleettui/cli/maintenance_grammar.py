"""The grammar of `fleettui maintenance on|off`."""

from __future__ import annotations

from argparse import ArgumentParser

from fleettui.cli.verbs import AddVerb, add_json

_CODES = (
    "exit codes:\n  0  done, or it stood so already\n  2  usage or configuration error\n"
    "  3  unknown MACHINE: nothing was done about the others either"
)


def add_maintenance_verbs(add_verb: AddVerb) -> None:
    """`on` and `off`."""
    on = add_verb(
        "on",
        "Take machines out of routing. They are polled as before, and nothing is unloaded or changed on\n"
        "them. The flag stays until you take it away, also past --until and over restarts.",
        f"{_CODES}\n\nexample:\n  fleettui maintenance on cleo --reason 'fan swap' --until 14:00",
    )
    _add_names(on)
    on.add_argument("--reason", metavar="TEXT", help="why; shown wherever the machine is")
    on.add_argument(
        "--until",
        metavar="WHEN",
        help="when it should be over: 2h, 30m, 1d, 14:00, 2026-12-01T08:00; then it shows as overdue",
    )
    add_json(on)
    off = add_verb("off", "Bring machines back into routing.", _CODES)
    _add_names(off)
    add_json(off)


def _add_names(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="MACHINE", help="names of machines")
