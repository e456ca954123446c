"""The timeline in the state file: appended once, read by time, machine and kind, pruned; one writer."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from fleettui.model.event import Event
from fleettui.store.database import Store
from fleettui.store.events import (
    EventWriter,
    append_events,
    claim_writing,
    known_machines,
    prune_events,
    read_events,
    read_writer,
    release_writing,
)

NOW = 1_796_047_392.0
FLEET = "/etc/fleet"
LOADED = Event(
    NOW, "ada", "loaded", "note", "qwen3:8b loaded", {"model": "qwen3:8b", "size_gb": None}, None, "ollama q"
)
OFFLINE = Event(NOW + 5, "bora", "offline", "bad", "offline: refused", {"stage": "connect"}, None, "refused")
TRUST = Event(NOW + 9, "ada", "trust", "good", "approved", {"how": "add"}, "mia@desk", "approved")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


def read(store: Store, folder: str = FLEET, **wanted: object) -> list[Event]:
    return list(read_events(store, folder, **wanted)[1])  # type: ignore[arg-type]


def test_what_is_appended_is_read_oldest_first(store: Store) -> None:
    append_events(store, FLEET, [OFFLINE, LOADED, TRUST])
    assert read(store) == [LOADED, OFFLINE, TRUST]
    assert read(store, "/etc/other") == []
    assert known_machines(store, f"{FLEET}/") == {"ada", "bora"}


def test_narrowed(store: Store) -> None:
    append_events(store, FLEET, [LOADED, OFFLINE, TRUST])
    assert read(store, since=NOW + 5) == [OFFLINE, TRUST]
    assert read(store, machines=["ada"]) == [LOADED, TRUST]
    assert read(store, kinds=["offline", "trust"]) == [OFFLINE, TRUST]
    assert read(store, machines=["bora"], kinds=["trust"]) == []
    assert read(store, limit=2) == [OFFLINE, TRUST]
    assert read(store, machines=["x' OR 1=1 --"]) == []


def test_followed_by_number(store: Store) -> None:
    append_events(store, FLEET, [LOADED])
    last_id, _ = read_events(store, FLEET)
    append_events(store, "/etc/other", [TRUST])
    assert read_events(store, FLEET, after_id=last_id) == (last_id, ())
    append_events(store, FLEET, [OFFLINE])
    newest, fresh = read_events(store, FLEET, after_id=last_id)
    assert (newest > last_id, fresh) == (True, (OFFLINE,))


def test_the_same_event_is_stored_once_and_repetitions_are_counted(store: Store) -> None:
    append_events(store, FLEET, [OFFLINE])
    append_events(store, FLEET, [OFFLINE, replace(OFFLINE, count=3, last_at=NOW + 80)])
    append_events(store, FLEET, [OFFLINE])
    assert read(store) == [replace(OFFLINE, count=3, last_at=NOW + 80)]
    assert read(store, since=NOW + 60) == [replace(OFFLINE, count=3, last_at=NOW + 80)]


def test_old_and_too_many_events_go(store: Store) -> None:
    day = 86_400.0
    events = [replace(LOADED, at=NOW + number) for number in range(10)]
    append_events(store, FLEET, [replace(OFFLINE, at=NOW - 31 * day), *events])
    append_events(store, "/etc/other", [replace(OFFLINE, at=NOW - 31 * day)])
    prune_events(store, FLEET, NOW)
    assert read(store) == events
    assert len(read(store, "/etc/other")) == 1
    prune_events(store, FLEET, NOW, keep_rows=4)
    assert read(store) == events[-4:]


def test_one_writes_until_it_ends_or_is_gone(store: Store) -> None:
    assert read_writer(store, FLEET) is None
    assert claim_writing(store, FLEET, "a", "dashboard", NOW) == (True, None)
    first = EventWriter("a", os.getpid(), "dashboard", NOW)
    assert claim_writing(store, FLEET, "b", "status --watch", NOW + 15) == (False, first)
    assert claim_writing(store, "/etc/other", "b", "status --watch", NOW)[0]
    assert claim_writing(store, FLEET, "a", "dashboard", NOW + 14)[0]
    assert claim_writing(store, FLEET, "b", "status --watch", NOW + 16)[0] is False
    assert claim_writing(store, FLEET, "b", "status --watch", NOW + 29.5) == (
        True,
        replace(first, renewed_at=NOW + 14),
    )
    release_writing(store, FLEET, "a", NOW + 30)  # not its own any more
    assert read_writer(store, FLEET) == EventWriter("b", os.getpid(), "status --watch", NOW + 29.5)
    release_writing(store, FLEET, "b", NOW + 31)
    assert claim_writing(store, FLEET, "a", "dashboard", NOW + 31)[0]


def test_a_clock_set_back_does_not_lock_the_timeline_for_ever(store: Store) -> None:
    claim_writing(store, FLEET, "a", "dashboard", NOW + 86_400)
    assert claim_writing(store, FLEET, "b", "dashboard", NOW)[0]


def test_a_file_of_an_older_version_or_with_odd_details(tmp_path: Path, store: Store) -> None:
    append_events(store, FLEET, [LOADED])
    with store.transaction() as connection:
        connection.execute("UPDATE events SET details = '[oops'")
    assert read(store) == [replace(LOADED, details={})]
    store.close()
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("DROP TABLE events")
        connection.execute("DROP TABLE event_writers")
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    old = Store.open_readonly(str(tmp_path))
    assert old is not None
    with old:
        assert read_events(old, FLEET) == (0, ())
        assert known_machines(old, FLEET) == set()
        assert read_writer(old, FLEET) is None
