"""FleetService: the only door for every front end. Snapshots come out, what the operator does goes in."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from fleettui.config.machine_folder import MachineFiles, MachineFolder
from fleettui.decide.health import silence_limit_s
from fleettui.fleet.access_watch import AccessWatch
from fleettui.fleet.bus import SnapshotBus, Subscriber
from fleettui.fleet.catalog_watch import CatalogWatch
from fleettui.fleet.event_log import make_event_log
from fleettui.fleet.flags import FlagBook
from fleettui.fleet.fresh import FreshLook
from fleettui.fleet.grid import TickGrid
from fleettui.fleet.history import keep_history
from fleettui.fleet.keeper import SnapshotKeeper
from fleettui.fleet.maintenance import FlagOperations
from fleettui.fleet.model_shapes import make_shape_asker
from fleettui.fleet.needs import EVERYTHING, Needs
from fleettui.fleet.pace import set_gathering
from fleettui.fleet.poller import LinkFactory, MachinePoller
from fleettui.fleet.profile_book import open_profile_book
from fleettui.fleet.profile_watch import ProfileWatch
from fleettui.fleet.publisher import SnapshotPublisher
from fleettui.fleet.record import MachineRecord
from fleettui.fleet.shell import ShellOperations
from fleettui.fleet.silence import SleepWatch
from fleettui.fleet.starting import FirstRound, phase_of, start_in_groups
from fleettui.fleet.trust_book import TrustBook
from fleettui.fleet.trust_desk import TrustDesk
from fleettui.fleet.trust_gate import TrustGate
from fleettui.fleet.trust_operations import TrustOperations
from fleettui.fleet.ui_state import UiState
from fleettui.model.machine import Machine
from fleettui.model.order import natural_key
from fleettui.model.record import dataclass
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.connector import Connector

if TYPE_CHECKING:
    from fleettui.fleet.drain.desk import DrainDesk
    from fleettui.fleet.route_desk import RouteDesk

RESUME_S = 2.0
"""After a pause everybody is asked at once, and has answered by then."""

log = logging.getLogger(__name__)

MIN_INTERVAL_S = 0.5
MAX_INTERVAL_S = 60.0


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """What a service needs to know before it starts."""

    machines_dir: str
    interval_s: float = 2.0
    needs: Needs = EVERYTHING
    only: tuple[str, ...] | None = None
    """Names to poll; None is all."""
    state_dir: str | None = None
    """Folder of the state database with the decisions about host keys; None: nothing was decided."""
    history_minutes: float | None = None
    """How long samples are kept for graphs; None: none are."""
    catalog_dir: str | None = None
    """Folder of the catalog; None: there is none."""
    asks_shapes: bool = False
    """Engines are asked now and then what a model is made of that nobody knows yet."""


class FleetService:
    """Pollers of the whole fleet and the bus they publish on."""

    origin = ""
    """It asks the machines itself."""
    routing: RouteDesk | None = None
    """Leases and warm-ups, for a front end that stays; whoever opens one sets it."""
    drains: DrainDesk | None = None
    """Drains, worked on while this runs; whoever opens a front end that may act sets it."""

    def __init__(
        self,
        settings: FleetSettings,
        connector: Connector,
        keeper: SnapshotKeeper | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.interval_s = settings.interval_s
        self.is_paused = False
        self._clock = clock
        self._connector = connector
        self._keeper = keeper
        self._folder = MachineFolder(settings.machines_dir)
        self._gate: TrustGate | None = None
        self.trust: TrustOperations | None = None
        """What the operator may decide about host keys; None without a state folder."""
        self.shells: ShellOperations | None = None
        """Shells on machines; None without a state folder."""
        self.flags: FlagOperations | None = None
        """Maintenance on, off and undo; None without a state folder."""
        self.ui_state: UiState | None = None
        """What a dashboard remembers; None without a state folder."""
        self.profiles = open_profile_book(settings.state_dir, settings.machines_dir)
        if settings.state_dir is not None:
            book = TrustBook(settings.state_dir, settings.machines_dir, is_watching=keeper is not None)
            self._gate = TrustGate(book, connector, clock)
            desk = TrustDesk(book, connector, self._folder.refresh, clock)
            self.trust = TrustOperations(desk, self._follow, self._record_of)
            self.shells = ShellOperations(desk, self._record_of)
            flags = FlagBook(settings.state_dir, settings.machines_dir, is_watching=keeper is not None)
            self.flags = FlagOperations(
                flags, self._folder.refresh, self._record_of, self._note_change, clock
            )
            self.ui_state = UiState(settings.state_dir, settings.machines_dir)
        self._link_for: LinkFactory = connector.link_for if self._gate is None else self._gate.link_for
        self._files = MachineFiles()
        self._access = AccessWatch(connector, clock)
        self._has_begun = False
        self._pollers: dict[str, MachinePoller] = {}
        self._grid = TickGrid()
        self.first_round = FirstRound(self._pollers, clock)
        self._closings: set[asyncio.Task[None]] = set()
        self._following = asyncio.Lock()
        self._has_new_interval = asyncio.Event()
        self._cycle_task: asyncio.Task[None] | None = None
        self._resuming: asyncio.TimerHandle | None = None
        """The pause is over, and its readings are still shown."""
        self._sleep_watch = SleepWatch(self._wake_up, clock)
        self.bus = SnapshotBus(
            FleetSnapshot(0, clock(), settings.interval_s, machines_dir=settings.machines_dir)
        )
        self._publisher = SnapshotPublisher(self.bus, self._pollers, clock)
        self._catalog = CatalogWatch(settings.catalog_dir, self._publisher)
        self.fresh = FreshLook(self._follow, self._publisher, self.trust, self.flags)
        self._profile_watch = ProfileWatch(
            self.profiles if settings.needs.profiles else None, self._pollers, self._note_change
        )
        self.history = keep_history(self.bus, settings.history_minutes, settings.interval_s)
        """Samples for graphs; None where `history_minutes` is."""
        self.shapes = make_shape_asker(settings.state_dir, self.bus, self._pollers, clock)
        """What models are made of; None without a state folder."""
        self.events = make_event_log(
            settings.machines_dir, keeper, self._gate, clock, None if self.flags is None else self.flags.book
        )

    # -- what front ends use ------------------------------------------------------------------------

    @property
    def snapshot(self) -> FleetSnapshot:
        """The latest snapshot; immutable."""
        return self.bus.latest

    @property
    def notices(self) -> tuple[str, ...]:
        """What the operator should know that belongs to no machine: odd lines of ssh_config, known_hosts."""
        books = (
            self._keeper, self._gate and self._gate.book, self.flags and self.flags.book, self.events,
            self.ui_state,
        )  # fmt: skip
        errors = tuple(book.error for book in books if book and book.error)
        odd = (f"{problem.file}:{problem.line}: {problem.message}" for problem in self._connector.problems())
        return (*odd, *errors)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Hear of each new snapshot in the event loop; returns the call that ends it."""
        return self.bus.subscribe(subscriber)

    async def start(self) -> None:
        """Read the machine files and the catalog, and begin polling."""
        self.first_round.begin()
        if self._gate is not None:
            await self._gate.load()
        if self.flags is not None:
            await self.flags.follow()
        self._apply(self._folder.refresh())
        self._catalog.follow()
        self._publisher.publish_all()
        self.events.start(self.bus)
        self._cycle_task = asyncio.create_task(self._cycle(), name="fleet cycle")
        self._sleep_watch.start()
        if self.shapes is not None and self.settings.asks_shapes:
            self.shapes.start()

    async def stop(self) -> None:
        """End all polling; bounded, whatever the machines do."""
        if self.drains is not None:
            await self.drains.close()
        self._sleep_watch.stop()
        if self.shapes is not None:
            await self.shapes.close()
        await self.events.close()  # what ends now is no news of any machine
        if self._cycle_task is not None:
            self._cycle_task.cancel()
            self._cycle_task = None
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        if self._gate is not None:
            await self._gate.close(self._record_of)
        if self.flags is not None:
            self.flags.book.close()
        pollers = tuple(self._pollers.values())
        self._pollers.clear()
        self._publisher.stop()
        await asyncio.gather(*(poller.close() for poller in pollers))
        if self._closings:
            await asyncio.wait(self._closings, timeout=3.0)
        if self._keeper is not None:
            await self._keeper.close(self.snapshot if self._publisher.paused_at is None else None)
        self._connector.close()

    def poll_now(self, name: str | None = None) -> None:
        """Ask one machine, or all, at once; also ends a back-off and retries a refused login."""
        self._connector.forget_failures()
        for poller_name, poller in self._pollers.items():
            if name is None or name == poller_name:
                poller.poke()

    def _wake_up(self) -> None:
        """This computer slept, or its clock was set: every machine is tried at once."""
        for poller in self._pollers.values():
            poller.wake_up()

    def set_interval(self, seconds: float) -> None:
        """Change the poll interval, within 0.5 to 60 s, at once: nobody waits for the end of a long one."""
        self.interval_s = min(MAX_INTERVAL_S, max(MIN_INTERVAL_S, seconds))
        for poller in self._pollers.values():
            poller.set_interval(self.interval_s)
        self._connector.set_silence(silence_limit_s(self.interval_s))
        self._has_new_interval.set()
        self._publisher.interval_s = self.interval_s
        self._publisher.schedule()

    def set_paused(self, is_paused: bool) -> None:
        """Stop or go on asking; connections stay."""
        if is_paused == self.is_paused:
            return
        self.is_paused = is_paused
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        if is_paused:
            self._publisher.paused_at = self._clock()
            self._publisher.schedule()
        else:  # what was read before counts as of the pause until the first answers are there
            wait_s = min(RESUME_S, self.interval_s)
            self._resuming = asyncio.get_running_loop().call_later(wait_s, self._end_pause)
        for poller in self._pollers.values():
            poller.set_paused(is_paused)

    def _end_pause(self) -> None:
        self._resuming = self._publisher.paused_at = None
        self._publisher.schedule()

    @property
    def pollers(self) -> tuple[MachinePoller, ...]:
        """The running pollers."""
        return tuple(self._pollers.values())

    def final_snapshot(self) -> FleetSnapshot:
        """Publish what is known this moment and return it."""
        self._publisher.note_change(*self._pollers)
        self._publisher.publish_all()
        return self.snapshot

    # -- the machine files --------------------------------------------------------------------------

    async def _cycle(self) -> None:
        """Once an interval: files that changed, keys that changed, health that changes by time alone."""
        await self._begin()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.interval_s):
                    await self._has_new_interval.wait()
            self._has_new_interval.clear()
            try:
                await self._look_around()
            except Exception:
                # A defect of ours must not end the following of files and decisions for good.
                log.exception("files, decisions and keys cannot be followed")
            # What was read before a pause must not be stored as if it were of now.
            is_present = self._publisher.paused_at is None and self.first_round.is_over
            if self._keeper is not None and is_present:
                self._keeper.keep(self.snapshot)

    async def _look_around(self) -> None:
        await self._follow()
        await self._access.retry_refused(self._pollers.values())
        set_gathering(not any(poller.is_connecting for poller in self._pollers.values()))

    async def _begin(self) -> None:
        """Load the SSH library beside the first paint (0.35 s), then let every poller go."""
        profiles = asyncio.create_task(self._profile_watch.begin())
        if any(not poller.record.machine.ssh.is_local for poller in self._pollers.values()):
            await self._connector.warm()
            await self._access.note()
        await profiles
        self._has_begun = True
        await start_in_groups(self._pollers)

    async def _follow(self) -> None:
        """Bring the pollers in line with the files and with what was decided, here or by another process.

        One at a time: the cycle and an operation of the operator may meet, and the later files count.
        """
        async with self._following:
            await self._follow_now()

    async def _follow_now(self) -> None:
        files = self._folder.refresh()
        # After the files were read: who adds a machine decides first and writes then.
        for name in await self._gate.refresh(self._record_of) if self._gate is not None else ():
            poller = self._pollers.get(name)
            if poller is not None:
                self._remove(name)
                self._add(poller.record.machine)
        if files is not self._files:
            self._apply(files)
        self._catalog.follow()
        self._profile_watch.follow()
        if self.flags is not None:
            await self.flags.follow()
        if self.drains is not None:
            self.drains.resume_soon()

    def _record_of(self, name: str) -> MachineRecord | None:
        poller = self._pollers.get(name)
        return None if poller is None else poller.record

    def _apply(self, files: MachineFiles) -> None:
        self._files = files
        wanted = {machine.name: machine for machine in files.machines if self._is_wanted(machine)}
        for name in [name for name in self._pollers if name not in wanted]:
            self._remove(name)
        for name, machine in wanted.items():
            poller = self._pollers.get(name)
            if poller is None:
                self._add(machine)
            elif poller.record.machine != machine:
                self._replace(poller, machine)
        self._publisher.order = tuple(sorted(wanted, key=natural_key))
        self._publisher.problems = files.problems
        self._publisher.schedule()

    def _is_wanted(self, machine: Machine) -> bool:
        return self.settings.only is None or machine.name in self.settings.only

    def _add(self, machine: Machine, record: MachineRecord | None = None) -> None:
        name = machine.name
        poller = MachinePoller(
            record or MachineRecord(machine), self._link_for, self._clock, lambda: self._note_change(name),
            self.interval_s, self.settings.needs, self._grid,
        )  # fmt: skip
        poller.is_paused = self.is_paused
        poller.phase_s = phase_of(len(self._pollers))
        if self.flags is not None:
            self.flags.mark(poller.record)
        self._profile_watch.mark(poller.record)
        self._pollers[name] = poller
        self._publisher.note_change(name)
        if self._has_begun:
            poller.start()

    def _remove(self, name: str) -> None:
        poller = self._pollers.pop(name)
        self._publisher.forget(name)
        self._closings.add(task := asyncio.create_task(poller.close()))
        task.add_done_callback(self._closings.discard)

    def _replace(self, poller: MachinePoller, machine: Machine) -> None:
        """An edited file: the same connection when only descriptions changed, else a new one."""
        old = poller.record.machine
        if (old.ssh, old.hostname, old.engines, old.port) == (
            machine.ssh,
            machine.hostname,
            machine.engines,
            machine.port,
        ):
            poller.record.machine = machine
            self._note_change(machine.name)
            return
        self._remove(machine.name)
        self._add(machine)

    def _note_change(self, name: str) -> None:
        poller = self._pollers.get(name)
        if poller is not None:  # the last answer of a machine may come just after its file was removed
            if self._gate is not None and poller.record.trust != "approved":
                self._gate.note_failure(poller.record)
            self._publisher.note_change(name)
            self._publisher.schedule()
