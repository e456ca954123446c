"""Drains of the real program over real servers while something goes wrong: nothing is ever nowhere.

In most of them gpu-12 is emptied; gpu-14 has the most room and is the first choice, gpu-19 the second.
"""

from __future__ import annotations

from arena import SMALL, MakeArena, wait_until
from observer import Generation, Observer

SECOND = "phi4:14b"
EMBEDDING = "nomic-embed-text:latest"
OOM = "cudaMalloc failed: out of memory"


def test_everything_moves_and_who_is_served_notices_nothing(make_arena: MakeArena) -> None:
    """An answer that began long before is streamed to its end; the last thing at the source is its unload."""
    arena = make_arena(12, 14)
    arena.load("gpu-12", SMALL, EMBEDDING)
    arena.install("gpu-14", SMALL, EMBEDDING)
    arena.fleet.command("pace gpu-12 4")
    with Observer(arena.fleet, arena.names, [SMALL, EMBEDDING]) as observer:
        generation = Generation(arena.fleet, "gpu-12", SMALL, 600)
        drain = arena.drain("gpu-12")
        arena.wait_for("unload", drain)
        wait_until(lambda: ("unload", SMALL) in [entry[:2] for entry in arena.journal()], arena.told(drain))
        assert not generation.is_over, "the unload was asked for while it was in work"
        arena.fleet.command("pace gpu-12 4000")
        arena.fleet.command("advance 100")
        generation.assert_ended_well()
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert arena.loaded("gpu-12") == set()
    assert arena.loaded("gpu-14") == {SMALL, EMBEDDING}
    assert arena.copy_on("gpu-14", SMALL)["expires_at"] > "2200", "pinned there as it was here"
    assert arena.state_of("gpu-12") == ("drained", "")
    routed = arena.call("--route", SMALL, "--format", "name", "-q")
    assert routed.said.strip() == "gpu-14"


def test_a_target_without_memory_leads_to_the_next(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14, 19)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    arena.install("gpu-19", SMALL)
    arena.fleet.command(f"fault gpu-14 oom {SMALL}")
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain("gpu-12")
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert (arena.loaded("gpu-12"), arena.loaded("gpu-19")) == (set(), {SMALL})
    failed = [entry for entry in arena.journal() if OOM in entry[3]]
    assert [entry[2] for entry in failed] == ["gpu-14"], arena.told(drain)


def test_two_targets_without_memory_leave_the_source_alone(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14, 19, 18)
    arena.load("gpu-12", SMALL)
    for name in ("gpu-14", "gpu-18", "gpu-19"):
        arena.install(name, SMALL)
        arena.fleet.command(f"fault {name} oom {SMALL}")
    drain = arena.drain("gpu-12")
    assert drain.wait() == 1, arena.told(drain)
    assert arena.loaded("gpu-12") == {SMALL}
    state, text = arena.state_of("gpu-12") or ("", "")
    assert state == "failed"
    assert text.count(OOM) == 2, text
    tried = {entry[2] for entry in arena.journal() if OOM in entry[3] and entry[1]}
    assert all(name in text for name in tried)
    assert len(tried) == 2


def test_a_load_that_stalls_ends_as_its_engine_says(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14, 19)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    arena.install("gpu-19", SMALL)
    arena.fleet.command(f"fault gpu-14 stall {SMALL}")
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain("gpu-12")
        wait_until(lambda: bool(arena.fleet.command("state gpu-14")["loading"]), "the load began")
        arena.fleet.command("advance 320")
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert (arena.loaded("gpu-12"), arena.loaded("gpu-19")) == (set(), {SMALL})


def test_a_copy_that_lands_partly_in_main_memory_is_not_kept(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14, 19)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    arena.install("gpu-19", SMALL)
    arena.fleet.command(f"fault gpu-14 cpu {SMALL}")
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain("gpu-12")
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert [arena.loaded(name) for name in arena.names] == [set(), set(), {SMALL}]


def test_a_copy_that_lands_partly_in_main_memory_is_kept_when_the_operator_says_so(
    make_arena: MakeArena,
) -> None:
    arena = make_arena(12, 14, 19)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    arena.install("gpu-19", SMALL)
    arena.fleet.command(f"fault gpu-14 cpu {SMALL}")
    drain = arena.drain("gpu-12", options=["--accept-degraded"])
    assert drain.wait() == 0, arena.told(drain)
    assert [arena.loaded(name) for name in arena.names] == [set(), {SMALL}, set()]


