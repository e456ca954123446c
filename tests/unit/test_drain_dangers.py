"""What must not happen while a machine is drained, whatever happens beside it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import make_engine
from drain_machines import FOLDER, MODEL, Desks, Ollama, open_desks
from fleettui.fleet.drain.copy_work import CopyLoad, TargetRefused
from fleettui.fleet.drain.desk import DrainDesk
from fleettui.model.catalog import Catalog, CatalogModel
from fleettui.model.drain import DrainOptions, DrainStatus
from fleettui.model.unknown import Unknown
from fleettui.store.database import Store
from fleettui.store.drains import change_drain

OPTIONS = DrainOptions(idle_wait_s=0.5)
LIMIT_S = 60.0


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as ever, with less time between them."""
    monkeypatch.setattr("fleettui.fleet.drain.board.AGAIN_S", 0.1)
    monkeypatch.setattr("fleettui.fleet.drain.ollama.LOOK_S", 0.1)


@pytest.fixture
async def desks(tmp_path: Path) -> AsyncIterator[Desks]:
    async with open_desks(tmp_path) as make:
        yield make


async def ended(desk: DrainDesk) -> DrainStatus:
    """ada's drain, once nobody works on it any more."""
    async with asyncio.timeout(LIMIT_S):
        status = await desk.wait("ada")
    assert status is not None, "its flag is gone"
    return status


