"""The grammar of `fleettui fit`."""

from __future__ import annotations

from argparse import ArgumentParser

from fleettui.cli.options import positive_seconds, seconds
from fleettui.cli.verbs import Convert
from fleettui.model.fit import CACHE_TYPES, MAX_PARALLEL
from fleettui.model.sizes import parse_tokens

DESCRIPTION = (
    "Show on which machines MODEL fits, and how: on one GPU, on several, with evictions, with CPU offload."
)
CODES = """What it takes stands beside what Ollama predicts: it evicts and spreads by its own figure. Each
figure has its basis: measured here, a copy on another machine, tensors and cache, catalog, file size.

exit codes:
  0  fits on a machine
  1  fits nowhere now
  2  usage or configuration error
  3  model unknown: on no machine, in no machine file, in no catalog
  4  no machine gave usable data (offline, timeout, stale, pending): check the network

example:
  fleettui fit llama3.1:70b --context 32768 --parallel 2"""


def add_fit_options(parser: ArgumentParser, convert: Convert) -> None:
    """What `fit` takes; `convert` makes a reader of values one that argparse can use."""
    parser.add_argument("model", metavar="MODEL", help="name[:tag] as for route, or its id in the catalog")
    parser.add_argument(
        "--context",
        metavar="N",
        type=convert(parse_tokens),
        help="tokens of one request: 8192, 32k (default: what each server is set to)",
    )
    parser.add_argument(
        "--parallel",
        metavar="N",
        type=convert(requests),
        help="requests at once on the copy (default: OLLAMA_NUM_PARALLEL where it can be read, else 1)",
    )
    parser.add_argument(
        "--cache-type",
        choices=CACHE_TYPES,
        help="type of the KV cache (default: OLLAMA_KV_CACHE_TYPE where it can be read, else f16)",
    )
    parser.add_argument(
        "--machine",
        dest="names",
        action="append",
        default=[],
        metavar="NAME",
        help="only this machine (repeatable)",
    )
    parser.add_argument(
        "--tag", action="append", default=[], metavar="T", help="only machines with this tag (repeatable)"
    )
    parser.add_argument("--json", action="store_true", help="a JSON document; printed on failure too")
    parser.add_argument(
        "--max-age",
        metavar="S",
        type=convert(seconds),
        help="oldest data to answer from; 0 polls now (default: 2 intervals of whoever stored it)",
    )
    parser.add_argument(
        "--deadline",
        metavar="S",
        type=convert(positive_seconds),
        default=10.0,
        help="seconds to wait for machines when polling (default 10)",
    )


def requests(text: str) -> int:
    """`4`."""
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not 0 < int(text) <= MAX_PARALLEL:
        raise ValueError(f"{text!r} is not a number of requests from 1 to {MAX_PARALLEL}")
    return int(text)
