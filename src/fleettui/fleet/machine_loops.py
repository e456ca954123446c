"""The two loops of one machine: opened together on a connection, started again when one ends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from fleettui.fleet.loop_feed import LoopFeed
from fleettui.fleet.needs import Needs
from fleettui.fleet.poll_time import PollTime
from fleettui.fleet.silence import SilenceWatch
from fleettui.fleet.windows_feed import WindowsGpuFeed
from fleettui.net.errors import LinkError, SessionRefused
from fleettui.net.link import Link
from fleettui.probes.frames import Frame
from fleettui.probes.windows import is_windows_server

REOPEN_DELAY_S = 5.0
"""Before a loop that ended by itself is started again on the same connection."""

MAX_REOPEN_DELAY_S = 300.0
"""The delay doubles up to this while nothing answers: a restricted account is not knocked at all day."""


Feed = LoopFeed | WindowsGpuFeed


class MachineLoops:
    """The fact loop and the GPU loop of a machine, on one connection after the other."""

    def __init__(
        self,
        keep_facts: Callable[[Frame], None],
        keep_gpu: Callable[[Frame], None],
        on_end: Callable[[Feed, str], None],
        on_lost: Callable[[LinkError], None],
        on_silence: Callable[[], None],
    ) -> None:
        self.silence = SilenceWatch(on_silence)
        """Of the fact loop: what it does not say, nobody else says."""
        self.facts = LoopFeed("facts", keep_facts, lambda text: self._ended(self.facts, text), self.silence)
        self._gpu_loop = LoopFeed("gpu", keep_gpu, lambda text: self._ended(self._gpu_loop, text))
        self._gpu_commands = WindowsGpuFeed(keep_gpu)
        self.is_windows = False
        """The machine has OpenSSH for Windows: no shell of ours, only nvidia-smi itself."""
        self._on_end = on_end
        self._on_lost = on_lost
        self._link: Link | None = None
        self._vain_ends: dict[Feed, int] = {}
        """Ends in a row without an answer."""
        self._reopenings: dict[Feed, asyncio.Task[None]] = {}
        self._errands: set[asyncio.Task[None]] = set()

    @property
    def gpu(self) -> Feed:
        """What asks the cards of the machine on this connection."""
        return self._gpu_commands if self.is_windows else self._gpu_loop

    @property
    def times(self) -> dict[str, PollTime]:
        """How long the machine takes to answer, `facts` and `gpu`."""
        return {"facts": self.facts.time, "gpu": self.gpu.time}

    async def open(self, link: Link, needs: Needs) -> None:
        """Start the loops that are needed. Raises LinkError.

        The fact loop is asked for first: it gets the only session of a server that allows one. A loop that is
        refused leaves the other, and the engines, alone.
        """
        self._link = link
        self._vain_ends.clear()
        self.is_windows = is_windows_server(link.server_version)
        needed = ((self.facts, needs.facts and not self.is_windows), (self.gpu, needs.gpu))
        feeds: list[Feed] = [feed for feed, is_needed in needed if is_needed]
        outcomes = await asyncio.gather(*(feed.open(link) for feed in feeds), return_exceptions=True)
        for feed, outcome in zip(feeds, outcomes, strict=True):
            if isinstance(outcome, SessionRefused):
                self._ended(feed, outcome.text)
            elif isinstance(outcome, BaseException):
                raise outcome

    def close(self) -> None:
        """The connection ends: so does everything that belongs to it."""
        self._link = None
        for task in tuple(self._errands):
            task.cancel()
        self._reopenings.clear()  # a task that was cancelled still holds the connection
        self.facts.close()
        self.gpu.close()

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run something that belongs to this connection and ends with it."""
        task = asyncio.create_task(work)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        return task

    def restart(self, feed: Feed, delay_s: float = 0.0) -> None:
        """Close a loop and open it anew on the same connection."""
        feed.close()
        if self._link is not None:
            self._reopenings[feed] = self.start(self._reopen(feed, self._link, delay_s))

    def restart_waiting(self) -> None:
        """The operator asks: loops that wait to be opened again are opened now."""
        for feed, task in tuple(self._reopenings.items()):
            if not task.done():
                task.cancel()
                self.restart(feed)

    def _ended(self, feed: Feed, text: str) -> None:
        vain = 0 if feed.has_answered else self._vain_ends.get(feed, 0) + 1
        self._vain_ends[feed] = vain
        self._on_end(feed, text)
        self.restart(feed, min(MAX_REOPEN_DELAY_S, REOPEN_DELAY_S * 2.0 ** max(0, vain - 1)))

    async def _reopen(self, feed: Feed, link: Link, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        try:
            await feed.open(link)
        except LinkError as error:
            if feed is self.facts and not isinstance(error, SessionRefused):
                self._on_lost(error)
            else:
                self._ended(feed, error.text)
