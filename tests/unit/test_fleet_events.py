"""The event log of a service: base line, gaps between runs, repetitions, evictions, two writers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, make_copy, make_engine, make_machine, make_snapshot
from fleettui.decide.trust import TrustTable
from fleettui.fleet.bus import SnapshotBus
from fleettui.fleet.event_keeper import EventKeeper, Past
from fleettui.fleet.event_log import KEPT_EVENTS, EventLog
from fleettui.model.event import Event
from fleettui.model.machine import ConfigProblem, EngineEndpoint
from fleettui.model.snapshot import DrainFlag, FleetSnapshot, LinkStatus, MachineSnapshot, Reason
from fleettui.model.trust import SeenKey, TrustDecision
from fleettui.store.database import Store
from fleettui.store.events import read_events, read_writer
from fleettui.store.snapshots import save_snapshot

BIG, SMALL = make_copy(), make_copy("qwen3:8b", gib=5.2)
FLEET = "/etc/fleet"


class Run:
    """A log that is given one fleet after the other; its clock is the snapshot's."""

    def __init__(self, past: Past | None = None, **settings: Any) -> None:
        self.log = EventLog(utc_offset_s=lambda: 0, **settings)
        self.told: list[Event] = []
        self.log.subscribe(self.told.extend)
        self.log.begin(past or Past())

    def see(self, at: float, *machines: MachineSnapshot, problems: Sequence[ConfigProblem] = ()) -> list[str]:
        """Kinds and texts of what this snapshot told."""
        before = len(self.told)
        fleet = FleetSnapshot(1, NOW + at, 2.0, machines, tuple(problems), FLEET)
        self.log.take(fleet)
        return [f"{event.machine} {event.kind}: {event.text}" for event in self.told[before:]]


def copies(*loaded: Any, **changes: Any) -> MachineSnapshot:
    return make_snapshot(engines=(make_engine(loaded=loaded),), **changes)


def gone(text: str = "refused", next_try_s: float = 0.0) -> MachineSnapshot:
    link = LinkStatus("failed", "connect", text, since=NOW, next_try_at=NOW + next_try_s)
    return copies(BIG, health="offline", reasons=(Reason("offline", "ssh_connect", text),), link=link)


def test_a_start_without_a_past_tells_nothing() -> None:
    run = Run()
    assert run.see(0, make_snapshot(health="unknown", engines=())) == []
    assert run.see(1, copies(BIG), make_snapshot("bora", health="unknown")) == ["bora file: " + ADDED]
    assert run.see(2, copies(BIG)) == []
    assert run.log.events == tuple(run.told)


ADDED = "machine file added: machines/bora.yaml"


def test_a_copy_that_went_is_an_eviction_when_the_next_answer_shows_for_what() -> None:
    run = Run()
    run.see(0, copies(BIG))
    assert run.see(2, copies()) == []
    assert run.see(4, copies(SMALL)) == [
        "ada evicted: llama3.1:70b evicted for qwen3:8b",
        "ada loaded: qwen3:8b loaded (5.2 GiB)",
    ]
    assert [event.at - NOW for event in run.told] == [2, 4]


def test_a_copy_that_went_alone_is_told_a_little_later_with_its_own_time() -> None:
    run = Run()
    run.see(0, copies(BIG))
    assert run.see(2, copies()) == []
    assert run.see(4, copies(last_seen=NOW)) == []
    assert run.see(5.5, copies(last_seen=NOW + 1)) == ["ada unloaded: llama3.1:70b unloaded"]
    assert run.told[0].at == NOW + 2
    run.see(10, copies(SMALL))
    run.see(12, copies())
    run.see(13, copies(SMALL))  # loaded again: its unload comes first
    assert [event.kind for event in run.told[1:]] == ["loaded", "unloaded", "loaded"]


def test_who_took_a_drain_off_is_told_though_the_flag_is_gone() -> None:
    run = Run(who_undrained={"ada": "jo@desk"}.get)
    flag = DrainFlag("drained", "PSU swap", "mia@jump", NOW - 60, id="d1")
    run.see(0, copies(drain=flag), copies(name="bora", drain=flag))
    assert run.see(2, copies(), copies(name="bora")) == [
        "ada drain: drain ended, it was drained",
        "bora drain: drain ended, it was drained",
    ]
    assert [event.by for event in run.told] == ["jo@desk", None]
    assert run.told[0].details == {"change": "off", "was": "drained", "reason": "PSU swap"}


