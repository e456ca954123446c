"""What an undrain moves back: loaded on its old machine, verified, then let go where the drain had put it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from fleettui.decide.drain.sight import find_copy, find_engine, is_same_model, presence_of, work_of
from fleettui.fleet.drain import vllm
from fleettui.fleet.drain.book import DrainBook
from fleettui.fleet.drain.copy_work import CopyLoad, TargetRefused, Uncovered, release
from fleettui.fleet.drain.engines import StepError
from fleettui.fleet.drain.shared import DrainRoom
from fleettui.fleet.drain.words import DrainError
from fleettui.model.drain import (
    CLASS_WORDS,
    LOADING_CLASSES,
    CopyProgress,
    CopyState,
    Drain,
    JournalEntry,
    PlannedCopy,
    SourceCopy,
)
from fleettui.model.record import replace
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import NOT_READ, Unknown
from fleettui.store.drain_unloads import LET_GO, WENT

if TYPE_CHECKING:
    from fleettui.fleet.drain.worker import DrainWorker

log = logging.getLogger(__name__)

LOOK_S = 1.0
LOOKS = 5
"""At whether a copy that was let go has gone."""
WAIT_LIMIT_S = 60.0
"""So long a copy at work elsewhere is waited for; an Ollama ends what is in work."""


class CopyReturn:
    """The copies of one undrained machine, one after the other."""

    def __init__(
        self, room: DrainRoom, drain: Drain, moved: tuple[CopyProgress, ...], worker: DrainWorker | None
    ) -> None:
        self._room = room
        self._book: DrainBook = room.book
        self._drain = drain
        self._worker = worker
        """What still finishes the drain."""
        self._moved = moved
        self._copies = {
            copy.copy.key: replace(copy, state="pending", text="", target=drain.machine, eta_s=NOT_READ)
            for copy in moved
        }
        self._task: asyncio.Task[None] | None = None
        self.is_over = asyncio.Event()

    @property
    def copies(self) -> tuple[CopyProgress, ...]:
        return tuple(self._copies.values())

    def start(self) -> None:
        """Begin in the running event loop."""
        self._task = asyncio.create_task(self._run(), name=f"return to {self._drain.machine}")

    async def close(self) -> None:
        """End here; copies stay where they are."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            if self._worker is not None:
                await self._worker.is_over.wait()
            for progress in self._moved:
                await self._bring_back(progress)
        except DrainError as error:
            self._room.error = error.text
            self._give_up(error.text)
        except asyncio.CancelledError:
            self._give_up("broken off: it stays where it is")
            raise
        except Exception:
            log.exception("the return to %s ended with a defect", self._drain.machine)
            self._give_up("internal error of fleettui; its log file says more")
        finally:
            await self._room.settle()
            self.is_over.set()
            self._room.on_change(self._drain.machine)

    def _give_up(self, text: str) -> None:
        """What is not back by now is told as that."""
        for copy in self._copies.values():
            if not copy.is_ended and copy.state != "switched":
                self.change(copy, "failed", text)

    async def _bring_back(self, progress: CopyProgress) -> None:
        """One copy: a move from where the drain had put it, to this machine alone."""
        room, name, away = self._room, self._drain.machine, progress.target
        journal = _Journal(self, progress)
        if not progress.is_moved:
            await self._start(progress, journal)
            return
        there = self._copy_there(progress)
        if there is None:
            text = f"no longer on {away}: nothing to move back; the next request loads it"
            self.change(progress, "blocked", text)
            journal.step("return", target=name, result=text)
            return
        options = replace(self._drain.options, targets=(name,), allow_pull=False, forced=())
        line = await room.plan_copy(there, options)
        if line.drain_class in LOADING_CLASSES and line.target is not None:
            if not await self._load(progress, line, journal):
                return
        elif line.drain_class != "covered":
            text = line.text or CLASS_WORDS[line.drain_class]
            self.change(progress, "blocked", text)
            journal.step("return", target=name, result=text)
            return
        self.change(progress, "switched", "it serves again")
        await self._let_go(progress, line, there)

    async def _start(self, progress: CopyProgress, journal: _Journal) -> None:
        """A server that was stopped or put to sleep."""
        name = self._drain.machine
        self.change(progress, "loading", "its server is started")
        try:
            await vllm.bring_back(
                self._room.service, progress.copy, lambda call: journal.step("start", target=name, call=call)
            )
        except StepError as error:
            self.change(progress, "failed", str(error))
            journal.step("return", target=name, result=str(error))
            return
        journal.step("returned", target=name)
        self.change(progress, "switched", "its server was started")
        self._room.service.poll_now(name)

    async def _load(self, progress: CopyProgress, line: PlannedCopy, journal: _Journal) -> bool:
        room, name = self._room, self._drain.machine
        self.change(progress, "waiting_target", "")
        while not room.take_target(name, f"{line.copy.name} is loaded there again"):
            self.change(progress, "waiting_target", room.load_on(name))
            await asyncio.sleep(LOOK_S)
            await room.look_elsewhere()
        options = replace(self._drain.options, targets=(name,), forced=())
        try:
            while other := await room.begin_load(name):
                self.change(progress, "waiting_target", other)
                await asyncio.sleep(LOOK_S)
            self.change(progress, "loading", "")
            work = CopyLoad(room, line, options, journal)
            await work.run(lambda: self.change(progress, "verifying", ""))
        except (TargetRefused, StepError) as error:
            self.change(progress, "failed", str(error))
            journal.step("return", target=name, result=str(error))
            return False
        finally:
            room.give_target(name)
        journal.step("returned", target=name)
        return True

    async def _let_go(self, progress: CopyProgress, line: PlannedCopy, there: SourceCopy) -> None:
        """Unload it where the drain had put it, once nobody is at work there."""
        room, until = self._room, self._room.now() + WAIT_LIMIT_S
        while room.now() < until:
            machine = room.fleet.find(there.machine)
            if machine is None or not work_of(machine, there, room.now()):
                break
            self.change(progress, "waiting_idle", f"is still used on {there.machine}")
            await asyncio.sleep(LOOK_S)
        options = replace(self._drain.options, targets=(), forced=())
        try:
            await release(room, line, self._drain.machine, options, _LetGo(self, progress, there))
        except (Uncovered, StepError) as error:
            self.change(progress, "switched", f"stays on {there.machine} too: {error}")
            return
        self.change(progress, "switched", "it serves again")
        for _ in range(LOOKS):
            machine = await room.ask_again(there.machine)
            if presence_of(machine, there) == "gone":
                self.write(WENT, there.name, there.machine, "ok", "")
                return
            await asyncio.sleep(LOOK_S)

    def _copy_there(self, progress: CopyProgress) -> SourceCopy | None:
        """The copy where the drain had put it, with the context and share on the GPU that it had at home:
        more than that is not asked of the way back."""
        home = progress.copy
        machine = None if progress.target is None else self._room.fleet.find(progress.target)
        if machine is None:
            return None
        for engine in machine.engines:
            for copy in () if isinstance(engine.loaded, Unknown) else engine.loaded:
                if is_same_model(home, copy, self._room.fleet.catalog):
                    found = SourceCopy(
                        machine.name, engine.kind, engine.port, copy.name, copy.digest, home.size_bytes,
                        home.vram_bytes, home.context, copy.expires_at, copy.is_pinned,
                    )  # fmt: skip
                    is_there = find_copy(machine, found) and find_engine(machine, engine.kind, engine.port)
                    return found if is_there else None
        return None

    def change(self, progress: CopyProgress, state: CopyState, text: str) -> None:
        """How a copy stands now."""
        key = progress.copy.key
        self._copies[key] = replace(self._copies[key], state=state, text=text, since=self._room.now())
        self._room.on_change(self._drain.machine)

    def write(self, step: str, copy: str, target: str, result: str, call: str) -> None:
        """A step that was made."""
        self._room.write(self.entry(step, copy, target, result, call))

    def entry(self, step: str, copy: str, target: str, result: str, call: str) -> JournalEntry:
        """A step of this way back."""
        return self._book.entry(self._drain, step, copy, target, result, call)


