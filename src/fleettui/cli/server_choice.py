"""Whether a command asks a running server instead of the machines, and which one."""

from __future__ import annotations

import os

from fleettui.cli.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from fleettui.model.server_place import ServerAccess

SERVER_KEYS = ("server", "server_token_file", "server_ca_file")
"""Settings; each has a variable too."""
_COMMANDS = frozenset({"route", "status", "events", "placement"})
"""And the dashboard, and `machines list`."""


def choose_server(arguments: Namespace, settings: Mapping[str, str | None]) -> ServerAccess | None:
    """The server that this command asks. Raises CommandError for options that do not go together.

    What the command line says of machine files beats a server of the settings.
    """
    named: str | None = getattr(arguments, "server", None)
    if getattr(arguments, "standalone", False):
        if named:
            raise CommandError("--standalone asks no server, and --server names one: leave out one of them")
        return None
    if not _can_ask(arguments):
        if named:
            raise CommandError(
                f"{_title(arguments)} does not go through a server", "leave out --server, or run it there"
            )
        return None
    has_folder = getattr(arguments, "machines", None) is not None
    if named and has_folder:
        raise CommandError(
            "--machines names machine files of this computer, and --server answers for its own",
            "leave out one of them",
        )
    text = named or settings.get("server")
    return None if not text or has_folder else _access(text, settings)


def _access(text: str, settings: Mapping[str, str | None]) -> ServerAccess:
    from fleettui.model.server_place import ServerAccess, ServerPlace, read_server_place

    try:
        place = read_server_place(text)
    except ValueError as error:
        raise CommandError(f"$FLEETTUI_SERVER {error}") from None
    if place.scheme == "unix":
        place = ServerPlace("unix", path=_absolute(place.path))
    files = [settings.get(key) for key in SERVER_KEYS[1:]]
    token_file, ca_file = (_absolute(path) if path else None for path in files)
    return ServerAccess(place, token_file, ca_file)


def _can_ask(arguments: Namespace) -> bool:
    command = getattr(arguments, "command", None)
    if command == "machines":
        return getattr(arguments, "verb", None) == "list" and not arguments.pending
    return command is None or command in _COMMANDS


def _title(arguments: Namespace) -> str:
    verb = getattr(arguments, "verb", None)
    return f"{arguments.command} {verb}" if verb else str(arguments.command)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - pathlib costs a warm --route 12 ms
