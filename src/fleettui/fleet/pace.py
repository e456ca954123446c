"""An event loop that gathers answers: fewer wake-ups where many machines answer at once.

On a common grid of ticks the answers of a fleet arrive within a few tenths of a second, each a wake-up of its
own, and a tenth of the collector's CPU goes there. While wake-ups follow each other closely the loop waits a
few milliseconds more and takes all that came. A lone event, such as a key, is served at once.
"""

from __future__ import annotations

import asyncio
import gc
import selectors
import time

GATHER_S = 0.012
"""How long to gather. A key pressed in the middle of a burst waits that long at most."""

BURST_S = 0.004
"""Two wake-ups closer than this are a burst."""


QUICK_S = 0.05
"""After a step of a request the next one is there by then, and so is the next request of a busy client."""

GARBAGE_OBJECTS = 20_000
"""New objects before the youngest generation is looked through."""


class GatheringSelector(selectors.DefaultSelector):
    """The system's selector; `is_gathering` turns the waiting on."""

    def __init__(self) -> None:
        super().__init__()
        self.is_gathering = False
        self.quick_until = 0.0
        """Monotonic; somebody waits for an answer until then."""
        self._returned_at = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Ready files; during a burst those of the next few milliseconds too."""
        ready = super().select(timeout)
        if self.is_gathering and ready and timeout != 0:
            now = time.monotonic()
            if now - self._returned_at < BURST_S and now > self.quick_until:
                time.sleep(GATHER_S)
                ready = super().select(0)
            self._returned_at = time.monotonic()
        return ready


def new_gathering_loop() -> asyncio.AbstractEventLoop:
    """An event loop on a GatheringSelector, for programs that keep polling a fleet.

    Garbage collection becomes rare there: readings and snapshots form no cycles, and looking for cycles among
    them after every 700 new objects took a tenth of the CPU.
    """
    gc.set_threshold(GARBAGE_OBJECTS, 20, 20)
    return asyncio.SelectorEventLoop(GatheringSelector())


def be_quick(loop: asyncio.AbstractEventLoop) -> None:
    """Gather nothing for a moment: a request is being answered, in several steps each of which would wait."""
    selector = getattr(loop, "_selector", None)
    if isinstance(selector, GatheringSelector):
        selector.quick_until = time.monotonic() + QUICK_S


def set_gathering(is_gathering: bool) -> None:
    """Turn gathering on or off in the running loop, where it can.

    Logins are many small steps in a row, each of which would wait.
    """
    selector = getattr(asyncio.get_running_loop(), "_selector", None)
    if isinstance(selector, GatheringSelector):
        selector.is_gathering = is_gathering
