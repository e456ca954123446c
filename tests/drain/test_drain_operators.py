"""What operators do with drains: cancel, skip, two at once, two machines at once, undrain."""

from __future__ import annotations

import json

from arena import SMALL, Arena, MakeArena, wait_until
from observer import Observer

BIG = "gpt-oss:120b"
EMBEDDING = "nomic-embed-text:latest"
SECOND = "phi4:14b"


def route(arena: Arena, model: str) -> str:
    """Who is chosen now; else why nobody is."""
    run = arena.call("--route", model, "--json", "-q", "--no-lease")
    document = json.loads(run.said)
    return str(document["chosen"]["name"]) if document["chosen"] else run.said


def test_cancelled_while_a_target_loads(make_arena: MakeArena) -> None:
    """The load under way ends, nothing is unloaded, and the machine stays out of service until undrain."""
    arena = make_arena(12, 14)
    arena.load("gpu-12", BIG)
    arena.install("gpu-14", BIG)
    arena.fleet.command("disk gpu-14 0.1")
    with Observer(arena.fleet, arena.names, [BIG]) as observer:
        drain = arena.drain("gpu-12")
        wait_until(lambda: bool(arena.fleet.command("state gpu-14")["loading"]), "the load began")
        cancel = arena.call("drain", "cancel", "gpu-12")
        assert cancel.process.returncode == 0, arena.told(cancel)
        arena.fleet.command("advance 900")
        assert drain.wait() == 1, arena.told(drain)
        wait_until(lambda: BIG in arena.loaded("gpu-14"), "the load under way ended")
    observer.assert_never_without()
    assert arena.loaded("gpu-12") == {BIG}
    assert (arena.state_of("gpu-12") or ("",))[0] == "cancelled"
    assert route(arena, BIG) == "gpu-14"
    assert arena.call("undrain", "gpu-12").process.returncode == 0
    assert arena.state_of("gpu-12") is None


