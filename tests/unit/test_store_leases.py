"""Leases in the state file: concurrent askers see each other, by fleet, until their time; load rates."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

from fleettui.model.lease import Lease
from fleettui.store.database import Store
from fleettui.store.leases import (
    drop_leases,
    load_leases,
    new_lease_id,
    release_lease,
    take_lease,
    turn_resident,
)
from fleettui.store.load_rates import load_load_rates, record_load_rate

FLEET = "/etc/fleet"
FULL = Lease(
    id="k7qm3x9dtw", machine="ada", port=11434, engine="ollama", model="qwen3:8b", kind="cold",
    taken_at=1000.25, until=1060.5, vram_mib=6144, gpu=1, digest="ab" * 32, pid=4242, owner="mia",
)  # fmt: skip
PLAIN = Lease(
    id="plain", machine="bora", port=8000, engine="vllm", model="m", kind="resident",
    taken_at=1000.5, until=1010.5,
)  # fmt: skip


def put(store: Store, *leases: Lease, fleet: str = FLEET) -> None:
    for lease in leases:
        take_lease(store, fleet, lambda _, __, one=lease: one, lambda: 1000.5)  # type: ignore[misc]


def test_every_field_comes_back_after_closing_oldest_first(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        put(store, PLAIN, FULL)
    with Store.open(str(tmp_path)) as store:
        assert load_leases(store, FLEET, 1001.0) == (FULL, PLAIN)


def test_a_lease_past_its_time_counts_for_nothing_and_is_dropped_by_the_next(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        put(store, FULL, PLAIN)
        assert load_leases(store, FLEET, 1010.5) == (FULL,)
        seen: list[tuple[Lease, ...]] = []

        def choose(leases: tuple[Lease, ...], now: float) -> None:
            seen.append(leases)

        assert take_lease(store, FLEET, choose, lambda: 1060.5) is None
        assert seen == [()]
        assert store.connection.execute("SELECT count(*) FROM leases").fetchone() == (0,)


def test_leases_of_a_clock_that_was_set_back_are_over(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        put(store, FULL)
        assert load_leases(store, FLEET, FULL.taken_at - 61) == ()
        assert load_leases(store, FLEET, FULL.taken_at - 1) == (FULL,)


def test_fleets_never_mix_and_a_link_is_the_folder_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with Store.open(str(tmp_path / "state")) as store:
        put(store, FULL, fleet=str(tmp_path / "link"))
        assert load_leases(store, str(tmp_path / "real"), 1001.0) == (FULL,)
        assert load_leases(store, str(tmp_path / "other"), 1001.0) == ()
        assert not release_lease(store, str(tmp_path / "other"), FULL.id)
        assert release_lease(store, str(tmp_path / "real"), FULL.id)


def test_released_once(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        put(store, FULL, PLAIN)
        assert drop_leases(store, FLEET, (FULL.id, "none")) == 1
        assert not release_lease(store, FLEET, FULL.id)
        assert load_leases(store, FLEET, 1001.0) == (PLAIN,)


def test_a_load_that_is_done_reserves_nothing_and_the_lease_holds_also_where_it_was_over(
    tmp_path: Path,
) -> None:
    loaded = replace(FULL, taken_at=1100.0, until=1110.0)
    with Store.open(str(tmp_path)) as store:
        put(store, FULL)
        for _ in range(2):
            turn_resident(store, FLEET, loaded)
            expected = replace(loaded, kind="resident", vram_mib=0, gpu=None)
            assert load_leases(store, FLEET, 1100.0) == (expected,)
            release_lease(store, FLEET, FULL.id)


def test_who_fails_to_choose_takes_none_and_leaves_the_file_free(tmp_path: Path) -> None:
    def fail(leases: tuple[Lease, ...], now: float) -> Lease:
        raise RuntimeError("no choice")

    with Store.open(str(tmp_path)) as store:
        with pytest.raises(RuntimeError):
            take_lease(store, FLEET, fail)
        with Store.open(str(tmp_path), busy_timeout_s=0.1) as other:
            put(other, PLAIN)
        assert load_leases(store, FLEET, 1001.0) == (PLAIN,)


def test_ids_can_be_typed_and_differ() -> None:
    ids = {new_lease_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(one) == 10 and one.isalnum() and one == one.lower() for one in ids)


def least_leased(leases: tuple[Lease, ...], now: float) -> Lease:
    """The machine with the fewest leases, as routing chooses among equals."""
    counts = {name: sum(lease.machine == name for lease in leases) for name in "abcd"}
    return replace(PLAIN, id=new_lease_id(), machine=min(counts, key=lambda name: (counts[name], name)))


def ask(folder: str, times: int) -> None:
    for _ in range(times):
        with Store.open(folder, busy_timeout_s=30) as store:
            take_lease(store, FLEET, least_leased, lambda: 1000.5)


def test_eight_processes_at_once_neither_fail_nor_choose_the_same(tmp_path: Path) -> None:
    """Opening, deciding, writing and closing twenty times each: the last one to close takes the WAL away."""
    context = multiprocessing.get_context("spawn")
    askers = [context.Process(target=ask, args=(str(tmp_path), 20)) for _ in range(8)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(60)
    assert [asker.exitcode for asker in askers] == [0] * 8
    with Store.open(str(tmp_path)) as store:
        machines = [lease.machine for lease in load_leases(store, FLEET, 1001.0)]
    assert {name: machines.count(name) for name in "abcd"} == dict.fromkeys("abcd", 40)


def test_load_rates_follow_the_last_loads(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        assert load_load_rates(store, FLEET) == {}
        assert record_load_rate(store, FLEET, "ada", 1e9, 1000.0) == 1e9
        assert record_load_rate(store, FLEET, "ada", 2e9, 1010.0) == 1.4e9
        record_load_rate(store, "/other", "ada", 5e9, 1010.0)
        assert load_load_rates(store, FLEET) == {"ada": 1.4e9}