def test_failed_attempts_are_counted_in_the_return() -> None:
    run = Run()
    run.see(0, copies(BIG))
    assert run.see(2, gone()) == ["ada offline: offline: refused"]
    for at in range(3, 7):
        assert run.see(at, gone(next_try_s=at)) == []
    assert run.see(8, copies(BIG, last_seen=NOW + 8)) == [
        "ada back: back after 9s, healthy (5 attempts failed)"
    ]


def test_a_flapping_machine_is_counted() -> None:
    run = Run()
    run.see(0, copies(BIG))
    for at in range(1, 200, 2):
        run.see(at, gone())
        run.see(at + 1, copies(BIG, last_seen=NOW + at + 1))
    assert [(event.kind, event.count) for event in run.log.events] == [("offline", 100), ("back", 100)]
    assert run.log.events[0].last_at == NOW + 199


def test_no_more_than_two_thousand_are_kept() -> None:
    run = Run()
    run.see(0, copies())
    for at in range(1, KEPT_EVENTS + 50):
        run.see(at, copies(BIG) if at % 2 else copies())
    assert len(run.log.events) == KEPT_EVENTS
    assert sorted(event.at for event in run.log.events) == [event.at for event in run.log.events]


def test_a_machine_connected_anew_is_not_removed() -> None:
    run = Run()
    ada, bora = copies(BIG), make_snapshot("bora")
    run.see(0, ada, bora)
    assert run.see(1, ada) == []
    assert run.see(1.2, ada, make_snapshot("bora", health="unknown", engines=(), link=LinkStatus())) == []
    assert run.see(2, ada, bora) == []
    assert run.see(3, ada) == []
    assert run.see(5, ada) == ["bora file: machine file removed: machines/bora.yaml"]
    assert run.see(6, ada, bora) == ["bora file: " + ADDED]


def test_broken_files() -> None:
    run = Run()
    problem = ConfigProblem("machines/ada.yaml", 3, "role", "Required.")
    run.see(0, copies())
    assert run.see(1, copies(), problems=[problem]) == [
        "ada file: machine file broken: machines/ada.yaml:3: role: Required."
    ]
    assert run.see(2, copies(), problems=[problem]) == []
    assert run.see(3, copies()) == ["ada file: machine file without faults now: machines/ada.yaml"]


def test_decisions_are_told_with_who_decided() -> None:
    tables = [TrustTable()]
    run = Run(decisions=lambda: tables[0])
    run.see(0, copies())
    key = SeenKey("ED25519", "SHA256:aaa", NOW + 1)
    tables[0] = TrustTable([TrustDecision("ada", "ada.lan:22", "pending", offer=key)])
    assert len(run.see(2, copies())) == 1
    approved = TrustDecision("ada", "ada.lan:22", "pinned", "ED25519", "SHA256:aaa", NOW + 3, "mia@desk")
    tables[0] = TrustTable([approved])
    assert run.see(4, copies()) == ["ada trust: host key ED25519 SHA256:aaa approved"]
    assert (run.told[-1].by, run.told[-1].at) == ("mia@desk", NOW + 3)


# -- between runs ------------------------------------------------------------------------------------

ASKED = make_machine(engines=(EngineEndpoint("ollama", 11434),))


def past(*machines: MachineSnapshot, events: Sequence[Event] = (), has_ended: bool = True) -> Past:
    fleet = FleetSnapshot(9, NOW - 3600, 2.0, machines, (), FLEET)
    return Past(fleet, NOW - 3600, has_ended, tuple(events))


