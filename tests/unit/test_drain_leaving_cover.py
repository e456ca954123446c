"""Copies that stand for each other never go both, whatever happens between the last look and the unload."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from drain_machines import FOLDER, MODEL, Desks, Ollama, open_desks
from fleettui.fleet.drain.desk import DrainDesk
from fleettui.model.catalog import Catalog, CatalogModel
from fleettui.model.drain import Drain, DrainOptions, JournalEntry
from fleettui.model.snapshot import MaintenanceFlag
from fleettui.store.database import Store
from fleettui.store.drain_unloads import Standing, write_unload
from fleettui.store.drains import append_journal, change_drain, load_journal
from fleettui.store.flags import change_maintenance

OPTIONS = DrainOptions(idle_wait_s=0.0)
LIMIT_S = 60.0


@pytest.fixture
async def desks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desks]:
    monkeypatch.setattr("fleettui.fleet.drain.board.AGAIN_S", 0.01)
    async with open_desks(tmp_path) as make:
        yield make


def stop_at_unload(desk: DrainDesk, *, is_written: bool) -> tuple[asyncio.Event, asyncio.Event]:
    """Its unloads wait right before, or after, the last look and its entry: (is there, may go on)."""
    book = desk._book
    is_there, may_go_on, write = asyncio.Event(), asyncio.Event(), book.write_unload

    async def write_and_wait(*words: Any) -> None:
        if is_written:
            await write(*words)
        is_there.set()
        await may_go_on.wait()
        if not is_written:
            await write(*words)

    book.write_unload = write_and_wait  # type: ignore[method-assign]
    return is_there, may_go_on


@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize("is_undrained", [True, False])
async def test_operators_in_the_last_moment_never_let_both_copies_go(
    desks: Desks, *, is_written: bool, is_undrained: bool
) -> None:
    """ada's unload is about to go out; somebody takes ada's flag off and drains bora, which serves for it."""
    ada, bora = Ollama("ada", MODEL), Ollama("bora", MODEL)
    mia, jonas = desks(ada, bora), desks(ada, bora)
    is_there, may_go_on = stop_at_unload(mia, is_written=is_written)
    async with asyncio.timeout(LIMIT_S):
        await mia.start(["ada"], "PSU swap", OPTIONS)
        await is_there.wait()
        if is_undrained:
            await jonas.undrain("ada")
        await jonas.start(["bora"], "the other one first", OPTIONS)
        status = await jonas.wait("bora")
        may_go_on.set()
        await mia.wait("ada")
        await mia._workers["ada"].is_over.wait()
    assert status is not None
    left = {machine.name for machine in (ada, bora) if MODEL in machine.loaded}
    if is_written:  # bora came too late
        assert (status.drain.state, left) == ("blocked", {"bora"})
    elif is_undrained:  # ada's drain is over before it did anything
        assert (status.drain.state, left) == ("drained", {"ada"})
    else:  # neither stands for the other: both are to be empty
        assert (status.drain.state, left) == ("blocked", {"ada", "bora"})
    if is_written and is_undrained:
        assert f"{MODEL} on ada was asked to go" in status.copies[0].text


async def test_two_drains_around_an_undrain_never_let_both_copies_go(desks: Desks) -> None:
    """The engine of ada takes its time to answer the unload, in which operators change their minds."""
    ada, bora = Ollama("ada", MODEL), Ollama("bora", MODEL)
    may_go = asyncio.Event()

    async def answer_later(asked: dict[str, object]) -> None:
        if asked["keep_alive"] == 0:
            await may_go.wait()

    ada.before_answer = answer_later
    desk = desks(ada, bora)
    async with asyncio.timeout(LIMIT_S):
        await desk.start(["ada"], "PSU swap", OPTIONS)
        while not ada.unloads:  # noqa: ASYNC110 - the drain goes on beside
            await asyncio.sleep(0.01)
        await desk.undrain("ada")
        await desk.start(["bora"], "the other one first", OPTIONS)
        status = await desk.wait("bora")
        assert status is not None
        assert (status.drain.state, bora.unloads, set(bora.loaded)) == ("blocked", [], {MODEL})
        assert f"{MODEL} on ada was asked to go" in status.copies[0].text
        may_go.set()


async def test_what_is_let_go_on_the_way_back_covers_nobody(desks: Desks) -> None:
    """bora's copy goes again once ada has it; a drain of ada, in that moment, has nobody to serve instead."""
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    mia, jonas = desks(ada, bora), desks(ada, bora)
    async with asyncio.timeout(LIMIT_S):
        await mia.start(["ada"], "PSU swap", OPTIONS)
        await mia.wait("ada")
        assert (set(ada.loaded), set(bora.loaded)) == (set(), {MODEL})
        is_there, may_go_on = stop_at_unload(mia, is_written=True)
        await mia.undrain("ada", returns=True)
        await is_there.wait()
        await jonas.start(["ada"], "once more", OPTIONS)
        status = await jonas.wait("ada")
        may_go_on.set()
        await mia._returns["ada"].is_over.wait()
    assert status is not None
    assert (status.drain.state, set(ada.loaded), set(bora.loaded)) == ("blocked", {MODEL}, set())


async def test_what_went_on_the_way_back_may_serve_again_at_once(desks: Desks) -> None:
    """The machine is drained once more, before a minute is over."""
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    desk = desks(ada, bora)
    async with asyncio.timeout(LIMIT_S):
        for _ in range(2):
            await desk.start(["ada"], "PSU swap", OPTIONS)
            status = await desk.wait("ada")
            assert status is not None
            assert (status.drain.state, set(bora.loaded)) == ("drained", {MODEL})
            await desk.undrain("ada", returns=True)
            await desk.wait("ada")
            assert (set(ada.loaded), set(bora.loaded)) == ({MODEL}, set())


