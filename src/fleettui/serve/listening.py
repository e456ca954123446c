"""Where the server listens: `HOST:PORT` as written, and the socket. Standard library only."""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple

DEFAULT_LISTEN = "127.0.0.1:3038"
BACKLOG = 512


def read_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address without its zone; one of IPv4 that came to a socket of IPv6 is one of IPv4."""
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found if mapped is None else mapped


class ListenError(Exception):
    """Nothing listens. `hints`: what to do next."""

    def __init__(self, text: str, *hints: str) -> None:
        super().__init__(text)
        self.text = text
        self.hints = hints


class Place(NamedTuple):
    """Where to listen."""

    host: str
    """Without brackets."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(text: str) -> Place:
    """`127.0.0.1:3038`, `localhost:3038`, `[::1]:3038`, or the port alone. Raises ValueError."""
    host, colon, port = text.strip().rpartition(":")
    host = host if colon else "127.0.0.1"
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65_535
    if not host or not is_port:
        raise ValueError(f"{text!r} is no address to listen on; write 127.0.0.1:3038 or [::1]:3038")
    return Place(host, int(port))


def open_socket(place: Place, *, may_be_public: bool = False) -> socket.socket:
    """A listening socket, on loopback alone unless it `may_be_public`. Raises ListenError."""
    family, address, is_public = _resolve(place)
    if is_public and not may_be_public:
        raise ListenError(
            f"{place} can be reached from other machines",
            f"listen on loopback: --listen 127.0.0.1:{place.port}",
            f"and from elsewhere ask through SSH: ssh -L {place.port}:127.0.0.1:{place.port} THIS-HOST",
        )
    try:
        # With the protocol named, asyncio sends small answers at once: else each waits 40 ms for an ACK.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after a restart at once
            listener.bind((address, place.port))
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ListenError(
            f"cannot listen on {place}: {error.strerror or error}",
            "maybe another `fleettui serve` runs; another port: --listen 127.0.0.1:3039",
        ) from None
    listener.setblocking(False)
    return listener


def is_public(place: Place) -> bool:
    """Other machines can reach it. Raises ListenError."""
    return _resolve(place)[2]


def _resolve(place: Place) -> tuple[socket.AddressFamily, str, bool]:
    """The one address to bind, and whether any of those that a name leads to is not of this machine alone."""
    try:
        found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ListenError(
            f"{place.host} is no address of this machine: {error}",
            "write for example --listen 127.0.0.1:3038",
        ) from None
    addresses = [(family, str(address[0])) for family, _, _, _, address in found]
    beyond = any(not ipaddress.ip_address(text.partition("%")[0]).is_loopback for _, text in addresses)
    return (*addresses[0], beyond)
