"""Files and decisions before an answer: nothing written before is missed, many askers cost two looks."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from fleettui.fleet.fresh import FreshLook


class Rig:
    """A folder whose content is a number."""

    def __init__(self) -> None:
        self.written = self.seen = self.looks = self.published = 0
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.publisher = SimpleNamespace(order=(), problems=(), catalog=None, publish_all=self._publish)
        self.fresh = FreshLook(self._follow, self.publisher, None, None)  # type: ignore[arg-type]

    async def _follow(self) -> None:
        self.looks += 1
        read = self.written
        await self.may_end.wait()
        if read < 0:
            raise OSError("the disk")
        if read != self.seen:
            self.seen, self.publisher.order = read, (f"machine {read}",)

    def _publish(self) -> None:
        self.published = self.seen


async def test_what_changed_is_published_at_once() -> None:
    rig = Rig()
    rig.written = 1
    await rig.fresh.look()
    assert rig.published == 1


async def test_what_the_cycle_saw_a_moment_ago_is_published_too() -> None:
    rig = Rig()
    rig.written = 1
    await rig._follow()
    assert rig.published == 0  # it will be, a little later
    await rig.fresh.look()
    assert rig.published == 1


async def test_nothing_is_published_where_nothing_changed() -> None:
    rig = Rig()
    rig.published = -1
    await rig.fresh.look()
    assert (rig.looks, rig.published) == (1, -1)


async def test_askers_share_looks_and_miss_nothing() -> None:
    rig = Rig()
    rig.may_end.clear()
    first = [asyncio.create_task(rig.fresh.look()) for _ in range(50)]
    while not rig.looks:  # noqa: ASYNC110
        await asyncio.sleep(0)
    rig.written = 2  # the look under way has read the folder already
    later = [asyncio.create_task(rig.fresh.look()) for _ in range(50)]
    await asyncio.sleep(0)
    rig.may_end.set()
    await asyncio.gather(*first)
    await asyncio.gather(*later)
    assert (rig.looks, rig.published) == (2, 2)


async def test_an_asker_that_goes_takes_nobody_along() -> None:
    rig = Rig()
    rig.may_end.clear()
    gone, stays = asyncio.create_task(rig.fresh.look()), asyncio.create_task(rig.fresh.look())
    while not rig.looks:  # noqa: ASYNC110
        await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    rig.may_end.set()
    await stays
    assert rig.looks == 1


async def test_after_a_failure_the_next_look_is_a_new_one() -> None:
    rig = Rig()
    rig.written = -1
    with pytest.raises(OSError, match="the disk"):
        await rig.fresh.look()
    rig.written = 3
    await rig.fresh.look()
    assert rig.published == 3
