"""The grammar of `fleettui serve`."""

from __future__ import annotations

from argparse import ArgumentParser

from fleettui.cli.verbs import Convert
from fleettui.serve.listening import DEFAULT_LISTEN, parse_listen

DESCRIPTION = (
    "Poll the fleet and answer questions about it by HTTP, until interrupted. It changes nothing, and\n"
    "answers programs on this machine only. Addresses: /health, /api/machines, /api/infrastructure,\n"
    "/api/route?model=…, /api/plan, /api/events, /api/stream, /api/system; with their parameters:\n"
    "/api/openapi.json (docs/serve.md)."
)
CODES = (
    "exit codes:\n  0  never: it ends by a signal, with 128 and its number (Ctrl+C: 130)\n"
    "  2  usage or configuration error: the port is in use, or fleettui[serve] is not installed\n\n"
    "example:\n  curl -s http://127.0.0.1:3038/api/machines | jq '.machines[].name'"
)


def add_serve_options(parser: ArgumentParser, as_type: Convert) -> None:
    """`as_type`: makes argparse print the sentence of a ValueError."""
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=as_type(parse_listen),
        default=DEFAULT_LISTEN,
        help=f"where to listen, on loopback; port 0 takes a free one (default {DEFAULT_LISTEN})",
    )
