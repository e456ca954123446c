"""Who may ask, and how much: in front of every address. A web page of somebody else may not."""

from __future__ import annotations

import ipaddress
import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleettui.serve.answers import ApiError
from fleettui.serve.permission import Access, note_caller

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_HEADER_BYTES = 16 << 10
MAX_REQUESTS = 512
"""At once, streams too; more are answered 503."""

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]

log = logging.getLogger(__name__)


class Guard:
    """ASGI middleware around the whole application. No answer is ever a traceback."""

    def __init__(self, app: ASGIApp, access: Access | None = None) -> None:
        self._app = app
        self._access = Access() if access is None else access
        self._requests = 0

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

        self._requests += 1
        try:
            self._check(scope)
            self._identify(scope)
            await self._app(scope, receive, guarded)
        except ApiError as error:
            await error.answer()(scope, receive, guarded)
        except Exception as error:
            log.exception("%s %s failed", scope["method"], scope["path"])
            if has_begun:
                raise  # the connection ends: half an answer must not look like a whole one
            await _defect(error, scope["path"]).answer()(scope, receive, guarded)
        finally:
            self._requests -= 1

    def _identify(self, scope: Scope) -> None:
        """Note who asks. Raises ApiError for a wrong token, and where a token is missing."""
        scope.setdefault("state", {})
        caller = self._access.identify(scope)
        caller.check_reading(scope["path"][:200])
        note_caller(scope, caller)

    def _check(self, scope: Scope) -> None:
        """Raises ApiError."""
        if self._requests > MAX_REQUESTS:
            raise ApiError(
                503, "too_many_requests", f"{MAX_REQUESTS} requests are being answered",
                hint="ask again later; one stream can serve many readers", headers={"retry-after": "1"},
            )  # fmt: skip
        size = len(scope["raw_path"]) + len(scope["query_string"])
        if size + sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
            raise ApiError(  # h11 limits only what comes in parts
                431, "headers", f"request line and headers are longer than {MAX_HEADER_BYTES} bytes",
                hint="send less", headers={"connection": "close"},
            )  # fmt: skip
        headers = [(name, value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not is_own_host(hosts[0]):
            raise ApiError(
                403, "wrong_host", "the Host header names no address of this machine",
                where=", ".join(hosts)[:200],
                why="a web page whose name leads here could read the fleet otherwise",
                hint="ask by 127.0.0.1, [::1] or localhost, also through an SSH tunnel",
            )  # fmt: skip
        for name, value in headers:
            if name == b"origin" and not is_own_origin(value):
                raise ApiError(
                    403, "wrong_origin", "a web page of another origin may not ask", where=value[:200],
                    why="it could read the fleet on behalf of whoever has it open",
                    hint="ask without an Origin header",
                )  # fmt: skip
            if name == b"transfer-encoding" or (name == b"content-length" and value.strip() != "0"):
                raise ApiError(
                    413, "body", "this server takes no request body",
                    why="it only answers questions",
                    hint="parameters stand in the query string", headers={"connection": "close"},
                )  # fmt: skip


def is_own_host(text: str) -> bool:
    """`localhost`, `127.0.0.1`, `[::1]`, with any port: that of an SSH tunnel is another one."""
    try:
        parts = urlsplit(f"//{text}")
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.netloc != text or parts.username is not None:
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_own_origin(text: str) -> bool:
    """A page that this machine itself serves."""
    scheme, separator, host = text.partition("://")
    return bool(separator) and scheme in ("http", "https") and is_own_host(host)


def _defect(error: Exception, path: str) -> ApiError:
    return ApiError(
        500, "internal", f"internal error: {type(error).__name__}", where=path[:200],
        why="a defect of fleettui, told in its log", hint="please report it with the lines of the log",
    )  # fmt: skip
