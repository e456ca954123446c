"""What the checks of one machine share: its file, its one connection, what earlier checks found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fleettui.fleet.doctor.check import LIMIT_S
from fleettui.fleet.doctor.gpu_answer import AmdAnswer, GpuAnswer
from fleettui.fleet.doctor.watched_login import WatchedLogin
from fleettui.fleet.loop_feed import LoopFeed
from fleettui.model.machine import EngineEndpoint, Machine
from fleettui.model.readings import EngineReading
from fleettui.net.direct_http import DirectHttp
from fleettui.net.errors import LinkError
from fleettui.net.link import Link
from fleettui.net.login_steps import LoginSteps
from fleettui.probes.doctor import Account
from fleettui.probes.frames import Frame
from fleettui.probes.loops import LoopKind
from fleettui.probes.windows import NOT_SUPPORTED, is_windows_server

LinkFor = Callable[[Machine, LoginSteps], Link]
"""A fresh link to a machine, by what was decided about its host key."""


class NoAnswer(Exception):
    """A loop did not answer."""

    def __init__(self, text: str, noise: str, *, is_late: bool) -> None:
        super().__init__(text)
        self.text = text
        """How the loop ended; empty when it is late."""
        self.noise = noise
        """What the machine said instead."""
        self.is_late = is_late


class Context:
    """One machine under examination."""

    def __init__(self, machine: Machine, link_for: LinkFor, home: str, direct: DirectHttp) -> None:
        self.machine = machine
        self.home = home
        self.direct = direct
        self.steps = LoginSteps()
        self.link = link_for(machine, self.steps)
        self.login = WatchedLogin(self.link, self.steps, machine.ssh.host or machine.hostname)
        self.account: Account | None = None
        self.gpu: GpuAnswer | None = None
        self.amd: AmdAnswer | None = None
        """None where nothing of AMD is there."""
        self.engines: dict[EngineEndpoint, EngineReading] = {}
        """What each engine said."""
        self._feeds: dict[LoopKind, LoopFeed] = {}
        self._waiting: dict[LoopKind, asyncio.Future[Frame]] = {}

    @property
    def is_local(self) -> bool:
        return self.machine.ssh.is_local

    @property
    def is_windows(self) -> bool:
        """Its SSH server is that of Windows; known once it greeted."""
        return is_windows_server(self.link.server_version)

    async def ask(self, kind: LoopKind, *sections: str, limit_s: float = LIMIT_S) -> Frame:
        """One question to a loop, opened when needed. Raises NoAnswer, LinkError.

        A loop that is late is closed: whatever it runs ends with it, and the next question opens another.
        """
        waiting: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting[kind] = waiting
        try:
            async with asyncio.timeout(limit_s):
                feed = await self._open(kind)
                feed.ask(sections)
                return await waiting
        except TimeoutError:
            late = self._feeds.pop(kind, None)
            noise = late.noise if late is not None else ""
            if late is not None:
                late.close()
            raise NoAnswer("", noise, is_late=True) from None
        finally:
            self._waiting.pop(kind, None)

    def noise_of(self, kind: LoopKind) -> str:
        """What the machine printed around a loop's answers."""
        feed = self._feeds.get(kind)
        return feed.noise if feed is not None else ""

    async def close(self) -> None:
        """End everything; bounded."""
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()
        await self.login.close()

    async def _open(self, kind: LoopKind) -> LoopFeed:
        if self.is_windows:
            raise NoAnswer(NOT_SUPPORTED, "", is_late=False)
        feed = self._feeds.get(kind)
        if feed is None or not feed.is_open:
            feed = self._feeds[kind] = LoopFeed(
                kind, lambda frame: self._take(kind, frame), lambda text: self._end(kind, text)
            )
            await feed.open(self.link)
        return feed

    def _take(self, kind: LoopKind, frame: Frame) -> None:
        waiting = self._waiting.get(kind)
        if waiting is not None and not waiting.done():
            waiting.set_result(frame)

    def _end(self, kind: LoopKind, text: str) -> None:
        waiting = self._waiting.get(kind)
        if waiting is None or waiting.done():
            return
        lost = self.login.lost
        waiting.set_exception(
            NoAnswer(text, self.noise_of(kind), is_late=False)
            if lost is None
            else LinkError(lost.stage, lost.text)
        )
