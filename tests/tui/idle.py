"""Waiting until the app under test has nothing left to do, by looking at its event loop.

Textual's own waiting takes 20 ms at least, three times for each key, and guesses from the CPU time of the
process: on a busy machine a process that waits for its turn looks as if it had nothing to do.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import textual.app
import textual.pilot
import textual.screen

SOON_S = 0.02
"""A timer that ends so soon belongs to what goes on."""
FRAME_S = 0.002
"""Textual collects what to paint for so long; otherwise 1/60 s, which each key of a test would wait for."""
ROUNDS = 3
"""Times that nothing is there to do: what comes from outside is looked for between them."""

_others: set[asyncio.Future[Any]] = set()
"""Work that other threads have for an event loop."""


async def wait_until_idle(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Until no call is due in the event loop, no thread works for it, and no timer ends soon. Takes the place
    of Textual's function."""
    loop: Any = asyncio.get_running_loop()
    end = loop.time() + max_sleep
    await asyncio.sleep(min_sleep)
    rounds = 0
    while rounds < ROUNDS and loop.time() < end:
        await asyncio.sleep(0)
        waiting = [timer.when() for timer in loop._scheduled if not timer.cancelled()]
        due_s = min(waiting, default=end) - loop.time()
        if loop._ready:
            rounds = 0
        elif _others or due_s <= SOON_S:
            rounds = 0
            await asyncio.sleep(0.001 if _others else max(0.0, due_s))
        else:
            rounds += 1


def use_it(patch: pytest.MonkeyPatch) -> None:
    """From now on, by the pilot and by the app."""
    run_in_executor = asyncio.BaseEventLoop.run_in_executor

    def noted(loop: Any, executor: Any, function: Any, *arguments: Any) -> Any:
        future = run_in_executor(loop, executor, function, *arguments)
        _others.add(future)
        future.add_done_callback(_others.discard)
        return future

    _others.clear()
    patch.setattr(asyncio.BaseEventLoop, "run_in_executor", noted)
    patch.setattr(textual.screen, "UPDATE_PERIOD", FRAME_S)
    patch.setattr(textual.pilot, "wait_for_idle", wait_until_idle)
    patch.setattr(textual.app, "wait_for_idle", wait_until_idle)
