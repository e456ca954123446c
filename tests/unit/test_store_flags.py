"""Flags in the state file: kept by fleet and machine, with a revision to follow; an older file gets them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from fleettui.model.machine import Machine
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot, MaintenanceFlag
from fleettui.model.trust import TrustDecision
from fleettui.store.database import Store
from fleettui.store.flags import (
    FleetFlags,
    change_maintenance,
    forget_flags,
    load_flags,
    read_revision,
    with_present_flags,
)
from fleettui.store.trust import change_decisions, load_decisions

FLEET = "/etc/fleet"
SCHEMA = Path(__file__).resolve().parents[2] / "src/fleettui/store/schema"
SWAP = MaintenanceFlag("fan swap", "mia", 1000.25, 4600.5)
PLAIN = MaintenanceFlag(None, "ada", 2000.0)


def put(store: Store, name: str, flag: MaintenanceFlag | None, fleet: str = FLEET) -> None:
    change_maintenance(store, fleet, {name: lambda _: flag})


def test_every_field_comes_back_after_closing(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        put(store, "cleo", SWAP)
        put(store, "bora", PLAIN)
    with Store.open(str(tmp_path)) as store:
        assert load_flags(store, FLEET) == (2, FleetFlags({"cleo": SWAP, "bora": PLAIN}))


def test_a_change_tells_what_stood_before_and_what_stands_now(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        assert change_maintenance(store, FLEET, {"cleo": lambda _: SWAP}) == {"cleo": (None, SWAP)}
        both = change_maintenance(store, FLEET, {"cleo": lambda _: None, "bora": lambda _: None})
        assert both == {"cleo": (SWAP, None), "bora": (None, None)}
        assert load_flags(store, FLEET)[1] == FleetFlags()


def test_fleets_never_mix_and_a_link_is_the_folder_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with Store.open(str(tmp_path / "state")) as store:
        put(store, "cleo", SWAP, str(tmp_path / "link"))
        assert load_flags(store, str(tmp_path / "real"))[1] == FleetFlags({"cleo": SWAP})
        assert load_flags(store, str(tmp_path / "other")) == (0, FleetFlags())


def test_the_revision_grows_with_every_change_and_with_nothing_else(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store, Store.open(str(tmp_path)) as other:
        assert read_revision(other, FLEET) == 0
        put(store, "cleo", SWAP)
        first = read_revision(other, FLEET)
        put(store, "cleo", SWAP)
        put(store, "bora", None)
        assert read_revision(other, FLEET) == first > 0, "nothing changed"
        assert forget_flags(store, FLEET, ["cleo"])
        second = read_revision(other, FLEET)
        assert second > first
        assert not forget_flags(store, FLEET, ["cleo"])
        assert read_revision(other, FLEET) == second
        assert read_revision(other, "/elsewhere") == 0


def test_a_change_that_raises_undoes_all_of_them(tmp_path: Path) -> None:
    def refuse(_: MaintenanceFlag | None) -> MaintenanceFlag:
        raise ValueError("another process was faster")

    with Store.open(str(tmp_path)) as store:
        with pytest.raises(ValueError, match="faster"):
            change_maintenance(store, FLEET, {"cleo": lambda _: SWAP, "bora": refuse})
        assert load_flags(store, FLEET) == (0, FleetFlags())


def test_a_stored_fleet_gets_the_flags_of_this_moment(tmp_path: Path) -> None:
    fleet = FleetSnapshot(
        1, 2.0, 2.0, (snapshot("bora", PLAIN), snapshot("cleo"), snapshot("dora")), machines_dir=FLEET
    )
    with Store.open(str(tmp_path)) as store:
        put(store, "cleo", SWAP)
        found = with_present_flags(store, FLEET, fleet)
        assert [machine.maintenance for machine in found.machines] == [None, SWAP, None]
        assert with_present_flags(store, FLEET, found) is found


def snapshot(name: str, flag: MaintenanceFlag | None = None) -> MachineSnapshot:
    return MachineSnapshot(Machine(name, "gpu-host", f"{name}.lan", 11434), maintenance=flag)


def schema_2_file(state_dir: Path) -> None:
    """A state file as fleettui wrote it before it kept flags, with a decision in it."""
    state_dir.mkdir()
    connection = sqlite3.connect(state_dir / "state.db")
    for name in ("0001_snapshots.sql", "0002_trust.sql"):
        connection.executescript((SCHEMA / name).read_text(encoding="utf-8"))
    connection.execute("PRAGMA user_version=2")
    connection.execute(
        "INSERT INTO trust_decisions (machines_dir, name, address, kind) VALUES (?, 'ada', 'a:22', 'pinned')",
        (FLEET,),
    )
    connection.commit()
    connection.close()


def test_a_file_without_flags_gets_their_table_and_keeps_what_it_has(tmp_path: Path) -> None:
    schema_2_file(tmp_path / "state")
    with Store.open(str(tmp_path / "state")) as store:
        assert store.connection.execute("PRAGMA user_version").fetchone()[0] >= 3
        put(store, "cleo", SWAP)
        assert load_flags(store, FLEET)[1] == FleetFlags({"cleo": SWAP})
        assert load_decisions(store, FLEET)[1] == (TrustDecision("ada", "a:22", "pinned"),)


def test_a_file_without_flags_opened_for_reading_has_none(tmp_path: Path) -> None:
    schema_2_file(tmp_path / "state")
    store = Store.open_readonly(str(tmp_path / "state"))
    assert store is not None
    with store:
        assert load_flags(store, FLEET) == (0, FleetFlags())
        assert read_revision(store, FLEET) == 0


def test_flags_and_decisions_have_revisions_of_their_own(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        put(store, "cleo", SWAP)
        before = read_revision(store, FLEET)
        change_decisions(store, FLEET, {("ada", "a:22"): lambda _: TrustDecision("ada", "a:22", "removed")})
        assert read_revision(store, FLEET) == before
