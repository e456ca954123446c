"""The state file: rights, schema versions, damage, several processes at once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fleettui.model.machine import ConfigProblem, Machine
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.store import database, snapshots
from fleettui.store.database import Store, StoreBusyError, StoreError
from fleettui.store.snapshots import SnapshotWriter, StoredFleet, load_snapshot, save_snapshot

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


def make_fleet(*names: str, seq: int = 1, machines_dir: str = "/etc/fleet") -> FleetSnapshot:
    machines = tuple(
        MachineSnapshot(Machine(name, "gpu-host", f"{name}.lan"), seq=seq, last_seen=1000.0 + seq)
        for name in names
    )
    return FleetSnapshot(seq, 1000.0 + seq, 2.0, machines, (), machines_dir)


def everything(fleet: FleetSnapshot) -> list[str]:
    return [machine.name for machine in fleet.machines]


def load(state_dir: Path, machines_dir: str = "/etc/fleet") -> StoredFleet | None:
    store = Store.open_readonly(str(state_dir))
    if store is None:
        return None
    with store:
        return load_snapshot(store, machines_dir)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    fleet = replace(
        make_fleet("gpu2", "gpu10", "ada"), problems=(ConfigProblem("x.yaml", 3, "name", "is missing"),)
    )
    with Store.open(str(tmp_path)) as store:
        assert load_snapshot(store, "/etc/fleet") is None
        save_snapshot(store, fleet, everything(fleet), writer="serve", written_at=5000.5)
        stored = load_snapshot(store, "/etc/fleet/")
    assert stored == StoredFleet(fleet, 5000.5, 2.0, SnapshotWriter(os.getpid(), "serve"))
    assert load(tmp_path) == stored
    assert (stored.age_s(5003.0), stored.age_s(0.0)) == (2.5, 0.0)


def test_only_changed_and_missing_machines_are_written(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        save_snapshot(store, make_fleet("a", "b", seq=1), [])
        save_snapshot(store, make_fleet("a", "b", "c", seq=2), ["b"])
        stored = load_snapshot(store, "/etc/fleet")
    assert stored is not None
    assert {machine.name: machine.seq for machine in stored.fleet.machines} == {"a": 1, "b": 2, "c": 2}
    assert (stored.fleet.seq, stored.fleet.taken_at) == (2, 1002.0)


def test_machines_that_are_gone_are_deleted(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        save_snapshot(store, make_fleet("a", "b"), ["a", "b"])
        save_snapshot(store, make_fleet("b", seq=2), ["b"])
        stored = load_snapshot(store, "/etc/fleet")
        assert stored is not None
        assert everything(stored.fleet) == ["b"]
        assert store.connection.execute("SELECT count(*) FROM machine_snapshots").fetchone() == (1,)
        save_snapshot(store, make_fleet("a", "b", seq=3), ["a"])
        stored = load_snapshot(store, "/etc/fleet")
    assert stored is not None
    assert everything(stored.fleet) == ["a", "b"]


def test_fleets_of_two_folders_never_mix(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    with Store.open(str(tmp_path)) as store:
        save_snapshot(store, make_fleet("a", machines_dir=str(real)), ["a"])
        save_snapshot(store, make_fleet("a", "b", seq=9, machines_dir="/other"), ["a", "b"])
        first, second = load_snapshot(store, str(link)), load_snapshot(store, "/other")
        assert load_snapshot(store, "/third") is None
    assert first is not None
    assert second is not None
    assert (everything(first.fleet), everything(second.fleet)) == (["a"], ["a", "b"])


def test_empty_fleet_is_a_fleet(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        save_snapshot(store, make_fleet(), [])
        stored = load_snapshot(store, "/etc/fleet")
    assert stored is not None
    assert stored.fleet.machines == ()


def test_rights(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    old_mask = os.umask(0)
    try:
        with Store.open(str(state)) as store:
            save_snapshot(store, make_fleet("a"), ["a"])
            assert state.stat().st_mode & 0o777 == 0o700
            assert {path.name: path.stat().st_mode & 0o777 for path in state.iterdir()} == {
                "state.db": 0o600,
                "state.db-wal": 0o600,
                "state.db-shm": 0o600,
            }
        (state / "state.db").chmod(0o644)
        Store.open(str(state)).close()
        assert (state / "state.db").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old_mask)


@pytest.mark.parametrize("name", ["plain", "a b?c#d%20é", "-x"])
def test_odd_folder_names(name: str, tmp_path: Path) -> None:
    state = tmp_path / name
    with Store.open(str(state)) as store:
        save_snapshot(store, make_fleet("a"), ["a"])
    assert [path.name for path in state.iterdir()] == ["state.db"]
    assert load(state) is not None


def test_reading_creates_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert Store.open_readonly(str(state)) is None
    assert not state.exists()
    state.mkdir()
    assert Store.open_readonly(str(state)) is None
    assert list(state.iterdir()) == []
    with Store.open(str(state)) as store:
        save_snapshot(store, make_fleet("a"), ["a"])
    before = {path.name: path.read_bytes() for path in state.iterdir()}
    assert load(state) is not None
    assert {path.name: path.read_bytes() for path in state.iterdir()} == before
    (state / "state.db").write_bytes(b"")
    assert Store.open_readonly(str(state)) is None


def test_reader_cannot_write(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as writer:
        save_snapshot(writer, make_fleet("a"), ["a"])
        reader = Store.open_readonly(str(tmp_path))
        assert reader is not None
        with reader, pytest.raises(StoreError, match=r"state\.db"):
            save_snapshot(reader, make_fleet("a"), ["a"])


@pytest.mark.parametrize("opening", [Store.open, Store.open_readonly])
@pytest.mark.parametrize("content", [b"not a database at all" * 99, b"SQLite format 3\0" + b"\xff" * 4096])
def test_damaged_file_says_what_to_do(opening: object, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(content)
    with pytest.raises(StoreError, match=r"state\.db: .*damaged; move it away"):
        opening(str(tmp_path))  # type: ignore[operator]
    assert (tmp_path / "state.db").read_bytes() == content


def test_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    Store.open(str(tmp_path)).close()
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute("PRAGMA user_version=99")
    connection.commit()
    connection.close()
    for opening in (Store.open, Store.open_readonly):
        with pytest.raises(StoreError, match="newer fleettui"):
            opening(str(tmp_path))


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(StoreError, match="--state-dir"):
        Store.open(str(tmp_path / "file" / "state"))


WRITE_ELSEWHERE = """
import sys
from fleettui.store.database import Store
with Store.open(sys.argv[1]) as store, store.transaction() as connection:
    connection.execute("INSERT INTO trust_revisions VALUES ('/elsewhere', 1)")
