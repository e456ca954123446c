"""The fleet as another process stores it, and as it is polled where nobody does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from builders import make_fleet, make_snapshot
from fleettui.fleet.latest import LatestFleet
from fleettui.fleet.needs import CHOOSING
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.snapshot import FleetSnapshot, MaintenanceFlag, SourceStatus
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings
from fleettui.store.database import Store
from fleettui.store.flags import change_maintenance
from fleettui.store.snapshots import save_snapshot

GONE = """\
name: ada
role: gpu-host
hardware: {}
network: {hostname: 127.0.0.1, port: 9}
models: []
ssh: {host: 127.0.0.1, port: 9, user: nobody}
"""


class Rig:
    """A folder with one machine that nobody reaches, and a state file."""

    def __init__(self, folder: Path) -> None:
        self.machines, self.state = folder / "machines", folder / "state"
        self.machines.mkdir()
        (self.machines / "ada.yaml").write_text(GONE)
        self.services = 0

    def store(self, age_s: float = 0.0, interval_s: float = 2.0, seq: int = 1) -> FleetSnapshot:
        """What a dashboard stored so long ago: `ada`, healthy, read at that moment."""
        at = time.time() - age_s
        machine = make_snapshot("ada", seq=seq, last_seen=at)
        machine = replace(machine, sources=dict.fromkeys(machine.sources, SourceStatus("ok", at, at)))
        fleet = replace(make_fleet(machine), taken_at=at, interval_s=interval_s, seq=seq)
        fleet = replace(fleet, machines_dir=str(self.machines))
        with Store.open(str(self.state)) as store:
            save_snapshot(store, fleet, {"ada"}, written_at=at)
        return fleet

    def service(self) -> FleetService:
        self.services += 1
        settings = FleetSettings(str(self.machines), 0.5, CHOOSING, state_dir=str(self.state))
        return FleetService(settings, Connector(ConnectorSettings.from_environment()))

    @asynccontextmanager
    async def latest(self) -> AsyncIterator[LatestFleet]:
        latest = LatestFleet(str(self.machines), str(self.state), self.service)
        try:
            await latest.start()
            yield latest
        finally:
            await latest.stop()


async def until(latest: LatestFleet, holds: Callable[[FleetSnapshot], bool]) -> FleetSnapshot:
    """The first snapshot of which that holds."""
    found = asyncio.Event()

    def look(fleet: FleetSnapshot) -> None:
        if holds(fleet):
            found.set()

    stop = latest.subscribe(look)
    look(latest.snapshot)
    await asyncio.wait_for(found.wait(), 30)
    stop()
    return latest.snapshot


async def test_what_is_fresh_is_followed_and_nobody_is_asked(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.store(interval_s=60.0)
    async with rig.latest() as latest:
        assert latest.is_settled
        assert latest.snapshot.machines[0].health == "healthy"
        first = latest.snapshot
        rig.store(interval_s=60.0, seq=7)
        newer = await until(latest, lambda fleet: fleet.machines[0].seq == 7)
        assert newer.seq > first.seq
    assert rig.services == 0


async def test_a_flag_of_now_holds_for_what_was_stored_before(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.store(interval_s=60.0)
    flag = MaintenanceFlag("fan swap", "mia", time.time())
    with Store.open(str(rig.state)) as store:
        change_maintenance(store, str(rig.machines), {"ada": lambda _: flag})
    async with rig.latest() as latest:
        assert latest.snapshot.machines[0].maintenance == flag


async def test_a_writer_that_falls_silent_is_replaced_by_polls_of_our_own(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.store(age_s=0.6, interval_s=0.5)
    async with rig.latest() as latest:
        assert rig.services == 0
        fleet = await until(latest, lambda fleet: fleet.machines[0].link.state == "failed")
        assert fleet.machines[0].health == "offline"
        assert rig.services == 1


async def test_that_nobody_can_be_asked_is_told(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.store(age_s=0.0, interval_s=0.3)

    asked = asyncio.Event()

    def service() -> FleetService:
        asked.set()
        raise OSError("no more files can be opened")

    latest = LatestFleet(str(rig.machines), str(rig.state), service)
    await latest.start()
    await asyncio.wait_for(asked.wait(), 30)
    await latest.stop()
    await asyncio.sleep(0)
    assert latest.error == "what is shown grew old: OSError: no more files can be opened"


async def test_old_news_are_shown_as_being_asked_until_the_machine_answers(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.store(age_s=3600.0)
    seen: list[FleetSnapshot] = []
    latest = LatestFleet(str(rig.machines), str(rig.state), rig.service)
    latest.subscribe(seen.append)
    await latest.start()
    try:
        ada = seen[0].machines[0]
        assert (ada.link.state, ada.health) == ("connecting", "unknown")
        assert ada.gpu is not None
        assert not latest.is_settled
        await until(latest, lambda fleet: fleet.machines[0].link.state == "failed")
        assert latest.is_settled
    finally:
        await latest.stop()


async def test_without_a_state_file_the_machines_are_asked(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    async with rig.latest() as latest:
        await until(latest, lambda fleet: bool(fleet.machines) and fleet.machines[0].health == "offline")
    assert list(rig.state.glob("*")) == []


async def test_a_damaged_state_file_is_no_reason_to_stop(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.state.mkdir()
    (rig.state / "state.db").write_bytes(b"no database" * 100)
    async with rig.latest() as latest:
        await until(latest, lambda fleet: bool(fleet.machines))
        assert latest.error is not None
        assert "state.db" in latest.error
