"""The door to draining: previews, starts, cancels, undrains, and works on it beside any front end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fleettui.decide.drain.sources import unheard_engines
from fleettui.fleet.drain.book import DrainBook
from fleettui.fleet.drain.flagging import check_free, raise_flags
from fleettui.fleet.drain.shared import DrainRoom
from fleettui.fleet.drain.words import DrainError, DrainFailure, DrainFleet
from fleettui.fleet.maintenance import REASON_LIMIT
from fleettui.model.drain import WORKING, CopyProgress, Drain, DrainOptions, DrainPlan, DrainStatus
from fleettui.model.record import replace
from fleettui.model.snapshot import MachineSnapshot
from fleettui.probes.clean import clean_text

if TYPE_CHECKING:  # what works on drains is loaded where there is one: a dashboard mostly has none
    from fleettui.fleet.drain.returning import CopyReturn
    from fleettui.fleet.drain.worker import DrainWorker

__all__ = ["DrainDesk", "DrainError", "DrainFailure", "DrainFleet"]

log = logging.getLogger(__name__)

_ENDED_OTHERWISE = ("blocked", "failed", "cancelled")
RESUME_S = 5.0
"""Drains that nobody works on are looked for this often at most."""
FOLLOW_S = 1.0
"""How often the drain of another process is looked at by who waits for it."""
DATA_LIMIT_S = 20.0
"""For the first answers of a machine that is drained."""


class DrainDesk:
    """Drains of one machines folder. Every call raises DrainError where it says no more."""

    def __init__(
        self, service: DrainFleet, state_dir: str, machines_dir: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._service = service
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self._book = DrainBook(state_dir, machines_dir, clock)
        self._room = DrainRoom(service, self._book, self._tell)
        self._workers: dict[str, DrainWorker] = {}
        self._returns: dict[str, CopyReturn] = {}
        self._subscribers: dict[int, Callable[[str], None]] = {}
        self._next_id = 0
        self._resumed_at = float("-inf")
        self._resuming: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def error(self) -> str | None:
        """Why drains cannot be followed; None while all is well."""
        return self._room.error

    # -- what front ends call -----------------------------------------------------------------------

    async def preview(self, machines: Sequence[str], options: DrainOptions) -> tuple[DrainPlan, ...]:
        """What a drain of these machines would do, one plan for each; nothing is changed."""
        self._check_names(machines)
        return await self._room.plan(machines, options)

    async def start(
        self,
        machines: Sequence[str],
        reason: str,
        options: DrainOptions,
        *,
        until: float | None = None,
        by: str | None = None,
    ) -> tuple[DrainPlan, ...]:
        """Flag all these machines, then work on them beside the caller; their plans.

        A machine that is drained already begins anew, with these options. Lines of classes that are not
        forced do not hold the others up: they end as `blocked`. Whoever wants them refused looks at
        `DrainPlan.refused` of a preview first.
        """
        self._check_names(machines)
        reason, now = _clean_reason(reason), self._book.clock()
        if until is not None and until <= now:
            raise DrainError("until", "", "the end of a drain lies ahead, the time that is given does not")
        await asyncio.gather(*(self._await_data(name) for name in machines))
        plans = {plan.machine: plan for plan in await self._room.plan_by_fresh_data(machines, options)}
        for name in machines:
            if name not in plans or plans[name].problem:
                why = plans[name].problem if name in plans else "it does not answer"
                raise DrainError(
                    "no_data", name, f"{name}: what is loaded there is not known ({why}); nothing was changed"
                )
        for name in machines:  # before the work on any of them is ended here
            status = await self._book.load(name, entries=0)
            if status is not None:
                check_free(self._book, status.drain, status.lock)
        if not any(map(self._is_working, self._workers)):
            self._room.stopped.clear()
        for name in machines:
            await self._stop_own(name)
        drains = await raise_flags(
            self._book, machines, reason, options, until=until, by=by or self._book.by, now=now
        )
        await self._room.show_flags(*machines)
        for drain in drains:
            for line in plans[drain.machine].copies:
                target = "" if line.target is None else line.target.machine
                self._room.write(self._book.entry(drain, "planned", line.copy.name, target, line.result))
        for drain in drains:
            self._work_on(drain, plans[drain.machine])
        return tuple([plans[name] for name in machines])

    async def cancel(
        self, machine: str, *, aborts_load: bool = False, is_eligible: bool = False, by: str | None = None
    ) -> None:
        """No new steps; a load under way finishes, or is given up. The flag stays, unless `is_eligible`.
        `by`: who decides; None: who runs this."""
        drain, who = await self._drain_of(machine), by or self._book.by
        entry = self._book.entry(drain, "cancelled", result="now" if aborts_load else "ok")
        entry, text = replace(entry, by=who), f"cancelled by {who}"
        await self._book.set_state(
            drain,
            lambda found: replace(found, state="cancelled", text=text),
            entry,
            only_in=(*WORKING, "blocked"),
            by=who,
        )
        await self._room.show_flags(machine)
        self._poke(machine)
        if is_eligible:
            await self.undrain(machine, by=by)
        self._tell(machine)

    async def undrain(self, machine: str, *, returns: bool = False, by: str | None = None) -> None:
        """Take the flag off; `returns`: what was moved away is moved back beside the caller (`wait`). `by`:
        who decides; None: who runs this."""
        from fleettui.fleet.drain.returning import CopyReturn, to_bring_back

        status = await self._book.load(machine)
        if status is None:
            raise DrainError("no_drain", machine, f"{machine} is not drained; nothing was changed")
        drain = status.drain
        found = self._service.snapshot.find(machine)
        moved = tuple([copy for copy in status.copies if to_bring_back(copy, found)])

        def clear(present: Drain | None) -> Drain | None:
            if present is not None and present.id != drain.id:
                raise DrainError(
                    "changed_meanwhile",
                    machine,
                    f"{machine}: {present.by} drains it anew; nothing was changed",
                )
            return None

        entry = self._book.entry(drain, "undrained", result="returns" if returns else "ok")
        entry = replace(entry, by=by or self._book.by)
        await self._book.change(machine, clear, entry)
        await self._room.show_flags(machine)
        self._poke(machine)
        if returns and moved:
            self._returns[machine] = CopyReturn(self._room, drain, moved, self._workers.get(machine))
            self._returns[machine].start()
        self._tell(machine)

    async def skip(self, machine: str, copy_key: tuple[str, str, int, str]) -> None:
        """Leave one copy where it is (`SourceCopy.key`); the drain then ends as blocked."""
        drain = await self._drain_of(machine)
        _, engine, port, name = copy_key
        await self._book.note(self._book.entry(drain, "skip", name, f"{engine}:{port}"))
        self._poke(machine)

    async def status(self, machine: str) -> DrainStatus | None:
        """Of this or another process's drain; None: the machine has none."""
        return self._as_of_now(await self._book.load(machine))

    async def statuses(self) -> tuple[DrainStatus, ...]:
        """Of every machine whose drain flag is on."""
        found = [self._as_of_now(status) for status in await self._book.load_all()]
        return tuple([status for status in found if status is not None])

    def returning(self, machine: str) -> tuple[CopyProgress, ...]:
        """Copies that are moved back now, or were by the last `undrain`; `state` as of a drain, `switched`
        once the copy is back."""
        work = self._returns.get(machine)
        return () if work is None else work.copies

    async def resume(self) -> tuple[str, ...]:
        """Take over drains that nobody works on any more; the names. Cheap, for every cycle."""
        now = time.monotonic()
        if self._is_closed or now - self._resumed_at < RESUME_S:
            return ()
        self._resumed_at = now
        flags = self._service.flags
        if flags is not None and not flags.book.drains:
            return ()
        taken = []
        for name, drain in (await self._book.load_drains()).items():
            if drain.state in _ENDED_OTHERWISE and self._shows_empty(drain):
                await self._keep_drained(drain)
                continue
            if (
                drain.state not in WORKING
                or self._is_working(name)
                or self._service.snapshot.find(name) is None
            ):
                continue
            status = await self._book.load(name, entries=0)
            lock = None if status is None else status.lock
            is_free = lock is None or self._book.is_ours(lock) or self._book.is_dead(lock)
            if is_free and not self._is_closed:
                self._work_on(drain, None)
                taken.append(name)
        return tuple(taken)

    def _shows_empty(self, drain: Drain) -> bool:
        """What was missing is there: two polls found nothing loaded since this was stored."""
        found = self._service.snapshot.find(drain.machine)
        shown = None if found is None else found.drain
        return (
            shown is not None
            and shown.is_drained
            and (shown.id, shown.revision) == (drain.id, drain.revision)
        )

    async def _keep_drained(self, drain: Drain) -> None:
        """Written down, so that it holds for who starts while the machine reboots."""
        entry = self._book.entry(drain, "drained", result=f"nothing is loaded any more; it was {drain.state}")
        await self._book.set_state(
            drain, lambda found: replace(found, state="drained", text=""), entry, only_in=(drain.state,)
        )
        self._tell(drain.machine)

    def resume_soon(self) -> None:
        """`resume` beside the caller; what goes wrong is shown as `error`."""
        if self._resuming is None or self._resuming.done():
            self._resuming = asyncio.ensure_future(self._resume())

    async def _resume(self) -> None:
        try:
            await self.resume()
        except DrainError as error:
            self._room.error = error.text

    def subscribe(self, subscriber: Callable[[str], None]) -> Callable[[], None]:
        """Hear in the event loop the name of each machine whose drain went on; returns what ends it."""
        self._next_id += 1
        key = self._next_id
        self._subscribers[key] = subscriber
        return lambda: self._subscribers.pop(key, None) and None

    async def wait(self, machine: str) -> DrainStatus | None:
        """Until its work here, or in another process, has ended; how it stands then."""
        while True:
            worker, work = self._workers.get(machine), self._returns.get(machine)
            if worker is not None:
                await worker.is_over.wait()
            if work is not None:
                await work.is_over.wait()
            status = await self.status(machine)
            is_at_work = status is not None and status.drain.state in WORKING
            if not is_at_work or self._is_closed:
                return status
            await self.resume()
            await asyncio.sleep(FOLLOW_S)

    async def close(self) -> None:
        """End the work here and let the next worker in; nothing is changed on any machine. More than once
        is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._resuming is not None:
            await asyncio.wait([self._resuming])
        await asyncio.gather(*(worker.close() for worker in self._workers.values()))
        await asyncio.gather(*(work.close() for work in self._returns.values()))
        await self._room.settle()
        await self._book.close()

    # -- beginning ----------------------------------------------------------------------------------

    def _check_names(self, machines: Sequence[str]) -> None:
        for name in machines:
            if self._service.snapshot.find(name) is None:
                raise DrainError(
                    "unknown_name",
                    name,
                    f"no machine is named {name!r} in {self.machines_dir}; nothing was changed",
                )

    async def _await_data(self, name: str) -> None:
        """A machine that was never asked yet gets a moment."""
        has_news = asyncio.Event()
        unsubscribe = self._service.subscribe(lambda _: has_news.set())
        try:
            async with asyncio.timeout(DATA_LIMIT_S):
                while not _has_answered(self._service.snapshot.find(name)):
                    has_news.clear()
                    await has_news.wait()
        except TimeoutError:
            pass  # the plan says what is missing
        finally:
            unsubscribe()

    async def _stop_own(self, name: str) -> None:
        worker = self._workers.pop(name, None)
        if worker is not None:
            await worker.close()
        work = self._returns.pop(name, None)
        if work is not None:
            await work.close()

    def _work_on(self, drain: Drain, plan: DrainPlan | None) -> None:
        from fleettui.fleet.drain.worker import DrainWorker

        if self._is_closed:
            return
        worker = self._workers[drain.machine] = DrainWorker(self._room, drain, plan)
        worker.start()

    # -- small things -------------------------------------------------------------------------------

    def _is_working(self, name: str) -> bool:
        worker = self._workers.get(name)
        return worker is not None and not worker.is_over.is_set()

    def _poke(self, name: str) -> None:
        worker = self._workers.get(name)
        if worker is not None:
            worker.poke()

    async def _drain_of(self, machine: str) -> Drain:
        status = await self._book.load(machine, entries=0)
        if status is None:
            raise DrainError("no_drain", machine, f"{machine} is not drained; nothing was changed")
        return status.drain

    def _as_of_now(self, status: DrainStatus | None) -> DrainStatus | None:
        """With copies as they are this moment, where they are worked on here."""
        worker = None if status is None else self._workers.get(status.drain.machine)
        if status is None or worker is None or worker.drain.id != status.drain.id:
            return status
        return replace(status, copies=worker.board.progress or status.copies)

    def _tell(self, machine: str) -> None:
        for subscriber in tuple(self._subscribers.values()):
            try:
                subscriber(machine)
            except Exception:
                log.exception("a subscriber to drains failed")


def _has_answered(machine: MachineSnapshot | None) -> bool:
    """It said what it holds, or that it cannot be reached."""
    if machine is None or machine.link.state == "failed":
        return True
    gpu = machine.sources.get("gpu")
    is_gpu_read = gpu is None or gpu.state != "never"
    is_heard = bool(machine.engines) and not unheard_engines(machine)
    return machine.link.state == "up" and is_heard and is_gpu_read


def _clean_reason(reason: str) -> str:
    text = " ".join(clean_text(reason, 10_000).split())
    if not text:
        raise DrainError("reason", "", "a drain needs a reason, for everybody who sees the machine missing")
    if len(text) > REASON_LIMIT:
        raise DrainError("reason", "", f"the reason has {len(text)} characters; at most {REASON_LIMIT} fit")
    return text
