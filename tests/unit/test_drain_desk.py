"""The door to draining, with a service that answers at once: refusals, flags, locks, who goes on."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import make_copy, make_fleet, make_snapshot
from fleettui.fleet.drain.desk import DrainDesk, DrainError
from fleettui.model.drain import CopyProgress, Drain, DrainLock, DrainOptions, DrainStatus, SourceCopy
from fleettui.model.snapshot import FleetSnapshot, LinkStatus, MachineSnapshot
from fleettui.store.database import Store
from fleettui.store.drains import change_drain, load_drain, load_journal, save_copies, take_lock

FOLDER = "/fleet"
OPTIONS = DrainOptions()
LIMIT_S = 30.0


class Service:
    """Machines that are read anew whenever somebody asks."""

    flags = None
    pollers: Any = ()

    def __init__(self, *machines: MachineSnapshot) -> None:
        self._subscribers: list[Callable[[FleetSnapshot], None]] = []
        self.snapshot = make_fleet(*map(_read_now, machines), taken_at=time.time())

    def subscribe(self, subscriber: Callable[[FleetSnapshot], None]) -> Callable[[], None]:
        self._subscribers.append(subscriber)

        def leave() -> None:
            with suppress(ValueError):
                self._subscribers.remove(subscriber)

        return leave

    def poll_now(self, name: str | None = None) -> None:
        asyncio.get_running_loop().call_later(0.01, self._poll)

    def _poll(self) -> None:
        self.snapshot = make_fleet(*map(_read_now, self.snapshot.machines), taken_at=time.time())
        for subscriber in tuple(self._subscribers):
            subscriber(self.snapshot)


def _read_now(machine: MachineSnapshot) -> MachineSnapshot:
    now = time.time()
    read = {name: replace(status, read_at=now) for name, status in machine.sources.items()}
    return replace(machine, sources=read, last_seen=now)


Desks = Callable[..., DrainDesk]


@pytest.fixture
async def desks(tmp_path: Path) -> AsyncIterator[Desks]:
    made: list[DrainDesk] = []

    def make(*machines: MachineSnapshot) -> DrainDesk:
        made.append(DrainDesk(Service(*machines), str(tmp_path), FOLDER))
        return made[-1]

    yield make
    for desk in made:
        await desk.close()


def stored(tmp_path: Path, name: str = "ada") -> DrainStatus | None:
    with Store.open(str(tmp_path)) as store:
        return load_drain(store, FOLDER, name)


def lay_down(
    tmp_path: Path, state: Any = "running", lock: DrainLock | None = None, name: str = "ada"
) -> Drain:
    """A drain of another process."""
    drain = Drain("d1", name, state, "PSU swap", "mia@jump", time.time())
    with Store.open(str(tmp_path)) as store:
        change_drain(store, FOLDER, name, lambda _: drain)
        if lock is not None:
            take_lock(store, FOLDER, replace(lock, machine=name), lambda _: False)
    return drain


def lock_of(holder: str, pid: int, beat_at: float) -> DrainLock:
    return DrainLock("ada", holder, pid, beat_at, beat_at)


async def ended(desk: DrainDesk, name: str = "ada") -> DrainStatus:
    async with asyncio.timeout(LIMIT_S):
        status = await desk.wait(name)
    assert status is not None
    return status


async def test_what_is_refused_changes_nothing(desks: Desks, tmp_path: Path) -> None:
    away = replace(make_snapshot("bora"), link=LinkStatus("failed"))
    desk = desks(make_snapshot("ada"), away)
    refusals: list[tuple[str, Any]] = []
    for names, reason, until in (
        (["eve"], "PSU swap", None),
        (["ada"], "  ", None),
        (["ada"], "x" * 300, None),
        (["ada"], "PSU swap", 1.0),
        (["ada", "bora"], "PSU swap", None),
    ):
        with pytest.raises(DrainError) as refused:
            await desk.start(names, reason, OPTIONS, until=until)
        refusals.append((refused.value.kind, refused.value.name))
    assert refusals == [
        ("unknown_name", "eve"), ("reason", ""), ("reason", ""), ("until", ""), ("no_data", "bora"),
    ]  # fmt: skip
    assert stored(tmp_path) is None, "all of them or none"
    for call in (desk.cancel, desk.undrain):
        with pytest.raises(DrainError, match="is not drained"):
            await call("ada")


async def test_an_empty_machine_is_drained_after_two_polls(desks: Desks, tmp_path: Path) -> None:
    desk = desks(make_snapshot("ada"))
    heard: list[str] = []
    desk.subscribe(heard.append)
    (plan,) = await desk.start(["ada"], "PSU swap", OPTIONS)
    assert plan.copies == ()
    status = await ended(desk)
    assert (status.drain.state, status.drain.reason) == ("drained", "PSU swap")
    assert status.lock is None
    assert [entry.step for entry in status.journal] == ["started", "running", "drained"]
    assert set(heard) == {"ada"}
    await desk.undrain("ada")
    assert (await desk.status("ada"), await desk.statuses(), stored(tmp_path)) == (None, (), None)


async def test_what_is_gone_where_it_was_moved_to_is_not_told_as_back(desks: Desks, tmp_path: Path) -> None:
    drain = lay_down(tmp_path, "drained")
    copy = SourceCopy("ada", "ollama", 11434, "qwen3:8b")
    moved = CopyProgress(copy, "move", "gone", target="bora", text="served by bora", is_moved=True)
    with Store.open(str(tmp_path)) as store:
        assert save_copies(store, FOLDER, drain, [moved], None)
    desk = desks(make_snapshot("ada"), make_snapshot("bora"))
    await desk.undrain("ada", returns=True)
    async with asyncio.timeout(LIMIT_S):
        await desk.wait("ada")
    (back,) = desk.returning("ada")
    assert (back.state, back.text) == (
        "blocked",
        "no longer on bora: nothing to move back; the next request loads it",
    )


async def test_what_nobody_takes_stays_and_says_so(desks: Desks) -> None:
    desk = desks(make_snapshot("ada", loaded=[make_copy("qwen3:8b")]))
    await desk.start(["ada"], "PSU swap", OPTIONS)
    status = await ended(desk)
    assert status.drain.state == "blocked"
    assert "cannot" in status.drain.text
    assert next(entry.result for entry in status.journal if entry.step == "planned").startswith("CANNOT ")
    (copy,) = status.copies
    assert (copy.state, copy.unloads) == ("blocked", 0)
    await desk.start(["ada"], "again", replace(OPTIONS, skips=("qwen3:8b",)))
    again = await ended(desk)
    assert again.drain.id == status.drain.id, "the same drain goes on"
    assert [copy.state for copy in again.copies] == ["skipped"]


async def test_a_cancelled_drain_keeps_its_flag(desks: Desks, tmp_path: Path) -> None:
    desk = desks(make_snapshot("ada", loaded=[make_copy("qwen3:8b")]))
    lay_down(tmp_path)
    await desk.cancel("ada")
    status = await desk.status("ada")
    assert status is not None
    assert status.drain.state == "cancelled"
    assert [entry.step for entry in status.journal] == ["cancelled"]
    assert await desk.resume() == (), "nobody goes on with it"
    await desk.cancel("ada", is_eligible=True)
    assert stored(tmp_path) is None


async def test_who_works_elsewhere_is_named_and_left_alone(desks: Desks, tmp_path: Path) -> None:
    desk = desks(make_snapshot("ada"))
    lay_down(tmp_path, "running", lock_of("mia@jump", 4711, time.time()))
    assert await desk.resume() == ()
    with pytest.raises(DrainError, match=r"mia@jump \(process 4711\)") as refused:
        await desk.start(["ada"], "mine", OPTIONS)
    assert refused.value.kind == "changed_meanwhile"


async def test_machines_that_are_drained_together_are_flagged_all_or_none(
    desks: Desks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else begins with bora in the moment between the look who is free and the flags."""
    desk = desks(make_snapshot("ada"), make_snapshot("bora"), make_snapshot("cleo"))
    stop_own = desk._stop_own

    async def stop_and_wait(name: str) -> None:
        await stop_own(name)
        if name == "cleo":
            lay_down(tmp_path, lock=lock_of("mia@jump", 4711, time.time()), name="bora")

    monkeypatch.setattr(desk, "_stop_own", stop_and_wait)
    with pytest.raises(DrainError, match=r"bora is being drained by mia@jump .*nothing was changed;"):
        await desk.start(["ada", "bora", "cleo"], "PSU swap", OPTIONS)
    assert (stored(tmp_path, "ada"), stored(tmp_path, "cleo")) == (None, None)
    with Store.open(str(tmp_path)) as store:
        assert load_journal(store, FOLDER, "ada") == ()
    await desk.start(["ada", "cleo"], "PSU swap", OPTIONS)
    for name in ("ada", "cleo"):
        status = await ended(desk, name)
        assert [entry.step for entry in status.journal][:2] == ["started", "running"]


