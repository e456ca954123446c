"""May this caller read, may this caller act: decided once for each request, in front of every address.

`Guard` asks `Access.identify` and puts the `Caller` into the request: whatever is behind it, an address of
the API or an application that is mounted there, finds it with `caller_of(request.scope)`. Before anything
is changed: `caller.check_acting(where)`, which raises the ApiError to answer. What cannot be done is known
beforehand by `may_act` and `why_not` (`GET /api/access` has them). `caller.name` goes into `by` of every
operation. A program that serves one user over its own stdin (MCP) makes its caller with `own_caller`.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fleettui.fleet.trust_words import operator_name
from fleettui.model.record import dataclass
from fleettui.serve.answers import ApiError

if TYPE_CHECKING:
    from fleettui.serve.tokens import TokenBook

PEER = "peer_uid"
"""In a request's `state`: the user at the other end of the Unix socket. Absent on TCP."""
_CALLER = "caller"
ACTIONS_OFF = "actions are off: the server was started without --allow-actions"
OWN_ACTIONS_OFF = "actions are off: fleettui mcp was started without --allow-actions"
NO_TOKEN = "it takes a bearer token (--token-file) or the server's Unix socket (--socket)"  # noqa: S105 - words
WRONG_TOKEN = "wrong_token"  # noqa: S105 - a code
READS_ONLY = "this token only allows reading"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request, as far as that is proven."""

    name: str
    """For the timeline: `server: token ops`, `server: mia (uid 1000)`, `server: somebody at 127.0.0.1`."""
    may_read: bool
    may_act: bool
    why_not: str = ""
    """Why it may not act; empty where it may."""
    is_known: bool = True
    """It has proven who it is: by a token, or at the Unix socket."""
    address: str = ""
    """Where the request comes from; empty: not from the network."""

    def check_acting(self, where: str) -> None:
        """Raises ApiError, 401 or 403, unless it may change something."""
        if self.may_act:
            return
        what = "changes are refused"
        if self.why_not == ACTIONS_OFF:
            hint = "start it with --allow-actions and --token-file or --socket, or use the command line"
            raise ApiError(403, "actions_off", what, where=where, why=self.why_not, hint=hint)
        if self.why_not == OWN_ACTIONS_OFF:
            hint = "whoever set up the client may add --allow-actions, or use the command line"
            raise ApiError(403, "actions_off", what, where=where, why=self.why_not, hint=hint)
        if self.is_known:
            hint = "use a token of --token-file, not of --read-token-file"
            raise ApiError(403, "may_not_act", what, where=where, why=self.why_not, hint=hint)
        raise ask_for_token(what, where, self.why_not)

    def check_reading(self, where: str) -> None:
        """Raises ApiError, 401, unless it may read."""
        if not self.may_read:
            raise ask_for_token("reading is refused", where, "this server can be reached from other machines")


def ask_for_token(what: str, where: str, why: str, code: str = "token") -> ApiError:
    """401, as clients know it."""
    hint = "send the header Authorization: Bearer TOKEN, with the one line of the token file"
    headers = {"www-authenticate": 'Bearer realm="fleettui"'}
    return ApiError(401, code, what, where=where, why=why, hint=hint, headers=headers)


def own_caller(*, may_act: bool) -> Caller:
    """Of a program that runs for the user who started it, and is asked by nobody else."""
    return Caller(operator_name(), True, may_act, "" if may_act else OWN_ACTIONS_OFF)


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """Who sent this request: `Guard` found out."""
    caller: Caller = scope["state"][_CALLER]
    return caller


def note_caller(scope: Mapping[str, Any], caller: Caller) -> None:
    """For `caller_of`."""
    scope["state"][_CALLER] = caller


class Access:
    """What a server allows, and to whom."""

    def __init__(
        self,
        tokens: TokenBook | None = None,
        *,
        allows_actions: bool = False,
        is_reading_open: bool = True,
        host_names: Iterable[str] = (),
    ) -> None:
        """`is_reading_open`: whoever reaches it by TCP may read, as on loopback. `host_names`: names by which
        it may be asked there, beside its address and those of loopback."""
        self.tokens = tokens
        self.allows_actions = allows_actions
        self.is_reading_open = is_reading_open
        self.host_names = frozenset(name.lower() for name in host_names)

    def identify(self, scope: Mapping[str, Any]) -> Caller:
        """Who asks. Raises ApiError, 401, for a token that is none: it must not count as nobody's."""
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        uid: int | None = scope["state"].get(PEER)
        if given and self.tokens:  # without tokens such a header is a habit of the client
            return self._bearer(given, scope)
        if uid is not None and uid in (0, os.geteuid()):  # its mode says the same
            return self._known(f"server: {_user_name(uid)} (uid {uid})", may_act=True)
        address = _address_of(scope)
        name = f"server: somebody at {address or 'an unknown address'}"
        why_not = NO_TOKEN if self.allows_actions else ACTIONS_OFF
        may_read = self.is_reading_open and uid is None
        return Caller(name, may_read, False, why_not, is_known=False, address=address)

    def _bearer(self, given: list[bytes], scope: Mapping[str, Any]) -> Caller:
        scheme, _, token = given[0].decode("latin-1").partition(" ")
        file = None
        if len(given) == 1 and scheme.lower() == "bearer" and self.tokens:
            file = self.tokens.find(token.strip(" "))
        if file is None:
            what, why = "the Authorization header is refused", "it has no token of this server"
            raise ask_for_token(what, scope["path"][:200], why, WRONG_TOKEN)
        return self._known(f"server: token {file.name}", _address_of(scope), may_act=file.may_act)

    def _known(self, name: str, address: str = "", *, may_act: bool) -> Caller:
        why_not = ACTIONS_OFF if not self.allows_actions else "" if may_act else READS_ONLY
        return Caller(name, True, not why_not, why_not, address=address)


def _address_of(scope: Mapping[str, Any]) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "unknown"
