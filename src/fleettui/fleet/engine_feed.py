"""Asks one engine of a machine: its tick paths each tick, its slow ones rarely, by the way that works."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fleettui.fleet.needs import SLOW_ENGINE_PERIOD_S
from fleettui.model.machine import EngineEndpoint
from fleettui.net.direct_http import get_direct
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer, Link
from fleettui.probes.engines import AskedBy, EngineProbe

TICK_TIMEOUT_S = 4.0
SLOW_TIMEOUT_S = 10.0

Path = str
RemoteGetter = Callable[[int, Path], Awaitable[HttpAnswer]]
"""Fetches a path by the machine's own curl or wget: the last resort."""


class EngineFeed:
    """One engine: at most one question of each path in flight, answers handed on as they come."""

    def __init__(
        self,
        hostname: str,
        endpoint: EngineEndpoint,
        probe: EngineProbe,
        on_answer: Callable[[EngineEndpoint, Path, HttpAnswer | HttpFailure, AskedBy], None],
        remote_get: RemoteGetter,
    ) -> None:
        self.endpoint = endpoint
        self._hostname = hostname
        self._tick_paths = probe.tick_paths
        self._slow_paths = probe.slow_paths
        self._on_answer = on_answer
        self._remote_get = remote_get
        self._way: AskedBy = "tunnel"
        self._slow_asked_at: float | None = None
        self._asked: dict[Path, asyncio.Task[None] | None] = {}
        """What is in flight; None: on a kept channel, which needs no task."""
        self._generation = 0

    @property
    def is_waiting(self) -> bool:
        """True while a tick path is unanswered."""
        return any(path in self._asked for path in self._tick_paths)

    def ask(self, link: Link, now: float) -> bool:
        """Ask what is due; a path still unanswered is not asked again. True if a tick path was asked."""
        is_slow_due = self._slow_asked_at is None or now - self._slow_asked_at >= SLOW_ENGINE_PERIOD_S
        if is_slow_due:
            self._slow_asked_at = now
        asked = False
        for path in self._tick_paths:
            asked |= self._start(link, path, TICK_TIMEOUT_S)
        if is_slow_due:
            for path in self._slow_paths:
                self._start(link, path, SLOW_TIMEOUT_S)
        return asked

    def ask_slow_again(self) -> None:
        """Have the slow paths asked on the next tick: the tick's answers named something they do not know."""
        self._slow_asked_at = None

    def close(self) -> None:
        """Stop asking; answers still on their way are dropped. The next connection may allow forwarding."""
        for task in self._asked.values():
            if task is not None:
                task.cancel()
        self._asked.clear()
        self._generation += 1
        self._way = "tunnel"

    def _start(self, link: Link, path: Path, timeout_s: float) -> bool:
        if path in self._asked:
            return False
        self._asked[path] = None  # before the asking: a channel may fail in the moment of writing
        is_tunnel = self._way == "tunnel" and self.endpoint.url is None
        if not (is_tunnel and self._start_kept(link, path, timeout_s)):
            self._start_task(link, path, timeout_s)
        return True

    def _start_task(self, link: Link, path: Path, timeout_s: float) -> None:
        self._asked[path] = asyncio.ensure_future(self._fetch(link, path, timeout_s))

    def _start_kept(self, link: Link, path: Path, timeout_s: float) -> bool:
        generation = self._generation

        def take(answer: HttpAnswer | HttpFailure) -> None:
            if generation != self._generation:
                return
            if isinstance(answer, HttpFailure) and answer.kind == "lost":
                # The engine may close a kept stream just as we write (vLLM: after 5 s idle).
                self._start_task(link, path, timeout_s)
                return
            del self._asked[path]
            self._on_answer(self.endpoint, path, answer, "tunnel")

        return link.start_get(self.endpoint.port, path, take, timeout_s)

    async def _fetch(self, link: Link, path: Path, timeout_s: float) -> None:
        try:
            answer: HttpAnswer | HttpFailure = await self._get(link, path, timeout_s)
        except HttpFailure as failure:
            answer = failure
        finally:
            if self._asked.get(path) is asyncio.current_task():  # else one of the next connection
                del self._asked[path]
        self._on_answer(self.endpoint, path, answer, self._way)

    async def _get(self, link: Link, path: Path, timeout_s: float) -> HttpAnswer:
        """Through SSH; where the server forbids that, straight; where that fails, by the machine itself."""
        if self.endpoint.url is not None:
            self._way = "direct"
            return await get_direct(self.endpoint.url.rstrip("/") + path, timeout_s=timeout_s)
        if self._way == "tunnel":
            try:
                return await link.get(self.endpoint.port, path, timeout_s=timeout_s)
            except HttpFailure as failure:
                if failure.kind != "forbidden":
                    raise
                self._way = "direct"
        if self._way == "direct":
            try:
                return await get_direct(self._direct_base() + path, timeout_s=min(timeout_s, 3.0))
            except HttpFailure as failure:
                if failure.kind not in ("refused", "timeout", "lost"):
                    raise
                self._way = "remote"
        try:
            async with asyncio.timeout(timeout_s):
                return await self._remote_get(self.endpoint.port, path)
        except TimeoutError:
            raise HttpFailure("timeout", f"no answer to {path} within {timeout_s:.0f} s") from None
        except HttpFailure as failure:
            if failure.kind == "forbidden":  # no curl, no wget: the open port may answer again later
                self._way = "direct"
            raise

    def _direct_base(self) -> str:
        host = self._hostname
        return (
            f"http://[{host}]:{self.endpoint.port}" if ":" in host else f"http://{host}:{self.endpoint.port}"
        )
