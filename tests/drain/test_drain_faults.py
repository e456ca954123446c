"""Drains of the real program over real servers while something goes wrong: nothing is ever nowhere.

`source` is emptied; `first` has the most room and is the first choice, `second` the other one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from arena import SMALL, Arena, MakeArena, Run, wait_until
from observer import Generation, Observer
from scenarios import play_all, scenarios_of

from fleettui.demo.launcher import DemoFleet

SECOND = "phi4:14b"
EMBEDDING = "nomic-embed-text:latest"
OOM = "cudaMalloc failed: out of memory"


def prepare(arena: Arena) -> None:
    """One copy to move; every other machine has its files."""
    source, *others = arena.names
    arena.load(source, SMALL)
    for name in others:
        arena.install(name, SMALL)


def move_without_a_gap(arena: Arena, while_first_loads: str = "") -> Run:
    """A drain that ends well and leaves nobody without the copy. `while_first_loads`: what is done to the
    fleet as soon as the first choice loads."""
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain(arena.names[0])
        if while_first_loads:
            arena.wait_for_load(arena.names[1], drain)
            arena.fleet.command(while_first_loads)
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    return drain


def drain_everything_moves_and_who_is_served_notices_nothing(arena: Arena, source: str, first: str) -> None:
    """An answer that began long before is streamed to its end; the last thing at the source is its unload."""
    arena.load(source, SMALL, EMBEDDING)
    arena.install(first, SMALL, EMBEDDING)
    arena.fleet.command(f"pace {source} 1")
    with Observer(arena.fleet, arena.names, [SMALL, EMBEDDING]) as observer:
        generation = Generation(arena.fleet, source, SMALL, 4000)
        drain = arena.drain(source)
        arena.wait_for("unload", drain)
        wait_until(lambda: ("unload", SMALL) in [entry[:2] for entry in arena.journal()], arena.told(drain))
        assert not generation.is_over, "the unload was asked for while it was in work"
        arena.fleet.command(f"hurry {source}")
        generation.assert_ended_well()
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert arena.loaded(source) == set()
    assert arena.loaded(first) == {SMALL, EMBEDDING}
    assert arena.copy_on(first, SMALL)["expires_at"] > "2200", "pinned there as it was here"
    assert arena.state_of(source) == ("drained", "")
    assert arena.route(SMALL) == first


def drain_a_target_without_memory_leads_to_the_next(
    arena: Arena, source: str, first: str, second: str
) -> None:
    prepare(arena)
    arena.fleet.command(f"fault {first} oom {SMALL}")
    drain = move_without_a_gap(arena)
    assert (arena.loaded(source), arena.loaded(second)) == (set(), {SMALL})
    failed = [entry for entry in arena.journal() if OOM in entry[3]]
    assert [entry[2] for entry in failed] == [first], arena.told(drain)


def drain_two_targets_without_memory_leave_the_source_alone(
    arena: Arena, source: str, first: str, second: str
) -> None:
    prepare(arena)
    for name in (first, second):
        arena.fleet.command(f"fault {name} oom {SMALL}")
    drain = arena.drain(source)
    assert drain.wait() == 1, arena.told(drain)
    assert arena.loaded(source) == {SMALL}
    state, text = arena.state_of(source) or ("", "")
    assert state == "failed"
    assert text.count(OOM) == 2, text
    tried = {entry[2] for entry in arena.journal() if OOM in entry[3] and entry[1]}
    assert all(name in text for name in tried)
    assert len(tried) == 2


def drain_a_load_that_stalls_ends_as_its_engine_says(
    arena: Arena, source: str, first: str, second: str
) -> None:
    prepare(arena)
    arena.fleet.command(f"fault {first} stall {SMALL}")
    move_without_a_gap(arena, while_first_loads=f"hurry {first}")
    assert (arena.loaded(source), arena.loaded(second)) == (set(), {SMALL})


def drain_a_copy_that_lands_partly_in_main_memory_is_not_kept(
    arena: Arena, source: str, first: str, second: str
) -> None:
    prepare(arena)
    arena.fleet.command(f"fault {first} cpu {SMALL}")
    move_without_a_gap(arena)
    assert [arena.loaded(name) for name in arena.names] == [set(), set(), {SMALL}]


def drain_a_copy_that_lands_partly_in_main_memory_is_kept_when_the_operator_says_so(
    arena: Arena, source: str, first: str, second: str
) -> None:
    prepare(arena)
    arena.fleet.command(f"fault {first} cpu {SMALL}")
    drain = arena.drain(source, options=["--accept-degraded"])
    assert drain.wait() == 0, arena.told(drain)
    assert [arena.loaded(name) for name in arena.names] == [set(), {SMALL}, set()]


def drain_a_copy_with_less_context_than_here_is_not_kept(
    arena: Arena, source: str, first: str, second: str
) -> None:
    prepare(arena)
    arena.fleet.command(f"fault {first} context {SMALL}")
    drain = arena.drain(source)
    assert drain.wait() == 0, arena.told(drain)
    assert [arena.loaded(name) for name in arena.names] == [set(), set(), {SMALL}]


def drain_an_unannounced_eviction_ends_loads_on_that_target(
    arena: Arena, source: str, first: str, second: str
) -> None:
    """What was moved there first is taken away by the second load; it is still at its source, and goes on."""
    arena.load(source, SMALL, SECOND)
    for name in (first, second):
        arena.install(name, SMALL, SECOND)
    arena.fleet.command(f"fault {first} evict * 1")
    with Observer(arena.fleet, arena.names, [SMALL, SECOND]) as observer:
        drain = arena.drain(source)
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert "vanished" in arena.steps(), arena.told(drain)
    assert [len(arena.loaded(name)) for name in arena.names] == [0, 1, 1]


def drain_a_bystander_that_an_unannounced_eviction_took_is_named(
    arena: Arena, source: str, first: str, second: str
) -> None:
    arena.load(source, SMALL)
    arena.load(first, EMBEDDING)
    arena.install(first, SMALL)
    arena.fleet.command(f"fault {first} evict {SMALL} 1")
    drain = arena.drain(source)
    assert drain.wait() == 0, arena.told(drain)
    told = [entry[3] for entry in arena.journal() if entry[0] == "vanished"]
    assert [EMBEDDING in text for text in told] == [True], arena.told(drain)


def drain_a_target_dies_while_it_loads(arena: Arena, source: str, first: str, second: str) -> None:
    prepare(arena)
    arena.fleet.command(f"fault {first} stall {SMALL}")
    move_without_a_gap(arena, while_first_loads=f"crash {first}")
    assert (arena.loaded(source), arena.loaded(second)) == (set(), {SMALL})


def drain_the_engine_of_a_target_dies_while_it_loads(
    arena: Arena, source: str, first: str, second: str
) -> None:
    prepare(arena)
    arena.fleet.command(f"fault {first} stall {SMALL}")
    move_without_a_gap(arena, while_first_loads=f"engine {first} dead")
    assert (arena.loaded(source), arena.loaded(second)) == (set(), {SMALL})


def drain_a_target_dies_after_the_switch(arena: Arena, source: str, first: str, second: str) -> None:
    """The copy at the source is still there: it is brought elsewhere."""
    prepare(arena)
    arena.fleet.command(f"pace {source} 1")
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        generation = Generation(arena.fleet, source, SMALL, 4000)
        drain = arena.drain(source, options=["--idle-wait", "0"])
        arena.wait_for("switched", drain)
        arena.fleet.command(f"crash {first}")
        wait_until(lambda: SMALL in arena.loaded(second), "it is loaded on the other target")
        assert SMALL in arena.loaded(source)
        arena.fleet.command(f"hurry {source}")
        generation.assert_ended_well()
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert arena.loaded(source) == set()


def drain_a_copy_that_still_loads_elsewhere_covers_nobody(arena: Arena, source: str, first: str) -> None:
    """Ollama lists it from the first moment on."""
    prepare(arena)
    arena.fleet.command(f"fault {first} stall {SMALL} 1")
    arena.fleet.command(f"load {first} {SMALL} -1")
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain(source)
        arena.wait_for("planned", drain)
        looks = observer.seen[source].looks
        wait_until(lambda: observer.seen[source].looks > looks + 60, "time passes")
        assert SMALL in arena.loaded(source)
        arena.fleet.command(f"hurry {first}")
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert (arena.loaded(source), arena.loaded(first)) == (set(), {SMALL})


def drain_files_are_fetched_only_when_the_operator_says_so(arena: Arena, source: str, first: str) -> None:
    arena.load(source, SMALL)
    arena.fleet.command(f"remove {first} {SMALL}")
    refused = arena.call("drain", "start", source, "--reason", "x", "--yes")
    assert refused.process.returncode == 1
    assert "or --allow-pull, so that a target may fetch the files it lacks" in refused.said
    assert arena.loaded(source) == {SMALL}
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain(source, options=["--allow-pull"])
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert (arena.loaded(source), arena.loaded(first)) == (set(), {SMALL})


def test_an_announced_eviction_happens_and_nothing_else_goes(make_arena: MakeArena) -> None:
    """The T4 has no room beside what it holds for an hour."""
    arena = make_arena(12, 10)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-10", SMALL)
    arena.load("gpu-10", EMBEDDING)
    arena.load("gpu-10", SECOND, keep_alive="4h")
    preview = arena.call("drain", "start", "gpu-12", "--dry-run")
    assert "MOVE+EVICTS" in preview.said
    assert SECOND in preview.said
    with Observer(arena.fleet, arena.names, [SMALL, EMBEDDING]) as observer:
        drain = arena.drain("gpu-12")
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert (arena.loaded("gpu-12"), arena.loaded("gpu-10")) == (set(), {SMALL, EMBEDDING})


@pytest.mark.timeout(600)
def test_drains_while_something_goes_wrong(fleet: DemoFleet, tmp_path: Path) -> None:
    play_all(fleet, tmp_path, scenarios_of(globals()))
