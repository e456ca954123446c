"""The two loops of one machine: opened together on a connection, started again when one ends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from fleettui.fleet.loop_feed import LoopFeed
from fleettui.fleet.needs import Needs
from fleettui.fleet.silence import SilenceWatch
from fleettui.net.errors import LinkError
from fleettui.net.link import Link
from fleettui.probes.frames import Frame

REOPEN_DELAY_S = 5.0
"""Before a loop that ended by itself is started again on the same connection."""


class MachineLoops:
    """The fact loop and the GPU loop of a machine, on one connection after the other."""

    def __init__(
        self,
        keep_facts: Callable[[Frame], None],
        keep_gpu: Callable[[Frame], None],
        on_end: Callable[[LoopFeed, str], None],
        on_lost: Callable[[LinkError], None],
        on_silence: Callable[[], None],
    ) -> None:
        self.silence = SilenceWatch(on_silence)
        """Of the fact loop: what it does not say, nobody else says."""
        self.facts = LoopFeed("facts", keep_facts, lambda text: self._ended(self.facts, text), self.silence)
        self.gpu = LoopFeed("gpu", keep_gpu, lambda text: self._ended(self.gpu, text))
        self._on_end = on_end
        self._on_lost = on_lost
        self._link: Link | None = None
        self._errands: set[asyncio.Task[None]] = set()

    async def open(self, link: Link, needs: Needs) -> None:
        """Start the loops that are needed. Raises LinkError."""
        self._link = link
        openings = []
        if needs.facts:
            openings.append(self.facts.open(link))
        if needs.gpu:
            openings.append(self.gpu.open(link))
        await asyncio.gather(*openings)

    def close(self) -> None:
        """The connection ends: so does everything that belongs to it."""
        self._link = None
        for task in tuple(self._errands):
            task.cancel()
        self.facts.close()
        self.gpu.close()

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Run something that belongs to this connection and ends with it."""
        task = asyncio.create_task(work)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    def restart(self, feed: LoopFeed, delay_s: float = 0.0) -> None:
        """Close a loop and open it anew on the same connection."""
        feed.close()
        if self._link is not None:
            self.start(self._reopen(feed, self._link, delay_s))

    def _ended(self, feed: LoopFeed, text: str) -> None:
        self._on_end(feed, text)
        self.restart(feed, REOPEN_DELAY_S)

    async def _reopen(self, feed: LoopFeed, link: Link, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        try:
            await feed.open(link)
        except LinkError as error:
            if feed is self.facts:
                self._on_lost(error)
            else:
                self._ended(feed, error.text)
