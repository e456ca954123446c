"""What an undrain brings back, by whoever worked on the drain."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from drain_machines import MODEL, DrainService, Ollama
from fleettui.fleet.drain.desk import DrainDesk
from fleettui.model.drain import DrainOptions

FOLDER = "/fleet"
LIMIT_S = 60.0


async def test_a_copy_that_was_moved_with_less_comes_back_after_a_change_of_workers(tmp_path: Path) -> None:
    """bora gives it a smaller context; who takes over finds it there, and does not load it again."""
    ada, bora = Ollama("ada"), Ollama("bora")
    ada.load(MODEL, context=32768)
    bora.before_answer = lambda asked: bora.load(MODEL, context=4096)
    service = DrainService(ada, bora)
    first = DrainDesk(service, str(tmp_path), FOLDER)
    second = DrainDesk(service, str(tmp_path), FOLDER)
    is_there, write = asyncio.Event(), first._book.write_unload

    async def stop_there(*words: Any) -> None:
        is_there.set()
        await asyncio.Event().wait()
        await write(*words)

    first._book.write_unload = stop_there  # type: ignore[method-assign]
    try:
        async with asyncio.timeout(LIMIT_S):
            options = DrainOptions(idle_wait_s=0.0, accept_degraded=True)
            await first.start(["ada"], "PSU swap", options)
            await is_there.wait()
            await first.close()
            loads = len(bora.sent)
            assert await second.resume() == ("ada",)
            status = await second.wait("ada")
            assert status is not None
            (copy,) = status.copies
            assert (status.drain.state, copy.drain_class, copy.is_moved) == ("drained", "degraded", True)
            assert len(bora.sent) == loads + 1, "it is only kept longer"
            ada.before_answer = lambda asked: ada.load(MODEL, context=32768)
            await second.undrain("ada", returns=True)
            await second.wait("ada")
        assert [back.state for back in second.returning("ada")] == ["switched"]
        assert (set(ada.loaded), set(bora.loaded)) == ({MODEL}, set())
    finally:
        await first.close()
        await second.close()
        await service.close()
