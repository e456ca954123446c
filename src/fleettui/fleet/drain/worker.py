"""The work on one machine that shall be empty: look, decide what is next for each copy, do it, again.

What stands in the state database is a hint for whoever looks, and the lock with its sign of life keeps a
second worker away. What the engines show decides, so any moment is a good one to end and to take over.
"""

from __future__ import annotations

import asyncio
import logging
import time

from fleettui.decide.drain.progress import RELOADED, NextStep, end_of_drain, next_step
from fleettui.fleet.drain.board import CopyBoard, Key
from fleettui.fleet.drain.clients import who_is_connected
from fleettui.fleet.drain.copy_task import CopyTask
from fleettui.fleet.drain.lock import WorkLock
from fleettui.fleet.drain.observing import SILENT_S, Observer
from fleettui.fleet.drain.replanning import plan_again
from fleettui.fleet.drain.shared import DrainRoom
from fleettui.fleet.drain.words import DrainError
from fleettui.model.drain import WORKING, Drain, DrainPlan, JournalEntry
from fleettui.model.record import replace
from fleettui.model.snapshot import DrainState, MachineSnapshot

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""Without news the flag, the journal and the clock are looked at this often."""
GATHER_S = 0.05  # answers of several sources arrive together


class DrainWorker:
    """Works on one drain until it ends, is taken over, or is closed."""

    def __init__(self, room: DrainRoom, drain: Drain, plan: DrainPlan | None = None) -> None:
        self.room = room
        self.drain = drain
        self._plan = plan
        self.board = CopyBoard(room, drain.machine)
        self._tasks: dict[Key, CopyTask] = {}
        self._observer = Observer(room, drain)
        self._lock = WorkLock(room, drain.machine, self._lost_lock)
        self._turn: asyncio.Semaphore | None = None
        self._seen_seq = 0
        """Of the journal: entries that were read."""
        self._is_leaving = False
        self._has_news = asyncio.Event()
        self.is_over = asyncio.Event()
        """Nobody works on it here any more."""
        self._task: asyncio.Task[None] | None = None

    @property
    def machine(self) -> str:
        return self.drain.machine

    def start(self) -> None:
        """Begin in the running event loop."""
        self._task = asyncio.create_task(self._run(), name=f"drain {self.machine}")

    def poke(self) -> None:
        """Something changed: look at once."""
        self._has_news.set()

    async def close(self) -> None:
        """End here and let the next worker in; a load under way ends with its connection."""
        if self._task is not None:
            if not self._is_leaving:
                self._task.cancel()
            await asyncio.wait([self._task])

    # -- life ---------------------------------------------------------------------------------------

    async def _run(self) -> None:
        unsubscribe = self.room.service.subscribe(lambda _: self.poke())
        try:
            if await self._lock.take():
                await self._work()
        except DrainError as error:
            self.room.error = error.text
            log.warning("drain of %s: %s", self.machine, error.text)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("the drain of %s ended with a defect", self.machine)
            self.room.error = f"the drain of {self.machine} ended with an internal error; see the log file"
            await self._fail()
        finally:
            unsubscribe()
            await self._leave()

    async def _work(self) -> None:
        if not await self._take_turn() or not await self._begin():
            return
        while await self._follow():
            self._has_news.clear()
            if await self._step():
                break
            await self._pause()
        await self._finish_tasks()

    async def _leave(self) -> None:
        self._is_leaving = True
        for task in self._tasks.values():
            task.drop()
        futures = [task.future for task in self._tasks.values() if task.future is not None]
        self._tasks.clear()
        if futures:
            await asyncio.wait(futures)
        self.room.forget(self.machine)
        if self._turn is not None:
            self._turn.release()
        await self.room.settle()
        await self._lock.release()
        self.is_over.set()
        self.room.on_change(self.machine)

    def _lost_lock(self) -> None:
        """Somebody else works on it: nothing more is done here."""
        if self._task is not None and not self._is_leaving:
            self._task.cancel()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await self._has_news.wait()
                await asyncio.sleep(GATHER_S)
        except TimeoutError:
            pass

    # -- beginning ----------------------------------------------------------------------------------

    async def _take_turn(self) -> bool:
        """Where machines are drained one after the other: once it is this one's turn; False: no more."""
        turn = self.room.turn(self.drain)
        while turn is not None and turn.locked():
            if not await self._follow():
                return False
            self._has_news.clear()
            await self._pause()
        if turn is not None:
            await turn.acquire()
            self._turn = turn
        return True

    async def _begin(self) -> bool:
        """Lines by observation."""
        stored = await self.room.book.load(self.machine)
        self._seen_seq = stored.journal[-1].seq if stored is not None and stored.journal else 0
        plan, since = self._plan, time.monotonic()
        while plan is None:
            found = await self.room.plan((self.machine,), self.drain.options)
            plan = found[0] if found and not found[0].problem else None
            if plan is None:
                if not await self._follow():
                    return False
                if self._observer.is_offline(self.room.fleet.find(self.machine)):
                    return not await self._end_offline()
                if self.room.fleet.paused_at is not None:
                    since = time.monotonic()
                if found and time.monotonic() - since > SILENT_S:
                    return not await self._end(
                        "blocked", f"what is loaded there is not known: {found[0].problem}"
                    )
                self._has_news.clear()
                await self._pause()
        self.board.fill(plan, self.drain.options, stored, is_anew=self._plan is not None)
        await self._save()
        await self._set_state("running", "", self.entry("running"))
        return True

    # -- what others want ---------------------------------------------------------------------------

    async def _follow(self) -> bool:
        """Flag and journal, changed here or by another process; False: no new steps."""
        book = self.room.book
        status = await book.load(self.machine, entries=50)
        if status is None or status.drain.id != self.drain.id:
            self._obey(await book.load_journal(self.drain))
            return False
        self.drain = status.drain
        self._observer.drain = status.drain
        self._obey(status.journal)
        await self.room.look_elsewhere()
        self._observer.leases = await book.load_leases()
        return status.drain.state in WORKING

    def _obey(self, journal: tuple[JournalEntry, ...]) -> None:
        for entry in journal:
            if entry.seq <= self._seen_seq:
                continue
            self._seen_seq = entry.seq
            if (entry.step, entry.result) in (("cancelled", "now"), ("undrained", "returns")):
                for task in self._tasks.values():
                    task.abort()
            if entry.step == "skip":
                for key in self.board.skip(entry):
                    if key in self._tasks:
                        self._tasks[key].abort()

    # -- one round ----------------------------------------------------------------------------------

    async def _step(self) -> bool:
        """Look and do what is next; True: the drain has ended."""
        room, board, now = self.room, self.board, self.room.now()
        if room.fleet.paused_at is not None:  # what is shown is not of now
            await self._tell_pause()
            return False
        machine = room.fleet.find(self.machine)
        deadline_s = self.drain.options.deadline_s
        if deadline_s is not None and now > self.drain.since + deadline_s:
            return await self._end(
                "blocked", f"deadline: not over after {deadline_s:.0f} s; nothing is forced"
            )
        if self._observer.is_offline(machine):
            return await self._end_offline()
        if machine is None or machine.link.state != "up":
            return False
        await self._take_new(machine)
        self._observer.look(machine, board.copies, now)
        for key in list(board.copies):
            if key not in self._tasks and not board.is_held(key):
                await self._advance(key, machine, now)
        board.publish()
        await self._save()
        if self._tasks:
            return False
        ended = end_of_drain(board.progress, self._observer.empty_polls)
        if ended is not None:
            return await self._end(*ended)
        if self._observer.wants_news:
            room.service.poll_now(self.machine)
        holder = self._observer.what_holds_it_up(machine, board.progress)
        return bool(holder) and await self._end("blocked", holder)

    async def _tell_pause(self) -> None:
        for key, progress in self.board.copies.items():
            if not progress.is_ended and key not in self._tasks:
                self.board.change(
                    key, progress.state, "waits: the dashboard is paused, machines are not asked"
                )
        await self._save()

    async def _take_new(self, machine: MachineSnapshot) -> None:
        """Copies that clients loaded meanwhile are drained too."""
        for copy in self._observer.new_copies(machine, self.board.copies):
            line = await self.room.plan_copy(copy, self.drain.options)
            self.board.add(line, self.drain.options)
            self.room.write(self.entry("found", copy.name, result=line.result))

    async def _advance(self, key: Key, machine: MachineSnapshot, now: float) -> None:
        board, line, progress = self.board, self.board.lines[key], self.board.copies[key]
        sight = self._observer.sight_of(machine, line, progress, now)
        step = next_step(line, progress, sight, self.drain.options, now)
        if (
            sight.presence == "unknown"
            and not progress.is_ended
            and self._observer.silent_s(key, now) > SILENT_S
        ):
            step = NextStep("end", "blocked", "engine: it does not answer")
        if progress.state == "gone" and sight.presence == "resident" and step.state != "gone":
            self.room.write(self.entry("reloaded", key[3]))
        if step.action == "end":
            await self.end_copy(key, step)
        elif step.action == "plan":
            await plan_again(self, key, step)
        elif step.action == "load":
            self._load(key)
        elif step.action == "unload":
            cover = None if sight.cover is None else sight.cover.machine
            board.begin_unload(key, cover)
            task = self._tasks[key] = CopyTask(self, key, line)
            task.unload(cover)
        else:
            board.change(key, step.state, step.text, None if sight.cover is None else sight.cover.machine)

    async def end_copy(self, key: Key, step: NextStep) -> None:
        """Nothing more is done for it."""
        text, before = step.text, self.board.copies[key]
        if text == RELOADED:
            text = f"{text}{await who_is_connected(self.room.service, before.copy)}"
        if step.state == "gone":
            text += self._observer.vram_text(before)
        self.board.change(key, step.state, text)
        result = "ok" if step.state == "gone" and not text else text
        self.room.write(self.entry(step.state, key[3], before.target or "", result))

    def _load(self, key: Key) -> None:
        line = self.board.lines[key]
        target = "" if line.target is None else line.target.machine
        if not self.room.take_target(target, f"{key[3]} of {self.machine} is loaded there"):
            self.board.change(key, "waiting_target", self.room.load_on(target))
            return
        self.board.change(key, "loading", "", target)
        task = self._tasks[key] = CopyTask(self, key, line)
        task.load()

    async def may_load(self, key: Key, target: str) -> bool:
        """No other process loads there, and none begins to."""
        await self._save()
        other = await self.room.begin_load(target)
        if other and self.board.copies[key].state != "skipped":
            self.board.change(key, "waiting_target", other)
        return not other

    async def may_unload(self, key: Key) -> str:
        """Why that copy shall stay after all, as of this moment; empty: it shall go. The second look at who
        serves it instead may take minutes, in which operators skip it."""
        self._obey(await self.room.book.load_journal(self.drain))
        return "skipped by the operator" if self.board.copies[key].state == "skipped" else ""

    # -- called by tasks ----------------------------------------------------------------------------

    def task_ended(self, key: Key) -> None:
        """A step of that copy is over: decide anew."""
        self._tasks.pop(key, None)
        self.poke()

    def note_unload(self, key: Key) -> None:
        """An unload goes out."""
        self.board.count_unload(key)
        self._observer.note_unload(key, self.room.fleet.find(self.machine))

    def entry(
        self, step: str, copy: str = "", target: str = "", result: str = "ok", call: str = ""
    ) -> JournalEntry:
        """A step of this drain."""
        return self.room.book.entry(self.drain, step, copy, target, result, call)

    # -- ends ---------------------------------------------------------------------------------------

    async def _end_offline(self) -> bool:
        for key, progress in self.board.copies.items():
            if not progress.is_ended and key not in self._tasks:
                where = f"; {progress.target} serves it" if progress.is_moved else ""
                self.board.change(key, "failed", f"source offline{where}")
        return await self._end("failed", f"source offline: {self.machine} does not answer; its flag stays")

    async def _end(self, state: DrainState, text: str) -> bool:
        await self._save()
        await self._set_state(state, text, self.entry(state, result=text or "ok"))
        return True

    async def _set_state(self, state: DrainState, text: str, entry: JournalEntry) -> None:
        await self.room.settle()  # what was done comes before how it ended
        changed = await self.room.book.set_state(
            self.drain, lambda drain: replace(drain, state=state, text=text), entry, only_in=WORKING
        )
        if changed is not None:
            self.drain = changed
        if self.room.service.flags is not None:
            await self.room.service.flags.follow()
        self.room.on_change(self.machine)

    async def _fail(self) -> None:
        """A defect of ours: nobody should begin the same again and again."""
        text = "internal error of fleettui; its log file says more; start the drain again"
        try:
            await self._set_state("failed", text, self.entry("failed", result=text))
        except DrainError as error:
            self.room.error = error.text

    async def _finish_tasks(self) -> None:
        """A load that is under way is finished: what it is for may be over, it hurts nobody."""
        while self._tasks:
            futures = [task.future for task in self._tasks.values() if task.future is not None]
            await asyncio.wait(futures, timeout=LOOK_S)
            await self._save()
            self._obey(await self.room.book.load_journal(self.drain))
        await self._save()

    async def _save(self) -> None:
        if self.board.is_changed:
            self.board.is_changed = False
            await self.room.book.save(self.drain, self.board.progress)
            self.room.on_change(self.machine)
