"""A copy that another drain has just let go stands for nothing, though its flag is off and it is listed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from drain_machines import MODEL, DrainService, Ollama
from fleettui.fleet.drain.desk import DrainDesk
from fleettui.model.drain import DrainOptions, JournalEntry
from fleettui.model.snapshot import MaintenanceFlag
from fleettui.store.database import Store
from fleettui.store.drains import append_journal, find_cover_doubts
from fleettui.store.flags import change_maintenance

FOLDER = "/fleet"
OPTIONS = DrainOptions(idle_wait_s=0.0)
LIMIT_S = 60.0


async def test_two_drains_around_an_undrain_never_let_both_copies_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine of ada takes its time to answer the unload, in which operators change their minds."""
    monkeypatch.setattr("fleettui.fleet.drain.board.AGAIN_S", 0.01)
    ada, bora = Ollama("ada", MODEL), Ollama("bora", MODEL)
    may_go = asyncio.Event()

    async def answer_later(asked: dict[str, object]) -> None:
        if asked["keep_alive"] == 0:
            await may_go.wait()

    ada.before_answer = answer_later
    service = DrainService(ada, bora)
    desk = DrainDesk(service, str(tmp_path), FOLDER)
    try:
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
    finally:
        may_go.set()
        await desk.close()
        await service.close()


@pytest.mark.parametrize(
    ("steps", "is_leaving"),
    [
        ([("unload", "bora", "ok")], True),
        ([("unload", "bora", "ok"), ("unload", "bora", "refused")], False),
        ([("unload", "bora", "ok"), ("gone", "bora", "ok")], False),
        ([("unload", "bora", "ok"), ("returned", "ada", "ok")], False),
        ([("gone", "bora", "ok"), ("unload", "bora", "ok")], True),
        ([("unload", "ada", "ok")], False),  # let go on bora, on the way back to ada
        ([], False),
    ],
)
def test_a_copy_is_leaving_from_its_unload_until_it_was_seen_gone(
    tmp_path: Path, steps: list[tuple[str, str, str]], is_leaving: bool
) -> None:
    now = time.time()
    with Store.open(str(tmp_path)) as store:
        for step, target, result in steps:
            entry = JournalEntry(now, "ada", "d1", "ops@hub", 7, step, MODEL, target, result)
            append_journal(store, FOLDER, entry)
        asked_at = now if is_leaving else None
        assert find_cover_doubts(store, FOLDER, "ada", MODEL) == (False, asked_at)
        assert find_cover_doubts(store, FOLDER, "ada", "phi4") == (False, None)
        assert find_cover_doubts(store, FOLDER, "bora", MODEL) == (False, None)
        change_maintenance(store, FOLDER, {"ada": lambda _: MaintenanceFlag("fans", "ops@hub", now)})
        assert find_cover_doubts(store, FOLDER, "ada", MODEL) == (True, asked_at)
