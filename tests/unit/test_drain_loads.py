"""Loads of several processes: one at a time on each target, and routing sees the room that they take."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from drain_machines import FOLDER, MODEL, Desks, Ollama, open_desks
from fleettui.fleet.drain.desk import DrainDesk
from fleettui.model.drain import DrainOptions
from fleettui.model.lease import Lease
from fleettui.store.database import Store
from fleettui.store.drains import LOAD_LOCK, load_load_locks
from fleettui.store.leases import load_leases

OPTIONS = DrainOptions(idle_wait_s=0.0, targets=("cleo",))
OTHER = "phi4:14b"
LIMIT_S = 60.0


@pytest.fixture
async def desks(tmp_path: Path) -> AsyncIterator[Desks]:
    """The second by the process that began this one, which is alive too."""
    pids = iter((os.getpid(), os.getppid()))
    async with open_desks(tmp_path) as make:

        def make_another(*machines: Ollama) -> DrainDesk:
            desk = make(*machines)
            desk._book.pid = next(pids)
            return desk

        yield make_another


async def until(is_met: Callable[[], Any]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not is_met():  # noqa: ASYNC110 - others change it
            await asyncio.sleep(0.01)


def leases(tmp_path: Path) -> list[Lease]:
    with Store.open(str(tmp_path)) as store:
        return list(load_leases(store, FOLDER, time.time()))


def machines() -> tuple[Ollama, Ollama, Ollama]:
    """Two to empty, and the one that takes both."""
    ada, bora, cleo = Ollama("ada", MODEL), Ollama("bora", OTHER), Ollama("cleo")
    cleo.installed = [MODEL, OTHER]
    return ada, bora, cleo


async def test_a_target_on_which_another_process_loads_is_waited_for(desks: Desks, tmp_path: Path) -> None:
    ada, bora, cleo = machines()
    may_answer = cleo.hold_answers()
    mia, jonas = desks(ada, bora, cleo), desks(ada, bora, cleo)
    await mia.start(["ada"], "PSU swap", OPTIONS)
    await until(lambda: cleo.sent)
    with Store.open(str(tmp_path)) as store:
        assert [lock.machine for lock in load_load_locks(store, FOLDER)] == ["cleo"]
    (lease,) = leases(tmp_path)
    assert (lease.machine, lease.model, lease.kind) == ("cleo", MODEL, "cold")
    assert lease.vram_mib >= 6 * 1024
    await jonas.start(["bora"], "fans", OPTIONS)
    worker = jonas._workers["bora"]
    await until(lambda: [copy.state for copy in worker.board.progress] == ["waiting_target"])
    assert worker.board.progress[0].text == f"{mia._book.by} (process {mia._book.pid}) loads on cleo"
    assert [asked["model"] for asked in cleo.sent] == [MODEL]
    may_answer.set()
    async with asyncio.timeout(LIMIT_S):
        ended = [await mia.wait("ada"), await jonas.wait("bora")]
    assert [status and status.drain.state for status in ended] == ["drained", "drained"]
    assert set(cleo.loaded) == {MODEL, OTHER}
    await until(lambda: not leases(tmp_path))


@pytest.mark.parametrize("is_answered", [True, False])
async def test_a_worker_that_ends_leaves_no_room_reserved(
    desks: Desks, tmp_path: Path, *, is_answered: bool
) -> None:
    """Also where it ends while the lease is being written."""
    ada, bora, cleo = machines()
    cleo.hold_answers()
    desk = desks(ada, bora, cleo)
    is_taking, take = asyncio.Event(), desk._book.take_lease

    async def take_and_wait(lease: Lease) -> None:
        await take(lease)
        is_taking.set()
        if not is_answered:  # nobody hears that it is
            await asyncio.Event().wait()

    desk._book.take_lease = take_and_wait  # type: ignore[method-assign]
    async with asyncio.timeout(LIMIT_S):
        await desk.start(["ada"], "PSU swap", OPTIONS)
        await is_taking.wait()
        await until(lambda: bool(cleo.sent) is is_answered)
        assert [lease.machine for lease in leases(tmp_path)] == ["cleo"]
        await desk.close()
    assert leases(tmp_path) == []
    with Store.open(str(tmp_path)) as store:
        assert load_load_locks(store, FOLDER) == ()


async def test_two_that_begin_at_once_load_one_after_the_other(desks: Desks) -> None:
    """Each has taken the target in its own process, and asks for it at the same moment."""
    ada, bora, cleo = machines()
    under_way: list[str] = []
    together: list[list[str]] = []

    async def load(asked: dict[str, Any]) -> None:
        if asked["keep_alive"] and asked["model"] not in cleo.loaded:
            under_way.append(asked["model"])
            together.append(list(under_way))
            await asyncio.sleep(0.05)
            under_way.remove(asked["model"])

    cleo.before_answer = load
    both = desks(ada, bora, cleo), desks(ada, bora, cleo)
    barrier = asyncio.Barrier(2)
    for desk in both:
        hold_first(desk, barrier)
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(
            both[0].start(["ada"], "PSU swap", OPTIONS), both[1].start(["bora"], "fans", OPTIONS)
        )
        ended = [await both[0].wait("ada"), await both[1].wait("bora")]
    assert [status and status.drain.state for status in ended] == ["drained", "drained"]
    assert sorted(together) == sorted([[MODEL], [OTHER]])


def hold_first(desk: DrainDesk, barrier: asyncio.Barrier) -> None:
    """Its first question for the target waits for the other one's."""
    take, is_first = desk._book.take_lock, True

    async def take_together(name: str) -> Any:
        nonlocal is_first
        if name.startswith(LOAD_LOCK) and is_first:
            is_first = False
            await barrier.wait()
        return await take(name)

    desk._book.take_lock = take_together  # type: ignore[method-assign]


async def test_a_way_back_waits_for_the_load_of_another_process(desks: Desks) -> None:
    """ada shall get its copy back, while somebody else has bora's copy loaded there."""
    ada, bora, cleo = machines()
    ada.installed = [MODEL, OTHER]
    mia, jonas = desks(ada, bora, cleo), desks(ada, bora, cleo)
    async with asyncio.timeout(LIMIT_S):
        await mia.start(["ada"], "PSU swap", OPTIONS)
        await mia.wait("ada")
        may_answer, asked = ada.hold_answers(), len(ada.sent)
        await jonas.start(["bora"], "fans", DrainOptions(idle_wait_s=0.0, targets=("ada",)))
        await until(lambda: ada.sent[asked:])
        await mia.undrain("ada", returns=True)
        await until(lambda: "loads on ada" in mia.returning("ada")[0].text)
        assert mia.returning("ada")[0].state == "waiting_target"
        assert [sent["model"] for sent in ada.sent[asked:]] == [OTHER]
        may_answer.set()
        await jonas.wait("bora")
        await mia.wait("ada")
    assert (set(ada.loaded), set(bora.loaded), set(cleo.loaded)) == ({MODEL, OTHER}, set(), set())
