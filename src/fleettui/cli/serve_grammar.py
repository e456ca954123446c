"""The grammar of `fleettui serve`."""

from __future__ import annotations

from argparse import ArgumentParser

from fleettui.cli.verbs import Convert
from fleettui.serve.listening import DEFAULT_LISTEN, Place, parse_listen

DESCRIPTION = (
    "Poll the fleet and answer questions about it by HTTP, until interrupted. It answers programs on this\n"
    "machine, and changes nothing, unless you say otherwise. Addresses: /health, /api/machines,\n"
    "/api/infrastructure, /api/route?model=…, /api/plan, /api/events, /api/stream, /api/system; with their\n"
    "parameters, and those that change something: /api/openapi.json (docs/serve.md)."
)
CODES = (
    "exit codes:\n  0  --make-token made one; else never: it ends by a signal, with 128 and its number\n"
    "     (Ctrl+C: 130)\n"
    "  2  usage or configuration error: the port is in use, others may read a token file, reading would be\n"
    "     open to other machines, or fleettui[serve] is not installed\n\n"
    "examples:\n  curl -s http://127.0.0.1:3038/api/machines | jq '.machines[].name'\n"
    "  fleettui serve --allow-actions --socket ~/.fleettui/api.sock"
)


def add_serve_options(parser: ArgumentParser, as_type: Convert) -> None:
    """`as_type`: makes argparse print the sentence of a ValueError."""
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=as_type(_read_listen),
        default=DEFAULT_LISTEN,
        help=f"where to listen; port 0 takes a free one; none: only --socket (default {DEFAULT_LISTEN}). "
        "Beyond loopback reading takes a token, and TLS",
    )
    parser.add_argument(
        "--socket",
        metavar="PATH",
        help="listen on a Unix socket too, that only you can connect to; with --allow-actions no token is "
        "wanted there",
    )
    parser.add_argument(
        "--allow-actions",
        action="store_true",
        help="take changes too (maintenance, drains, approvals, leases), from whoever has a token, or at "
        "--socket",
    )
    parser.add_argument(
        "--token-file",
        dest="token_files",
        metavar="FILE",
        action="append",
        default=[],
        help="a file that only you may read: whoever sends its token may read, and with --allow-actions "
        "change; the file's name stands in the timeline (repeatable)",
    )
    parser.add_argument(
        "--read-token-file",
        dest="read_token_files",
        metavar="FILE",
        action="append",
        default=[],
        help="the same for whoever may only read (repeatable)",
    )
    parser.add_argument(
        "--mcp",
        action="store_true",
        help="speak MCP at /mcp too, for language models; --allow-actions holds there, too (docs/mcp.md)",
    )
    parser.add_argument(
        "--make-token", metavar="FILE", help="write a new token into a new file, and do nothing else"
    )
    parser.add_argument(
        "--tls-cert", metavar="FILE", help="certificate with its chain, PEM; read again when renewed"
    )
    parser.add_argument("--tls-key", metavar="FILE", help="its key, which not everybody may read")
    parser.add_argument(
        "--without-tls",
        action="store_true",
        help="beyond loopback without --tls-cert, because something else encrypts",
    )
    parser.add_argument(
        "--host-name",
        dest="host_names",
        metavar="NAME",
        action="append",
        default=[],
        type=as_type(_read_name),
        help="a name that clients ask by; others are refused, since web pages could use them (repeatable)",
    )


def _read_listen(text: str) -> Place | None:
    return None if text.strip().lower() == "none" else parse_listen(text)


def _read_name(text: str) -> str:
    name = text.strip().lower()
    if not name.isascii() or not name or not all(letter.isalnum() or letter in "-._" for letter in name):
        raise ValueError(f"{text!r} is no name of a host; leave out the port: fleet.example.com")
    return name