def test_cancelled_now_the_load_is_given_up(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    arena.fleet.command(f"fault gpu-14 stall {SMALL}")
    drain = arena.drain("gpu-12")
    wait_until(lambda: bool(arena.fleet.command("state gpu-14")["loading"]), "the load began")
    assert arena.call("drain", "cancel", "gpu-12", "--now", "--eligible").process.returncode == 0
    assert drain.wait() == 1, arena.told(drain)
    wait_until(lambda: not arena.fleet.command("state gpu-14")["loading"], "the load was given up")
    assert (arena.loaded("gpu-12"), arena.loaded("gpu-14")) == ({SMALL}, set())
    assert arena.state_of("gpu-12") is None
    assert route(arena, SMALL) == "gpu-12"


def test_two_operators_start_the_same_drain(make_arena: MakeArena) -> None:
    """One works; the other is told so, follows it or leaves, and nothing is done twice."""
    arena = make_arena(12, 14)
    arena.load("gpu-12", SMALL, EMBEDDING)
    arena.install("gpu-14", SMALL, EMBEDDING)
    with Observer(arena.fleet, arena.names, [SMALL, EMBEDDING]) as observer:
        first, second = arena.drain("gpu-12"), arena.drain("gpu-12")
        codes = {first.wait(), second.wait()}
    observer.assert_never_without()
    assert 0 in codes, arena.told(first) + arena.told(second)
    assert arena.loaded("gpu-12") == set()
    for model in (SMALL, EMBEDDING):
        loads = [entry for entry in arena.journal() if entry[:2] == ("load", model)]
        assert len(loads) == 1, arena.told(second)


def test_a_second_operator_follows_and_takes_over(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14)
    arena.load("gpu-12", BIG)
    arena.install("gpu-14", BIG)
    arena.fleet.command("disk gpu-14 0.1")
    first = arena.drain("gpu-12")
    arena.wait_for("load", first)
    second = arena.start("drain", "status", "gpu-12", "--follow")
    wait_until(lambda: BIG in second.said, "the second shows how far it is")
    holders = {row[0] for row in arena.rows("SELECT pid FROM drain_locks")}
    assert holders == {first.process.pid}
    first.kill()
    arena.fleet.command("disk gpu-14 10")
    assert second.wait() == 0, arena.told(second)
    assert (arena.loaded("gpu-12"), arena.loaded("gpu-14")) == (set(), {BIG})


def test_two_machines_at_once(make_arena: MakeArena) -> None:
    """Neither is a target of the other, and each model ends once."""
    arena = make_arena(12, 18, 14)
    arena.load("gpu-12", SMALL)
    arena.load("gpu-18", SMALL, SECOND)
    arena.install("gpu-12", SECOND)
    arena.install("gpu-14", SMALL, SECOND)
    with Observer(arena.fleet, arena.names, [SMALL, SECOND]) as observer:
        drain = arena.drain("gpu-12", "gpu-18")
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert [arena.loaded(name) for name in arena.names] == [set(), set(), {SMALL, SECOND}]
    assert len([entry for entry in arena.journal() if entry[:2] == ("load", SMALL)]) == 1


def test_undrained_everything_is_brought_back(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14)
    arena.load("gpu-12", SMALL, EMBEDDING)
    arena.install("gpu-14", SMALL, EMBEDDING)
    with Observer(arena.fleet, arena.names, [SMALL, EMBEDDING]) as observer:
        drain = arena.drain("gpu-12")
        assert drain.wait() == 0, arena.told(drain)
        back = arena.call("undrain", "gpu-12", "--return")
        assert back.process.returncode == 0, arena.told(back)
    observer.assert_never_without()
    assert (arena.loaded("gpu-12"), arena.loaded("gpu-14")) == ({SMALL, EMBEDDING}, set())
    assert arena.state_of("gpu-12") is None


def test_a_reboot_while_drained_changes_nothing(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    drain = arena.drain("gpu-12")
    assert drain.wait() == 0, arena.told(drain)
    arena.fleet.command("crash gpu-12")
    gone = arena.call("status", "--json")
    machine = next(item for item in json.loads(gone.said)["machines"] if item["name"] == "gpu-12")
    assert machine["health"] != "healthy"
    arena.fleet.command("start gpu-12")
    assert arena.state_of("gpu-12") == ("drained", "")
    assert route(arena, SMALL) == "gpu-14"
    assert arena.call("undrain", "gpu-12").process.returncode == 0


def test_what_is_skipped_stays_and_blocks(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14)
    arena.load("gpu-12", SMALL, EMBEDDING)
    arena.install("gpu-14", SMALL, EMBEDDING)
    drain = arena.drain("gpu-12", options=["--skip", SMALL])
    assert drain.wait() == 1, arena.told(drain)
    assert (arena.loaded("gpu-12"), arena.loaded("gpu-14")) == ({SMALL}, {EMBEDDING})
    assert (arena.state_of("gpu-12") or ("",))[0] == "blocked"


def test_a_deadline_blocks_and_forces_nothing(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    arena.fleet.command(f"fault gpu-14 stall {SMALL}")
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain("gpu-12", options=["--deadline", "3s"])
        wait_until(lambda: (arena.state_of("gpu-12") or ("",))[0] == "blocked", "the deadline")
        arena.fleet.command("advance 320")
        assert drain.wait() == 1, arena.told(drain)
    observer.assert_never_without()
    state, text = arena.state_of("gpu-12") or ("", "")
    assert (state, "deadline" in text) == ("blocked", True)
    assert arena.loaded("gpu-12") == {SMALL}


def test_a_model_that_nobody_can_take_needs_a_word(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14)
    arena.load("gpu-12", SMALL)
    refused = arena.call("drain", "start", "gpu-12", "--reason", "x", "--yes")
    assert refused.process.returncode == 1
    assert (arena.loaded("gpu-12"), arena.state_of("gpu-12")) == ({SMALL}, None)
    drain = arena.drain("gpu-12", options=["--force-class", "cannot"])
    assert drain.wait() == 0, arena.told(drain)
    assert arena.loaded("gpu-12") == set()