async def until(is_met: Callable[[], Any]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not is_met():  # noqa: ASYNC110 - others change it
            await asyncio.sleep(0.01)


async def test_a_covered_copy_goes_once_the_other_is_kept_longer(desks: Desks) -> None:
    ada, bora = Ollama("ada", MODEL), Ollama("bora", MODEL)
    desk = desks(ada, bora)
    await desk.start(["ada"], "PSU swap", OPTIONS)
    status = await ended(desk)
    assert (status.drain.state, status.drain.text) == ("drained", "")
    assert (set(ada.loaded), set(bora.loaded)) == (set(), {MODEL})


async def test_an_unload_whose_second_look_takes_long_is_no_reload_by_a_client(
    desks: Desks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the unload takes counts from when it was sent."""
    monkeypatch.setattr("fleettui.decide.drain.progress.REVIVED_S", 60.0)
    shift_s = 0.0
    ada, bora = Ollama("ada", MODEL), Ollama("bora", MODEL)

    def answer_late(asked: dict[str, Any]) -> None:
        nonlocal shift_s
        shift_s = 120.0

    bora.before_answer = answer_late
    ada.keeps = {MODEL}  # listed for a moment more
    desk = desks(ada, bora)
    ada.clock = bora.clock = desk._book.clock = lambda: time.time() + shift_s
    await desk.start(["ada"], "PSU swap", OPTIONS)
    await until(lambda: ada.unloads)
    await asyncio.sleep(0.4)
    assert ada.unloads == [MODEL], "the first one has its time"
    ada.keeps, ada.loaded = set(), {}
    status = await ended(desk)
    assert (status.drain.state, status.copies[0].unloads) == ("drained", 1)


@pytest.mark.parametrize("how", ["cancel", "undrain", "skip"])
async def test_what_the_operator_calls_off_during_the_second_look_is_not_unloaded(
    desks: Desks, how: str
) -> None:
    ada, bora = Ollama("ada", MODEL), Ollama("bora", MODEL)
    goes_on = bora.hold_answers()
    desk = desks(ada, bora)
    await desk.start(["ada"], "PSU swap", OPTIONS)
    await until(lambda: bora.sent)
    if how == "skip":
        await desk.skip("ada", ("ada", "ollama", 11434, MODEL))
    else:
        await getattr(desk, how)("ada")
    goes_on.set()
    async with asyncio.timeout(LIMIT_S):
        status = await desk.wait("ada")
    assert ada.unloads == []
    assert (None if status is None else status.drain.state) == {
        "cancel": "cancelled", "undrain": None, "skip": "blocked",
    }[how]  # fmt: skip


async def test_a_skipped_copy_stays_also_when_its_load_ended(desks: Desks) -> None:
    """The load is told, and nothing is unloaded for it."""
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    ends = asyncio.Event()

    async def answer_later(asked: dict[str, Any]) -> None:
        with pytest.raises(asyncio.CancelledError):  # given up, and there all the same
            await ends.wait()

    bora.before_answer = answer_later
    desk = desks(ada, bora)
    await desk.start(["ada"], "PSU swap", OPTIONS)
    await until(lambda: bora.sent)
    await desk.skip("ada", ("ada", "ollama", 11434, MODEL))
    status = await ended(desk)
    assert (status.drain.state, status.copies[0].state, ada.unloads) == ("blocked", "skipped", [])


async def test_a_load_that_is_given_up_before_it_begins_never_does(
    desks: Desks, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    desk = desks(ada, bora)
    looks, may_go_on = asyncio.Event(), asyncio.Event()
    ask_again = desk._room.ask_again

    async def ask_later(name: str) -> Any:
        looks.set()
        await may_go_on.wait()
        return await ask_again(name)

    monkeypatch.setattr(desk._room, "ask_again", ask_later)
    await desk.start(["ada"], "PSU swap", OPTIONS)
    await looks.wait()
    await desk.cancel("ada", aborts_load=True)
    worker = desk._workers["ada"]
    await until(lambda: all(task._load is None or task._load._is_given_up for task in worker._tasks.values()))
    may_go_on.set()
    await ended(desk)
    await worker.is_over.wait()
    assert (bora.sent, ada.unloads) == ([], [])


async def test_a_target_is_free_again_when_the_database_was_locked(desks: Desks, tmp_path: Path) -> None:
    """Whoever could not write down that it loads there holds the target no longer."""
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    desk = desks(ada, bora)
    room, take = desk._room, desk._room.take_target
    other: list[sqlite3.Connection] = []

    def take_and_lock(target: str, what: str) -> bool:
        is_ours = take(target, what)
        if is_ours and not other:
            other.append(sqlite3.connect(tmp_path / "state.db", isolation_level=None))
            other[0].execute("BEGIN IMMEDIATE")
        return is_ours

    room.take_target = take_and_lock  # type: ignore[method-assign]
    await desk.start(["ada"], "PSU swap", OPTIONS)
    await until(lambda: room.error)
    worker = desk._workers["ada"]
    await until(lambda: not room._loads)
    other[0].execute("ROLLBACK")
    other[0].close()
    await worker.is_over.wait()
    assert await desk.resume() == ("ada",)
    status = await ended(desk)
    assert (status.drain.state, set(bora.loaded)) == ("drained", {MODEL})


async def test_a_forced_class_lets_nothing_go_that_was_to_be_moved(desks: Desks) -> None:
    """The only target fails: the operator's word was for lines that had none when he saw them."""
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    bora.before_answer = lambda asked: 500
    desk = desks(ada, bora)
    (plan,) = await desk.start(["ada"], "PSU swap", replace(OPTIONS, forced=("last_copy", "cannot")))
    assert plan.copies[0].drain_class == "move"
    status = await ended(desk)
    assert (status.drain.state, status.copies[0].state, ada.unloads) == ("failed", "failed", [])
    assert "status 500" in status.drain.text
    again = await desk.start(
        ["ada"], "PSU swap", replace(OPTIONS, forced=("last_copy", "cannot"), targets=("eve",))
    )
    assert again[0].copies[0].is_lost, "now he saw that"
    status = await ended(desk)
    assert (status.drain.state, set(ada.loaded)) == ("drained", set())


async def test_a_resumed_drain_lets_nothing_go_that_was_to_be_moved(desks: Desks, tmp_path: Path) -> None:
    """The target is away when somebody goes on with it: its word is no older than the lines."""
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    bora.hold_answers()
    first = desks(ada, bora)
    await first.start(["ada"], "PSU swap", replace(OPTIONS, forced=("last_copy", "cannot")))
    await until(lambda: bora.sent)
    await first.close()
    second = desks(ada)
    assert await second.resume() == ("ada",)
    status = await ended(second)
    assert (status.drain.state, ada.unloads) == ("blocked", [])


async def test_a_skip_that_nobody_was_there_to_hear_is_obeyed_by_who_resumes(desks: Desks) -> None:
    ada, bora = Ollama("ada", MODEL), Ollama("bora", MODEL)
    bora.hold_answers()
    first = desks(ada, bora)
    await first.start(["ada"], "PSU swap", OPTIONS)
    await until(lambda: bora.sent)
    await first.close()
    bora.before_answer = None
    second = desks(ada, bora)
    await second.skip("ada", ("ada", "ollama", 11434, MODEL))
    assert await second.resume() == ("ada",)
    status = await ended(second)
    assert (status.drain.state, status.copies[0].state, ada.unloads) == ("blocked", "skipped", [])


SILENT = ("fleettui.fleet.drain.observing.SILENT_S", "fleettui.fleet.drain.worker.SILENT_S")


async def test_an_engine_that_says_nothing_ends_the_wait_for_an_empty_machine(
    desks: Desks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is loaded that anybody knows of; whether a second engine holds anything nobody can see."""
    for name in SILENT:
        monkeypatch.setattr(name, 1.0)
    ada = Ollama("ada")
    down = make_engine(kind="vllm", port=8000, state="down", error="connection refused")
    down = replace(down, loaded=Unknown("down"))
    ada.changes = {"engines": (*ada.snapshot().engines, down)}
    desk = desks(ada)
    await desk.start(["ada"], "PSU swap", OPTIONS)
    status = await ended(desk)
    assert status.drain.state == "blocked"
    assert "vllm" in status.drain.text.lower()
    assert "connection refused" in status.drain.text


async def test_a_resumed_drain_of_a_machine_that_nobody_can_plan_for_ends(
    desks: Desks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What it had moved before is not forgotten by that."""
    for name in SILENT:
        monkeypatch.setattr(name, 1.0)
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    first = desks(ada, bora)
    await first.start(["ada"], "PSU swap", OPTIONS)
    await ended(first)
    await first.close()
    with Store.open(str(tmp_path)) as store:
        change_drain(store, FOLDER, "ada", lambda drain: drain and replace(drain, state="running"))
    mute = replace(make_engine(state="busy", error="HTTP 500"), loaded=Unknown("HTTP 500"))
    ada.changes = {"engines": (mute,)}
    second = desks(ada, bora)
    assert await second.resume() == ("ada",)
    status = await ended(second)
    assert (status.drain.state, "HTTP 500" in status.drain.text) == ("blocked", True)
    assert [copy.is_moved for copy in status.copies] == [True]


async def test_a_covering_copy_that_cannot_be_kept_blocks_after_some_looks(desks: Desks) -> None:
    """Its files are gone from the disk: it answers nothing but 404 to whoever wants it to stay."""
    ada, bora = Ollama("ada", MODEL), Ollama("bora", MODEL)
    bora.before_answer = lambda asked: 404
    desk = desks(ada, bora)
    await desk.start(["ada"], "PSU swap", OPTIONS)
    status = await ended(desk)
    assert (status.drain.state, ada.unloads) == ("blocked", [])
    assert "status 404" in status.drain.text


async def test_a_target_that_loads_refuse_and_plans_choose_counts_as_failed(
    desks: Desks, monkeypatch: pytest.MonkeyPatch
) -> None:

    async def refuse(load: CopyLoad) -> None:
        raise TargetRefused("bora: phi4 there serves a copy that was drained", is_failure=False)

    monkeypatch.setattr(CopyLoad, "_look_again", refuse)
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    desk = desks(ada, bora)
    await desk.start(["ada"], "PSU swap", OPTIONS)
    status = await ended(desk)
    assert status.drain.state == "failed"
    assert "serves a copy that was drained" in status.drain.text


async def test_a_clock_that_is_set_back_holds_nothing_up(desks: Desks, tmp_path: Path) -> None:
    ada, bora = Ollama("ada", MODEL), Ollama("bora", MODEL)
    desk = desks(ada, bora)
    shift_s = 0.0
    desk._book.clock = lambda: time.time() - shift_s
    ada.clock = bora.clock = desk._book.clock
    may_answer = bora.hold_answers()
    await desk.start(["ada"], "PSU swap", OPTIONS)
    await until(lambda: bora.sent)
    shift_s = 3600.0
    may_answer.set()
    status = await ended(desk)
    assert status.drain.state == "drained"


async def test_what_a_failed_probe_leaves_on_a_target_goes_again(desks: Desks) -> None:
    """And what went for it is told, though the copy was not kept."""
    ada, bora = Ollama("ada", MODEL), Ollama("bora", "phi4:14b")

    def answer(asked: dict[str, Any]) -> int | None:
        bora.loaded.pop("phi4:14b", None)
        return 500 if asked.get("prompt") else None

    bora.before_answer = answer
    desk = desks(ada, bora)
    await desk.start(["ada"], "PSU swap", replace(OPTIONS, probes=True))
    status = await ended(desk)
    assert status.drain.state == "failed"
    assert (set(ada.loaded), set(bora.loaded)) == ({MODEL}, set())
    told = {entry.step: entry for entry in status.journal}
    assert told["vanished"].result == f"bora: phi4:14b went for {MODEL}, which nobody announced"
    assert '"keep_alive": 0' in told["unload_again"].call


async def test_what_cards_do_not_bear_out_is_taken_back(desks: Desks) -> None:
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    bora.changes = {"gpu": bora.snapshot().gpu}  # whatever is loaded there
    desk = desks(ada, bora)
    await desk.start(["ada"], "PSU swap", OPTIONS)
    status = await ended(desk)
    assert (status.drain.state, set(ada.loaded), set(bora.loaded)) == ("failed", {MODEL}, set())


async def test_a_load_under_way_is_given_up_when_all_comes_back(desks: Desks) -> None:
    """Nobody would move back what is there only after the question what was moved."""
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    bora.hold_answers()
    desk = desks(ada, bora)
    await desk.start(["ada"], "PSU swap", OPTIONS)
    await until(lambda: bora.sent)
    worker = desk._workers["ada"]
    await desk.undrain("ada", returns=True)
    await asyncio.wait_for(worker.is_over.wait(), LIMIT_S)
    assert (set(ada.loaded), set(bora.loaded)) == ({MODEL}, set())


async def test_a_new_drain_ends_the_way_back_of_the_last_one(desks: Desks) -> None:
    ada, bora = Ollama("ada", MODEL), Ollama("bora")
    desk = desks(ada, bora)
    await desk.start(["ada"], "PSU swap", OPTIONS)
    await ended(desk)
    ada.hold_answers()
    await desk.undrain("ada", returns=True)
    await until(lambda: ada.sent[1:])
    work = desk._returns["ada"]
    await desk.start(["ada"], "PSU swap", OPTIONS)
    assert work.is_over.is_set()
    assert [copy.state for copy in work.copies] == ["failed"]
    status = await ended(desk)
    assert (status.drain.state, set(bora.loaded)) == ("drained", {MODEL})


async def test_the_catalog_has_one_more_loaded_before_a_covered_copy_goes(desks: Desks) -> None:
    """`keep: 2`: one on bora is not enough."""
    ada, bora, cleo = Ollama("ada", MODEL), Ollama("bora", MODEL), Ollama("cleo")
    may_answer = cleo.hold_answers()
    desk = desks(ada, bora, cleo, catalog=Catalog((CatalogModel(MODEL, keep=2),)))
    await desk.start(["ada"], "PSU swap", OPTIONS)
    await until(lambda: cleo.sent)
    assert (set(bora.loaded), ada.unloads) == ({MODEL}, [])
    may_answer.set()
    status = await ended(desk)
    assert (status.drain.state, set(cleo.loaded), set(ada.loaded)) == ("drained", {MODEL}, set())
