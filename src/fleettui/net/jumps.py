"""Connections to jump hosts, shared by all machines behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fleettui.net.dialers import JumpDialer, LoginContext
from fleettui.net.errors import LinkError
from fleettui.net.hops import Hop
from fleettui.net.login import Login

LINGER_S = 5.0
"""A jump connection outlives its last user by this, so that a flapping machine causes no new login."""
REFUSAL_KEPT_S = 60.0
"""A jump host that refused us is not asked again for each machine behind it."""
FAILURE_KEPT_S = 1.0

LoginToHop = Callable[[Hop, "Jump | None"], Awaitable[Login]]


@dataclass(eq=False)
class Jump:
    """One jump host's connection."""

    hops: tuple[Hop, ...]
    opens: asyncio.Semaphore
    opening: asyncio.Task[Login] | None = None
    login: Login | None = None
    parent: Jump | None = None
    users: int = 0
    failed_at: float = 0.0
    failure: LinkError | None = None
    linger: asyncio.TimerHandle | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        return self.hops[-1].where

    def make_dialer(self, hop: Hop, context: LoginContext, deadline: asyncio.Timeout) -> JumpDialer:
        """A dialer for connections through this host."""
        if self.login is None:
            raise LinkError(
                "lost", f"{self.where}: jump host connection lost; tried again by itself", jump=self.where
            )
        return JumpDialer(hop, context, deadline, self.login.connection, self)


class Jumps:
    """Leases jump connections, opened once per chain of hops."""

    def __init__(self, log_in_to: LoginToHop, max_opens: int) -> None:
        self._log_in_to = log_in_to
        self._max_opens = max_opens
        self._jumps: dict[tuple[Hop, ...], Jump] = {}

    async def lease(self, hops: tuple[Hop, ...]) -> Jump:
        """An open connection to the last of the hops, until `release`. Raises LinkError with `jump` set."""
        jump = self._jumps.get(hops)
        if jump is None:
            jump = self._jumps[hops] = Jump(hops, asyncio.Semaphore(self._max_opens))
        if jump.linger is not None:
            jump.linger.cancel()
            jump.linger = None
        jump.users += 1
        try:
            if jump.login is None:
                self._raise_recent_failure(jump)
                if jump.opening is None:
                    jump.opening = asyncio.create_task(self._open(jump))
                await asyncio.shield(jump.opening)
        except BaseException:
            self.release(jump)
            raise
        return jump

    def release(self, jump: Jump) -> None:
        """A user is done with it."""
        jump.users -= 1
        self._linger_when_unused(jump)

    def forget_failures(self) -> None:
        """The operator wants another try."""
        for jump in self._jumps.values():
            jump.failure = None

    def close(self) -> None:
        """End all of them."""
        for jump in list(self._jumps.values()):
            if jump.linger is not None:
                jump.linger.cancel()
            if jump.opening is not None:
                jump.opening.cancel()
            self._disconnect(jump)
        self._jumps.clear()

    async def _open(self, jump: Jump) -> Login:
        try:
            if len(jump.hops) > 1:
                jump.parent = await self.lease(jump.hops[:-1])
            login = await self._log_in_to(jump.hops[-1], jump.parent)
        except LinkError as error:
            failure = error if error.jump else _name_jump(error, jump.where)
            jump.failure, jump.failed_at = failure, asyncio.get_running_loop().time()
            self._give_back_parent(jump)
            raise failure from None
        except BaseException:
            self._give_back_parent(jump)
            raise
        finally:
            jump.opening = None
        jump.login, jump.failure = login, None
        login.client.on_lost = lambda _: self._lose(jump)
        self._linger_when_unused(jump)
        return login

    def _linger_when_unused(self, jump: Jump) -> None:
        if jump.users <= 0 and jump.linger is None:
            jump.linger = asyncio.get_running_loop().call_later(LINGER_S, self._drop_unused, jump)

    def _raise_recent_failure(self, jump: Jump) -> None:
        failure = jump.failure
        if failure is None:
            return
        kept_s = FAILURE_KEPT_S if failure.is_retryable else REFUSAL_KEPT_S
        if asyncio.get_running_loop().time() - jump.failed_at < kept_s:
            raise LinkError(
                failure.stage, failure.text, is_retryable=failure.is_retryable, jump=failure.jump
            ) from None

    def _lose(self, jump: Jump) -> None:
        jump.login = None
        self._give_back_parent(jump)

    def _give_back_parent(self, jump: Jump) -> None:
        parent, jump.parent = jump.parent, None
        if parent is not None:
            self.release(parent)

    def _drop_unused(self, jump: Jump) -> None:
        jump.linger = None
        if jump.users <= 0 and jump.opening is None and jump.failure is None:
            self._jumps.pop(jump.hops, None)
            self._disconnect(jump)
            self._give_back_parent(jump)

    def _disconnect(self, jump: Jump) -> None:
        login, jump.login = jump.login, None
        if login is not None:
            login.client.on_lost = None
            login.connection.close()


def _name_jump(error: LinkError, where: str) -> LinkError:
    """A jump host's failure in a machine's words; its key is not the machine's, so no offer is handed on."""
    text = f"jump host {error.text}"
    if error.stage == "host key" and error.offer is not None:
        text = f"{text.partition(';')[0]}; log in there once with ssh, or add it as a machine and approve it"
    return LinkError(error.stage, text, is_retryable=error.is_retryable, jump=where)
