"""A look at a server's first bytes before SSH sees them."""

from __future__ import annotations

import asyncio
from typing import Any

from fleettui.net.batched_writes import BatchedWrites

MAX_PENDING_BYTES = 64 << 10
"""An SSH server says some 2 KB before we speak; a stream without end is none."""


class GreetingGuard(asyncio.Protocol):
    """Stands between the way and asyncssh until the server's version line came.

    Keeps what a server that is no SSH server says, and tells when the first bytes are here, so that a
    login slot is not spent on a machine that accepts connections and stays mute. Serves as asyncio
    protocol on a socket and as SSH session on a jump host's channel, where it stays and passes on.
    """

    def __init__(self) -> None:
        self.head = b""
        """The first bytes, for messages."""
        self._pending = b""
        """All bytes until asyncssh takes over."""
        self.has_spoken = asyncio.Event()
        self._transport: Any = None
        self._connection: Any = None
        self.is_lost = False
        """The way ended before asyncssh took it."""

    def hand_over(self, connection: Any) -> None:
        """Let asyncssh's connection take the way, with the bytes that came so far."""
        self._connection = connection
        connection.connection_made(BatchedWrites(self._transport))
        if self._pending:
            self._forward(self._pending)
            self._pending = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def session_started(self) -> None:
        """Part of an SSH session's interface."""

    def data_received(self, data: bytes, datatype: int | None = None) -> None:
        if len(self.head) < 1024:
            self.head += data[:1024]
        self.has_spoken.set()
        if self._connection is not None:
            self._forward(data)
        elif len(self._pending) + len(data) > MAX_PENDING_BYTES:
            self.is_lost = True
            self.abort()
        else:
            self._pending += data

    def _forward(self, data: bytes) -> None:
        self._connection.data_received(data)
        if isinstance(self._transport, asyncio.Transport) and self._connection.get_extra_info(
            "server_version"
        ):
            self._transport.set_protocol(self._connection)

    def eof_received(self) -> bool:
        self.connection_lost(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.has_spoken.set()
        if self._connection is not None:
            self._connection.connection_lost(exc)
        else:
            self.is_lost = True

    def abort(self) -> None:
        """Drop the way."""
        if self._transport is not None:
            self._transport.abort()


def describe_greeting(where: str, head: bytes) -> str:
    """Why this is no SSH server, from what it said first."""
    line = head.split(b"\n", 1)[0].decode("ascii", "replace").strip()
    said = "".join(char if char.isprintable() else "·" for char in line)[:80]
    if head.startswith((b"HTTP/", b"<!DOCTYPE", b"<!doctype", b"<html", b"<HTML")):
        return f"{where}: a web server answers there ({said}), not SSH; is ssh.port right?"
    if head.startswith((b"SSH-2.", b"SSH-1.99")):
        return f"{where}: closed right after its greeting ({said}); does a login guard block us, is it full?"
    if head.startswith(b"SSH-"):
        return f"{where}: SSH version is not 2 ({said}); its SSH server needs an update"
    if said:
        return (
            f"{where}: answered {said!r} instead of an SSH greeting; is ssh.port right, is the server busy?"
        )
    return f"{where}: closed without an SSH greeting; is ssh.port right, does a login guard block us?"