@pytest.mark.parametrize(
    ("holder", "pid", "age_s"),
    [
        ("mia@jump", 4711, 61.0),  # no sign of life
        (f"mia@{socket.gethostname()}", 2**22 + 1, 1.0),  # no process has that number
    ],
)
async def test_a_worker_that_is_dead_is_followed_by_the_next(
    desks: Desks, tmp_path: Path, holder: str, pid: int, age_s: float
) -> None:
    desk = desks(make_snapshot("ada"))
    lay_down(tmp_path, "running", lock_of(holder, pid, time.time() - age_s))
    assert await desk.resume() == ("ada",)
    assert (await ended(desk)).drain.state == "drained"


async def test_a_worker_that_lives_on_this_computer_is_not_dead(desks: Desks, tmp_path: Path) -> None:
    desk = desks(make_snapshot("ada"))
    lay_down(tmp_path, "planned", lock_of(f"mia@{socket.gethostname()}", os.getppid(), time.time()))
    assert await desk.resume() == ()


async def test_an_undrain_elsewhere_ends_the_work(desks: Desks, tmp_path: Path) -> None:
    desk = desks(make_snapshot("ada"))
    lay_down(tmp_path, "drained")
    with Store.open(str(tmp_path)) as store:
        await desk.start(["ada"], "PSU swap", OPTIONS)
        change_drain(store, FOLDER, "ada", lambda _: None)
    async with asyncio.timeout(LIMIT_S):
        assert await desk.wait("ada") is None


async def test_closed_it_lets_the_next_worker_in(desks: Desks, tmp_path: Path) -> None:
    desk = desks(make_snapshot("ada"))
    lay_down(tmp_path)
    assert await desk.resume() == ("ada",)
    await desk.close()
    await desk.close()
    status = stored(tmp_path)
    assert status is not None
    assert (status.drain.state in ("running", "drained"), status.lock) == (True, None)
    assert await desk.resume() == (), "closed is closed"
