"""What a server is started with: where it listens, who may ask, what they may do. Checked before it starts,
so that nothing is open by mistake."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleettui.model.record import dataclass
from fleettui.serve.listening import ListenError, Place, is_public, open_socket
from fleettui.serve.permission import Access
from fleettui.serve.tls import TlsFiles
from fleettui.serve.tokens import TokenBook, TokenError, TokenFile
from fleettui.serve.unix_socket import OwnSocket

if TYPE_CHECKING:
    from argparse import Namespace

_MAKE = "make a token: fleettui serve --make-token FILE; then --token-file FILE"


@dataclass(frozen=True, slots=True)
class Terms:
    """Options of the command line."""

    listen: Place | None
    """None: no TCP."""
    socket_path: str | None = None
    allows_actions: bool = False
    tokens: tuple[TokenFile, ...] = ()
    tls_cert: str | None = None
    tls_key: str | None = None
    goes_without_tls: bool = False
    host_names: tuple[str, ...] = ()


def terms_of(arguments: Namespace) -> Terms:
    """As `serve_grammar` reads them."""
    acting = [TokenFile(path, may_act=True) for path in arguments.token_files]
    reading = [TokenFile(path, may_act=False) for path in arguments.read_token_files]
    return Terms(
        listen=arguments.listen,
        socket_path=arguments.socket,
        allows_actions=arguments.allow_actions,
        tokens=(*acting, *reading),
        tls_cert=arguments.tls_cert,
        tls_key=arguments.tls_key,
        goes_without_tls=arguments.without_tls,
        host_names=tuple(arguments.host_names),
    )


class Entrance:
    """Open sockets, and who may come in. Close it."""

    def __init__(self, terms: Terms) -> None:
        """Raises ListenError: nothing is open then."""
        self.is_public = terms.listen is not None and is_public(terms.listen)
        _check(terms, is_public=self.is_public)
        try:
            book = TokenBook(terms.tokens)
        except TokenError as error:
            raise ListenError(error.text, *error.hints) from None
        self.tls: TlsFiles | None = None
        if terms.tls_cert is not None and terms.tls_key is not None:
            self.tls = TlsFiles(terms.tls_cert, terms.tls_key)
        self.access = Access(
            book,
            allows_actions=terms.allows_actions,
            is_reading_open=not self.is_public,
            host_names=terms.host_names,
        )
        self.is_plain_beyond = self.is_public and self.tls is None
        self._tcp = None if terms.listen is None else open_socket(terms.listen, may_be_public=True)
        self._unix: OwnSocket | None = None
        try:
            self._unix = None if terms.socket_path is None else OwnSocket(terms.socket_path)
        except ListenError:
            self.close()
            raise

    @property
    def listeners(self) -> Sequence[socket.socket]:
        """For the server."""
        unix = None if self._unix is None else self._unix.listener
        return [listener for listener in (self._tcp, unix) if listener is not None]

    @property
    def places(self) -> tuple[str, ...]:
        """For people, TCP first: `http://127.0.0.1:3038`, `/run/fleettui/api.sock`."""
        told = []
        if self._tcp is not None:
            scheme = "http" if self.tls is None else "https"
            told.append(f"{scheme}://{Place(*self._tcp.getsockname()[:2])}")
        if self._unix is not None:
            told.append(self._unix.path)
        return tuple(told)

    def close(self) -> None:
        """More than once is fine."""
        if self._tcp is not None:
            self._tcp.close()
        if self._unix is not None:
            self._unix.close()


def _check(terms: Terms, *, is_public: bool) -> None:
    """Raises ListenError for what would be open by mistake, or open to nobody."""
    if terms.listen is None and terms.socket_path is None:
        raise ListenError("--listen none, and no --socket: nobody could ask", "add --socket PATH")
    if (terms.tls_cert is None) != (terms.tls_key is None):
        raise ListenError("--tls-cert and --tls-key belong together", "give both")
    if terms.tls_cert is not None and terms.listen is None:
        raise ListenError("--tls-cert is for TCP, and --listen none wants none", "leave one of them out")
    may_act = any(item.may_act for item in terms.tokens) or terms.socket_path is not None
    if terms.allows_actions and not may_act:
        raise ListenError(
            "--allow-actions: nobody could prove that he may; on loopback too, other users of this machine "
            "and web pages reach the port",
            _MAKE,
            "or a Unix socket that only you can connect to: --socket PATH",
        )
    if not is_public:
        return
    if not terms.tokens:
        raise ListenError(
            f"{terms.listen} can be reached from other machines: whoever reaches it could read the fleet",
            "so reading takes a token there; for whoever only reads: --read-token-file FILE",
            _MAKE,
            *_elsewhere(terms),
        )
    if terms.tls_cert is None and not terms.goes_without_tls:
        raise ListenError(
            f"{terms.listen} can be reached from other machines: without TLS tokens and answers can be read "
            "on their way",
            "give a certificate: --tls-cert FILE --tls-key FILE",
            "where something else encrypts (WireGuard, a proxy on this machine): --without-tls",
            *_elsewhere(terms),
        )


def _elsewhere(terms: Terms) -> tuple[str, ...]:
    port = 3038 if terms.listen is None else terms.listen.port
    return (
        f"or listen on loopback (--listen 127.0.0.1:{port}) and ask through SSH: "
        f"ssh -L {port}:127.0.0.1:{port} THIS-HOST",
    )
