"""The one login of a machine, watched: each of its steps has a check, and each has three seconds."""

from __future__ import annotations

import asyncio

from fleettui.fleet.doctor.check import LIMIT_S
from fleettui.model.snapshot import LinkStage
from fleettui.net.errors import LinkError
from fleettui.net.link import Link
from fleettui.net.login_steps import LoginStep, LoginSteps

ORDER: tuple[LoginStep, ...] = (
    "jump", "resolve", "connect", "greeting", "turn", "key exchange", "authentication",
)  # fmt: skip
STAGGER_S = 0.3
"""Each further address of a name is tried so much later."""
JUMP_LIMIT_S = 4 * LIMIT_S
"""A jump host has steps of its own: name, connection, key, login."""
SPARE_S = 0.3
"""The connection's own limits come first: they say more."""

_STAGES: dict[LoginStep, LinkStage] = {
    "jump": "connect",
    "resolve": "resolve",
    "connect": "connect",
    "greeting": "greeting",
    "key exchange": "key exchange",
    "authentication": "authentication",
}
_LATE: dict[LoginStep, str] = {
    "jump": "no login to the jump host {jump} within {limit:g} s; is it on, is it overloaded?",
    "resolve": "the name server gave no answer within {limit:g} s; check DNS and the VPN",
    "connect": "no connection within {limit:g} s; is the machine on, does a firewall drop the port?",
    "greeting": "accepts connections, no SSH greeting within {limit:g} s; is sshd hung, is ssh.port right?",
    "key exchange": "the key exchange was not done within {limit:g} s; is the machine overloaded?",
    "authentication": "no answer to the login within {limit:g} s; is the machine overloaded?",
}


class WatchedLogin:
    """Opens a link once and tells how far it came. A failed login is never tried again."""

    def __init__(self, link: Link, steps: LoginSteps, host: str) -> None:
        self.error: LinkError | None = None
        """Why there is no connection."""
        self.lost: LinkError | None = None
        """Why there is none any more."""
        self._link = link
        self._steps = steps
        self._host = host
        self._task: asyncio.Task[None] | None = None
        self._has_moved = asyncio.Event()
        steps.on_step = self._has_moved.set

    async def get_past(self, step: LoginStep) -> LinkError | None:
        """Wait until the login is past this step, or over; returns why it failed, so far."""
        if self._task is None:
            self._task = asyncio.create_task(self._open(), name=f"log in to {self._host}")
        task = self._task
        while not task.done() and self._rank() <= ORDER.index(step):
            self._has_moved.clear()
            try:
                await asyncio.wait_for(self._has_moved.wait(), self._limit_s())
            except TimeoutError:
                self._give_up()
                break
        if task.done() and not task.cancelled() and (defect := task.exception()) is not None:
            raise defect
        return self.error

    async def close(self) -> None:
        """End the login or the connection; bounded."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=1.0)
        await self._link.close()

    async def _open(self) -> None:
        try:
            await self._link.open(self._lose)
        except LinkError as error:
            self.error = self.error or error
        finally:
            self._has_moved.set()

    def _lose(self, error: LinkError) -> None:
        self.lost = error

    def _rank(self) -> int:
        step = self._steps.step
        return -1 if step is None else ORDER.index(step)

    def _limit_s(self) -> float | None:
        step = self._steps.step
        if step == "turn":
            return None  # others log in; they are bounded themselves
        if step == "jump":
            return JUMP_LIMIT_S + SPARE_S
        if step == "key exchange":  # the server's greeting is part of it
            return max(0.0, LIMIT_S + SPARE_S - self._steps.took_s.get("greeting", 0.0))
        addresses = len(self._steps.addresses) if step == "connect" else 1
        return LIMIT_S + SPARE_S + STAGGER_S * max(0, addresses - 1)

    def _give_up(self) -> None:
        step: LoginStep = self._steps.step or "authentication"
        if step == "key exchange" and not self._steps.has_greeted:
            step = "greeting"
        limit_s = JUMP_LIMIT_S if step == "jump" else LIMIT_S
        text = _LATE[step].format(limit=limit_s, jump=self._steps.jump)
        where = self._steps.address or self._host
        self.error = LinkError(
            _STAGES[step], f"{where}: {text}", jump=self._steps.jump if step == "jump" else None
        )
        if self._task is not None:
            self._task.cancel()
