"""The ways a connection takes: straight over TCP, or through a jump host's connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import asyncssh

from fleettui.net.channels import finish_or_drop
from fleettui.net.dial import connect_any, resolve
from fleettui.net.errors import LinkError
from fleettui.net.greeting import GreetingGuard
from fleettui.net.hops import Hop, format_address
from fleettui.net.login_steps import LoginSteps
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
        self.steps = LoginSteps()

    async def create_connection(
        self, session_factory: Callable[[], Any], remote_host: str, remote_port: int, *_: Any
    ) -> tuple[Any, Any]:
        """Called by asyncssh.connect. Raises LinkError."""
        transport, guard = await self._open(remote_host, remote_port)
        self.guard = guard
        self.steps.address = self.address
        self.steps.begin("greeting")
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_GREETING_WAIT_S):
                    await guard.has_spoken.wait()
                    self.steps.has_greeted = True
            await self.take_slot()
        except BaseException:
            guard.abort()
            raise
        connection = session_factory()
        guard.hand_over(connection)
        return transport, connection

    async def _open(self, host: str, port: int) -> tuple[Any, GreetingGuard]:
        """The way itself, with the guard at our end."""
        settings = self._context.settings
        self.steps.begin("resolve")
        addresses = await resolve(host, port, self._hop.address_family)
        self.steps.addresses = tuple(str(target[0]) for _, target in addresses)
        self.steps.begin("connect")
        sock = await connect_any(
            self._hop.where,
            addresses,
            address_s=settings.address_s,
            stagger_s=settings.stagger_s,
            bind_address=self._hop.bind_address,
        )
        peer = sock.getpeername()
        self.address = format_address(peer[0], peer[1])
        return await asyncio.get_running_loop().create_connection(GreetingGuard, sock=sock)

    async def take_slot(self) -> None:
        """Wait for our turn."""
        self.steps.begin("turn")
        await self._wait_off_the_clock(self._context.slots)
        self._has_slot = True

    async def _wait_off_the_clock(self, turns: asyncio.Semaphore) -> None:
        """Acquire; the wait is not the machine's fault and does not count against its deadline."""
        if not turns.locked():
            await turns.acquire()
            return
        loop = asyncio.get_running_loop()
        began, when = loop.time(), self._deadline.when()
        self._deadline.reschedule(None)
        await turns.acquire()
        if when is not None:
            self._deadline.reschedule(when + loop.time() - began)

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

    async def _open(self, host: str, port: int) -> tuple[Any, GreetingGuard]:
        where, jump = self._hop.where, self._jump.where
        self.steps.begin("connect")
        await self._wait_off_the_clock(self._jump.opens)
        try:
            opening = self._connection.create_connection(GreetingGuard, host, port)  # type: ignore[arg-type]
            channel, guard = await finish_or_drop(opening)
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
        finally:
            self._jump.opens.release()
        self.address = where
        return channel, guard  # type: ignore[return-value]
