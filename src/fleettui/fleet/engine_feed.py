"""Asks one engine of a machine what is due, each question once at a time, by the way that works."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from fleettui.fleet.engine_record import EngineRecord
from fleettui.fleet.engine_schedule import EngineSchedule
from fleettui.model.machine import EngineEndpoint
from fleettui.net.direct_http import DirectHttp
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer, Link
from fleettui.probes.engines import AskedBy, Question

TICK_TIMEOUT_S = 4.0
SLOW_TIMEOUT_S = 10.0

Path = str
RemoteGetter = Callable[[int, Path], Awaitable[HttpAnswer]]
"""Fetches a path by the machine's own curl or wget: the last resort."""


class EngineFeed:
    """One engine: at most one question of each path in flight, answers handed on as they come.

    Questions of one poll follow each other on the kept stream; what is not through by the next poll gets
    streams of its own, so that a slow answer delays the others by one interval at most.
    """

    def __init__(
        self,
        hostname: str,
        record: EngineRecord,
        on_answer: Callable[[EngineEndpoint, Path, HttpAnswer | HttpFailure, AskedBy], None],
        remote_get: RemoteGetter,
        direct: DirectHttp,
    ) -> None:
        self.endpoint = record.endpoint
        self.wants_busy = False
        """Somebody wants to know who is busy although asking has its price."""
        self._hostname = hostname
        self._record = record
        self._headers = record.key.headers
        self._schedule = EngineSchedule(record.probe)
        self._on_answer = on_answer
        self._remote_get = remote_get
        self._direct = direct
        self._way: AskedBy = "tunnel"
        self._asked: dict[Path, asyncio.Task[None] | None] = {}
        """What is in flight; None: on a kept channel, which needs no task, or waiting for it."""
        self._queue: deque[tuple[Path, float]] = deque()
        """What waits for the kept channel."""
        self._holds_kept = False
        """A question of ours is on the kept channel."""
        self._turn = 0
        """Of the kept channel: an answer that belongs to an earlier one starts nothing."""
        self._generation = 0
        self._ever: set[Path] = set()
        """Asked on this connection."""

    @property
    def is_waiting(self) -> bool:
        """True while a question is unanswered."""
        return bool(self._asked)

    def ask(self, link: Link, now: float) -> bool:
        """Ask what is due; a path still unanswered is not asked again. True if anything was asked."""
        if self._holds_kept or self._queue:
            self._leave_kept(link)
        reading = self._record.reading
        asked = False
        for question in self._schedule.due(reading, now):
            asked |= self._ask(link, question)
        if self.wants_busy:
            self._ask_busy(link)
        return asked

    def ask_allowed(self, link: Link) -> tuple[Path, ...]:
        """Ask at once what the first answers allow and nobody asked yet; returns the paths."""
        questions = self._schedule.allowed(self._record.reading, self._ever)
        for question in questions:
            self._ask(link, question)
        busy: tuple[Path, ...] = ()
        if self.wants_busy and not self._ever.issuperset(self._record.busy_paths):
            busy = self._ask_busy(link)
        return (*(question.path for question in questions), *busy)

    def ask_slow_again(self) -> None:
        """Have everything asked on the next tick: the tick's answers named something that is not known."""
        self._schedule.ask_rare_again()

    def want_busy(self, is_wanted: bool) -> None:
        """Begin or stop to ask what has a price."""
        if self.wants_busy and not is_wanted:
            self._record.forget_busy()
        self.wants_busy = is_wanted

    def close(self) -> None:
        """Stop asking; answers still on their way are dropped. The next connection may allow forwarding."""
        for task in self._asked.values():
            if task is not None:
                task.cancel()
        self._asked.clear()
        self._queue.clear()
        self._holds_kept = False
        self._generation += 1
        self._way = "tunnel"
        self._ever.clear()
        self._schedule.begin()

    def _ask(self, link: Link, question: Question) -> bool:
        self._ever.add(question.path)
        return self._start(link, question.path, SLOW_TIMEOUT_S if question.every_s else TICK_TIMEOUT_S)

    def _ask_busy(self, link: Link) -> tuple[Path, ...]:
        """All `busy_paths` of this moment, once those of the last round are answered."""
        if self._record.is_busy_awaited:
            return ()
        paths = tuple(path for path in self._record.busy_paths if path not in self._asked)
        self._record.begin_busy(paths)
        self._ever.update(paths)
        for path in paths:
            self._start(link, path, TICK_TIMEOUT_S)
        return paths

    def _start(self, link: Link, path: Path, timeout_s: float) -> bool:
        if path in self._asked:
            return False
        self._asked[path] = None  # before the asking: a channel may fail in the moment of writing
        if self._way != "tunnel" or self.endpoint.url is not None:
            self._start_task(link, path, timeout_s)
        elif self._holds_kept:
            self._queue.append((path, timeout_s))
        elif not self._start_kept(link, path, timeout_s):
            self._start_task(link, path, timeout_s)
        return True

    def _start_task(self, link: Link, path: Path, timeout_s: float) -> None:
        self._asked[path] = asyncio.ensure_future(self._fetch(link, path, timeout_s))

    def _start_kept(self, link: Link, path: Path, timeout_s: float) -> bool:
        generation, turn = self._generation, self._turn

        def take(answer: HttpAnswer | HttpFailure) -> None:
            if generation != self._generation:
                return
            if turn == self._turn:
                self._holds_kept = False
            if isinstance(answer, HttpFailure) and answer.kind == "lost":
                # The engine may close a kept stream just as we write (vLLM: after 5 s idle).
                self._start_task(link, path, timeout_s)
            else:
                del self._asked[path]
                self._on_answer(self.endpoint, path, answer, "tunnel")
            if turn == self._turn and self._queue:
                self._go_on(link)

        self._holds_kept = True
        if self._headers:
            is_started = link.start_get(self.endpoint.port, path, take, timeout_s, headers=self._headers)
        else:
            is_started = link.start_get(self.endpoint.port, path, take, timeout_s)
        if not is_started:
            self._holds_kept = False
        return is_started

    def _go_on(self, link: Link) -> None:
        """The kept channel is free: the next question takes it."""
        while self._queue and not self._holds_kept:
            path, timeout_s = self._queue.popleft()
            if not self._start_kept(link, path, timeout_s):
                self._start_task(link, path, timeout_s)

    def _leave_kept(self, link: Link) -> None:
        """The answer on the kept channel takes longer than an interval: what waits behind it does not."""
        self._turn += 1
        self._holds_kept = False
        while self._queue:
            self._start_task(link, *self._queue.popleft())

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
            return await self._get_direct(self.endpoint.url.rstrip("/"), path, timeout_s)
        if self._way == "tunnel":
            try:
                return await link.get(self.endpoint.port, path, headers=self._headers, timeout_s=timeout_s)
            except HttpFailure as failure:
                if failure.kind != "forbidden":
                    raise
                self._way = "direct"
        if self._way == "direct":
            try:
                return await self._get_direct(self._direct_base(), path, min(timeout_s, 3.0))
            except HttpFailure as failure:
                if failure.kind not in ("refused", "timeout", "lost"):
                    raise
                self._way = "remote"
        try:
            async with asyncio.timeout(timeout_s):
                return await self._get_remotely(path)
        except TimeoutError:
            raise HttpFailure("timeout", f"no answer to {path} within {timeout_s:.0f} s") from None
        except HttpFailure as failure:
            if failure.kind == "forbidden":  # no curl, no wget: the open port may answer again later
                self._way = "direct"
            raise

    async def _get_direct(self, base: str, path: Path, timeout_s: float) -> HttpAnswer:
        return await self._direct.get(base + path, headers=self._headers, timeout_s=timeout_s)

    async def _get_remotely(self, path: Path) -> HttpAnswer:
        if self._headers:  # it would stand in a process list, a file or a shell's memory of the machine
            text = (
                "SSH forwarding is refused there and the port is closed from here; the machine's own curl is "
                "never given the key of engines[].api_key_env: allow forwarding or open the port"
            )
            raise HttpFailure("forbidden", text)
        return await self._remote_get(self.endpoint.port, path)

    def _direct_base(self) -> str:
        host = self._hostname
        return (
            f"http://[{host}]:{self.endpoint.port}" if ":" in host else f"http://{host}:{self.endpoint.port}"
        )
