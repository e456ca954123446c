"""One step on one copy, as a task of its own: it goes on whatever screen is left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from fleettui.fleet.drain.copy_work import CopyLoad, TargetRefused, Uncovered, Withdrawn, release
from fleettui.fleet.drain.engines import BusyError, IdleUnknownError, StepError
from fleettui.fleet.drain.words import DrainError
from fleettui.model.drain import CopyState, JournalEntry, PlannedCopy

if TYPE_CHECKING:
    from fleettui.fleet.drain.board import Key
    from fleettui.fleet.drain.worker import DrainWorker

log = logging.getLogger(__name__)


class CopyTask:
    """Writes its steps down as it makes them."""

    def __init__(self, worker: DrainWorker, key: Key, line: PlannedCopy) -> None:
        self._worker = worker
        self._key = key
        self._line = line
        self._load: CopyLoad | None = None
        self.future: asyncio.Task[None] | None = None

    def load(self) -> None:
        """Begin to load it on its target, which is free for others once this has ended, however it does."""
        assert self._line.target is not None  # noqa: S101 - only such lines are loaded
        room, target = self._worker.room, self._line.target.machine
        self.future = asyncio.create_task(self._guard(self._do_load(target)), name=f"load {self._key[3]}")
        self.future.add_done_callback(lambda _: room.give_target(target))

    def unload(self, cover: str | None) -> None:
        """Begin to unload it; `cover`: who serves it instead."""
        self.future = asyncio.create_task(self._guard(self._do_unload(cover)), name=f"unload {self._key[3]}")

    def abort(self) -> None:
        """Give a load up, also one that is about to begin."""
        if self._load is not None:
            self._load.abort()

    def drop(self) -> None:
        """Wait for it no more."""
        if self.future is not None:
            self.future.cancel()

    # -- the journal of this copy -------------------------------------------------------------------

    def note(self, text: str) -> None:
        """How far the step is."""
        progress = self._worker.board.copies[self._key]
        if progress.state in ("loading", "verifying"):
            self._worker.board.change(self._key, progress.state, text)

    def step(self, step: str, *, target: str = "", result: str = "ok", call: str = "") -> None:
        """A step that was made."""
        worker = self._worker
        worker.room.write(worker.entry(step, self._key[3], target, result, call))

    def unload_entry(self, cover: str, call: str) -> JournalEntry:
        """What is written down before the copy is unloaded."""
        return self._worker.entry("unload", self._key[3], cover, call=call)

    def note_unload(self) -> None:
        """The unload goes out."""
        self._worker.note_unload(self._key)

    # -- steps --------------------------------------------------------------------------------------

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            raise
        except DrainError as error:
            self._worker.board.hold(self._key, "pending", error.text)
        except Exception:
            log.exception("a step for %s failed", self._key)
            self._worker.board.hold(self._key, "pending", "internal error in a step; see the log file")
        finally:
            self._worker.task_ended(self._key)

    async def _do_load(self, target: str) -> None:
        worker, line, key = self._worker, self._line, self._key
        self._load = CopyLoad(worker.room, line, worker.drain.options, self)
        if not await worker.may_load(key, target):
            return
        try:
            loaded = await self._load.run(lambda: self._change("verifying"))
        except TargetRefused as error:
            self._stop_target(target, error.vanished)
            worker.board.refuse_target(key, target, str(error), is_failure=error.is_failure)
            return
        self._stop_target(target, loaded.vanished)
        self.step("switched", target=target)
        self._change("switched", f"{target} serves it: {loaded.text}", target=target, is_moved=True)

    def _stop_target(self, target: str, vanished: tuple[str, ...]) -> None:
        """Nothing more is loaded where copies went that nobody had announced."""
        if vanished:
            text = f"{target}: {', '.join(vanished)} went for {self._key[3]}, which nobody announced"
            self._worker.room.stopped[target] = text
            self.step("vanished", target=target, result=text)

    def _change(
        self, state: CopyState, text: str = "", target: str | None = None, *, is_moved: bool | None = None
    ) -> None:
        """How the copy stands; what the operator has skipped meanwhile stays skipped."""
        board, key = self._worker.board, self._key
        if board.copies[key].state == "skipped":
            also = f", though {target} serves it too by now" if is_moved else ""
            state, text = "skipped", board.copies[key].text + also
        board.change(key, state, text, target, is_moved=is_moved)

    async def _do_unload(self, cover: str | None) -> None:
        worker, key = self._worker, self._key
        try:
            found = await release(
                worker.room, self._line, cover, worker.drain.options, self, lambda: worker.may_unload(key)
            )
        except Withdrawn as error:
            if worker.board.copies[key].state != "skipped":
                worker.board.change(key, "pending", str(error))
        except Uncovered as error:
            self.step("uncovered", target=cover or "", result=str(error))
            worker.board.doubt(key, "pending", str(error))
        except IdleUnknownError as error:
            worker.board.doubt(key, "waiting_idle", str(error))
        except BusyError as error:
            worker.board.hold(key, "waiting_idle", str(error))
        except StepError as error:
            self.step("unload", target=cover or "", result=str(error))
            worker.board.refuse_unload(key, str(error))
        else:
            target = cover if found is None else found.machine
            worker.board.change(key, "unloading", "asked to unload", target=target)
            worker.room.service.poll_now(worker.machine)