"""


@pytest.mark.parametrize("opening", [Store.open, Store.open_readonly])
def test_a_second_connection_of_a_process_keeps_the_first_ones_locks(
    tmp_path: Path, opening: Callable[[str], Store]
) -> None:
    """Else another process that closes the file takes the WAL away, and what is written here is lost."""

    def revisions(store: Store) -> set[str]:
        with store.transaction("DEFERRED") as connection:
            return {name for (name,) in connection.execute("SELECT machines_dir FROM trust_revisions")}

    def write(store: Store, name: str) -> None:
        with store.transaction() as connection:
            connection.execute("INSERT INTO trust_revisions VALUES (?, 1)", (name,))

    with Store.open(str(tmp_path)) as first:
        write(first, "/one")
        opening(str(tmp_path)).close()
        subprocess.run(
            [sys.executable, "-c", WRITE_ELSEWHERE, str(tmp_path)],
            check=True, env={**os.environ, "PYTHONPATH": SOURCE},
        )  # fmt: skip
        write(first, "/two")
        reader = Store.open_readonly(str(tmp_path))
        assert reader is not None
        with reader:
            assert revisions(reader) == {"/one", "/two", "/elsewhere"}
    with Store.open(str(tmp_path)) as again:
        assert revisions(again) == {"/one", "/two", "/elsewhere"}


def test_no_thread_takes_locks_while_another_one_reads_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing what it read would drop them."""
    Store.open(str(tmp_path)).close()
    opened: list[Store] = []
    other = threading.Thread(target=lambda: opened.append(Store.open(str(tmp_path))))
    read_header = database._read_header

    def read_meanwhile(path: str) -> bytes:
        other.start()
        other.join(0.2)
        assert opened == []
        return read_header(path)

    monkeypatch.setattr(database, "_read_header", read_meanwhile)
    reader = Store.open_readonly(str(tmp_path))
    other.join()
    assert reader is not None
    for store in (reader, *opened):
        store.close()
    assert len(opened) == 1