def to_bring_back(copy: CopyProgress, machine: MachineSnapshot | None) -> bool:
    """It was moved away, or its server was stopped and can be started."""
    if copy.is_moved and copy.target is not None:
        return True
    return copy.state == "gone" and copy.unloads > 0 and vllm.can_bring_back(machine, copy.copy)


class _Journal:
    """Of one copy that is moved back."""

    def __init__(self, work: CopyReturn, progress: CopyProgress) -> None:
        self._work = work
        self._progress = progress

    def note(self, text: str) -> None:
        """How far the step is."""
        self._work.change(self._progress, "loading", text)

    def step(self, step: str, *, target: str = "", result: str = "ok", call: str = "") -> None:
        """A step that was made."""
        self._work.write(step, self._progress.copy.name, target, result, call)


class _LetGo(_Journal):
    """Of its unload where the drain had put it."""

    def __init__(self, work: CopyReturn, progress: CopyProgress, there: SourceCopy) -> None:
        super().__init__(work, progress)
        self._there = there

    def unload_entry(self, cover: str, call: str) -> JournalEntry:
        """What is written down before the copy is unloaded: whose machine it is that lets it go."""
        return self._work.entry(LET_GO, self._there.name, self._there.machine, "ok", call)

    def note_unload(self) -> None:
        """Nothing else hangs on it."""
