"""Decisions about host keys in the state file: kept by fleet, name and address; an older file gets them."""

from __future__ import annotations

import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from fleettui.model.trust import NOT_FOR_ADDRESS, SeenKey, TrustDecision
from fleettui.store.database import Store, StoreError
from fleettui.store.snapshots import load_snapshot, save_snapshot
from fleettui.store.trust import change_decisions, load_decisions, read_revision

FLEET = "/etc/fleet"
KEY = ("ada", "ada.lan:22")
SCHEMA_1 = Path(__file__).resolve().parents[2] / "src/fleettui/store/schema/0001_snapshots.sql"
NEWEST = len(list(SCHEMA_1.parent.glob("*.sql")))


def pin(fingerprint: str = "SHA256:" + "a" * 43) -> TrustDecision:
    return TrustDecision(*KEY, "pinned", "ED25519", fingerprint, 1000.5, "mia@desk", "approve")


def put(store: Store, decision: TrustDecision, fleet: str = FLEET) -> bool:
    return change_decisions(store, fleet, {(decision.name, decision.address): lambda _: decision})


def test_every_field_comes_back_after_closing(tmp_path: Path) -> None:
    seen = SeenKey("RSA", "SHA256:" + "b" * 43, 900.25, ("SHA256:" + "c" * 43, "SHA256:" + "d" * 43))
    decisions = (
        pin(),
        TrustDecision("ada", "ada.lan:2222", "removed", "", "", 5.0, "x@y", "remove", NOT_FOR_ADDRESS),
        TrustDecision("bora", "[2001:db8::1]:22", "pending", offer=seen),
    )
    with Store.open(str(tmp_path)) as store:
        for decision in decisions:
            assert put(store, decision)
    with Store.open(str(tmp_path)) as store:
        _, found = load_decisions(store, FLEET)
    assert set(found) == set(decisions)


def test_fleets_never_mix_and_a_link_is_the_folder_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with Store.open(str(tmp_path / "state")) as store:
        put(store, pin(), str(tmp_path / "link"))
        assert load_decisions(store, str(tmp_path / "real"))[1] == (pin(),)
        assert load_decisions(store, str(tmp_path / "other")) == (0, ())


def test_the_revision_grows_with_every_change_and_with_nothing_else(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store, Store.open(str(tmp_path)) as other:
        assert read_revision(other, FLEET) == 0
        assert put(store, pin())
        first = read_revision(other, FLEET)
        assert not put(store, pin()), "the same entry is no change"
        assert read_revision(other, FLEET) == first > 0
        assert change_decisions(store, FLEET, {KEY: lambda _: None})
        assert read_revision(other, FLEET) > first, "a deleted entry is a change"
        assert read_revision(other, "/elsewhere") == 0


def test_a_change_that_raises_undoes_all_of_them(tmp_path: Path) -> None:
    def refuse(_: TrustDecision | None) -> TrustDecision:
        raise ValueError("another process was faster")

    with Store.open(str(tmp_path)) as store:
        with pytest.raises(ValueError, match="faster"):
            change_decisions(store, FLEET, {KEY: lambda _: pin(), ("bora", "b:22"): refuse})
        assert load_decisions(store, FLEET) == (0, ())
        assert put(store, pin()), "the store goes on working"


def test_two_processes_that_change_one_entry_see_each_other(tmp_path: Path) -> None:
    """Each change gets the entry as the other left it: none is lost."""
    count = 40

    def append(before: TrustDecision | None) -> TrustDecision:
        return TrustDecision(*KEY, "pinned", how=(before.how if before else "") + "x")

    def work() -> None:
        with Store.open(str(tmp_path), busy_timeout_s=20.0) as store:
            for _ in range(count):
                change_decisions(store, FLEET, {KEY: append})

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store.open(str(tmp_path)) as store:
        assert load_decisions(store, FLEET)[1][0].how == "x" * (2 * count)
        assert read_revision(store, FLEET) == 2 * count


def schema_1_file(state_dir: Path) -> None:
    """A state file as fleettui wrote it before it kept decisions, with a fleet in it."""
    state_dir.mkdir()
    connection = sqlite3.connect(state_dir / "state.db")
    connection.executescript(SCHEMA_1.read_text(encoding="utf-8"))
    connection.execute("PRAGMA user_version=1")
    connection.execute("INSERT INTO fleet_snapshots VALUES ('/old', 1.0, 2.0, 3.0, 4, 'dashboard', 'x')")
    connection.commit()
    connection.close()


def test_a_file_of_schema_1_is_brought_up_to_date_and_keeps_what_it_has(tmp_path: Path) -> None:
    schema_1_file(tmp_path / "state")
    with Store.open(str(tmp_path / "state")) as store:
        assert store.connection.execute("PRAGMA user_version").fetchone() == (NEWEST,)
        assert put(store, pin())
        assert load_decisions(store, FLEET)[1] == (pin(),)
        row = store.connection.execute("SELECT taken_at FROM fleet_snapshots").fetchone()
        assert row == (2.0,)
    assert stat.S_IMODE((tmp_path / "state" / "state.db").stat().st_mode) == 0o600


def test_a_file_of_schema_1_opened_for_reading_has_no_decisions(tmp_path: Path) -> None:
    schema_1_file(tmp_path / "state")
    store = Store.open_readonly(str(tmp_path / "state"))
    assert store is not None
    with store:
        assert load_decisions(store, FLEET) == (0, ())
        assert read_revision(store, FLEET) == 0


def test_a_newer_schema_is_refused_with_what_to_do(tmp_path: Path) -> None:
    Store.open(str(tmp_path)).close()
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute(f"PRAGMA user_version={NEWEST + 1}")
    connection.commit()
    connection.close()
    with pytest.raises(
        StoreError, match=rf"newer fleettui \(schema {NEWEST + 1}, this one knows {NEWEST}\); update"
    ):
        Store.open(str(tmp_path))


def test_snapshots_and_decisions_live_side_by_side(tmp_path: Path) -> None:
    from fleettui.model.snapshot import FleetSnapshot

    with Store.open(str(tmp_path)) as store:
        put(store, pin())
        before = read_revision(store, FLEET)
        save_snapshot(store, FleetSnapshot(1, 2.0, 2.0, machines_dir=FLEET), ())
        assert read_revision(store, FLEET) == before, "a stored snapshot is no decision"
        assert load_snapshot(store, FLEET) is not None
        assert load_decisions(store, FLEET)[1] == (pin(),)
