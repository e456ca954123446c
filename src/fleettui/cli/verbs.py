"""What the grammars of commands with verbs share."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable

AddVerb = Callable[[str, str, str], ArgumentParser]
"""From name, description and exit codes to the parser of a verb."""
Convert = Callable[[Callable[[str], object]], Callable[[str], object]]
"""Makes a reader of values one that argparse can use: it prints the sentence of a ValueError."""


def add_json(parser: ArgumentParser) -> None:
    """`--json` of a command that prints one document."""
    parser.add_argument("--json", action="store_true", help="a JSON document")
