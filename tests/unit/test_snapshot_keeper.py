"""What is stored of a fleet, and how often."""

from __future__ import annotations

from pathlib import Path

from fleettui.fleet.keeper import WHOLE_PERIOD_S, SnapshotKeeper
from fleettui.model.machine import Machine
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.store.database import Store
from fleettui.store.snapshots import load_snapshot


async def test_a_clock_that_was_set_back_does_not_keep_the_whole_from_being_stored(tmp_path: Path) -> None:
    def fleet(seq: int, at: float) -> FleetSnapshot:
        machine = MachineSnapshot(Machine("ada", "gpu-host", "ada.lan"), seq=seq, last_seen=at)
        return FleetSnapshot(seq, at, 2.0, (machine,), (), "/fleet")

    def stored_seq() -> int:
        with Store.open(str(tmp_path)) as store:
            stored = load_snapshot(store, "/fleet")
        assert stored is not None
        return stored.fleet.machines[0].seq

    keeper = SnapshotKeeper(str(tmp_path), "dashboard")
    keeper._write(fleet(1, 10_000.0))
    assert stored_seq() == 1
    keeper._write(fleet(2, 10_000.0 + WHOLE_PERIOD_S / 2))
    assert stored_seq() == 1, "only what routing reads"
    keeper._write(fleet(3, 5_000.0))
    assert stored_seq() == 3
    await keeper.close()
    assert keeper.error is None