def test_a_file_that_was_deleted_while_it_was_open_begins_anew(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)):
        for path in tmp_path.iterdir():
            path.unlink()
        assert Store.open_readonly(str(tmp_path)) is None
        with Store.open(str(tmp_path)) as anew:
            assert load_snapshot(anew, "/etc/fleet") is None


def test_schema_files_run_once_each_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = tmp_path / "schema"
    schema.mkdir()
    monkeypatch.setattr(database, "_SCHEMA_DIR", str(schema))
    (schema / "0001_a.sql").write_text(
        "-- it's a comment; really\nCREATE TABLE a (x);\nINSERT INTO a VALUES (';');\n"
    )
    with Store.open(str(tmp_path / "s")) as store:
        assert store.connection.execute("PRAGMA user_version").fetchone() == (1,)
    (schema / "0002_b.sql").write_text("ALTER TABLE a ADD COLUMN y;\nINSERT INTO a VALUES (1, 2);\n")
    for _ in range(2):
        with Store.open(str(tmp_path / "s")) as store:
            assert store.connection.execute("SELECT * FROM a").fetchall() == [(";", None), (1, 2)]
    (schema / "0003_c.sql").write_text("CREATE TABLE c (x);\nnonsense;\n")
    with pytest.raises(StoreError):
        Store.open(str(tmp_path / "s"))
    connection = sqlite3.connect(tmp_path / "s" / "state.db")
    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("a",)]
    connection.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE machine_snapshots SET payload = 'x'",
        "UPDATE machine_snapshots SET payload = x'00ff'",
        "UPDATE machine_snapshots SET payload = '00000000' || substr(payload, 9)",
        "UPDATE machine_snapshots SET payload = replace(payload, '11434', '11435')",
        "UPDATE machine_snapshots SET name = 'c' WHERE name = 'b'",
        "UPDATE machine_snapshots SET payload = replace(payload, '\"b\"', '\"c\"')",
        "UPDATE fleet_snapshots SET payload = '[]'",
        "UPDATE fleet_snapshots SET payload = replace(payload, '[1,', '[2,')",
        "UPDATE fleet_snapshots SET taken_at = 'noon'",
        "DELETE FROM machine_snapshots WHERE name = 'b'",
    ],
)
def test_odd_rows_are_no_snapshot(change: str, tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        save_snapshot(store, make_fleet("a", "b"), ["a", "b"])
        assert load_snapshot(store, "/etc/fleet") is not None
        assert store.connection.execute(change).rowcount
        assert load_snapshot(store, "/etc/fleet") is None


def test_failed_save_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(str(tmp_path)) as store:
        save_snapshot(store, make_fleet("a", "b"), ["a", "b"])
        before = load_snapshot(store, "/etc/fleet")
        with monkeypatch.context() as patch:
            patch.setattr(snapshots.os, "getpid", object)  # refused by the last statement
            with pytest.raises(StoreError):
                save_snapshot(store, make_fleet("b", "c", seq=2), ["b", "c"])
        assert load_snapshot(store, "/etc/fleet") == before
        save_snapshot(store, make_fleet("b", "c", seq=3), ["b", "c"])
        after = load_snapshot(store, "/etc/fleet")
    assert after is not None
    assert everything(after.fleet) == ["b", "c"]


def test_busy_writer_is_told_so_and_reader_does_not_wait(tmp_path: Path) -> None:
    with Store.open(str(tmp_path), busy_timeout_s=0.05) as store:
        save_snapshot(store, make_fleet("a"), ["a"])
        other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError, match="another process"):
            save_snapshot(store, make_fleet("a", seq=2), ["a"])
        stored = load(tmp_path)
        assert stored is not None
        assert stored.fleet.seq == 1
        other.execute("ROLLBACK")
        other.close()
        save_snapshot(store, make_fleet("a", seq=3), ["a"])


