"""Questions to a running `fleettui serve`, one connection each: http, https or a Unix socket.

For scripts that call `--route` in loops: `socket` takes 9 ms of CPU to load and http.client 39, where Python
itself takes 15. So the C module below `socket` is used as it is, and ssl is loaded for https alone.
"""

from __future__ import annotations

import _socket
import os
import stat
import time

from fleettui.net.http1 import AnswerReader, HttpClosed, HttpProtocolError, HttpTooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from typing import Any

    from fleettui.model.server_place import ServerAccess, ServerPlace

MAX_BODY_BYTES = 64 << 20
"""300 machines are 4 MB."""
MAX_TOKEN_BYTES = 4096
_RECEIVE_BYTES = 1 << 18
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=")
"""Of a bearer token: RFC 6750, 2.1."""


class ServerError(Exception):
    """No answer that can be used. `hints`: what to do next."""

    def __init__(self, text: str, *hints: str, is_absent: bool = False, status: int = 0) -> None:
        super().__init__(text)
        self.text = text
        self.hints = hints
        self.is_absent = is_absent
        """No answer to be had there now; else there is one, and waiting does not help."""
        self.status = status
        """Of its answer; 0: there was none."""


def ask_server(
    access: ServerAccess, target: str, timeout_s: float, body: bytes | None = None
) -> tuple[int, bytes]:
    """Status and body of an answer. `target`: address and query, encoded; `body`: JSON, for a POST instead
    of a GET. Raises ServerError.

    Redirects are not followed: a token goes to the one server that the operator named.
    """
    place, deadline = access.place, time.monotonic() + timeout_s
    if body is None:
        request = encode_request(access, target)
    else:
        more = "Content-Type: application/json", f"Content-Length: {len(body)}"
        request = encode_request(access, target, "*/*", *more, method="POST") + body
    try:
        connection = _connect(access, deadline)
        try:
            connection.sendall(request)
            reader = AnswerReader(MAX_BODY_BYTES)
            while not reader.is_complete:
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                data = connection.recv(_RECEIVE_BYTES)
                if data:
                    reader.receive_data(data)
                else:
                    reader.receive_end()
        finally:
            connection.close()
    except OSError as error:
        raise absent(place, error, timeout_s) from None
    except HttpClosed as error:  # it ends, or is killed, while it answers
        raise absent(place, ConnectionResetError(str(error)), timeout_s) from None
    except (HttpProtocolError, HttpTooLarge) as error:
        raise no_server(place, str(error)) from None
    return reader.status, reader.body


def encode_request(
    access: ServerAccess, target: str, accept: str = "*/*", *more: str, method: str = "GET"
) -> bytes:
    """A request that ends the connection, with the token where there is one. Raises ServerError."""
    place = access.place
    lines = [
        f"{method} {place.path if place.scheme != 'unix' else ''}{target} HTTP/1.1",
        f"Host: {place.netloc}",
        f"Accept: {accept}",
        "Connection: close",
        *more,
    ]
    if access.token_file is not None:
        if not place.is_private:
            raise ServerError(
                f"the token of {access.token_file} would cross the network for all to read on its way to "
                f"{place.text}",
                "use https, or a tunnel: ssh -L 3038:127.0.0.1:3038 HOST, and http://127.0.0.1:3038",
            )
        lines.append(f"Authorization: Bearer {read_token(access.token_file)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def read_token(path: str) -> str:
    """The token of a file that only its owner may read. Raises ServerError, never with what is in it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(fd)
            data = os.read(fd, MAX_TOKEN_BYTES + 1) if stat.S_ISREG(status.st_mode) else b""
        finally:
            os.close(fd)
    except OSError as error:
        raise ServerError(
            f"server_token_file: {path}: {error.strerror or error}", "it holds the token for the server"
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise ServerError(f"server_token_file: {path} is no regular file")
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o077:
        raise ServerError(
            f"server_token_file: {path}: others than you can read or change it, and act with it as you",
            f"chmod 600 {path}",
        )
    token = data.removesuffix(b"\n").removesuffix(b"\r")
    if not token or len(data) > MAX_TOKEN_BYTES or not _LETTERS.issuperset(token):
        raise ServerError(
            f"server_token_file: {path} does not hold one line with one token of letters, digits and -._~+/="
        )
    return token.decode("ascii")


def _connect(access: ServerAccess, deadline: float) -> Any:
    """A connected socket. Raises OSError, ServerError."""
    place = access.place
    if place.scheme == "unix":
        return _dial(_socket.AF_UNIX, place.path, deadline)
    host = place.host.encode("ascii")  # as text it would load the tables of international names
    last: OSError | None = None
    for family, _, _, _, address in _socket.getaddrinfo(host, place.port, type=_socket.SOCK_STREAM):
        try:
            connection = _dial(family, address, deadline)
        except OSError as error:
            last = error
            continue
        return connection if place.scheme == "http" else _with_tls(access, connection, deadline)
    raise last or OSError("the name has no address")


def _dial(family: int, address: Any, deadline: float) -> Any:
    connection = _socket.socket(family, _socket.SOCK_STREAM, 0)
    try:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def _with_tls(access: ServerAccess, raw: Any, deadline: float) -> Any:
    import socket

    plain = socket.socket(fileno=raw.detach())
    try:
        plain.settimeout(max(0.001, deadline - time.monotonic()))
        return make_tls(access).wrap_socket(plain, server_hostname=access.place.host)
    except BaseException:
        plain.close()
        raise


def make_tls(access: ServerAccess) -> ssl.SSLContext:
    """Always verifies, by the operator's own certificates where there are some. Raises ServerError."""
    import ssl

    try:
        return ssl.create_default_context(cafile=access.ca_file)
    except OSError as error:
        raise ServerError(
            f"server_ca_file: {access.ca_file}: {error.strerror or error}",
            "it holds certificates in PEM",
        ) from None


def absent(place: ServerPlace, error: OSError, timeout_s: float) -> ServerError:
    """What kept us from an answer, in words."""
    verify = getattr(error, "verify_message", None)
    if verify is not None:
        return ServerError(
            f"the certificate of {place.text} is not trusted: {verify}",
            "name the certificate that signed it: server_ca_file in the settings",
        )
    if type(error).__module__ == "ssl" and type(error).__name__ != "SSLEOFError":  # that is one who ends
        return ServerError(
            f"{place.text}: no TLS: {getattr(error, 'reason', None) or error}", "does it speak plain http?"
        )
    why = f"no answer within {timeout_s:g} s" if isinstance(error, TimeoutError) else error.strerror or error
    return ServerError(f"the server {place.text} cannot be reached: {why}", is_absent=True)


def no_server(place: ServerPlace, why: str) -> ServerError:
    """Something else answers there, or half of it."""
    return ServerError(f"what answers at {place.text} is no fleettui server: {why}")
