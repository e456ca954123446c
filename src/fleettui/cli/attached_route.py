"""`route` answered by a running server. Light: scripts call it in loops."""

from __future__ import annotations

import time

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_OK, CommandError
from fleettui.cli.route_choice import read_min_free
from fleettui.cli.server_errors import command_error
from fleettui.fleet.attached.asking import ask_document, change_there, quoted
from fleettui.net.server_client import ServerError, no_server
from fleettui.view.text import clean

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


def route_there(arguments: Namespace, access: ServerAccess, started_at: float, *, is_readonly: bool) -> int:
    """Print what the server decided, as `route` prints it."""
    _check(arguments, access)
    if arguments.release is not None:
        if is_readonly:
            raise CommandError("--release ends a lease, and this fleettui is --readonly")
        return _release(arguments, access)
    question = _Question(arguments, access, is_readonly=is_readonly)
    try:
        found = _find(question, started_at)
    except ServerError as error:
        raise command_error(error) from None
    code, text, reasons = found.get("exit_code"), found.get("stdout"), found.get("reasons")
    if not isinstance(code, int) or not isinstance(text, str) or not isinstance(reasons, list):
        raise command_error(no_server(access.place, "an answer of another form"))
    if text:
        output.write_text(text)
    if not arguments.quiet:
        diagnostics.say(f"via server {access.place.text}", *(clean(str(reason)) for reason in reasons))
        if code == 0 and not arguments.no_lease and found.get("leased") is not True:
            diagnostics.say(f"note: no lease was taken: {question.why_no_lease}")
    return code


def _check(arguments: Namespace, access: ServerAccess) -> None:
    """Raises CommandError for what only works from here."""
    reasons = {
        "--warm": arguments.warm and "a model is loaded over SSH, from here",
        "--check-reachable": arguments.check_reachable and "addresses are tried from here",
        "--max-age 0": arguments.max_age == 0 and "it polls now, and a server polls at its own pace",
    }
    for option, why in reasons.items():
        if why:
            raise CommandError(
                f"{option} does not go through the server {access.place.text}: {why}",
                "ask from here: --standalone",
            )


class _Question:
    """What is asked, and whether the server may be asked for a lease."""

    def __init__(self, arguments: Namespace, access: ServerAccess, *, is_readonly: bool) -> None:
        read_min_free(arguments)
        self.arguments = arguments
        self.access = access
        self.why_no_lease = "a server gives one only to whoever has a token (server_token_file) or its socket"
        has_credentials = access.token_file is not None or access.place.scheme == "unix"
        if is_readonly:
            self.why_no_lease = "this fleettui is --readonly"
        wants_lease = not arguments.no_lease and not is_readonly
        self._may_lease = wants_lease and (has_credentials or arguments.hold is not None)

    def ask(self, timeout_s: float) -> dict[str, Any]:
        """The server's answer. Raises ServerError."""
        arguments, access = self.arguments, self.access
        fields = self._fields()
        if self._may_lease:
            try:
                held = [*fields, ("hold", arguments.hold)] if arguments.hold is not None else fields
                return change_there(access, "/api/attach/lease", held, timeout_s)
            except ServerError as error:
                if error.status not in (401, 403) or arguments.hold is not None:  # asked for by name
                    raise
                self._may_lease, self.why_no_lease = False, error.text
        query: list[tuple[str, object]] = [("no_lease", 1)] if arguments.no_lease else []
        for name, value in fields:
            query += [(name, item) for item in value] if isinstance(value, list) else [(name, value)]
        return ask_document(access, "/api/attach/route", query, timeout_s)

    def _fields(self) -> list[tuple[str, object]]:
        arguments = self.arguments
        form = "json" if arguments.json else arguments.format
        fields: list[tuple[str, object]] = [("model", arguments.model), ("format", form)]
        for name in ("min_free_vram", "context", "sticky", "max_age"):
            value = getattr(arguments, name)
            if value is not None:
                fields.append((name, value))
        for name in ("require_loaded", "avoid_busy", "allow_pull"):
            if getattr(arguments, name):
                fields.append((name, True))
        fields += [
            (name, getattr(arguments, name)) for name in ("tag", "exclude") if getattr(arguments, name)
        ]
        return [*fields, ("free_scope", arguments.free_scope), ("top", arguments.top)]


def _find(question: _Question, started_at: float) -> dict[str, Any]:
    """The answer; with `--wait` the first that chooses a machine, or the last in its time."""
    arguments = question.arguments
    until = started_at + (arguments.wait or 0.0)
    word_at = started_at
    while True:
        timeout_s = arguments.deadline
        if arguments.wait is not None:
            timeout_s = max(1.0, min(timeout_s, until - time.time()))
        found: dict[str, Any] | None = None
        try:
            found = question.ask(timeout_s)
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


def _release(arguments: Namespace, access: ServerAccess) -> int:
    """End a lease there. One that is over already is exit 1, as here."""
    lease_id = arguments.release.strip().lower()
    released: str | None = lease_id
    try:
        change_there(access, f"/api/leases/{quoted(lease_id)}/release", ())
    except ServerError as error:
        if error.status != 404:
            raise command_error(error) from None
        released = None
        if not arguments.quiet:
            diagnostics.say_error("route", error.text)
    exit_code = EXIT_OK if released is not None else EXIT_NEGATIVE
    if arguments.json or arguments.format == "json":
        output.write_document({"schema": 1, "released": released, "exit_code": exit_code})
    return exit_code
