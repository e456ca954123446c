"""The ways a connection takes: straight over TCP, or through a jump host's connection (see proxy_command)."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import asyncssh

from fleettui.net.channels import finish_or_drop
from fleettui.net.dial import Address, connect_any, resolve
from fleettui.net.errors import LinkError, clean_line
from fleettui.net.greeting import GreetingGuard, describe_greeting
from fleettui.net.hops import Hop, format_address
from fleettui.net.login_steps import LoginSteps
from fleettui.net.settings import ConnectorSettings

CONNECT_PATIENCE_S = 0.3
GREETING_PATIENCE_S = 0.5
"""A login has its turn from before the connection on, so that no more are under way than turns. Who has not
connected, or not greeted, after this lends its turn to others meanwhile: dead machines hold nobody up."""
LATE_S = 0.05
"""A wait that took this much longer tells that we are busy, not that the other side is slow."""
_GREETING_WAIT_S = 1.0
"""A server that stays mute for so long is spoken to nevertheless: it may wait for that."""
MUTES_PER_TURN = 2
"""So many mute servers for each turn may be connected to without one; more keep theirs."""


KEEPALIVE_SHARE = 0.48
"""Of the silence: one keepalive after this much without a byte, the end after as much again."""

T = TypeVar("T")


@dataclass(slots=True)
class LoginContext:
    """What a login needs beside the hop."""

    settings: ConnectorSettings
    options: asyncssh.SSHClientConnectionOptions
    slots: asyncio.Semaphore
    """Logins in flight, over all machines."""
    mutes: asyncio.Semaphore
    """Places of those that connected, lent their turn and have not greeted."""
    silence_s: float
    """For keepalives, see ConnectorSettings; may change while connections are open."""
    connections: weakref.WeakSet[asyncssh.SSHClientConnection] = field(default_factory=weakref.WeakSet)
    """Open ones, jump hosts included."""
    hung_up: set[tuple[str, str]] = field(default_factory=set)
    """(`host:port`, user) whose last login the server ended without a word."""

    def keep_alive(self, connection: asyncssh.SSHClientConnection) -> None:
        """Send keepalives so that silence is noticed within `silence_s`."""
        connection.set_keepalive(self.silence_s * KEEPALIVE_SHARE, 1)

    def set_silence(self, silence_s: float) -> None:
        """From now on, on open connections too."""
        if silence_s != self.silence_s:
            self.silence_s = silence_s
            for connection in tuple(self.connections):
                self.keep_alive(connection)


class Dialer:
    """Takes the place of asyncssh's tunnel object: opens the way a connection runs over."""

    def __init__(self, hop: Hop, context: LoginContext, deadline: asyncio.Timeout) -> None:
        self._hop = hop
        self._context = context
        self._deadline = deadline
        self._has_slot = False
        self._place: asyncio.Semaphore | None = None
        self.guard: GreetingGuard | None = None
        self.address: str | None = None
        self._addresses: list[Address] = []
        self.steps = LoginSteps()

    async def create_connection(
        self, session_factory: Callable[[], Any], remote_host: str, remote_port: int, *_: Any
    ) -> tuple[Any, Any]:
        """Called by asyncssh.connect. Raises LinkError."""
        await self._look_up(remote_host, remote_port)
        await self.take_slot()
        self.steps.begin("connect")
        transport, guard = await self._lend_turn(self._open(), CONNECT_PATIENCE_S, _drop_way)
        self.guard = guard
        self.steps.address = self.address
        self.steps.begin("greeting")
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_GREETING_WAIT_S):
                    await self._lend_turn(
                        guard.has_spoken.wait(), GREETING_PATIENCE_S, places=self._context.mutes
                    )
                    self.steps.has_greeted = True
            if guard.has_spoken.is_set() or self._place is None:
                await self.take_slot()
                self._leave_place()
            if guard.is_lost:  # asyncssh would fall over the closed socket
                raise LinkError("greeting", self.explain_greeting())
        except BaseException:
            guard.abort()
            raise
        connection = session_factory()
        guard.hand_over(connection)
        return transport, connection

    async def _look_up(self, host: str, port: int) -> None:
        """What can be done before it is our turn."""
        self.steps.begin("resolve")
        self._addresses = await resolve(host, port, self._hop.address_family)
        self.steps.addresses = tuple(str(target[0]) for _, target in self._addresses)

    async def _open(self) -> tuple[Any, GreetingGuard]:
        """The way itself, with the guard at our end."""
        settings = self._context.settings
        sock = await connect_any(
            self._hop.where,
            self._addresses,
            address_s=settings.address_s,
            stagger_s=settings.stagger_s,
            bind_address=self._hop.bind_address,
        )
        peer = sock.getpeername()
        self.address = format_address(peer[0], peer[1])
        return await asyncio.get_running_loop().create_connection(GreetingGuard, sock=sock)

    async def take_slot(self) -> None:
        """Wait for our turn; nothing where we have it."""
        if self._has_slot:
            return
        self.steps.begin("turn")
        await self._wait_off_the_clock(self._context.slots)
        self._has_slot = True

    async def _lend_turn(
        self,
        work: Coroutine[Any, Any, T],
        patience_s: float,
        drop: Callable[[T], None] | None = None,
        places: asyncio.Semaphore | None = None,
    ) -> T:
        """Await something; where it takes long, our turn goes to others. `drop` gets what comes too late.

        With `places` only while one of them is free, which is kept until `release_slot`.
        """
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)
        try:
            for _ in range(3):
                began = loop.time()
                done, _ = await asyncio.wait((task,), timeout=patience_s)
                if done or loop.time() - began < patience_s + LATE_S:
                    break
            if not task.done() and (places is None or not places.locked()):
                if places is not None:
                    await places.acquire()
                    self._place = places
                self._give_turn_back()
            await asyncio.wait((task,))
        except BaseException:
            task.cancel()
            task.add_done_callback(lambda late: _drop_late(late, drop))
            raise
        return task.result()

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
        self._give_turn_back()
        self._leave_place()

    def _give_turn_back(self) -> None:
        if self._has_slot:
            self._has_slot = False
            self._context.slots.release()

    def _leave_place(self) -> None:
        if self._place is not None:
            self._place.release()
            self._place = None

    def explain_greeting(self) -> str:
        """Why what answers at the way's end is no SSH server of ours."""
        return describe_greeting(self._hop.where, b"" if self.guard is None else self.guard.head)

    def close(self) -> None:
        """Part of the tunnel interface."""

    async def wait_closed(self) -> None:
        """Part of the tunnel interface."""


