"""Drains in the state file: what comes out is what went in, a change is one piece, one worker at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleettui.model.drain import (
    CopyProgress,
    Drain,
    DrainLock,
    DrainOptions,
    JournalEntry,
    SourceCopy,
)
from fleettui.model.record import replace
from fleettui.model.snapshot import DrainFlag
from fleettui.model.unknown import Unknown
from fleettui.store.database import Store
from fleettui.store.drains import (
    append_journal,
    beat_lock,
    change_drain,
    load_drain,
    load_drains,
    load_followed_flags,
    load_journal,
    release_lock,
    save_copies,
    take_lock,
)
from fleettui.store.flags import forget_flags, load_flags

FLEET = "/fleet/machines"
OPTIONS = DrainOptions(allow_pull=True, idle_wait_s=0.0, forced=("last_copy",), targets=("bora", "cleo"))
DRAIN = Drain("d1", "ada", "running", "PSU swap", "mia@jump", 100.0, None, OPTIONS, "", 1, "mia@jump", 100.0)
COPY = SourceCopy("ada", "ollama", 11434, "qwen3:8b", "sha256:1", 5, Unknown("not listed"), 4096, 900.0, True)
STEP = JournalEntry(101.0, "ada", "d1", "mia@jump", 7, "load", "qwen3:8b", "bora", "ok", "POST /api/generate")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path)) as opened:
        yield opened


def test_a_drain_comes_out_as_it_went_in(store: Store) -> None:
    assert load_drains(store, FLEET) == {}
    assert load_drain(store, FLEET, "ada") is None
    assert change_drain(store, FLEET, "ada", lambda _: DRAIN, replace(STEP, step="started")) == (None, DRAIN)
    progress = CopyProgress(COPY, "move", "loading", 101.0, "bora", "12 of ~30 s", 30.0, ("cleo: no room",))
    assert save_copies(store, FLEET, DRAIN, [progress], STEP)
    status = load_drain(store, FLEET, "ada")
    assert status is not None
    assert status.drain == DRAIN
    assert status.copies == (progress,)
    assert status.lock is None
    assert [entry.step for entry in status.journal] == ["started", "load"]
    assert replace(status.journal[1], seq=0) == STEP
    assert load_drains(store, FLEET) == {"ada": DRAIN}
    assert load_drains(store, "/other") == {}


def test_who_took_a_flag_off_is_told_to_whoever_follows(store: Store) -> None:
    off = replace(STEP, step="undrained", by="jo@desk")
    assert load_followed_flags(store, FLEET)[1].undrained_by == {}
    change_drain(store, FLEET, "ada", lambda _: DRAIN, replace(STEP, step="undrained", by="mia@jump"))
    change_drain(store, FLEET, "ada", lambda _: None, off)
    revision, flags = load_followed_flags(store, FLEET)
    assert (revision, flags.drains, flags.undrained_by) == (2, {}, {"ada": "jo@desk"})
    assert load_followed_flags(store, "/other")[1].undrained_by == {}


def test_a_flag_is_seen_by_whoever_follows_flags(store: Store) -> None:
    change_drain(store, FLEET, "ada", lambda _: replace(DRAIN, until=400.0, text="waits"))
    revision, flags = load_flags(store, FLEET)
    assert revision == 1
    drain = flags.drains["ada"]
    assert drain == DrainFlag(
        "running", "PSU swap", "mia@jump", 100.0, 400.0, "waits", "d1", 1, DRAIN.changed_by, DRAIN.changed_at
    )
    assert (drain.is_overdue(399.0), drain.is_overdue(400.0), drain.is_drained) == (False, True, False)
    assert forget_flags(store, FLEET, ["ada"])
    assert load_flags(store, FLEET)[1].drains == {}


def test_revisions_grow_with_changes_only(store: Store) -> None:
    change_drain(store, FLEET, "ada", lambda _: DRAIN)
    change_drain(store, FLEET, "ada", lambda drain: drain)
    assert load_flags(store, FLEET)[0] == 1
    _, after = change_drain(store, FLEET, "ada", lambda drain: drain and replace(drain, state="blocked"))
    assert after is not None
    assert after.revision == 2
    assert change_drain(store, FLEET, "ada", lambda _: None) == (after, None)
    assert load_drain(store, FLEET, "ada") is None


def test_a_change_that_raises_changes_nothing(store: Store) -> None:
    def refuse(_: Drain | None) -> Drain:
        raise LookupError("changed meanwhile")

    with pytest.raises(LookupError):
        change_drain(store, FLEET, "ada", refuse, STEP)
    assert load_drains(store, FLEET) == {}
    assert load_journal(store, FLEET, "ada") == ()


def test_progress_of_an_older_drain_is_not_written(store: Store) -> None:
    change_drain(store, FLEET, "ada", lambda _: DRAIN)
    assert save_copies(store, FLEET, DRAIN, [CopyProgress(COPY, "move")], None)
    change_drain(store, FLEET, "ada", lambda _: replace(DRAIN, id="d2"))
    assert not save_copies(store, FLEET, DRAIN, [CopyProgress(COPY, "move")], STEP)
    status = load_drain(store, FLEET, "ada")
    assert status is not None
    assert status.copies == ()
    assert status.journal == ()


def test_the_journal_keeps_the_last_entries_in_order_over_drains(store: Store) -> None:
    for count in range(6):
        append_journal(store, FLEET, replace(STEP, at=count, drain_id=f"d{count // 3}"))
    assert [entry.at for entry in load_journal(store, FLEET, "ada", entries=4)] == [2, 3, 4, 5]
    assert [entry.at for entry in load_journal(store, FLEET, "ada", "d0")] == [0, 1, 2]


def test_one_worker_at_a_time(store: Store) -> None:
    mia, joe = DrainLock("ada", "mia@jump", 7, 100.0, 100.0), DrainLock("ada", "joe@jump", 8, 130.0, 130.0)
    alive, dead = (lambda _: False), (lambda _: True)
    assert take_lock(store, FLEET, mia, alive) == mia
    assert take_lock(store, FLEET, joe, alive) == mia
    assert beat_lock(store, FLEET, mia, 140.0)
    assert not beat_lock(store, FLEET, joe, 140.0)
    seen: list[DrainLock] = []
    assert take_lock(store, FLEET, joe, lambda held: bool(seen.append(held)) or dead(held)) == joe
    assert seen == [replace(mia, beat_at=140.0)]
    assert not beat_lock(store, FLEET, mia, 150.0)
    release_lock(store, FLEET, mia)
    assert take_lock(store, FLEET, mia, alive) == joe
    release_lock(store, FLEET, joe)
    assert take_lock(store, FLEET, mia, alive) == mia


def test_rows_of_another_version_are_not_read(store: Store) -> None:
    change_drain(store, FLEET, "ada", lambda _: DRAIN)
    with store.transaction() as connection:
        connection.execute("UPDATE drains SET options = '[1, [2]]'")
        connection.execute("INSERT INTO drain_copies VALUES (?, 'ada', 0, '[')", (FLEET,))
    status = load_drain(store, FLEET, "ada")
    assert status is not None
    assert status.drain.options == DrainOptions()
    assert status.copies == ()
