"""One poller per machine: keeps its connection, asks its sources on each tick, never overlaps itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from fleettui.decide.health import silence_limit_s
from fleettui.fleet.answers import Answers
from fleettui.fleet.backoff import retry_delay_s
from fleettui.fleet.discovery import EngineDiscovery
from fleettui.fleet.engine_feeds import EngineFeeds
from fleettui.fleet.grid import TickGrid, Turn
from fleettui.fleet.inbox import AnswerKind
from fleettui.fleet.machine_loops import Feed, MachineLoops
from fleettui.fleet.needs import EVERYTHING, Needs
from fleettui.fleet.poll_time import PollTime
from fleettui.fleet.questions import Questions
from fleettui.fleet.record import MachineRecord
from fleettui.model.machine import EngineEndpoint, Machine
from fleettui.model.snapshot import LinkStage
from fleettui.net.errors import HttpFailure, LinkError
from fleettui.net.link import HttpAnswer, Link
from fleettui.probes.engines import AskedBy
from fleettui.probes.frames import Frame
from fleettui.probes.windows import NOT_SUPPORTED, is_windows_server

log = logging.getLogger(__name__)

SECOND_SAMPLE_S = 0.5
"""After the first frame of a connection: rates take two samples."""

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
        grid: TickGrid | None = None,
    ) -> None:
        self.record = record
        self.interval_s = interval_s
        self.is_paused = False
        self.phase_s = 0.0
        """How far behind the grid's points this machine is asked."""
        self._link_for = link_for
        self._clock = clock
        self._on_change = on_change
        self._needs = needs
        self._grid = grid or TickGrid()
        self._questions = Questions(needs)
        self._loops = MachineLoops(
            self._keep_facts, self._keep_gpu, self._loop_ended, self._link_lost, self._fact_loop_silent
        )
        self._engines = EngineFeeds(record, self._keep_engine, clock, needs.busy) if needs.engines else None
        self._discovery = EngineDiscovery(record, self._engines, clock)
        self._loops.silence.set_limit(silence_limit_s(interval_s), interval_s)
        self._answers = Answers(record, needs, self, clock)
        self._link: Link | None = None
        self._lost: asyncio.Future[LinkError] | None = None
        self._failures = 0
        """Attempts in a row that led to no answer."""
        self._has_answered = False
        """A loop of this connection gave a frame."""
        self._poke = asyncio.Event()
        self._turn: Turn | None = None
        self._task: asyncio.Task[None] | None = None

    # -- life ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin polling in the running event loop."""
        self._task = asyncio.create_task(self._run(), name=f"poll {self.record.machine.name}")

    async def close(self) -> None:
        """Stop polling and close the connection; what runs on the machine ends with it."""
        if self._task is None:
            return
        for _ in range(2):  # a library may swallow one
            self._task.cancel()
            done, _ = await asyncio.wait([self._task], timeout=3.0)
            if done:
                break
        self._task = None

    def poke(self) -> None:
        """Try again at once: the operator asked, or something that matters changed."""
        if self._link is not None and self._turn is not None:
            self._questions.ask_all_again()
            if self._engines is not None:
                self._engines.ask_slow_again()
            self.record.amd.begin_connection()
            self._loops.restart_waiting()
            self._tick()
        else:
            self._poke.set()

    def wake_up(self) -> None:
        """This computer slept, or its clock was set: nothing unanswered is anybody's silence; try at once."""
        self._failures = 0
        self.record.restart_questions(self._clock())
        self._loops.silence.begin()
        if self._engines is not None:
            self._engines.ask_slow_again()
        if self._link is not None and self._turn is not None:
            self._questions.restart()
            self.record.amd.restart()
            self._tick()
        elif not self.record.waits_for_operator:
            self._poke.set()

    def set_paused(self, is_paused: bool) -> None:
        """Ask nothing from now on, or go on at once; the connection stays."""
        self.is_paused = is_paused
        if not is_paused and self._turn is not None:
            self._tick()

    def set_interval(self, interval_s: float) -> None:
        """Ask at another pace from now on: the next tick is that of the new interval."""
        self.interval_s = interval_s
        self._loops.silence.set_limit(silence_limit_s(interval_s), interval_s)
        if self._turn is not None:
            self._schedule_tick()

    # -- connection ---------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                error = await self._connect_and_serve()
            except asyncio.CancelledError:
                raise
            except Exception:
                # A defect of ours on one machine must not end its polling for good, nor anybody else's.
                log.exception("polling %s failed", self.record.machine.name)
                error = LinkError("lost", "internal error while polling; see the log file", is_retryable=True)
            # A login alone is no recovery: where every session is refused, retries would be a login storm.
            self._failures = 1 if self._has_answered else self._failures + 1
            delay_s = retry_delay_s(self._failures, self.interval_s) if error.is_retryable else None
            now = self._clock()
            self.record.link_failed(error, None if delay_s is None else now + delay_s, now)
            del error  # its traceback holds the connection, until the next one ends
            self._on_change()
            await self._wait(delay_s)

    async def _wait(self, delay_s: float | None) -> None:
        """A poke ends the wait, also one that came while the attempt was under way."""
        # Not wait_for: before Python 3.12 it swallows a cancellation that comes together with the poke.
        with suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._poke.wait()
        self._poke.clear()

    async def _connect_and_serve(self) -> LinkError:
        """Connect, poll until the connection ends, clean up; returns why it ended."""
        self.record.link_connecting(self._clock())
        self._on_change()
        self._has_answered = False
        self._lost = asyncio.get_running_loop().create_future()
        link = self._link = self._link_for(self.record.machine)
        try:
            await link.open(self._link_lost)
            self.record.facts.count_own = link.count_streams
            self._questions.begin_connection()
            self.record.amd.begin_connection()
            self.record.link_up(link.address, self._clock())
            self._note_system(link)
            if not self.is_paused and self._engines is not None:
                self._engines.ask(link, self._clock())
            await self._loops.open(link, self._needs)
            self._on_change()
            self._tick()
            return await self._lost
        except LinkError as error:
            return error
        finally:
            self._end_connection()
            await link.close()

    def _note_system(self, link: Link) -> None:
        """A Windows machine has none of the files that the facts come from."""
        self._answers.has_no_facts = is_windows_server(link.server_version)
        if self._answers.has_no_facts:
            now, sources = self._clock(), self.record.facts.sources
            for source in sources.values():
                source.drop(NOT_SUPPORTED, now)
            self._answers.give_up("rates", *sources)

    def _end_connection(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        self._loops.close()
        if self._engines is not None:
            self._engines.close()
        self.record.facts.count_own = None
        self._link = None

    def _link_lost(self, error: LinkError) -> None:
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(error)

    # -- ticks --------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Ask every source that has answered; then wait for the next point of the interval's grid."""
        now = self._schedule_tick()
        if self.record.note_lateness(now, self.interval_s):
            self._on_change()
        if not self.is_paused and self._link is not None:
            self._ask(now)

    def _schedule_tick(self) -> float:
        """Wait for the next point of the interval's grid; returns the present time."""
        if self._turn is not None:
            self._turn.cancel()
        now = self._clock()
        self._turn = self._grid.take_turn(self._tick, now, self.interval_s, self.phase_s)
        return now

    def _ask(self, now: float) -> None:
        if self._loops.facts.is_open:
            sections = self._questions.facts_due(now)
            if self._loops.facts.ask(sections):
                self._questions.note_asked(sections, now)
                self.record.facts.ask(sections, now)
        if self._loops.gpu.is_open:
            self._ask_gpu(self._gpu_due(now), now)
        if self._link is not None and self._engines is not None:
            self._engines.ask(self._link, now)

    def _gpu_due(self, now: float) -> tuple[str, ...]:
        amd = () if self._answers.has_no_facts else self.record.amd.due(now, self._needs.processes)
        return amd + self._questions.gpu_due(
            now, self.record.gpu.refused_fields, self.record.machine.nvidia_smi
        )

    def _ask_gpu(self, sections: tuple[str, ...], now: float) -> bool:
        is_asked = self._loops.gpu.ask(sections)
        if is_asked:
            self._questions.note_asked(sections, now)
            self.record.gpu.ask(sections, now)
            self.record.amd.ask(sections, now)
        return is_asked

    def _fact_loop_silent(self) -> None:
        """The fact channel gave no byte for the limit: the machine is gone, or only its df hangs."""
        feed = self._loops.facts
        if self._questions.facts.give_up_hanging(feed.asked):
            # df hangs on a dead file system: that costs the disks, nothing else.
            self.record.facts.hang(feed.asked, self._clock())
            self._loops.restart(feed)
            self._on_change()
            return
        stage: LinkStage = "silent" if feed.has_answered else "session"
        what = (
            "no answer from the machine" if feed.has_answered else "logged in, but its shell does not answer"
        )
        said = f"; it said: {feed.noise}" if feed.noise else ""
        address = self._link.address if self._link is not None else None
        limit_s = silence_limit_s(self.interval_s)
        self._link_lost(LinkError(stage, f"{address}: {what} for {limit_s:.0f} s{said}", is_retryable=True))

    # -- answers ------------------------------------------------------------------------------------

    @property
    def is_connecting(self) -> bool:
        """A login is under way."""
        return self._link is not None and self._turn is None

    @property
    def open_link(self) -> Link | None:
        """The connection, once it is there."""
        return self._link if self._turn is not None else None

    @property
    def is_settled(self) -> bool:
        """Every needed source answered once, or this connection attempt failed."""
        return self.record.link.state == "failed" or self._answers.are_complete

    @property
    def poll_times(self) -> dict[str, PollTime]:
        """How long the machine takes to answer, `facts` and `gpu`; still counting."""
        return self._loops.times

    def read_answers(self, kind: AnswerKind) -> None:
        """Read the answers of one kind that have arrived since the last call."""
        self._answers.read(kind)

    def _keep_facts(self, frame: Frame) -> None:
        self._has_answered = True
        self._answers.keep_facts(frame)
        self._on_change()

    def _keep_gpu(self, frame: Frame) -> None:
        self._has_answered = True
        self._answers.keep_gpu(frame)
        self._on_change()

    def _keep_engine(
        self, endpoint: EngineEndpoint, path: str, answer: HttpAnswer | HttpFailure, way: AskedBy
    ) -> None:
        self._answers.keep_engine(endpoint, path, answer, way)
        self._on_change()

    # -- what answers make us ask -------------------------------------------------------------------

    def ask_cards_again(self, with_processes: bool) -> None:
        """The driver refused a field: ask without it at once."""
        now = self._clock()
        sections = self._gpu_due(now)
        if with_processes:
            sections += tuple(name for name in ("apps", "ps") if name not in sections)
        self._ask_gpu(sections, now)

    def ask_condition(self) -> None:
        """Condition of the cards and MIG instances, when they are due."""
        if not self.is_paused:
            now = self._clock()
            sections = self._questions.condition_due(now, self.record.gpu.condition)
            if sections:  # once a minute
                self._ask_gpu(sections, now)

    def ask_amd_tool(self) -> bool:
        """What AMD's tool is asked now and then, when it is due; True if it was asked."""
        now = self._clock()
        sections = () if self.is_paused else self.record.amd.tool_due(now, self._needs.processes)
        return self._ask_gpu(sections, now)

    def stop_asking_cards(self) -> None:
        """The machine has no GPU tool."""
        self._questions.give_up_gpu_tool()

    def ask_second_sample(self) -> None:
        """Rates take two samples; a whole interval is long to wait for the first ones."""
        asyncio.get_running_loop().call_later(SECOND_SAMPLE_S, self._ask_second_sample)

    def _ask_second_sample(self) -> None:
        if not self.is_paused and self._loops.facts.is_open and not self.record.facts.has_rates:
            sections = self._questions.facts.second_sample()
            if self._loops.facts.ask(sections):
                now = self._clock()
                self._questions.facts.note_asked(sections, now)
                self.record.facts.ask(sections, now)

    def look_for_engines(self) -> None:
        """Ask ports that may be engines which the file does not name."""
        if self.open_link is not None and not self.is_paused and self._discovery.is_due():
            self._loops.start(self._discovery.look(self.open_link))

    def ask_memory(self) -> None:
        """Unified cards have the machine's memory: ask for it although nothing else needs the facts."""
        if self._link is not None and not self._loops.facts.is_open and not self._loops.is_windows:
            self._loops.start(self._ask_memory(self._link))

    async def _ask_memory(self, link: Link) -> None:
        try:
            await self._loops.facts.open(link)
        except LinkError:
            self._answers.give_up("memory")  # the cards then stay without figures, which routing explains
            self._on_change()
            return
        self._loops.facts.ask(("mem",))

    def ask_installed_again(self, endpoint: EngineEndpoint) -> None:
        """A resident model is not in the engine's list of installed ones."""
        if self._engines is not None:
            self._engines.ask_slow_again(endpoint)

    def ask_engine_more(self, endpoint: EngineEndpoint) -> tuple[str, ...]:
        """Ask at once what an engine's first answers allow; returns the paths."""
        return () if self._engines is None or self.is_paused else self._engines.ask_allowed(endpoint)

    def want_busy(self, is_wanted: bool) -> None:
        """Begin or stop to ask who is busy where asking has its price."""
        if self._engines is not None:
            self._engines.want_busy(is_wanted)

    # -- loops that end by themselves ---------------------------------------------------------------

    def _loop_ended(self, feed: Feed, text: str) -> None:
        now, facts = self._clock(), self.record.facts
        if feed is self._loops.facts:
            facts.end(feed.describe_end(text), now)
            self._answers.give_up("rates", *facts.sources)
        else:
            self.record.amd.end(feed.describe_end(text), now)
            self.record.gpu.end(feed.describe_end(text), now)
            self._answers.give_up("gpu", "processes", "condition")
        self._on_change()
