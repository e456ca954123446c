"""The grammar of `fleettui machines add|approve|reject|remove`."""

from __future__ import annotations

from argparse import ArgumentParser

from fleettui.cli.verbs import AddVerb, add_json

_CODES = (
    "exit codes:\n  0  done, or nothing was left to do\n  1  {negative}\n  2  usage or configuration error"
)


def add_trust_verbs(add_verb: AddVerb) -> None:
    """The verbs that change which machines belong to the fleet."""
    _add_add(add_verb)
    _add_approve(add_verb)
    _add_reject(add_verb)
    _add_remove(add_verb)


def _add_add(add_verb: AddVerb) -> None:
    parser = add_verb(
        "add",
        "Create a machine file. No machine is contacted; an existing file is never touched.\n"
        "A machine that is declared already is no error.",
        _CODES.format(negative="a file could not be created") + "\n\nA list (-f) has one machine a line:\n"
        "  [USER@]HOST[:PORT] [--name N] [--role R] [--tag T] [--fingerprint SHA256:…]\n"
        "Empty lines and what follows a # do not count. All of it is added, or nothing.",
    )
    parser.add_argument(
        "target", nargs="?", metavar="[USER@]HOST[:PORT]", help="where SSH goes; PORT is SSH's port"
    )
    add_machine_options(parser)
    parser.add_argument("-f", "--file", metavar="FILE", help="a list of machines; - reads standard input")
    add_json(parser)


def add_machine_options(parser: ArgumentParser) -> None:
    """What may be said of a machine on the command line and on a line of a list."""
    parser.add_argument("--name", metavar="N", help="name of the machine (default: the first part of HOST)")
    parser.add_argument("--role", metavar="R", help="its role (default gpu-host)")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="a tag (repeatable)")
    parser.add_argument(
        "--fingerprint", metavar="SHA256:…", help="the host key it will show: approved beforehand"
    )


def _add_approve(add_verb: AddVerb) -> None:
    parser = add_verb(
        "approve",
        "Approve a machine's host key. On a terminal the key is shown and you are asked. The key is read\n"
        "again before it is approved; if it is not the one shown or given, nothing is approved.",
        _CODES.format(negative="not approved: another key, or you said no")
        + "\n  3  unknown machine NAME\n  4  the machine did not answer",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="machines to approve")
    parser.add_argument(
        "--fingerprint", metavar="SHA256:…", help="approve this key and no other; one NAME only"
    )
    parser.add_argument(
        "--yes",
        action="store_true",
        help="do not ask: approve the key that `machines list --pending` shows; never a changed one",
    )
    add_json(parser)


def _add_reject(add_verb: AddVerb) -> None:
    parser = add_verb(
        "reject",
        "Ask nothing of a machine any more and remember its key. Its file stays.",
        _CODES.format(negative="not rejected: you said no") + "\n  3  unknown machine NAME",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="machines to reject")
    parser.add_argument("--yes", action="store_true", help="do not ask, also for an approved machine")
    add_json(parser)


def _add_remove(add_verb: AddVerb) -> None:
    parser = add_verb(
        "remove",
        "Forget that a machine was approved. Its models are not touched; its file stays unless you say\n"
        "otherwise. A machine that comes back is pending again, also where known_hosts has its key.",
        _CODES.format(negative="not removed: the name was not typed") + "\n  3  unknown machine NAME",
    )
    parser.add_argument("name", metavar="NAME", help="the machine to remove")
    parser.add_argument("--delete-file", action="store_true", help="delete its machine file too")
    parser.add_argument("--yes", action="store_true", help="do not ask for the typed name")
    add_json(parser)
