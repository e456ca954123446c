"""The ways a connection takes: straight over TCP, or through a jump host's connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import asyncssh

from fleettui.net.dial import GreetingGuard, connect_any, resolve
from fleettui.net.errors import LinkError
from fleettui.net.hops import Hop, format_address
from fleettui.net.settings import ConnectorSettings

_GREETING_WAIT_S = 1.0
"""A server that stays mute for so long gets a login slot nevertheless: it may wait for us to speak."""


@dataclass(slots=True)
class LoginContext:
    """What a login needs beside the hop."""

    settings: ConnectorSettings
    options: asyncssh.SSHClientConnectionOptions
    slots: asyncio.Semaphore
    """Logins in flight, over all machines."""


class Dialer:
    """Takes the place of asyncssh's tunnel object: opens the way a connection runs over."""

    def __init__(self, hop: Hop, context: LoginContext, deadline: asyncio.Timeout) -> None:
        self._hop = hop
        self._context = context
        self._deadline = deadline
        self._has_slot = False
        self.guard: GreetingGuard | None = None
        self.address: str | None = None

    async def create_connection(
        self, session_factory: Callable[[], Any], remote_host: str, remote_port: int, *_: Any
    ) -> tuple[Any, Any]:
        """Called by asyncssh.connect. Raises LinkError."""
        settings = self._context.settings
        where = self._hop.where
        addresses = await resolve(remote_host, remote_port, self._hop.address_family)
        sock = await connect_any(where, addresses, address_s=settings.address_s, stagger_s=settings.stagger_s)
        peer = sock.getpeername()
        self.address = format_address(peer[0], peer[1])
        transport, guard = await asyncio.get_running_loop().create_connection(GreetingGuard, sock=sock)
        self.guard = guard
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_GREETING_WAIT_S):
                    await guard.has_spoken.wait()
            await self.take_slot()
        except BaseException:
            guard.abort()
            raise
        connection = session_factory()
        guard.hand_over(connection)
        return transport, connection

    async def take_slot(self) -> None:
        """Wait for our turn; the wait does not count against the machine's deadline."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._context.slots.acquire()
        self._has_slot = True
        waited = loop.time() - began
        when = self._deadline.when()
        if waited > 0.001 and when is not None and not self._deadline.expired():
            self._deadline.reschedule(when + waited)

    def release_slot(self) -> None:
        """The login is over, either way."""
        if self._has_slot:
            self._has_slot = False
            self._context.slots.release()

    def close(self) -> None:
        """Part of the tunnel interface."""

    async def wait_closed(self) -> None:
        """Part of the tunnel interface."""


class JumpHost(Protocol):
    """What a dialer needs of a jump host."""

    opens: asyncio.Semaphore
    """Connections being opened through it."""

    @property
    def where(self) -> str: ...


class JumpDialer(Dialer):
    """A way through the connection to a jump host."""

    def __init__(
        self,
        hop: Hop,
        context: LoginContext,
        deadline: asyncio.Timeout,
        connection: asyncssh.SSHClientConnection,
        jump: JumpHost,
    ) -> None:
        super().__init__(hop, context, deadline)
        self._connection = connection
        self._jump = jump

    async def create_connection(
        self, session_factory: Callable[[], Any], remote_host: str, remote_port: int, *_: Any
    ) -> tuple[Any, Any]:
        await self.take_slot()
        where, jump = self._hop.where, self._jump.where
        try:
            async with self._jump.opens:
                transport, session = await self._connection.create_connection(
                    session_factory, remote_host, remote_port
                )
        except asyncssh.ChannelOpenError as error:
            if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
                text = f"{where}: jump host {jump} may not forward to it (AllowTcpForwarding, PermitOpen)"
            else:
                text = (
                    f"{where}: jump host {jump} cannot connect to it: {error.reason}; is sshd running there?"
                )
            raise LinkError("connect", text) from None
        except asyncssh.Error as error:
            raise LinkError("connect", f"{where}: jump host {jump}: {error.reason}") from None
        self.address = where
        return transport, session