def _drop_way(way: tuple[Any, GreetingGuard]) -> None:
    way[1].abort()


def _drop_late(task: asyncio.Task[T], drop: Callable[[T], None] | None) -> None:
    if not task.cancelled() and task.exception() is None and drop is not None:
        drop(task.result())


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

    async def _look_up(self, host: str, port: int) -> None:
        """The jump host looks the name up."""

    async def _open(self) -> tuple[Any, GreetingGuard]:
        where, jump = self._hop.where, self._jump.where
        await self._wait_off_the_clock(self._jump.opens)
        try:
            opening = self._connection.create_connection(GreetingGuard, self._hop.host, self._hop.port)  # type: ignore[arg-type]
            channel, guard = await finish_or_drop(opening)
        except asyncssh.ChannelOpenError as error:
            if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
                text = f"{where}: jump host {jump} may not forward to it (AllowTcpForwarding, PermitOpen)"
            else:
                reason = clean_line(str(error.reason)) or "no reason given"
                text = f"{where}: jump host {jump} cannot connect to it: {reason}; is sshd running there?"
            raise LinkError("connect", text) from None
        except asyncssh.Error as error:
            reason = clean_line(str(error.reason)) or "connection lost"
            raise LinkError("connect", f"{where}: jump host {jump}: {reason}; tried again") from None
        finally:
            self._jump.opens.release()
        self.address = where
        return channel, guard  # type: ignore[return-value]
