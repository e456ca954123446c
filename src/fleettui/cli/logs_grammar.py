"""The grammar of `fleettui logs`."""

from __future__ import annotations

import math
import time
from argparse import ArgumentParser

from fleettui.cli.verbs import Convert
from fleettui.fleet.moments import past_moment

DESCRIPTION = (
    "Print what a machine's kernel, engines and NVIDIA services wrote in the last 15 minutes, the GPU\n"
    "driver first. One login; nothing is changed on the machine, and nothing needs root there."
)
CODES = (
    "exit codes:\n  0  printed, also when nothing was written\n  1  there is no log that may be read\n"
    "  2  usage or configuration error\n  3  unknown machine NAME\n"
    "  4  the machine did not answer, or is not approved"
)
DEFAULT_SINCE_S = 900


def add_logs_options(parser: ArgumentParser, as_type: Convert) -> None:
    """`as_type`: makes argparse print the sentence of a ValueError."""
    parser.add_argument("name", metavar="MACHINE", help="whose log")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        type=as_type(seconds_since),
        default=DEFAULT_SINCE_S,
        help="from then on: 15m (default), 2h, 1d, 14:00, 2026-11-30 or 2026-11-30T14:00",
    )
    parser.add_argument(
        "--unit",
        metavar="U",
        type=as_type(unit_name),
        help="lines of this systemd unit alone, or of the `kernel` (default: kernel, engines, NVIDIA)",
    )
    parser.add_argument("--follow", action="store_true", help="go on with what comes, until Ctrl+C")
    parser.add_argument(
        "--json", action="store_true", help="a JSON document; with --follow one object a line"
    )


def seconds_since(text: str) -> int:
    """Whole seconds from a moment to now, at least 1. Raises ValueError."""
    return max(1, math.ceil(time.time() - past_moment(text) - 0.001))


def unit_name(text: str) -> str:
    """A name that may go to the machine. Raises ValueError."""
    from fleettui.probes.machine_logs import is_unit

    if not is_unit(text):
        raise ValueError(f"{text!r} is no name of a unit; write one such as ollama or vllm@qwen.service")
    return text
