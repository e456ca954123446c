"""`route` answered by a running server. Light: scripts call it in loops."""

from __future__ import annotations

import time

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import CommandError
from fleettui.cli.route_choice import read_min_free
from fleettui.cli.server_errors import command_error
from fleettui.fleet.attached.asking import ask_document
from fleettui.net.server_client import ServerError, no_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from fleettui.model.server_place import ServerAccess

LOOK_S = 1.0
"""Between two questions of `--wait`."""
WORD_S = 30.0
"""Between two words that the waiting goes on."""
_MAY_CHANGE = (1, 4)
"""Nobody is eligible, no machine gave usable data."""


def route_there(arguments: Namespace, access: ServerAccess, started_at: float) -> int:
    """Print what the server decided, as `route` prints it."""
    _check(arguments, access)
    query = _query_of(arguments)
    try:
        found = _find(arguments, access, query, started_at)
    except ServerError as error:
        raise command_error(error) from None
    code, text, reasons = found.get("exit_code"), found.get("stdout"), found.get("reasons")
    if not isinstance(code, int) or not isinstance(text, str) or not isinstance(reasons, list):
        raise command_error(no_server(access.place, "an answer of another form"))
    if text:
        output.write_text(text)
    if not arguments.quiet:
        diagnostics.say(f"via server {access.place.text}", *map(str, reasons))
        if code == 0 and not arguments.no_lease:
            diagnostics.say("note: no lease was taken: a server is only asked, nothing is changed there")
    return code


def _check(arguments: Namespace, access: ServerAccess) -> None:
    """Raises CommandError for what only works from here."""
    reasons = {
        "--release": arguments.release is not None and "leases are in the state of this computer",
        "--warm": arguments.warm and "loading a model changes a machine, and a server is only asked",
        "--hold": arguments.hold is not None and "it says how long a lease holds, and a server gives none",
        "--check-reachable": arguments.check_reachable and "addresses are tried from here",
        "--max-age 0": arguments.max_age == 0 and "it polls now, and a server polls at its own pace",
    }
    for option, why in reasons.items():
        if why:
            raise CommandError(
                f"{option} does not go through the server {access.place.text}: {why}",
                "ask from here: --standalone",
            )


def _query_of(arguments: Namespace) -> list[tuple[str, object]]:
    read_min_free(arguments)
    form = "json" if arguments.json else arguments.format
    query: list[tuple[str, object]] = [("model", arguments.model), ("format", form)]
    for name in ("min_free_vram", "context", "sticky", "max_age"):
        value = getattr(arguments, name)
        if value is not None:
            query.append((name, value))
    for name in ("require_loaded", "avoid_busy", "allow_pull", "no_lease"):
        if getattr(arguments, name):
            query.append((name, 1))
    for name in ("tag", "exclude"):
        query += [(name, value) for value in getattr(arguments, name)]
    return [*query, ("free_scope", arguments.free_scope), ("top", arguments.top)]


def _find(
    arguments: Namespace, access: ServerAccess, query: list[tuple[str, object]], started_at: float
) -> dict[str, Any]:
    """The answer; with `--wait` the first that chooses a machine, or the last in its time."""
    until = started_at + (arguments.wait or 0.0)
    word_at = started_at
    while True:
        timeout_s = arguments.deadline
        if arguments.wait is not None:
            timeout_s = max(1.0, min(timeout_s, until - time.time()))
        found: dict[str, Any] | None = None
        try:
            found = ask_document(access, "/api/attach/route", query, timeout_s)
        except ServerError as error:
            if not error.is_absent or time.time() >= until:
                raise
        if found is not None and (found.get("exit_code") not in _MAY_CHANGE or time.time() >= until):
            return found
        if not arguments.quiet and time.time() >= word_at:
            word_at = time.time() + WORD_S
            what = "no machine is eligible" if found is not None else "the server does not answer"
            left_s = max(0.0, until - time.time())
            diagnostics.say(f"{what} for {arguments.model!r} yet; waiting up to {left_s:.0f} s")
        time.sleep(max(0.0, min(LOOK_S, until - time.time())))
