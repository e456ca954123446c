"""What operators do with drains: cancel, skip, two at once, two machines at once, undrain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from arena import SMALL, Arena, wait_until
from observer import Observer
from scenarios import play_all, scenarios_of

from fleettui.demo.launcher import DemoFleet

BIG = "gpt-oss:120b"
EMBEDDING = "nomic-embed-text:latest"
SECOND = "phi4:14b"


def drain_cancelled_while_a_target_loads(arena: Arena, source: str, first: str) -> None:
    """The load under way ends, nothing is unloaded, and the machine stays out of service until undrain."""
    arena.load(source, BIG)
    arena.install(first, BIG)
    arena.fleet.command(f"disk {first} 0.1")
    with Observer(arena.fleet, arena.names, [BIG]) as observer:
        drain = arena.drain(source)
        arena.wait_for_load(first, drain)
        cancel = arena.call("drain", "cancel", source)
        assert cancel.process.returncode == 0, arena.told(cancel)
        arena.fleet.command(f"hurry {first}")
        assert drain.wait() == 1, arena.told(drain)
        wait_until(lambda: BIG in arena.loaded(first), "the load under way ended")
    observer.assert_never_without()
    assert arena.loaded(source) == {BIG}
    assert (arena.state_of(source) or ("",))[0] == "cancelled"
    assert arena.route(BIG) == first
    assert arena.call("undrain", source).process.returncode == 0
    assert arena.state_of(source) is None


def drain_cancelled_now_the_load_is_given_up(arena: Arena, source: str, first: str) -> None:
    arena.load(source, SMALL)
    arena.install(first, SMALL)
    arena.fleet.command(f"fault {first} stall {SMALL}")
    drain = arena.drain(source)
    arena.wait_for_load(first, drain)
    assert arena.call("drain", "cancel", source, "--now", "--eligible").process.returncode == 0
    assert drain.wait() == 1, arena.told(drain)
    wait_until(lambda: not arena.fleet.command(f"state {first}")["loading"], "the load was given up")
    assert (arena.loaded(source), arena.loaded(first)) == ({SMALL}, set())
    assert arena.state_of(source) is None
    assert arena.route(SMALL) == source


def drain_two_operators_start_the_same_drain(arena: Arena, source: str, first: str) -> None:
    """One works; the other is told so, follows it or leaves, and nothing is done twice."""
    arena.load(source, SMALL, EMBEDDING)
    arena.install(first, SMALL, EMBEDDING)
    with Observer(arena.fleet, arena.names, [SMALL, EMBEDDING]) as observer:
        mia, jonas = arena.drain(source), arena.drain(source)
        codes = {mia.wait(), jonas.wait()}
    observer.assert_never_without()
    assert 0 in codes, arena.told(mia) + arena.told(jonas)
    assert arena.loaded(source) == set()
    for model in (SMALL, EMBEDDING):
        loads = [entry for entry in arena.journal() if entry[:2] == ("load", model)]
        assert len(loads) == 1, arena.told(jonas)


def drain_a_second_operator_follows_and_takes_over(arena: Arena, source: str, first: str) -> None:
    arena.load(source, BIG)
    arena.install(first, BIG)
    arena.fleet.command(f"disk {first} 0.1")
    mia = arena.drain(source)
    arena.wait_for("load", mia)
    jonas = arena.start("drain", "status", source, "--follow")
    wait_until(lambda: BIG in jonas.said, "the second shows how far it is")
    holders = {row[0] for row in arena.rows("SELECT pid FROM drain_locks")}
    assert holders == {mia.process.pid}
    mia.kill()
    arena.fleet.command(f"disk {first} 10")
    assert jonas.wait() == 0, arena.told(jonas)
    assert (arena.loaded(source), arena.loaded(first)) == (set(), {BIG})


def drain_two_machines_at_once(arena: Arena, source: str, first: str, second: str) -> None:
    """Neither is a target of the other, and each model ends once."""
    arena.load(source, SMALL, context=4096)
    arena.load(first, SMALL, SECOND, context=4096)
    arena.install(source, SECOND)
    arena.install(second, SMALL, SECOND)
    with Observer(arena.fleet, arena.names, [SMALL, SECOND]) as observer:
        drain = arena.drain(source, first)
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert [arena.loaded(name) for name in arena.names] == [set(), set(), {SMALL, SECOND}]
    assert len([entry for entry in arena.journal() if entry[:2] == ("load", SMALL)]) == 1


def drain_one_machine_after_the_other(arena: Arena, source: str, first: str, second: str) -> None:
    """`--serial 1`: work on the second begins when the first has ended."""
    arena.load(source, SMALL, context=4096)
    arena.load(first, SECOND, context=4096)
    arena.install(second, SMALL, SECOND)
    drain = arena.drain(source, first, options=["--serial", "1"])
    assert drain.wait() == 0, arena.told(drain)
    ends = arena.rows(
        "SELECT machine, step FROM drain_journal WHERE step IN ('running', 'drained') ORDER BY seq"
    )
    one, other = [machine for machine, step in ends if step == "running"]
    assert {one, other} == {source, first}
    assert ends == [(one, "running"), (one, "drained"), (other, "running"), (other, "drained")]
    assert arena.loaded(second) == {SMALL, SECOND}


def drain_two_operators_load_on_one_target(arena: Arena, source: str, first: str, second: str) -> None:
    """Each empties another machine: the second load begins when the first stands, and tells what for."""
    arena.load(source, SMALL, context=4096)
    arena.load(first, EMBEDDING)
    arena.install(second, SMALL, EMBEDDING)
    arena.fleet.command(f"disk {second} 0.001")
    mia = arena.drain(source, options=["--to", second])
    arena.wait_for_load(second, mia)
    jonas = arena.drain(first, options=["--to", second])
    waits = f"(process {mia.process.pid}) loads on {second}"
    told = f"SELECT payload FROM drain_copies WHERE machine = '{first}'"  # noqa: S608 - a test's
    arena.wait_during(jonas, lambda: any(waits in row[0] for row in arena.rows(told)), "the second waits")
    arena.fleet.command(f"disk {second} 10")
    arena.fleet.command(f"hurry {second}")
    assert (mia.wait(), jonas.wait()) == (0, 0), arena.told(mia) + arena.told(jonas)
    steps = [entry[:2] for entry in arena.journal() if entry[0] in ("load", "loaded")]
    assert steps == [("load", SMALL), ("loaded", SMALL), ("load", EMBEDDING), ("loaded", EMBEDDING)]


def drain_with_the_context_of_the_source(arena: Arena, source: str, first: str) -> None:
    """`--keep-context`: the load names it."""
    arena.load(source, SMALL, context=6144)
    arena.install(first, SMALL)
    drain = arena.drain(source, options=["--keep-context"])
    assert drain.wait() == 0, arena.told(drain)
    assert arena.copy_on(first, SMALL)["context_length"] == 6144
    (call,) = arena.rows("SELECT call FROM drain_journal WHERE step = 'load'")
    assert '"num_ctx": 6144' in call[0]


def drain_undrained_everything_is_brought_back(arena: Arena, source: str, first: str) -> None:
    arena.load(source, SMALL, EMBEDDING)
    arena.install(first, SMALL, EMBEDDING)
    with Observer(arena.fleet, arena.names, [SMALL, EMBEDDING]) as observer:
        drain = arena.drain(source)
        assert drain.wait() == 0, arena.told(drain)
        back = arena.call("undrain", source, "--return")
        assert back.process.returncode == 0, arena.told(back)
    observer.assert_never_without()
    assert (arena.loaded(source), arena.loaded(first)) == ({SMALL, EMBEDDING}, set())
    assert arena.state_of(source) is None


def drain_a_reboot_while_drained_changes_nothing(arena: Arena, source: str, first: str) -> None:
    arena.load(source, SMALL)
    arena.install(first, SMALL)
    drain = arena.drain(source)
    assert drain.wait() == 0, arena.told(drain)
    arena.fleet.command(f"crash {source}")
    gone = arena.call("status", "--json")
    machine = next(item for item in json.loads(gone.said)["machines"] if item["name"] == source)
    assert machine["health"] != "healthy"
    arena.fleet.command(f"start {source}")
    assert arena.state_of(source) == ("drained", "")
    assert arena.route(SMALL) == first
    assert arena.call("undrain", source).process.returncode == 0


def drain_what_is_skipped_stays_and_blocks(arena: Arena, source: str, first: str) -> None:
    arena.load(source, SMALL, EMBEDDING)
    arena.install(first, SMALL, EMBEDDING)
    drain = arena.drain(source, options=["--skip", SMALL])
    assert drain.wait() == 1, arena.told(drain)
    assert (arena.loaded(source), arena.loaded(first)) == ({SMALL}, {EMBEDDING})
    assert (arena.state_of(source) or ("",))[0] == "blocked"


def drain_a_deadline_blocks_and_forces_nothing(arena: Arena, source: str, first: str) -> None:
    arena.load(source, SMALL)
    arena.install(first, SMALL)
    arena.fleet.command(f"fault {first} stall {SMALL}")
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain(source, options=["--deadline", "3s"])
        wait_until(lambda: (arena.state_of(source) or ("",))[0] == "blocked", "the deadline")
        arena.fleet.command(f"hurry {first}")
        assert drain.wait() == 1, arena.told(drain)
    observer.assert_never_without()
    state, text = arena.state_of(source) or ("", "")
    assert (state, "deadline" in text) == ("blocked", True)
    assert arena.loaded(source) == {SMALL}


def drain_a_model_that_nobody_can_take_needs_a_word(arena: Arena, source: str, first: str) -> None:
    arena.load(source, SMALL)
    refused = arena.call("drain", "start", source, "--reason", "x", "--yes")
    assert refused.process.returncode == 1
    assert (arena.loaded(source), arena.state_of(source)) == ({SMALL}, None)
    drain = arena.drain(source, options=["--force-class", "cannot"])
    assert drain.wait() == 0, arena.told(drain)
    assert arena.loaded(source) == set()


@pytest.mark.timeout(600)
def test_drains_that_operators_interfere_with(fleet: DemoFleet, tmp_path: Path) -> None:
    play_all(fleet, tmp_path, scenarios_of(globals()))
