"""Files and decisions as they are this moment, for a front end that is asked now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleettui.fleet.maintenance import FlagOperations
    from fleettui.fleet.publisher import SnapshotPublisher
    from fleettui.fleet.trust_operations import TrustOperations


class FreshLook:
    """Lets the pollers follow the files before an answer, and publishes at once what that changed."""

    def __init__(
        self,
        follow: Callable[[], Awaitable[None]],
        publisher: SnapshotPublisher,
        trust: TrustOperations | None,
        flags: FlagOperations | None,
    ) -> None:
        self._follow = follow
        self._publisher = publisher
        self._trust = trust
        self._flags = flags
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None
        self._shown = self._decided()
        """As the last look published it; whoever else followed meanwhile publishes a little later."""

    async def look(self) -> None:
        """Whatever was written before this call is in the latest snapshot after it.

        Calls that come while a look is under way share the next one: many readers cost two looks.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._look_after(self._running), name="fresh look")
        await asyncio.shield(self._next)

    async def _look_after(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        self._running, self._next = asyncio.current_task(), None
        await self._follow()
        known, self._shown = self._shown, self._decided()
        if any(now is not then for now, then in zip(self._shown, known, strict=True)):
            self._publisher.publish_all()

    def _decided(self) -> tuple[object, ...]:
        """Objects that are others after a change."""
        return (
            self._publisher.order,
            self._publisher.problems,
            self._publisher.catalog,
            None if self._trust is None else self._trust.desk.book.table,
            None if self._flags is None else self._flags.book.flags,
        )
