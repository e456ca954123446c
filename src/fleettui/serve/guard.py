"""Who may ask, and how much: in front of every address. A web page of somebody else may not."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleettui.serve.answers import ApiError
from fleettui.serve.listening import read_address
from fleettui.serve.permission import WRONG_TOKEN, Access, note_caller
from fleettui.serve.rates import Rate, client_key

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from fleettui.serve.audit import Audit

MAX_HEADER_BYTES = 16 << 10
MAX_BODY_BYTES = 64 << 10
MAX_REQUESTS = 512
"""At once, streams too; more are answered 503."""
REQUESTS_PER_S, REQUESTS_AT_ONCE = 500.0, 5000
"""Of one client; all programs of this machine are one. A reader that loops without a pause is told so."""
WRONG_TOKENS_PER_S, WRONG_TOKENS_AT_ONCE = 0.2, 10
"""Of one client. Right ones always count: else whoever shares an address could lock out the others."""
READING = ("GET", "HEAD")

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]

log = logging.getLogger(__name__)


class Guard:
    """ASGI middleware around the whole application. No answer is ever a traceback."""

    def __init__(self, app: ASGIApp, access: Access | None = None, audit: Audit | None = None) -> None:
        self._app = app
        self._access = Access() if access is None else access
        self._audit = audit
        self._requests = 0
        self._rate = Rate(REQUESTS_PER_S, REQUESTS_AT_ONCE)
        self._wrong_tokens = Rate(WRONG_TOKENS_PER_S, WRONG_TOKENS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        has_begun = False

        async def guarded(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = [*message.get("headers", ()), *HEADERS]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": headers}
            await send(message)

        scope.setdefault("state", {})
        self._requests += 1
        try:
            self._admit(scope)
            await self._app(scope, _limited(receive), guarded)
        except (Exception, asyncio.CancelledError) as error:
            told = _answer_to(error, scope)
            if has_begun:
                raise  # the connection ends: half an answer must not look like a whole one
            await told.answer()(scope, receive, guarded)
        finally:
            self._requests -= 1

    def _admit(self, scope: Scope) -> None:
        """Raises ApiError; a change that is refused here is told in the timeline, and so is a wrong token."""
        try:
            self._check_load(scope)
            self._check_headers(scope)
            self._identify(scope)
        except ApiError as error:
            is_worth_telling = scope["method"] not in READING or error.error["code"] == WRONG_TOKEN
            if self._audit is not None and is_worth_telling and error.status != 503:
                address = client_key(scope)
                what = "a wrong token" if error.error["code"] == WRONG_TOKEN else "a change"
                self._audit.note_refusal(f"server: somebody at {address}", address, what, error)
            raise

    def _identify(self, scope: Scope) -> None:
        """Note who asks. Raises ApiError for a wrong token, and where a token is missing."""
        try:
            caller = self._access.identify(scope)
        except ApiError:
            wait_s = self._wrong_tokens.take(client_key(scope))
            if wait_s:
                raise _too_many("too many wrong tokens came from there", wait_s) from None
            raise
        caller.check_reading(scope["path"][:200])
        note_caller(scope, caller)

    def _check_load(self, scope: Scope) -> None:
        """Raises ApiError."""
        if self._requests > MAX_REQUESTS:
            raise ApiError(
                503, "too_many_requests", f"{MAX_REQUESTS} requests are being answered",
                hint="ask again later; one stream can serve many readers", headers={"retry-after": "1"},
            )  # fmt: skip
        wait_s = self._rate.take(client_key(scope))
        if wait_s:
            raise _too_many("more requests come from there than are answered", wait_s)
        size = len(scope["raw_path"]) + len(scope["query_string"])
        if size + sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
            raise ApiError(  # h11 limits only what comes in parts
                431, "headers", f"request line and headers are longer than {MAX_HEADER_BYTES} bytes",
                hint="send less", headers={"connection": "close"},
            )  # fmt: skip

    def _check_headers(self, scope: Scope) -> None:
        """Raises ApiError."""
        headers = [(name, value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._is_own(hosts[0], scope):
            raise ApiError(
                403, "wrong_host", "the Host header names no address of this machine",
                where=", ".join(hosts)[:200],
                why="a web page whose name leads here could read the fleet otherwise",
                hint="ask by 127.0.0.1, [::1] or localhost, also through an SSH tunnel; by the address it "
                "listens on; by another name that leads here: --host-name",
            )  # fmt: skip
        for name, value in headers:
            if name == b"origin" and not is_own_origin(value, hosts[0]):
                raise ApiError(
                    403, "wrong_origin", "a web page of another origin may not ask", where=value[:200],
                    why="it could read the fleet, or change it, on behalf of whoever has it open",
                    hint="ask without an Origin header",
                )  # fmt: skip
            if name == b"transfer-encoding" or (name == b"content-length" and value.strip() != "0"):
                _check_body(scope["method"], name, value)

    def _is_own(self, host: str, scope: Scope) -> bool:
        if is_own_host(host):
            return True
        name, server = host_of(host), scope.get("server") or ("",)
        if name is None:
            return False
        # A name may be made to lead here by anybody, the address that it was asked at is not.
        return name in self._access.host_names or _is_address(name, str(server[0]))


def _is_address(text: str, of_server: str) -> bool:
    address = read_address(text)
    return address is not None and address == read_address(of_server)


def _check_body(method: str, name: bytes, value: str) -> None:
    """Raises ApiError for a body that is not taken, before it is read."""
    if method != "POST":
        raise ApiError(
            413, "body", "a request that changes nothing has no body",
            hint="parameters stand in the query string", headers={"connection": "close"},
        )  # fmt: skip
    if name == b"content-length" and not (value.isascii() and value.isdecimal() and len(value) < 10):
        raise _too_long()
    if name == b"content-length" and int(value) > MAX_BODY_BYTES:
        raise _too_long()


def _limited(receive: Receive) -> Receive:
    """The same, which raises ApiError where a body in pieces is too long."""
    received = 0

    async def take() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MAX_BODY_BYTES:
            raise _too_long()
        return message

    return take


def _too_long() -> ApiError:
    return ApiError(
        413, "body", f"the body is longer than {MAX_BODY_BYTES} bytes", hint="send less",
        headers={"connection": "close"},
    )  # fmt: skip


def _too_many(what: str, wait_s: float) -> ApiError:
    return ApiError(
        429, "too_many", what, hint="ask again after the seconds of Retry-After",
        headers={"retry-after": str(int(wait_s) + 1), "connection": "close"},
    )  # fmt: skip


def is_own_host(text: str) -> bool:
    """`localhost`, `127.0.0.1`, `[::1]`, with any port: that of an SSH tunnel is another one."""
    host = host_of(text)
    if host is None:
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(text: str) -> str | None:
    """The name or address of a Host header, in lower case, without port and brackets; None: it is none."""
    try:
        parts = urlsplit(f"//{text}")
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    return host if host and parts.netloc == text and parts.username is None else None


def is_own_origin(text: str, host: str) -> bool:
    """A page that comes from where the request goes to, by the request's Host header."""
    scheme, separator, origin = text.partition("://")
    return bool(separator) and scheme in ("http", "https") and origin.lower() == host.lower()


def _answer_to(error: BaseException, scope: Scope) -> ApiError:
    """What is told of a request that failed; a defect is logged here, uvicorn says nothing."""
    if isinstance(error, ApiError):
        return error
    request = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and request is not None and request.cancelling():
        return ApiError(
            503, "ending", "the server ends", where=scope["path"][:200],
            why="it does not wait any longer for this answer",
            hint="ask again when it is back; whether a change was made is in the timeline: GET /api/events",
            headers={"retry-after": "2", "connection": "close"},
        )  # fmt: skip
    log.error("%s %s failed", scope["method"], scope["path"][:200], exc_info=error)
    return defect_answer(error, scope["path"])


def defect_answer(error: BaseException, path: str) -> ApiError:
    """500, without the words of a defect."""
    return ApiError(
        500, "internal", f"internal error: {type(error).__name__}", where=path[:200],
        why="a defect of fleettui, told in its log", hint="please report it with the lines of the log",
    )  # fmt: skip