def test_a_copy_with_less_context_than_here_is_not_kept(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14, 19)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    arena.install("gpu-19", SMALL)
    arena.fleet.command(f"fault gpu-14 context {SMALL}")
    drain = arena.drain("gpu-12")
    assert drain.wait() == 0, arena.told(drain)
    assert [arena.loaded(name) for name in arena.names] == [set(), set(), {SMALL}]


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


def test_an_unannounced_eviction_ends_loads_on_that_target(make_arena: MakeArena) -> None:
    """What was moved there first is taken away by the second load; it is still at its source, and goes on."""
    arena = make_arena(12, 14, 19)
    arena.load("gpu-12", SMALL, SECOND)
    for name in ("gpu-14", "gpu-19"):
        arena.install(name, SMALL, SECOND)
    arena.fleet.command("fault gpu-14 evict * 1")
    with Observer(arena.fleet, arena.names, [SMALL, SECOND]) as observer:
        drain = arena.drain("gpu-12")
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert "vanished" in arena.steps(), arena.told(drain)
    assert [len(arena.loaded(name)) for name in arena.names] == [0, 1, 1]


def test_a_bystander_that_an_unannounced_eviction_took_is_named(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14, 19)
    arena.load("gpu-12", SMALL)
    arena.load("gpu-14", EMBEDDING)
    arena.install("gpu-14", SMALL)
    arena.fleet.command(f"fault gpu-14 evict {SMALL} 1")
    drain = arena.drain("gpu-12")
    drain.wait()
    assert any(EMBEDDING in entry[3] for entry in arena.journal()), arena.told(drain)


def test_a_target_dies_while_it_loads(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14, 19)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    arena.install("gpu-19", SMALL)
    arena.fleet.command(f"fault gpu-14 stall {SMALL}")
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain("gpu-12")
        wait_until(lambda: bool(arena.fleet.command("state gpu-14")["loading"]), "the load began")
        arena.fleet.command("crash gpu-14")
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert (arena.loaded("gpu-12"), arena.loaded("gpu-19")) == (set(), {SMALL})


def test_a_target_dies_after_the_switch(make_arena: MakeArena) -> None:
    """The copy at the source is still there: it is brought elsewhere."""
    arena = make_arena(12, 14, 19)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    arena.install("gpu-19", SMALL)
    arena.fleet.command("pace gpu-12 4")
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        generation = Generation(arena.fleet, "gpu-12", SMALL, 4000)
        drain = arena.drain("gpu-12", options=["--idle-wait", "0"])
        arena.wait_for("switched", drain)
        arena.fleet.command("crash gpu-14")
        wait_until(lambda: SMALL in arena.loaded("gpu-19"), "it is loaded on the other target")
        assert SMALL in arena.loaded("gpu-12")
        arena.fleet.command("pace gpu-12 4000")
        arena.fleet.command("advance 1000")
        generation.assert_ended_well()
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert arena.loaded("gpu-12") == set()


def test_a_copy_that_still_loads_elsewhere_covers_nobody(make_arena: MakeArena) -> None:
    """Ollama lists it from the first moment on."""
    arena = make_arena(12, 14)
    arena.load("gpu-12", SMALL)
    arena.install("gpu-14", SMALL)
    arena.fleet.command(f"fault gpu-14 stall {SMALL} 1")
    arena.fleet.command(f"load gpu-14 {SMALL} -1")
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain("gpu-12")
        arena.wait_for("planned", drain)
        looks = observer.seen["gpu-12"].looks
        wait_until(lambda: observer.seen["gpu-12"].looks > looks + 150, "time passes")
        assert SMALL in arena.loaded("gpu-12")
        arena.fleet.command("advance 320")
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert (arena.loaded("gpu-12"), arena.loaded("gpu-14")) == (set(), {SMALL})


def test_files_are_fetched_only_when_the_operator_says_so(make_arena: MakeArena) -> None:
    arena = make_arena(12, 14)
    arena.load("gpu-12", SMALL)
    arena.fleet.command(f"remove gpu-14 {SMALL}")
    refused = arena.call("drain", "start", "gpu-12", "--reason", "x", "--yes")
    assert refused.process.returncode == 1
    assert arena.loaded("gpu-12") == {SMALL}
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain("gpu-12", options=["--allow-pull"])
        assert drain.wait() == 0, arena.told(drain)
    observer.assert_never_without()
    assert (arena.loaded("gpu-12"), arena.loaded("gpu-14")) == (set(), {SMALL})