def test_what_changed_between_runs_is_one_event_once_the_machine_is_read() -> None:
    run = Run(past(copies(BIG, machine=ASKED), make_snapshot("bora")))
    unread = make_snapshot(machine=ASKED, health="unknown", engines=(), link=LinkStatus())
    assert run.see(0, unread, make_snapshot("bora")) == []
    assert run.see(1, make_snapshot(machine=ASKED, engines=()), make_snapshot("bora")) == []
    disk = Reason("degraded", "disk_full", "disk / is 97 % full")
    now = copies(SMALL, machine=ASKED, health="degraded", reasons=(disk,))
    assert run.see(2, now, make_snapshot("bora")) == [
        "ada unseen: not watched since 13:03; meanwhile: healthy → degraded: disk / is 97 % full; "
        "llama3.1:70b evicted for qwen3:8b; qwen3:8b loaded (5.2 GiB)"
    ]
    assert run.see(3, now, make_snapshot("bora")) == []
    assert run.see(4, copies(machine=ASKED), make_snapshot("bora")) != []


def test_what_a_short_run_told_of_the_time_between_is_not_told_again() -> None:
    first = Run(past(copies(BIG)))
    assert len(first.see(2, copies(SMALL))) == 1
    second = Run(past(copies(BIG), events=first.told))
    assert second.see(9, copies(SMALL)) == []
    assert len(Run(past(copies(BIG), events=first.told)).see(9, copies())) == 1, "something else"


def test_a_machine_that_cannot_be_read_is_compared_after_a_while() -> None:
    run = Run(past(copies(BIG)))
    unknown = make_snapshot(health="unknown", trust="pending", link=LinkStatus())
    assert run.see(0, unknown) == []
    assert run.see(20, replace(unknown, seq=2)) == []
    assert run.see(21, gone()) == ["ada offline: offline: refused"]


def test_what_a_killed_run_told_after_it_stored_the_machine_is_not_told_again() -> None:
    told = Event(NOW - 3610, "ada", "loaded", "note", "x", subject="ollama:11434 qwen3:8b")
    now = copies(BIG, SMALL)
    assert len(Run(past(copies(BIG), events=[told])).see(0, now)) == 1
    assert Run(past(copies(BIG), events=[told], has_ended=False)).see(0, now) == []
    older = replace(told, at=NOW - 3700)
    assert len(Run(past(copies(BIG), events=[older], has_ended=False)).see(0, now)) == 1


def test_files_and_decisions_between_runs() -> None:
    approved = TrustDecision("ada", "ada.lan:22", "pinned", "ED25519", "SHA256:aaa", NOW - 60, "mia@desk")
    old = replace(approved, name="bora", address="bora.lan:22", decided_at=NOW - 7200)
    table = TrustTable([approved, old])
    run = Run(past(make_snapshot("cleo")), decisions=lambda: table)
    assert run.see(0, make_snapshot("bora")) == [
        "bora file: " + ADDED,
        "ada trust: host key ED25519 SHA256:aaa approved",
    ]
    assert run.see(3, make_snapshot("bora")) == ["cleo file: machine file removed: machines/cleo.yaml"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.sampled_from(["a:1", "b:1", "c:1"])), min_size=1, max_size=12))
def test_loads_minus_unloads_are_what_is_loaded(steps: list[set[str]]) -> None:
    run = Run()
    for at, names in enumerate(steps):
        run.see(2.0 * at, copies(*(make_copy(name) for name in sorted(names))))
    run.see(1000, copies(*(make_copy(name) for name in sorted(steps[-1])), last_seen=NOW))
    loaded = set(steps[0])
    for event in run.told:
        name = str(event.details["model"])
        if event.kind == "loaded":
            assert name not in loaded
            loaded.add(name)
        else:
            loaded.remove(name)
    assert loaded == steps[-1]


# -- storing -----------------------------------------------------------------------------------------


def stored(state_dir: Path) -> list[str]:
    store = Store.open_readonly(str(state_dir))
    if store is None:
        return []
    with store:
        return [event.text for event in read_events(store, FLEET)[1]]


