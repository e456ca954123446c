"""What comes next for a copy of a drain: every state against every observation, and what never happens."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from builders import make_copy
from fleettui.decide.drain.progress import (
    GONE_POLLS,
    RELOADED,
    RETRIES,
    REVIVED_S,
    SETTLE_S,
    STOPPING_LIMIT_S,
    end_of_drain,
    next_step,
)
from fleettui.decide.drain.sight import Cover, Sight
from fleettui.model.drain import (
    CLASS_WORDS,
    END_STATES,
    CopyProgress,
    CopyState,
    DrainClass,
    DrainOptions,
    PlannedCopy,
    SourceCopy,
)
from fleettui.model.route import RouteCandidate

NOW = 1_000.0
COPY = SourceCopy("ada", "ollama", 11434, "qwen3:8b")
TARGET = RouteCandidate("bora", "bora.lan", 11434, "http://bora.lan:11434", "ollama", 4, "", "qwen3:8b")
COVER = Cover("bora", "ollama", 11434, make_copy("qwen3:8b"))
OPTIONS = DrainOptions()
WORK = ("1 connection to its port",)
OPEN_STATES: tuple[CopyState, ...] = (
    "pending", "waiting_target", "loading", "verifying", "switched", "waiting_idle", "unloading", "covered",
)  # fmt: skip


def line(drain_class: DrainClass = "move", **changes: Any) -> PlannedCopy:
    has_target = drain_class not in ("last_copy", "cannot", "unmanaged")
    planned = PlannedCopy(COPY, drain_class, "text", TARGET if has_target else None)
    return replace(planned, **changes)


def progress(state: CopyState = "pending", **changes: Any) -> CopyProgress:
    return replace(CopyProgress(COPY, "move", state, NOW, "bora"), **changes)


def step(
    planned: PlannedCopy, copy: CopyProgress, sight: Sight, now: float = NOW, **options: Any
) -> tuple[str, str]:
    found = next_step(planned, copy, sight, replace(OPTIONS, **options), now)
    return found.action, found.state


RESIDENT = Sight("resident")
COVERED = Sight("resident", cover=COVER)
GONE = Sight("gone", GONE_POLLS, COVER)


@pytest.mark.parametrize("state", [state for state in OPEN_STATES if state != "unloading"])
def test_what_is_seen_decides_whatever_was_written_down(state: CopyState) -> None:
    assert step(line(), progress(state), RESIDENT) == ("load", "loading")
    assert step(line(), progress(state), COVERED) == ("unload", "unloading")
    assert step(line("covered"), progress(state), RESIDENT) == ("plan", "pending")
    assert step(line(target=None), progress(state), RESIDENT) == ("plan", "pending")
    assert step(line(), progress(state), replace(RESIDENT, target_problem="bora is gone")) == (
        "plan",
        "pending",
    )
    busy = replace(RESIDENT, is_target_busy="phi4 is loaded there")
    assert step(line(), progress(state), busy) == ("wait", "waiting_target")
    coming = replace(RESIDENT, coming_text="moved from cleo first")
    assert step(line("covered"), progress(state), coming) == ("wait", "pending")


def test_nothing_goes_while_loads_on_its_cover_are_to_come() -> None:
    """Any of them may evict it there; the wait for idle runs meanwhile."""
    loads = replace(COVERED, loads_text="loads on bora end first: phi4")
    assert step(line(), progress("switched", is_moved=True), loads) == ("wait", "switched")
    assert step(line("covered"), progress("covered"), loads) == ("wait", "covered")
    assert step(line(), progress("waiting_idle"), loads) == ("wait", "waiting_idle")


@pytest.mark.parametrize("state", OPEN_STATES)
def test_a_source_that_does_not_answer_changes_nothing(state: CopyState) -> None:
    assert step(line(), progress(state), Sight("unknown", cover=COVER)) == ("wait", state)


@pytest.mark.parametrize("state", OPEN_STATES)
def test_gone_counts_after_two_polls(state: CopyState) -> None:
    once = replace(GONE, absent_polls=GONE_POLLS - 1)
    assert step(line(), progress(state, unloads=1), once) == ("wait", state)
    assert step(line(), progress(state, unloads=1), GONE) == ("end", "gone")


def test_a_copy_that_ended_by_itself_is_told_so() -> None:
    lonely = Sight("gone", GONE_POLLS)
    assert "no other copy is resident" in next_step(line(), progress(), lonely, OPTIONS, NOW).text
    assert "served by bora" in next_step(line(), progress(), GONE, OPTIONS, NOW).text
    asked = next_step(line(), progress("unloading", unloads=1), GONE, OPTIONS, NOW)
    assert asked.text == "served by bora"


def test_work_is_waited_for_as_long_as_the_operator_said() -> None:
    busy = replace(COVERED, work=WORK)
    assert step(line(), progress(), busy) == ("wait", "waiting_idle")
    waiting = progress("waiting_idle")
    assert step(line(), waiting, busy, NOW + 59) == ("wait", "waiting_idle")
    assert step(line(), waiting, busy, NOW + 61) == ("unload", "unloading")
    assert step(line(), waiting, busy, NOW + 10_000, idle_wait_s=0.0) == ("wait", "waiting_idle")
    kills = replace(busy, kills_work=True)
    assert step(line(), waiting, kills, NOW + 10_000) == ("wait", "waiting_idle")
    assert step(line(), waiting, replace(kills, work=())) == ("unload", "unloading")


def test_a_server_that_nobody_can_stop_is_named_once_it_is_idle() -> None:
    fixed = replace(COVERED, refusal="missing: `stop:`", kills_work=True)
    assert step(line("covered"), progress(), replace(fixed, work=WORK)) == ("wait", "waiting_idle")
    ended = next_step(line("covered"), progress(), fixed, OPTIONS, NOW)
    assert (ended.action, ended.state) == ("end", "blocked")
    assert ended.text == "bora serves it, but it stays loaded: missing: `stop:`"


def test_an_unload_is_repeated_and_then_given_up() -> None:
    unloading = progress("unloading", unloads=1)
    stopping = replace(COVERED, is_stopping=True)
    assert step(line(), unloading, stopping, NOW + SETTLE_S - 1) == ("wait", "unloading")
    assert step(line(), unloading, stopping, NOW + SETTLE_S + 1) == ("unload", "unloading")
    assert step(line(), unloading, COVERED, NOW + REVIVED_S - 1) == ("wait", "unloading")
    assert step(line(), unloading, COVERED, NOW + REVIVED_S + 1) == ("unload", "unloading")
    last = progress("unloading", unloads=RETRIES + 1)
    hangs = next_step(line(), last, stopping, OPTIONS, NOW + SETTLE_S + 1)
    assert (hangs.action, hangs.state, "hangs" in hangs.text) == ("end", "blocked", True)
    revived = next_step(line(), last, COVERED, OPTIONS, NOW + REVIVED_S + 1)
    assert (revived.action, revived.state, revived.text) == ("end", "blocked", RELOADED)
    busy = replace(COVERED, work=WORK)
    assert step(line(), unloading, busy, NOW + 300) == ("wait", "unloading")
    assert step(line(), unloading, busy, NOW + STOPPING_LIMIT_S + 1) == ("end", "blocked")


def test_what_a_client_loads_again_is_unloaded_twice_more() -> None:
    for unloads in range(1, RETRIES + 1):
        assert step(line(), progress("gone", unloads=unloads), COVERED) == ("unload", "unloading")
    back = next_step(line(), progress("gone", unloads=RETRIES + 1), COVERED, OPTIONS, NOW)
    assert (back.action, back.state, back.text) == ("end", "blocked", RELOADED)


def test_the_catalog_keeps_copies() -> None:
    kept = replace(COVERED, keep_text="the catalog keeps 2 resident, 1 would be left")
    assert step(line("covered"), progress(), kept) == ("wait", "covered")
    assert step(line("covered"), progress("covered"), kept, NOW + 61) == ("end", "blocked")
    assert step(line("covered"), progress("covered"), kept, NOW + 9_999, idle_wait_s=0.0) == (
        "wait",
        "covered",
    )
    assert step(line(), progress(), kept) == ("load", "loading"), "one more is loaded first"
    assert step(line(), progress("switched", is_moved=True), kept) == ("wait", "switched")


def test_classes_that_the_operator_has_to_accept() -> None:
    for name in ("last_copy", "cannot"):
        assert step(line(name), progress(), RESIDENT) == ("end", "blocked")
        assert step(line(name), progress(), RESIDENT, forced=(name,)) == ("unload", "unloading")
        assert step(line(name), progress(), COVERED) == ("unload", "unloading"), "somebody serves it by now"
    assert step(line("degraded"), progress(), RESIDENT) == ("end", "blocked")
    assert step(line("degraded"), progress(), RESIDENT, accept_degraded=True) == ("load", "loading")
    assert step(line("pull"), progress(), RESIDENT) == ("end", "blocked")
    assert step(line("pull"), progress(), RESIDENT, allow_pull=True) == ("load", "loading")
    assert step(line("unmanaged"), progress(), COVERED) == ("end", "blocked")
    assert step(line("unmanaged"), progress(), COVERED, forced=("unmanaged",)) == ("end", "blocked")
    stranger = replace(line("unmanaged"), copy=replace(COPY, engine="process"))
    assert step(stranger, progress(), RESIDENT, forced=("unmanaged",)) == ("end", "blocked")


def test_two_targets_that_failed_are_enough() -> None:
    one = progress(failures=("out of memory on bora",))
    assert step(line(), one, RESIDENT) == ("load", "loading")
    two = progress(failures=("out of memory on bora", "no answer from cleo"))
    ended = next_step(line(), two, RESIDENT, OPTIONS, NOW)
    assert (ended.action, ended.state) == ("end", "failed")
    assert ended.text == "out of memory on bora; no answer from cleo"
    nobody = next_step(line("last_copy"), one, RESIDENT, OPTIONS, NOW)
    assert (nobody.state, "bora" in nobody.text) == ("failed", True)


@pytest.mark.parametrize("state", ["skipped", "blocked", "failed"])
def test_what_has_ended_stays_so_until_it_is_gone(state: CopyState) -> None:
    assert step(line(), progress(state), COVERED) == ("wait", state)
    assert step(line(), progress(state), GONE) == ("end", "gone")


def test_nothing_is_unloaded_without_a_copy_elsewhere() -> None:
    """Whatever was planned, done and seen before: an unload needs a cover, or the operator's word."""
    random = Random(7)
    unloads = 0
    for drain_class, state, presence in itertools.product(
        CLASS_WORDS, (*OPEN_STATES, *END_STATES), ("resident", "gone", "unknown")
    ):
        for _ in range(40):
            forced = tuple(random.sample(("last_copy", "cannot", "unmanaged"), random.randint(0, 3)))
            options = DrainOptions(
                random.random() < 0.5,
                random.random() < 0.5,
                idle_wait_s=random.choice((0.0, 60.0)),
                forced=forced,
            )
            sight = Sight(
                presence,  # type: ignore[arg-type]
                random.randint(0, 3),
                random.choice((None, COVER)),
                random.choice(("", "bora is gone")),
                random.choice(((), WORK)),
                random.random() < 0.5,
                random.random() < 0.5,
                random.choice(("", "no stop:")),
                random.choice(("", "keeps 2")),
                random.choice(("", "moved first")),
                random.choice(("", "busy")),
                loads_text=random.choice(("", "loads on bora end first")),
            )
            copy = progress(state, unloads=random.randint(0, 4), failures=("x",) * random.randint(0, 3))
            planned = line(drain_class, target=random.choice((None, TARGET)))
            found = next_step(planned, copy, sight, options, NOW + random.choice((0, 20, 90, 900)))
            if found.action == "unload":
                unloads += 1
                is_forced = drain_class in ("last_copy", "cannot") and drain_class in forced
                assert sight.cover is not None or is_forced
                assert presence == "resident"
                assert not sight.keep_text
                assert not sight.refusal
                assert not (sight.work and sight.kills_work)
                assert is_forced or not sight.loads_text
            if found.action == "load":
                assert planned.target is not None
                assert not sight.target_problem
                assert not sight.is_target_busy
    assert unloads > 100


@pytest.mark.parametrize(
    ("states", "polls", "wanted"),
    [
        (("gone", "gone"), 2, ("drained", "")),
        ((), 2, ("drained", "")),
        (("gone",), 1, None),
        (("gone", "loading"), 2, None),
        (("gone", "blocked"), 0, ("blocked", "qwen3:8b: why")),
        (("skipped",), 0, ("blocked", "qwen3:8b: why")),
        (("failed", "blocked"), 0, ("failed", "qwen3:8b: why; qwen3:8b: why")),
    ],
)
def test_how_a_drain_ends(states: tuple[CopyState, ...], polls: int, wanted: tuple[str, str] | None) -> None:
    copies = [progress(state, text="why") for state in states]
    assert end_of_drain(copies, polls) == wanted


def test_a_process_of_somebody_else_holds_the_end_up_whatever_was_forced() -> None:
    stranger = replace(COPY, engine="process", name="python (pid 4711)")
    stays = progress("blocked", copy=stranger, text="unmanaged: whoever started it has to end it")
    assert end_of_drain([stays], 2) == ("blocked", f"python (pid 4711): {stays.text}")
