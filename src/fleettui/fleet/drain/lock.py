"""Locks of drains, with a sign of life: one worker at a time on each, one load at a time on each target."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from fleettui.fleet.drain.words import DrainError
from fleettui.model.drain import DrainLock

if TYPE_CHECKING:
    from fleettui.fleet.drain.shared import DrainRoom

BEAT_S = 10.0


class WorkLock:
    """Taken, kept alive, given back; `on_lost` is called once where somebody else took over."""

    def __init__(self, room: DrainRoom, name: str, on_lost: Callable[[], None]) -> None:
        """`name`: of the drained machine; of a target behind LOAD_LOCK."""
        self._room = room
        self._name = name
        self._on_lost = on_lost
        self._lock: DrainLock | None = None
        self._beating: asyncio.Task[None] | None = None

    async def take(self) -> bool:
        """Become the worker; False where another one is alive. Raises DrainError."""
        taking = asyncio.ensure_future(self._room.book.take_lock(self._name))
        try:
            await asyncio.shield(taking)
        finally:  # a cancelled one is written all the same, and must be given back
            self._lock = await taking
        if self._lock is not None:
            self._beating = asyncio.create_task(self._beat(self._lock))
        return self._lock is not None

    async def _beat(self, lock: DrainLock) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                is_ours = await self._room.book.beat_lock(lock)
            except DrainError as error:
                self._room.error = error.text
                continue
            if not is_ours:
                self._lock = None
                self._on_lost()
                return

    async def release(self) -> None:
        """Let the next worker in; what cannot be written is shown."""
        if self._beating is not None:
            self._beating.cancel()
        lock, self._lock = self._lock, None
        if lock is not None:
            try:
                await self._room.book.release_lock(lock)
            except DrainError as error:
                self._room.error = error.text
