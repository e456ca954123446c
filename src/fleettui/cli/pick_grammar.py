"""The grammar of `fleettui pick`."""

from __future__ import annotations

from argparse import ArgumentParser

PICK_FORMATS = ("address", "host", "name", "url", "env")

DESCRIPTION = (
    "Pick a machine in a list on the terminal and print it. With MODEL: those that can serve it, best first."
)
CODES = """stdout is exactly one line, the answer; the list is drawn on stderr, or on /dev/tty.
What is typed filters at once; Enter picks, Esc leaves.

exit codes:
  0  picked
  1  left without a choice
  2  usage or configuration error, or there is no terminal
  3  model unknown: on no machine, in no file or catalog, and every approved machine answered
  4  no machine gave usable data (offline, timeout, pending): check the network

example:
  OLLAMA_HOST=$(fleettui pick llama3.1:70b) ollama run llama3.1:70b"""


def add_pick_options(parser: ArgumentParser) -> None:
    """What `pick` takes."""
    parser.add_argument(
        "model", metavar="MODEL", nargs="?", help="name[:tag] as for route; without it every machine is there"
    )
    parser.add_argument(
        "--format",
        choices=PICK_FORMATS,
        default="address",
        help="form of the answer (default: address, HOST:PORT)",
    )