async def test_two_drains_together_leave_what_the_catalog_keeps(desks: Desks) -> None:
    """Neither process has seen the other's flag; `keep: 2` of three copies lets one go and not two."""
    catalog = Catalog((CatalogModel(MODEL, keep=2),))
    machines = Ollama("ada", MODEL), Ollama("bora", MODEL), Ollama("cleo", MODEL)
    mia, jonas = desks(*machines, catalog=catalog), desks(*machines, catalog=catalog)
    is_there, may_go_on = stop_at_unload(mia, is_written=True)
    async with asyncio.timeout(LIMIT_S):
        await mia.start(["cleo"], "PSU swap", OPTIONS)
        await is_there.wait()
        await jonas.start(["bora"], "fans", OPTIONS)
        status = await jonas.wait("bora")
        may_go_on.set()
        await mia.wait("cleo")
    assert status is not None
    assert status.drain.state == "blocked"
    assert "the catalog keeps 2 resident, 1 would be left" in status.drain.text
    assert [set(machine.loaded) for machine in machines] == [{MODEL}, {MODEL}, set()]


def test_nobody_changes_flags_between_the_last_look_and_the_entry(tmp_path: Path) -> None:
    """Two connections, as of two processes: the second begins while the first looks, and sees its entry."""
    looks, is_waiting = threading.Event(), threading.Event()
    refused: list[str] = []
    for name in ("ada", "bora"):
        lay_down(tmp_path, name)

    def take_over() -> None:
        """Undrains ada and lets bora's copy go, for which ada's stands."""
        with Store.open(str(tmp_path), busy_timeout_s=LIMIT_S) as store:
            assert looks.wait(LIMIT_S)
            is_waiting.set()
            change_drain(store, FOLDER, "ada", lambda _: None)

            def check(standing: Standing) -> None:
                if "ada" in standing.out_of_service or ("ada", MODEL) in standing.leaving(time.time()):
                    raise LookupError

            try:
                write_unload(store, FOLDER, step_of("bora", "ada"), check)
            except LookupError:
                refused.append("bora")

    def look_long(standing: Standing) -> None:
        assert standing.goes_on("d-ada")
        assert standing.asked_at == {}
        looks.set()
        assert is_waiting.wait(LIMIT_S)

    other = threading.Thread(target=take_over)
    other.start()
    with Store.open(str(tmp_path), busy_timeout_s=LIMIT_S) as store:
        write_unload(store, FOLDER, step_of("ada", "bora"), look_long)
        other.join(LIMIT_S)
        assert refused == ["bora"]
        assert [entry.step for entry in load_journal(store, FOLDER, "ada")] == ["unload"]
        assert load_journal(store, FOLDER, "bora") == ()


@pytest.mark.parametrize(
    ("steps", "leaving"),
    [
        ([("unload", "bora", "ok")], {"ada"}),
        ([("unload", "bora", "ok"), ("unload", "bora", "no answer")], {"ada"}),  # it may have been heard
        ([("unload", "bora", "ok"), ("gone", "bora", "ok")], set()),
        ([("unload", "bora", "ok"), ("returned", "ada", "ok")], set()),
        ([("gone", "bora", "ok"), ("unload", "bora", "ok")], {"ada"}),
        ([("let_go", "bora", "ok")], {"bora"}),  # on the way back to ada
        ([("let_go", "bora", "ok"), ("went", "bora", "ok")], set()),
        ([("load", "bora", "ok")], set()),
        ([], set()),
    ],
)
def test_a_copy_is_leaving_from_its_unload_until_it_was_seen_gone(
    tmp_path: Path, steps: list[tuple[str, str, str]], leaving: set[str]
) -> None:
    now = time.time()
    with Store.open(str(tmp_path)) as store:
        for step, target, result in steps:
            append_journal(store, FOLDER, step_of("ada", target, step, result, now))
        append_journal(store, "/other", step_of("cleo", "ada", at=now))
        standing = read_standing(store, "ada")
        assert standing.leaving(now + 2.0) == {(name, MODEL): pytest.approx(2.0) for name in leaving}
        assert standing.leaving(now + 61.0) == standing.leaving(now - 61.0) == {}
        assert (standing.drain, standing.goes_on(""), standing.out_of_service) == (None, False, frozenset())
        change_maintenance(store, FOLDER, {"ada": lambda _: MaintenanceFlag("fans", "ops@hub", now)})
        lay_down(tmp_path, "bora")
        standing = read_standing(store, "bora")
        assert standing.out_of_service == {"ada", "bora"}
        assert (standing.goes_on("d-bora"), standing.goes_on("d-ada")) == (True, False)


def lay_down(tmp_path: Path, name: str) -> None:
    """A drain that goes on."""
    drain = Drain(f"d-{name}", name, "running", "PSU swap", "mia@jump", time.time())
    with Store.open(str(tmp_path)) as store:
        change_drain(store, FOLDER, name, lambda _: drain)


def step_of(
    machine: str, target: str, step: str = "unload", result: str = "ok", at: float | None = None
) -> JournalEntry:
    moment = time.time() if at is None else at
    return JournalEntry(moment, machine, f"d-{machine}", "ops@hub", 7, step, MODEL, target, result)


def read_standing(store: Store, machine: str) -> Standing:
    """Writes nothing."""
    found: list[Standing] = []

    def look(standing: Standing) -> None:
        found.append(standing)
        raise LookupError

    with suppress(LookupError):
        write_unload(store, FOLDER, step_of(machine, ""), look)
    return found[0]