def test_of_two_writers_one_writes_and_the_other_goes_on(tmp_path: Path) -> None:
    first = EventKeeper(str(tmp_path), FLEET, "dashboard")
    second = EventKeeper(str(tmp_path), FLEET, "status --watch")

    def event(at: float) -> Event:
        return Event(NOW + at, "ada", "loaded", "note", f"at {at}", subject=str(at))

    first.write([event(1)], NOW + 1)
    second.write([replace(event(1), at=NOW + 1.3)], NOW + 1.5)
    assert stored(tmp_path) == ["at 1"]
    first.write([], NOW + 5)  # renewed; then it is killed
    second.write([event(4), event(7)], NOW + 8)
    second.write([event(9)], NOW + 10)
    assert stored(tmp_path) == ["at 1"]
    second.write([event(21)], NOW + 21)
    assert stored(tmp_path) == ["at 1", "at 7", "at 9", "at 21"]
    second.close(NOW + 22)
    third = EventKeeper(str(tmp_path), FLEET, "dashboard")
    third.write([event(22.5)], NOW + 22.5)  # at once: the second ended in order
    assert stored(tmp_path)[-1] == "at 22.5"
    third.close(NOW + 23)
    first.close(NOW + 23)


def test_what_only_one_process_knows_it_stores_whoever_writes(tmp_path: Path) -> None:
    first = EventKeeper(str(tmp_path), FLEET, "dashboard")
    second = EventKeeper(str(tmp_path), FLEET, "serve")
    first.write([], NOW + 1)
    asked = Event(NOW + 0.5, "ada", "action", "note", "asked", subject="asked")
    seen = Event(NOW + 0.5, "ada", "loaded", "note", "seen by both", subject="seen")
    second.write([asked, seen], NOW + 2)
    assert stored(tmp_path) == ["asked"]
    second.write([replace(asked, count=2, last_at=NOW + 3)], NOW + 3)
    first.close(NOW + 4)
    second.write([], NOW + 5)
    assert stored(tmp_path) == ["asked"], "the other one told of what both saw"
    second.close(NOW + 6)


def test_a_file_that_cannot_be_written_is_told_and_nothing_is_lost_meanwhile(tmp_path: Path) -> None:
    blocked = tmp_path / "state"
    blocked.write_text("a file where the folder should be")
    keeper = EventKeeper(str(blocked), FLEET, "dashboard")
    keeper.write([Event(NOW, "ada", "loaded", "note", "first", subject="1")], NOW)
    assert keeper.error is not None
    assert "events are not stored" in keeper.error
    blocked.unlink()
    keeper.write([Event(NOW + 1, "ada", "loaded", "note", "second", subject="2")], NOW + 1)
    assert keeper.error is None
    assert stored(blocked) == ["first", "second"]
    keeper.close(NOW + 2)


async def until(is_true: Callable[[], bool]) -> None:
    for _ in range(1000):
        if is_true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not within ten seconds")


async def test_a_log_on_a_bus_stores_and_the_next_run_goes_on_from_there(tmp_path: Path) -> None:
    def fleet(seq: int, *machines: MachineSnapshot) -> FleetSnapshot:
        return FleetSnapshot(seq, NOW + seq, 2.0, machines, (), FLEET)

    keeper = EventKeeper(str(tmp_path), FLEET, "dashboard")
    log = EventLog(keeper, clock=lambda: NOW, utc_offset_s=lambda: 0)
    bus = SnapshotBus(fleet(1, copies()))
    log.start(bus)
    await until(lambda: bool(log._watches))
    bus.publish(fleet(2, copies(BIG)))
    await until(lambda: bool(stored(tmp_path)))
    bus.publish(fleet(3, gone()))
    await log.close()
    assert stored(tmp_path) == ["llama3.1:70b loaded (39.6 GiB)", "offline: refused"]
    with Store.open(str(tmp_path)) as store:
        writer = read_writer(store, FLEET)
        assert writer is not None
        assert writer.owner == ""
        save_snapshot(store, fleet(3, gone()), ["ada"], written_at=NOW + 3)
    loaded = EventKeeper(str(tmp_path), FLEET, "dashboard").load(NOW + 60)
    assert [event.text for event in loaded.events] == stored(tmp_path)
    run = Run(loaded)
    assert run.see(60, copies(BIG, last_seen=NOW + 60)) == [
        "ada unseen: not watched since 14:03; meanwhile: back after 1m, healthy"
    ]
