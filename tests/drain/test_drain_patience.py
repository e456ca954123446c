"""Drains that take their time by design, side by side: who is silent, comes back or hangs is waited for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from arena import SMALL, Arena, wait_until
from observer import Observer
from scenarios import play_all, scenarios_of

from fleettui.demo.launcher import DemoFleet

BIG = "gpt-oss:120b"


def drain_while_the_source_dies(arena: Arena, source: str, target: str) -> None:
    """The load goes on; the drain fails and its flag stays, also when the machine is back."""
    arena.load(source, BIG)
    arena.install(target, BIG)
    drain = arena.drain(source)
    arena.wait_for_load(target, drain)
    arena.fleet.command(f"crash {source}")
    assert drain.wait() == 1, arena.told(drain)
    state, text = arena.state_of(source) or ("", "")
    assert (state, "offline" in text) == ("failed", True), text
    wait_until(lambda: arena.loaded(target) == {BIG}, "the load under way ended")
    arena.fleet.command(f"start {source}")
    arena.load(source, SMALL)
    arena.install(target, SMALL)
    assert arena.route(SMALL) == target, "the machine is back and still flagged"


def drain_what_a_client_wants_back(arena: Arena, source: str, target: str) -> None:
    """Two more tries after the first, then it is told."""
    arena.load(source, SMALL)
    arena.install(target, SMALL)
    arena.fleet.command(f"cling {source} {SMALL}")
    with Observer(arena.fleet, arena.names, [SMALL]) as observer:
        drain = arena.drain(source)
        assert drain.wait() == 1, arena.told(drain)
    observer.assert_never_without()
    state, text = arena.state_of(source) or ("", "")
    assert (state, "reloaded by client" in text) == ("blocked", True), text
    unloads = [entry for entry in arena.journal() if entry[0] == "unload"]
    assert len(unloads) == 3, arena.told(drain)


def drain_what_a_client_wants_back_once(arena: Arena, source: str, target: str) -> None:
    """The second try succeeds. Whoever fills the machine later is shown."""
    arena.load(source, SMALL)
    arena.install(target, SMALL)
    arena.fleet.command(f"cling {source} {SMALL} 1")
    drain = arena.drain(source)
    assert drain.wait() == 0, arena.told(drain)
    assert arena.loaded(source) == set()
    arena.load(source, SMALL)
    machines = json.loads(arena.call("status", "--json").said)["machines"]
    flag = next(item["drain"] for item in machines if item["name"] == source)
    assert (flag["state"], SMALL in flag["text"]) == ("blocked", True), flag


def drain_what_hangs(arena: Arena, source: str, target: str) -> None:
    """It is reported; nothing is killed."""
    arena.load(source, SMALL)
    arena.install(target, SMALL)
    arena.fleet.command(f"fault {source} hang {SMALL}")
    drain = arena.drain(source)
    assert drain.wait() == 1, arena.told(drain)
    state, text = arena.state_of(source) or ("", "")
    assert (state, SMALL in text) == ("blocked", True), text
    assert SMALL in arena.loaded(target)


def drain_when_nobody_else_is_left(arena: Arena, source: str, target: str) -> None:
    """The only target goes away while it loads: after some looks the copy is given up, and is still here."""
    arena.load(source, SMALL)
    arena.install(target, SMALL)
    arena.fleet.command(f"fault {target} stall {SMALL}")
    drain = arena.drain(source)
    arena.wait_for_load(target, drain)
    arena.fleet.command(f"crash {target}")
    assert drain.wait() == 1, arena.told(drain)
    assert (arena.state_of(source) or ("",))[0] == "failed"
    assert arena.loaded(source) == {SMALL}


@pytest.mark.timeout(600)
def test_drains_that_take_patience(fleet: DemoFleet, tmp_path: Path) -> None:
    play_all(fleet, tmp_path, scenarios_of(globals()))
