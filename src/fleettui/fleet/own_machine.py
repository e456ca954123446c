"""The machine that fleettui itself runs on, asked through a local link while somebody wants to know."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fleettui.fleet.inbox import ANSWER_KINDS
from fleettui.fleet.needs import EVERYTHING
from fleettui.fleet.poller import MachinePoller
from fleettui.fleet.record import MachineRecord
from fleettui.model.machine import Machine, SshSettings
from fleettui.model.record import replace
from fleettui.model.snapshot import MachineSnapshot
from fleettui.net.link import Link

if TYPE_CHECKING:
    from fleettui.fleet.service import FleetService

NEEDS = replace(EVERYTHING, engines=False, discovery=False, profiles=False)
FIRST_ANSWER_S = 5.0
KEPT_S = 60.0
"""After the last question it is asked no more."""


def _local_link(machine: Machine) -> Link:
    from fleettui.net.local_link import LocalLink

    return LocalLink(machine.name)


class OwnMachine:
    """Its latest snapshot; that of the fleet, where a file with `ssh: local` declares this machine."""

    def __init__(self, service: FleetService, clock: Callable[[], float] = time.time) -> None:
        self._service = service
        self._clock = clock
        self._poller: MachinePoller | None = None
        self._has_news = asyncio.Event()
        self._ending: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    async def look(self) -> MachineSnapshot:
        """What it says now; the first time after a while its first answers are waited for."""
        for snapshot in self._service.snapshot.machines:
            if snapshot.machine.ssh.is_local:  # never a second nvidia-smi beside one that may hang
                return snapshot
        poller = self._poller or self._start()
        if self._ending is not None:
            self._ending.cancel()
        self._ending = asyncio.get_running_loop().call_later(KEPT_S, self._end)
        try:
            async with asyncio.timeout(FIRST_ANSWER_S):
                while not poller.is_settled:
                    await self._has_news.wait()
                    self._has_news.clear()
                    self._read(poller)
        except TimeoutError:
            pass  # what is there by then, with the state of each source
        self._read(poller)
        now = self._clock()
        return poller.record.freeze(now, poller.interval_s, time.localtime(now).tm_gmtoff)

    async def close(self) -> None:
        """Ask no more."""
        self._end()
        if self._closing is not None:
            await self._closing

    def _start(self) -> MachinePoller:
        name = socket.gethostname()
        record = MachineRecord(Machine(name, "this machine", name, ssh=SshSettings(is_local=True)))
        self._poller = MachinePoller(
            record, _local_link, self._clock, self._has_news.set, self._service.interval_s, NEEDS
        )
        self._poller.start()
        return self._poller

    @staticmethod
    def _read(poller: MachinePoller) -> None:
        for kind in ANSWER_KINDS:
            poller.read_answers(kind)

    def _end(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        poller, self._poller = self._poller, None
        if poller is not None:
            self._closing = asyncio.get_running_loop().create_task(poller.close())
