"""One poller per machine: keeps its connection, asks its sources on each tick, never overlaps itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from fleettui.fleet.backoff import retry_delay_s
from fleettui.fleet.engine_feed import EngineFeed
from fleettui.fleet.loop_feed import LoopFeed
from fleettui.fleet.needs import EVERYTHING, Needs
from fleettui.fleet.questions import Questions
from fleettui.fleet.record import MachineRecord
from fleettui.fleet.remote_http import RemoteHttp
from fleettui.model.machine import EngineEndpoint, Machine
from fleettui.net.errors import HttpFailure, LinkError
from fleettui.net.link import HttpAnswer, Link
from fleettui.probes.engines import probe_for
from fleettui.probes.frames import Frame

log = logging.getLogger(__name__)

MIN_SILENCE_S = 6.0
REOPEN_DELAY_S = 5.0
"""Before a loop that ended by itself is started again on the same connection."""

LinkFactory = Callable[[Machine], Link]


class MachinePoller:
    """Polls one machine until closed. All state the front ends see is in `record`."""

    def __init__(
        self,
        record: MachineRecord,
        link_for: LinkFactory,
        clock: Callable[[], float],
        on_change: Callable[[], None],
        interval_s: float,
        needs: Needs = EVERYTHING,
    ) -> None:
        self.record = record
        self.interval_s = interval_s
        self.is_paused = False
        self.attempts = 0
        """Connection attempts that ended, well or not."""
        self._link_for = link_for
        self._clock = clock
        self._on_change = on_change
        self._questions = Questions(needs, record.machine)
        self._facts = LoopFeed("facts", clock, self._take_facts, self._facts_ended)
        self._gpu = LoopFeed("gpu", clock, self._take_gpu, self._gpu_ended)
        self._remote_http = RemoteHttp(clock)
        self._engines = self._make_engine_feeds(needs)
        self._needs = needs
        self._link: Link | None = None
        self._lost: asyncio.Future[LinkError] | None = None
        self._poke = asyncio.Event()
        self._tick_handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._reopens: set[asyncio.Task[None]] = set()

    # -- life ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin polling in the running event loop."""
        self._task = asyncio.create_task(self._run(), name=f"poll {self.record.machine.name}")

    async def close(self) -> None:
        """Stop polling and close the connection; what runs on the machine ends with it."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task], timeout=3.0)
        self._task = None

    def poke(self) -> None:
        """Try again at once: the operator asked, or something that matters changed."""
        self._poke.set()
        if self._link is not None and self._tick_handle is not None:
            self._questions.ask_all_again()
            self._tick()

    # -- connection ---------------------------------------------------------------------------------

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                error = await self._connect_and_serve()
            except asyncio.CancelledError:
                raise
            except Exception:
                # A defect of ours on one machine must not end its polling for good, nor anybody else's.
                log.exception("polling %s failed", self.record.machine.name)
                error = LinkError("lost", "internal error while polling; see the log file", is_retryable=True)
            failures = 1 if self.record.was_up else failures + 1
            delay_s = retry_delay_s(failures, self.interval_s) if error.is_retryable else None
            now = self._clock()
            self.record.link_failed(error, None if delay_s is None else now + delay_s, now)
            self.attempts += 1
            self._on_change()
            await self._wait(delay_s)

    async def _wait(self, delay_s: float | None) -> None:
        self._poke.clear()
        try:
            await asyncio.wait_for(self._poke.wait(), delay_s)
        except TimeoutError:
            return

    async def _connect_and_serve(self) -> LinkError:
        """Connect, poll until the connection ends, clean up; returns why it ended."""
        self.record.link_connecting(self._clock())
        self._on_change()
        self._lost = asyncio.get_running_loop().create_future()
        link = self._link = self._link_for(self.record.machine)
        try:
            await link.open(self._link_lost)
            self._questions.begin_connection()
            await self._open_loops(link)
            self.record.link_up(link.address, self._clock())
            self.attempts += 1
            self._on_change()
            self._tick()
            return await self._lost
        except LinkError as error:
            return error
        finally:
            self._end_connection()
            await link.close()

    async def _open_loops(self, link: Link) -> None:
        openings = []
        if self._needs.facts:
            openings.append(self._facts.open(link))
        if self._needs.gpu:
            openings.append(self._gpu.open(link))
        await asyncio.gather(*openings)

    def _end_connection(self) -> None:
        if self._tick_handle is not None:
            self._tick_handle.cancel()
            self._tick_handle = None
        for task in self._reopens:
            task.cancel()
        self._facts.close()
        self._gpu.close()
        self._remote_http.close()
        for engine in self._engines:
            engine.close()
        self.record.forget_questions()
        self._link = None

    def _link_lost(self, error: LinkError) -> None:
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(error)

    # -- ticks --------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Ask every source that has answered; then wait for the next point of the interval's grid."""
        loop = asyncio.get_running_loop()
        if self._tick_handle is not None:
            self._tick_handle.cancel()
        # A common grid: answers of many machines then arrive together and wake the process up less often.
        now = self._clock()
        delay_s = self.interval_s - now % self.interval_s
        if delay_s < self.interval_s * 0.1:
            delay_s += self.interval_s
        self._tick_handle = loop.call_later(delay_s, self._tick)
        if self.record.note_lateness(now, self.interval_s):
            self._on_change()
        if not self.is_paused and self._link is not None:
            self._ask(now)
        self._check_silence(now)

    def _ask(self, now: float) -> None:
        assert self._link is not None
        if self._needs.facts and self._facts.is_open:
            sections = self._questions.facts_due(now)
            if self._facts.ask(sections):
                self._questions.facts_asked(sections, now)
            self.record.facts_asked(self._facts.asked, now)
        if self._needs.gpu and self._gpu.is_open:
            sections = self._questions.gpu_due(now)
            if self._gpu.ask(sections):
                self._questions.gpu_asked(sections, now)
            self.record.gpu_asked(self._gpu.asked, now)
        for engine in self._engines:
            engine.ask(self._link, now)
            self.record.engine_asked(engine.endpoint, now)

    def _check_silence(self, now: float) -> None:
        """The fact channel gave no byte for max(3 intervals, 6 s): the machine is gone."""
        feed = self._facts
        if feed.asked_at is None:
            return
        limit_s = max(3 * self.interval_s, MIN_SILENCE_S)
        if now - max(feed.asked_at, feed.heard_at or 0.0) < limit_s:
            return
        if "disks" in feed.asked:
            # df hangs on a dead file system: that costs the disks, nothing else.
            self._questions.give_up_disks()
            self.record.disks_hang(now)
            self._restart(feed, delay_s=0.0)
            self._on_change()
            return
        stage = "silent" if feed.has_answered else "session"
        what = (
            "no answer from the machine" if feed.has_answered else "logged in, but its shell does not answer"
        )
        said = f"; it said: {feed.noise}" if feed.noise else ""
        address = self._link.address if self._link is not None else None
        self._link_lost(LinkError(stage, f"{address}: {what} for {limit_s:.0f} s{said}", is_retryable=True))

    # -- answers ------------------------------------------------------------------------------------

    def _take_facts(self, frame: Frame) -> None:
        self.record.take_facts(frame, self._clock())
        self._on_change()

    def _take_gpu(self, frame: Frame) -> None:
        self.record.take_gpu(frame, self._clock())
        retry = self._questions.gpu_answered(frame, self.record)
        if retry and self._gpu.ask(retry):
            self.record.gpu_asked(retry, self._clock())
        self._on_change()

    def _take_engine(
        self, endpoint: EngineEndpoint, path: str, answer: HttpAnswer | HttpFailure, way: str
    ) -> None:
        knows_all = self.record.take_engine(endpoint, path, answer, way, self._clock())
        if not knows_all:
            for engine in self._engines:
                if engine.endpoint == endpoint:
                    engine.ask_slow_again()
        self._on_change()

    # -- loops that end by themselves ---------------------------------------------------------------

    def _facts_ended(self, text: str) -> None:
        self.record.facts_ended(_loop_end_text(self._facts, text), self._clock())
        self._loop_ended(self._facts)

    def _gpu_ended(self, text: str) -> None:
        self.record.gpu_ended(_loop_end_text(self._gpu, text), self._clock())
        self._loop_ended(self._gpu)

    def _loop_ended(self, feed: LoopFeed) -> None:
        self._on_change()
        if self._lost is not None and not self._lost.done():
            self._restart(feed, REOPEN_DELAY_S)

    def _restart(self, feed: LoopFeed, delay_s: float) -> None:
        feed.close()
        task = asyncio.create_task(self._reopen(feed, delay_s))
        self._reopens.add(task)
        task.add_done_callback(self._reopens.discard)

    async def _reopen(self, feed: LoopFeed, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        if self._link is None:
            return
        try:
            await feed.open(self._link)
        except LinkError as error:
            if feed.kind == "facts":
                self._link_lost(error)
            else:
                self._gpu_ended(error.text)

    def _make_engine_feeds(self, needs: Needs) -> tuple[EngineFeed, ...]:
        if not needs.engines:
            return ()
        feeds = []
        for endpoint in self.record.machine.engines:
            probe = probe_for(endpoint.kind)
            if probe is None:
                self.record.engine_unsupported(endpoint, self._clock())
                continue
            feeds.append(
                EngineFeed(
                    self.record.machine,
                    endpoint,
                    probe.fast_paths,
                    probe.slow_paths,
                    self._clock,
                    self._take_engine,
                    lambda port, path: self._remote_http.get(self._link, port, path),
                )
            )
        return tuple(feeds)


def _loop_end_text(feed: LoopFeed, text: str) -> str:
    if feed.noise and not feed.has_answered:
        return f"the account is restricted or its shell failed; it said: {feed.noise}"
    return text
