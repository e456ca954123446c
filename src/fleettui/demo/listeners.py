"""Loopback ports that survive their server: closed, refusing or silent, and open again later."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"
BACKLOG = 512


class LoopbackPort:
    """One free port. While nobody listens a bound socket keeps it from being given to others."""

    def __init__(self) -> None:
        first = self._bound(0)
        self.number: int = first.getsockname()[1]
        self._keeper: socket.socket | None = first

    def _bound(self, port: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # Two sockets of this process may then share the port: the keeper is there before the server leaves.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((LOOPBACK, port))
        sock.setblocking(False)
        return sock

    def open_socket(self) -> socket.socket:
        """A socket for a server to listen on. The caller closes it, after `keep`."""
        sock = self._bound(self.number)
        self.release()
        return sock

    def keep(self, is_silent: bool = False) -> None:
        """Holds the port without a server: connections are refused, or accepted and never answered."""
        keeper = self._bound(self.number)
        if is_silent:
            keeper.listen(BACKLOG)
        self.release()
        self._keeper = keeper

    def release(self) -> None:
        """Lets go of the port."""
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None