def test_a_commit_that_finds_readers_is_taken_back(tmp_path: Path) -> None:
    """Without WAL, as on a network file system, the commit itself may find the file busy."""
    with Store.open(str(tmp_path), busy_timeout_s=0.05) as store:
        save_snapshot(store, make_fleet("ada"), {"ada"})
        store.connection.execute("PRAGMA journal_mode=DELETE")
        reader = sqlite3.connect(store.path, isolation_level=None)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM machine_snapshots").fetchone() == (1,)
        with pytest.raises(StoreBusyError):
            save_snapshot(store, make_fleet("bob", seq=2), {"bob"})
        reader.close()
        save_snapshot(store, make_fleet("cyd", seq=3), {"cyd"})
    stored = load(tmp_path)
    assert stored is not None
    assert everything(stored.fleet) == ["cyd"]


def test_threads_take_turns(tmp_path: Path) -> None:
    errors: list[StoreError] = []
    with Store.open(str(tmp_path)) as store:

        def save_some(folder: str) -> None:
            try:
                for seq in range(20):
                    save_snapshot(store, make_fleet("a", "b", seq=seq, machines_dir=folder), ["a", "b"])
                    load_snapshot(store, folder)
            except StoreError as error:
                errors.append(error)

        threads = [threading.Thread(target=save_some, args=(f"/fleet{number}",)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []


WRITER = textwrap.dedent("""
    import sys
    from fleettui.model.machine import Machine
    from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
    from fleettui.store.database import Store
    from fleettui.store.snapshots import save_snapshot

    store = Store.open(sys.argv[1])
    names = [f"m{number}" for number in range(30)]
    for seq in range(1, 1_000_000):
        machines = tuple(MachineSnapshot(Machine(name, "r", "x" * 2000), seq=seq) for name in names)
        save_snapshot(store, FleetSnapshot(seq, float(seq), 2.0, machines, (), sys.argv[2]), names)
        print(seq, flush=True)
""")


def start_writer(state_dir: Path, machines_dir: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(state_dir), machines_dir],
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        text=True,
    )


def check_whole(stored: StoredFleet | None) -> int:
    """A stored fleet is of one moment; its number."""
    assert stored is not None
    assert {machine.seq for machine in stored.fleet.machines} == {stored.fleet.seq}
    assert len(stored.fleet.machines) == 30
    return stored.fleet.seq


def wait_for(writer: subprocess.Popen[str], count: int) -> int:
    """The number of a snapshot that is stored for certain, after `count` more of them."""
    assert writer.stdout is not None
    return int([writer.stdout.readline() for _ in range(count)][-1])


def test_two_writers_and_a_reader(tmp_path: Path) -> None:
    writers = {folder: start_writer(tmp_path, folder) for folder in ("/one", "/two")}
    try:
        for writer in writers.values():
            wait_for(writer, 1)
        seen: dict[str, int] = dict.fromkeys(writers, 0)
        for _ in range(10):
            for folder, writer in writers.items():
                stored = wait_for(writer, 2)
                seq = check_whole(load(tmp_path, folder))
                assert seq >= max(stored, seen[folder])
                seen[folder] = seq
    finally:
        for writer in writers.values():
            writer.kill()
            writer.communicate()


def test_killed_writer_leaves_a_whole_snapshot(tmp_path: Path) -> None:
    last = 0
    for _ in range(5):
        writer = start_writer(tmp_path, "/one")
        try:
            wait_for(writer, 3)
        finally:
            writer.kill()
            writer.communicate()
        last = check_whole(load(tmp_path, "/one"))
        assert last >= 3
    with Store.open(str(tmp_path)) as store:
        assert store.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert check_whole(load_snapshot(store, "/one")) == last


def test_many_processes_open_a_new_file_at_once(tmp_path: Path) -> None:
    code = "import sys; from fleettui.store.database import Store; Store.open(sys.argv[1]).close()"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "new")],
            env={**os.environ, "PYTHONPATH": SOURCE},
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    assert [child.communicate()[1] for child in children] == [""] * 6
    with Store.open(str(tmp_path / "new")) as store:
        assert store.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
