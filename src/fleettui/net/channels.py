"""Opening SSH channels without leaving one behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finish_or_drop(opening: Coroutine[Any, Any, tuple[Any, T]]) -> tuple[Any, T]:
    """Await a channel's opening. Cancelled meanwhile, the channel is closed when it does open.

    asyncssh keeps a channel whose opener was cancelled, and the machine keeps its process.
    """
    task = asyncio.ensure_future(opening)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_drop_late)
        raise


def _drop_late(task: asyncio.Task[tuple[Any, Any]]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result()[0].abort()
