"""A running server as the dashboard's service. While it is away the machines are asked from here."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from fleettui.fleet.attached.asking import refusal
from fleettui.fleet.attached.events import ServedEvents
from fleettui.fleet.attached.messages import MessageReader, ServedFleet
from fleettui.fleet.attached.reading import fetch_plan_inputs
from fleettui.fleet.bus import SnapshotBus, Subscriber
from fleettui.fleet.history import keep_history
from fleettui.fleet.profile_book import ProfileBook
from fleettui.model.profile import Profile
from fleettui.model.record import replace
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.server_client import ServerError
from fleettui.net.server_stream import StreamRefused, read_stream
from fleettui.store.database import StoreError
from fleettui.view.origin import ASKING_HERE, SERVER_AWAY, VIA_SERVER

if TYPE_CHECKING:
    from fleettui.fleet.service import FleetService
    from fleettui.fleet.ui_state import UiState
    from fleettui.model.server_place import ServerAccess

AGAIN_S = 2.0
"""Between two tries to reach the server."""
PATIENCE_S = 10.0
"""A server that is started anew is back by then; logins to a whole fleet are not made for less."""

log = logging.getLogger(__name__)


class AttachedFleet:
    """Reads a server's stream; has the parts of FleetService that a front end reads. Nothing can be changed
    through it."""

    routing = drains = flags = trust = shells = None
    is_paused = False
    pollers = ()

    def __init__(
        self,
        access: ServerAccess,
        make_own: Callable[[], FleetService] | None,
        *,
        history_minutes: float | None = None,
        ui_state: UiState | None = None,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`make_own`: the service over machine files of this computer; None: there are none."""
        self.access = access
        self.ui_state = ui_state
        self._make_own = make_own
        self._patience_s = patience_s
        self._own: FleetService | None = None
        self._away_since: float | None = time.monotonic()
        """By the monotonic clock; None: the stream is read."""
        self._last_id = ""
        self._error = ""
        self._changing = asyncio.Lock()
        self._server_notices: tuple[str, ...] = ()
        self._served = ServedFleet(access.place)
        self._task: asyncio.Task[None] | None = None
        self._own_task: asyncio.Task[None] | None = None
        self._bus = SnapshotBus(FleetSnapshot(0, clock(), 2.0))
        self.history = keep_history(self._bus, history_minutes, 2.0)
        self.events = ServedEvents()
        self.profiles = ServedProfiles(access)

    @property
    def snapshot(self) -> FleetSnapshot:
        """The newest one."""
        return self._bus.latest

    @property
    def interval_s(self) -> float:
        """Of whoever asks the machines."""
        return self._bus.latest.interval_s

    @property
    def origin(self) -> str:
        """Where the figures are from, for the first line."""
        return (
            ASKING_HERE if self._own is not None else VIA_SERVER if self._away_since is None else SERVER_AWAY
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """What the operator should know."""
        if self._away_since is None:
            via = f"via server {self.access.place.text}: nothing is changed through it"
            return (f"{via}; keys that would are not there", *self._server_notices)
        told = f"{self._error or f'the server {self.access.place.text} does not answer yet'}; tried again"
        if self._own is not None:
            return (f"{told}; the machines are asked from here", *self._own.notices)
        if self._make_own is None:
            return (f"{told}; there are no machine files here to ask the machines by",)
        return (told,)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Hear of each new snapshot in the event loop; the answer ends that."""
        return self._bus.subscribe(subscriber)

    async def start(self) -> None:
        """Begin to read the stream."""
        self._task = asyncio.create_task(self._follow(), name="server stream")
        self._own_task = asyncio.create_task(self._stand_in(), name="stand-in for the server")

    async def stop(self) -> None:
        """End it, and what is polled from here."""
        for task in (self._task, self._own_task):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        await self._end_own()

    def poll_now(self, name: str | None = None) -> None:
        """A server polls at its own pace; what is asked from here is asked at once."""
        if self._own is not None:
            self._own.poll_now(name)

    def set_interval(self, seconds: float) -> None:
        """The pace is the server's."""

    def set_paused(self, is_paused: bool) -> None:
        """Others read the server too."""

    # -- the server ---------------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            try:
                await self._read()
                self._error = f"the server {self.access.place.text} has ended"
            except ServerError as error:
                self._error = error.text
                self._last_id = "" if not error.is_absent else self._last_id
            except StreamRefused as refused:
                self._error = refusal(self.access, refused.status, refused.body).text
            except Exception as error:
                log.exception("the server's stream cannot be read")
                self._error, self._last_id = f"{type(error).__name__}: {error}", ""
            self._note_away()
            await asyncio.sleep(AGAIN_S)

    async def _read(self) -> None:
        """Until it ends. Raises ServerError, StreamRefused."""
        reader = MessageReader(self.access.place)
        is_resumed = bool(self._last_id)
        async for piece in read_stream(self.access, "/api/attach/stream", self._last_id):
            for message in reader.receive(piece):
                self._served.take(message)
                self._last_id = message.id
                is_resumed = True
                self.events.take(self._served.events)
                if message.kind != "event" and self._served.fleet is not None:
                    await self._attach()
                    self._publish(self._served.fleet)
            if is_resumed and self._served.fleet is not None and self._away_since is not None:
                await self._attach()  # nothing has happened meanwhile
                self._publish(self._served.fleet)

    async def _attach(self) -> None:
        """The stream is read: nobody is asked from here."""
        self._away_since = None
        self._server_notices = self._served.notices
        await self._end_own()

    def _note_away(self) -> None:
        if self._away_since is None:
            self._away_since = time.monotonic()
        self._publish(self.snapshot)  # whoever shows it says so now

    # -- in its place -------------------------------------------------------------------------------

    async def _stand_in(self) -> None:
        """Ask the machines from here once the server has been away for long."""
        while self._make_own is not None:
            await asyncio.sleep(min(1.0, self._patience_s / 4))
            away = self._away_since
            if away is None or self._own is not None or time.monotonic() - away < self._patience_s:
                continue
            async with self._changing:
                if self._away_since is None:
                    continue
                own = self._own = self._make_own()
                own.subscribe(self._take_own)
                own.events.subscribe(self.events.take)
                try:
                    await own.start()
                except Exception:
                    log.exception("the machines cannot be asked from here")

    def _take_own(self, fleet: FleetSnapshot) -> None:
        if self._own is not None and self._own.first_round.is_over:
            self._publish(fleet)

    async def _end_own(self) -> None:
        if self._own is None:
            return
        async with self._changing:  # one that is being started is started first
            own, self._own = self._own, None
            if own is not None:
                with suppress(Exception):
                    await own.stop()

    def _publish(self, fleet: FleetSnapshot) -> None:
        self._bus.publish(replace(fleet, seq=self._bus.latest.seq + 1))


class ServedProfiles(ProfileBook):
    """Profiles that the server has stored."""

    def __init__(self, access: ServerAccess) -> None:
        super().__init__("", "")
        self._access = access

    def _read(self) -> tuple[Mapping[str, float], Mapping[str, Profile]]:
        try:
            return {}, fetch_plan_inputs(self._access).profiles
        except ServerError as error:
            raise StoreError(error.text) from None
