"""`fleettui machines add`: one machine, or a list of them."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import NoReturn

from fleettui.cli.errors import CommandError
from fleettui.cli.grammar import Parser
from fleettui.cli.machines_grammar import add_machine_options
from fleettui.cli.trust import changing_folders, finish, make_desk, run
from fleettui.fleet.machine_adding import AddError, AddRequest, LineProblem, add_machines
from fleettui.fleet.trust_words import TrustError


def add_command(arguments: Namespace) -> int:
    """Create the machine files, all of them or none."""
    folders = changing_folders(arguments)
    requests, problems = _requests(arguments)
    desk = make_desk(folders)
    try:
        how = "bulk" if arguments.file else "add"
        results = run(desk, add_machines(desk, requests, how, problems))
    except AddError as error:
        place = f"{arguments.file}: " if arguments.file else ""
        raise CommandError(f"{place}nothing was added: {error.texts[0]}", *error.texts[1:]) from None
    except TrustError as error:
        return finish(arguments, [], [error])
    return finish(arguments, results, [])


def _requests(arguments: Namespace) -> tuple[list[AddRequest], list[LineProblem]]:
    if arguments.file is None:
        if arguments.target is None:
            raise CommandError("which machine? name [USER@]HOST[:PORT], or a list of machines with -f FILE")
        return [_request(arguments, None)], []
    if arguments.target or arguments.name or arguments.role or arguments.tag or arguments.fingerprint:
        raise CommandError("with -f everything about a machine stands in the list, one machine a line")
    return _read_list(arguments.file)


def _request(arguments: Namespace, line: int | None) -> AddRequest:
    return AddRequest(
        arguments.target, arguments.name, arguments.role, tuple(arguments.tag), arguments.fingerprint, line
    )


def _read_list(file: str) -> tuple[list[AddRequest], list[LineProblem]]:
    """The machines of a list, and the lines that cannot be read. Raises CommandError."""
    if file == "-" and sys.stdin is None:
        raise CommandError("the list cannot be read: standard input is closed", "name a file: -f FILE")
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file}: the list cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise CommandError(f"{file}: the list is no text in UTF-8") from None
    parser = _LineParser(add_help=False, allow_abbrev=False)
    parser.add_argument("target")
    add_machine_options(parser)
    requests: list[AddRequest] = []
    problems: list[LineProblem] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
            if words:
                requests.append(_request(parser.parse_args(words), number))
        except ValueError as error:
            problems.append((number, str(error)))
    if not requests and not problems:
        raise CommandError(f"{file}: no machine in this list; write [USER@]HOST[:PORT], one a line")
    return requests, problems


class _LineParser(Parser):
    """Says what is wrong with a line instead of ending the program."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)
