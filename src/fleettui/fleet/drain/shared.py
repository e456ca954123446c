"""What all drains of this process share: the fleet, the book, and who loads where."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from fleettui.fleet.drain.book import DrainBook
from fleettui.fleet.drain.lock import WorkLock
from fleettui.fleet.drain.words import DrainError, DrainFleet
from fleettui.fleet.starting import FIRST_ROUND_S
from fleettui.model.drain import (
    LOADING_CLASSES,
    CopyProgress,
    Drain,
    DrainOptions,
    DrainPlan,
    JournalEntry,
    PlannedCopy,
    SourceCopy,
)
from fleettui.model.readings import LoadedModel
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.store.drains import LOAD_LOCK

log = logging.getLogger(__name__)

BEFORE_IT_STANDS = ("pending", "waiting_target", "loading", "verifying")
"""States in which a line still takes room on its target."""
RELYING = ("covered", "switched", "waiting_idle", "unloading", "gone")
"""States in which another machine serves it."""
LOOKS = 3
"""At a machine whose data is too old to plan by."""
FLAGS_LIMIT_S = 5.0
"""For a snapshot with flags that were just set."""
FRESH_LIMIT_S = 8.0
"""For new answers of a machine that was asked at once."""


class DrainRoom:
    """Hands out what workers need of each other and of the service."""

    def __init__(self, service: DrainFleet, book: DrainBook, on_change: Callable[[str], None]) -> None:
        self.service = service
        self.book = book
        self.on_change = on_change
        """Hears the name of a machine whose drain went on."""
        self.error: str | None = None
        self._loads: dict[str, str] = {}
        """Target -> what is loaded there by a drain of this process."""
        self._load_locks: dict[str, WorkLock] = {}
        """Target -> what keeps other processes from loading there."""
        self._elsewhere: dict[str, str] = {}
        """Target -> which other process loads there."""
        self.stopped: dict[str, str] = {}
        """Targets that nothing more is loaded on, with why."""
        self.relied_on: dict[tuple[str, str], str] = {}
        """(drained machine, digest or name) -> the machine that serves such a copy instead."""
        self._turns: dict[float, asyncio.Semaphore] = {}
        self.lines: dict[str, tuple[tuple[PlannedCopy, CopyProgress], ...]] = {}
        """Drained machine -> its lines and how far they are."""
        self._has_all = False
        """Every machine had its turn."""
        self._writes: set[asyncio.Future[None]] = set()

    @property
    def fleet(self) -> FleetSnapshot:
        """The newest snapshot."""
        return self.service.snapshot

    def now(self) -> float:
        """Epoch seconds."""
        return self.book.clock()

    # -- one load at a time on each target ----------------------------------------------------------

    def load_on(self, target: str) -> str:
        """What a drain loads there now; empty: nothing."""
        return self._loads.get(target) or self._elsewhere.get(target, "")

    def take_target(self, target: str, what: str) -> bool:
        """Become the one of this process who loads there; False where another one does."""
        if self.load_on(target):
            return False
        self._loads[target] = what
        return True

    async def begin_load(self, target: str) -> str:
        """Keep other processes from loading on a target that was taken, until it is given back; which of them
        loads there already. Empty: none."""
        lock = self._load_locks[target] = WorkLock(self, f"{LOAD_LOCK}{target}", lambda: None)
        if await lock.take():
            return ""
        await self.look_elsewhere()
        return self._elsewhere.get(target) or f"another process loaded on {target}"

    def give_target(self, target: str) -> None:
        """The load there is over."""
        self._loads.pop(target, None)
        lock = self._load_locks.pop(target, None)
        if lock is not None:
            self.spawn(lock.release())

    async def look_elsewhere(self) -> None:
        """Who of other processes loads where now."""
        self._elsewhere = {
            lock.machine: f"{lock.holder} (process {lock.pid}) loads on {lock.machine}"
            for lock in await self.book.load_load_locks()
        }

    # -- who relies on whom -------------------------------------------------------------------------

    def rely(self, machine: str, line: PlannedCopy, progress: CopyProgress) -> None:
        """The copy that serves instead of a drained one must not be evicted by a load of ours."""
        copy = line.copy
        what = (machine, copy.name if isinstance(copy.digest, Unknown) else copy.digest)
        if progress.target is not None and progress.state in RELYING:
            self.relied_on[what] = progress.target
        else:
            self.relied_on.pop(what, None)

    def is_relied_on(self, target: str, copy: LoadedModel) -> bool:
        """A drained copy is served by that one."""
        return any(
            there == target and what in (copy.name, copy.digest)
            for (_, what), there in self.relied_on.items()
        )

    def forget(self, machine: str) -> None:
        """Its worker has ended; what others rely on stays."""
        self.lines.pop(machine, None)

    def turn(self, drain: Drain) -> asyncio.Semaphore | None:
        """What the drains that were started together wait for, as many at once as the operator wanted."""
        serial = drain.options.serial
        return self._turns.setdefault(drain.since, asyncio.Semaphore(serial)) if serial > 0 else None

    # -- plans --------------------------------------------------------------------------------------

    async def plan(
        self, machines: Collection[str], options: DrainOptions, fleet: FleetSnapshot | None = None
    ) -> tuple[DrainPlan, ...]:
        """What draining these machines would do, planned off the event loop."""
        from fleettui.decide.drain.plan import plan_drains

        if fleet is None:
            await self.first_round()
            fleet = self.fleet
        knowledge = await self.book.load_knowledge(fleet)
        return await asyncio.to_thread(plan_drains, fleet, tuple(machines), knowledge, options, self.now())

    async def plan_by_fresh_data(
        self, machines: Collection[str], options: DrainOptions
    ) -> tuple[DrainPlan, ...]:
        """The same; a machine whose data is too old for a plan is asked again first."""
        for _ in range(LOOKS):
            plans = await self.plan(machines, options)
            old = [plan.machine for plan in plans if plan.problem and self._is_up(plan.machine)]
            if not old:
                break
            await asyncio.gather(*map(self.ask_again, old))
        return plans

    def _is_up(self, name: str) -> bool:
        machine = self.fleet.find(name)
        return machine is not None and machine.link.state == "up"

    async def plan_copy(
        self, copy: SourceCopy, options: DrainOptions, not_on: Collection[str] = ()
    ) -> PlannedCopy:
        """The best target of one copy as of now; never one that nothing more is loaded on."""
        from fleettui.decide.drain.plan import plan_copy

        fleet = self.fleet
        knowledge = await self.book.load_knowledge(fleet)
        left_out = frozenset({*not_on, *self.stopped})
        to_come = self.to_come()
        relied_on = tuple(
            [line for lines in self.lines.values() for line, done in lines if done.state in RELYING]
        )
        return await asyncio.to_thread(
            plan_copy, fleet, copy, knowledge, options, self.now(), left_out, to_come, relied_on
        )

    def to_come(self) -> tuple[PlannedCopy, ...]:
        """Lines whose loads are under way or still to come: they take room of their targets."""
        return tuple(
            [line for lines in self.lines.values() for line, done in lines if done.state in BEFORE_IT_STANDS]
        )

    def loads_to_come(self, machine: str, but: SourceCopy) -> str:
        """Loads of drains, `but` that copy's, that are over before anything is let go that this machine
        serves instead: a load may evict what nobody announced. Empty: none."""
        names = [
            line.copy.name
            for line in self.to_come()
            if line.drain_class in LOADING_CLASSES
            and line.copy.key != but.key
            and (line.target is None or line.target.machine == machine)
        ]
        if names:
            return f"loads on {machine} end first: {', '.join(dict.fromkeys(names))}"
        return self._elsewhere.get(machine, "")

    def coming(self, line: PlannedCopy) -> str:
        """Which other drain brings the same weights elsewhere now; empty: none."""
        for machine, lines in self.lines.items():
            for other, done in lines:
                is_other = other.copy.key != line.copy.key and other.drain_class in LOADING_CLASSES
                if (
                    not is_other
                    or done.state not in BEFORE_IT_STANDS
                    or other.copy.engine != line.copy.engine
                ):
                    continue
                if same_weights(other.copy, line.copy):
                    return f"moved from {machine} first"
        return ""

    async def first_round(self) -> None:
        """Until every machine has answered once, or had time enough: who was not asked yet is no target."""
        if self._has_all:
            return
        has_news = asyncio.Event()
        unsubscribe = self.service.subscribe(lambda _: has_news.set())
        try:
            async with asyncio.timeout(FIRST_ROUND_S):
                while not all(poller.is_settled for poller in self.service.pollers):
                    has_news.clear()
                    await has_news.wait()
        except TimeoutError:
            pass
        finally:
            unsubscribe()
            self._has_all = True

    async def show_flags(self, *machines: str) -> None:
        """Until snapshots show the flags of these machines as they are stored."""
        if self.service.flags is None:
            return
        await self.service.flags.follow()
        has_news = asyncio.Event()
        unsubscribe = self.service.subscribe(lambda _: has_news.set())
        try:
            async with asyncio.timeout(FLAGS_LIMIT_S):
                while not all(map(self._shows_flag, machines)):
                    has_news.clear()
                    await has_news.wait()
        except TimeoutError:
            pass  # whoever unloads looks at the stored flags
        finally:
            unsubscribe()

    def _shows_flag(self, name: str) -> bool:
        machine, flags = self.fleet.find(name), self.service.flags
        if machine is None or flags is None:
            return True
        return (machine.drain is None) == (name not in flags.book.drains)

    # -- fresh answers ------------------------------------------------------------------------------

    async def ask_again(self, name: str) -> MachineSnapshot | None:
        """The machine with engines and cards that were read after this moment; None where that takes long."""
        since, has_news = self.now(), asyncio.Event()
        unsubscribe = self.service.subscribe(lambda _: has_news.set())
        try:
            async with asyncio.timeout(FRESH_LIMIT_S):
                self.service.poll_now(name)
                while True:
                    machine = self.fleet.find(name)
                    if machine is not None and _is_newer(machine, since):
                        return machine
                    has_news.clear()
                    await has_news.wait()
        except TimeoutError:
            return None
        finally:
            unsubscribe()

    # -- writing beside the work --------------------------------------------------------------------

    def write(self, entry: JournalEntry) -> None:
        """Write a step down, in the order of these calls."""
        self.spawn(self.book.note(entry))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do it beside; what goes wrong is shown and ends nothing."""
        task = asyncio.ensure_future(self._guard(work))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def _guard(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
            self.error = None
        except DrainError as error:
            if self.error is None:
                log.warning("%s", error.text)
            self.error = error.text

    async def settle(self) -> None:
        """Until all that was handed to `write` is written."""
        while self._writes:
            await asyncio.wait(tuple(self._writes))


def _is_newer(machine: MachineSnapshot, since: float) -> bool:
    """Its engines, and its cards where it has any, were read after that moment."""
    names = {engine.kind for engine in machine.engines} | {
        f"{engine.kind}:{engine.port}" for engine in machine.engines
    }
    for name, status in machine.sources.items():
        if name in names and status.state == "ok" and (status.read_at or 0.0) <= since:
            return False
    gpu = machine.sources.get("gpu")
    return gpu is None or gpu.state != "ok" or (gpu.read_at or 0.0) > since


def same_weights(one: SourceCopy, other: SourceCopy) -> bool:
    """By their digest; where one is not known, by their name."""
    if isinstance(one.digest, Unknown) or isinstance(other.digest, Unknown):
        return one.name == other.name
    return one.digest == other.digest
