"""What happened between two snapshots: each kind of event, and what is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import GIB, NOW, make_copy, make_engine, make_machine, make_snapshot
from fleettui.decide.events import events_between, is_read, settle
from fleettui.decide.fleet_events import (
    added_event,
    decisions_of,
    join_repetition,
    join_unseen,
    problem_events,
    removed_event,
    trust_events,
)
from fleettui.model.clock import iso_utc
from fleettui.model.event import EVENT_KINDS, Event
from fleettui.model.machine import ConfigProblem, EngineEndpoint
from fleettui.model.readings import LoadedModel
from fleettui.model.snapshot import DrainFlag, LinkStatus, MachineSnapshot, MaintenanceFlag, Reason
from fleettui.model.trust import SeenKey, TrustDecision
from fleettui.model.unknown import Unknown

DISK = Reason("degraded", "disk_full", "disk / is 97 % full")
REFUSED = Reason("offline", "ssh_connect", "192.0.2.10:22: connection refused")
TIMEOUT = Reason("offline", "ssh_connect", "192.0.2.10:22: no answer within 10 s")


def failed(reason: Reason = REFUSED, since: float = NOW) -> dict[str, Any]:
    link = LinkStatus("failed", "connect", reason.text, since=since, address="192.0.2.10:22")
    return {"health": "offline", "reasons": (reason,), "link": link}


def told(before: MachineSnapshot | None, after: MachineSnapshot, now: float = NOW) -> list[tuple[str, str]]:
    return [(event.kind, event.text) for event in events_between(before, after, now)]


def test_the_first_snapshot_is_the_base_line() -> None:
    assert events_between(None, make_snapshot(loaded=[make_copy()]), NOW) == ()
    assert events_between(make_snapshot(health="unknown"), make_snapshot(**failed()), NOW) == ()


def test_nothing_happened() -> None:
    snapshot = make_snapshot(loaded=[make_copy()])
    again = make_snapshot(loaded=[make_copy()], seq=2, last_seen=NOW)
    assert events_between(snapshot, again, NOW) == ()


@pytest.mark.parametrize(
    ("changes", "after", "kind", "text", "severity"),
    [
        ({}, {"health": "degraded", "reasons": (DISK,)}, "health",
         "healthy → degraded: disk / is 97 % full", "warn"),
        ({"health": "degraded", "reasons": (DISK,)}, {}, "health", "degraded → healthy", "good"),
        ({"health": "degraded"}, {"health": "unhealthy", "reasons": (Reason("unhealthy", "x", "bad"),)},
         "health", "degraded → unhealthy: bad", "bad"),
        ({}, failed(), "offline", "offline: 192.0.2.10:22: connection refused", "bad"),
        ({}, {**failed(), "maintenance": MaintenanceFlag("fan swap", "mia", NOW - 60)}, "offline",
         "offline: 192.0.2.10:22: connection refused (expected: in maintenance)", "note"),
        ({**failed(), "last_seen": NOW - 245}, {}, "back", "back after 4m, healthy", "good"),
        ({**failed(since=NOW - 30), "last_seen": None}, {"health": "degraded", "reasons": (DISK,)}, "back",
         "back after 30s, degraded: disk / is 97 % full", "warn"),
        (failed(), failed(TIMEOUT), "poll_failed",
         "still offline, now: 192.0.2.10:22: no answer within 10 s", "note"),
        ({}, {"maintenance": MaintenanceFlag("fan swap", "mia", NOW, NOW + 3600)}, "maintenance",
         'maintenance on: "fan swap", until 15:03 UTC', "note"),
        ({}, {"maintenance": MaintenanceFlag("fan swap", "mia", NOW, NOW + 2 * 86_400)}, "maintenance",
         f'maintenance on: "fan swap", until {iso_utc(NOW + 2 * 86_400)[:10]} 14:03 UTC', "note"),
        ({"maintenance": MaintenanceFlag(None, "mia", NOW - 9)},
         {"maintenance": MaintenanceFlag("fan", "jo", NOW - 9)}, "maintenance",
         'maintenance changed: "fan"', "note"),
        ({"maintenance": MaintenanceFlag(None, "mia", NOW - 9, NOW - 1)}, {}, "maintenance",
         "maintenance off", "good"),
        ({}, {"drain": DrainFlag("running", "new card", "mia", NOW)}, "drain",
         'drain running: "new card"', "note"),
        ({"drain": DrainFlag("running", "new card", "mia", NOW)},
         {"drain": DrainFlag("blocked", "new card", "mia", NOW)}, "drain",
         'drain blocked: "new card"', "bad"),
        ({"drain": DrainFlag("drained", "new card", "mia", NOW)}, {}, "drain",
         "drain ended, it was drained", "good"),
    ],
)  # fmt: skip
def test_health_and_flags(
    changes: dict[str, Any], after: dict[str, Any], kind: str, text: str, severity: str
) -> None:
    maintenance = {key: value for key, value in after.items() if key == "maintenance" and kind == "offline"}
    events = events_between(make_snapshot(**{**maintenance, **changes}), make_snapshot(**after), NOW)
    assert [(event.kind, event.text, event.severity) for event in events] == [(kind, text, severity)]
    assert kind in EVENT_KINDS


def test_who_set_a_flag_is_told() -> None:
    flag = MaintenanceFlag("fan swap", "mia@desk", NOW - 1)
    (event,) = events_between(make_snapshot(), make_snapshot(maintenance=flag), NOW)
    assert (event.by, event.at) == ("mia@desk", NOW - 1)


def test_an_offline_machine_that_fails_alike_again_is_no_news() -> None:
    assert told(make_snapshot(**failed()), make_snapshot(**failed(since=NOW - 5))) == []


@pytest.mark.parametrize("trust", ["pending", "rejected", "key_changed"])
def test_the_health_of_a_machine_that_is_not_approved_is_no_event(trust: Any) -> None:
    waiting = make_snapshot(trust=trust, health="offline", reasons=(Reason("offline", trust, "key"),))
    assert told(make_snapshot(), waiting) == []
    assert told(settle(make_snapshot(), waiting, NOW), make_snapshot()) == []


def test_an_edited_file_names_its_keys() -> None:
    machine = make_machine()
    edited = replace(machine, document={**machine.document, "tags": ["edge"], "note": "x"}, tags=("edge",))
    (event,) = events_between(make_snapshot(machine=machine), make_snapshot(machine=edited), NOW)
    assert (event.kind, event.text) == ("file", "machine file edited: note, tags")


# -- copies ------------------------------------------------------------------------------------------


def copies(*loaded: LoadedModel, **changes: Any) -> MachineSnapshot:
    return make_snapshot(engines=(make_engine(loaded=loaded),), **changes)


BIG, SMALL = make_copy(), make_copy("qwen3:8b", gib=5.2)


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        ([], [BIG], [("loaded", "llama3.1:70b loaded (39.6 GiB)")]),
        ([], [make_copy(gib=40, vram_gib=30, is_pinned=True)],
         [("loaded", "llama3.1:70b loaded (40.0 GiB, 75 % on the GPU, pinned)")]),
        ([], [replace(BIG, state="loading")], [("loaded", "llama3.1:70b is loading (39.6 GiB)")]),
        ([BIG], [], [("unloaded", "llama3.1:70b unloaded")]),
        ([replace(BIG, expires_at=NOW)], [], [("expired", "llama3.1:70b expired, its keep-alive was over")]),
        ([replace(BIG, expires_at=NOW - 9, is_pinned=True)], [], [("unloaded", "llama3.1:70b unloaded")]),
        ([replace(BIG, expires_at=Unknown("none"))], [], [("unloaded", "llama3.1:70b unloaded")]),
        ([BIG], [SMALL], [("evicted", "llama3.1:70b evicted for qwen3:8b"),
                          ("loaded", "qwen3:8b loaded (5.2 GiB)")]),
        ([replace(BIG, expires_at=NOW - 1)], [SMALL],
         [("expired", "llama3.1:70b expired, its keep-alive was over"),
          ("loaded", "qwen3:8b loaded (5.2 GiB)")]),
        ([BIG], [make_copy(vram_gib=24.0)], [("moved", "llama3.1:70b moved: 61 % on the GPU, was 100 %")]),
        ([make_copy(vram_gib=0.0)], [BIG], [("moved", "llama3.1:70b moved: 100 % on the GPU, was 0 %")]),
        ([make_copy(gib=100, vram_gib=60)], [make_copy(gib=100, vram_gib=57)], []),
        ([BIG], [replace(BIG, expires_at=NOW + 999)], []),
        ([BIG], [replace(BIG, size_bytes=Unknown("x"))], []),
    ],
)  # fmt: skip
def test_copies(before: Any, after: Any, events: list[tuple[str, str]]) -> None:
    assert told(copies(*before), copies(*after)) == events


def test_a_load_on_another_engine_evicts_nothing() -> None:
    first, second = make_engine(loaded=[BIG]), make_engine(port=11435)
    before = make_snapshot(engines=(first, second))
    after = make_snapshot(engines=(make_engine(), make_engine(port=11435, loaded=[SMALL])))
    assert [kind for kind, _ in told(before, after)] == ["unloaded", "loaded"]


def test_an_engine_that_stops_and_comes_back_without_its_copies() -> None:
    down = make_engine(state="down", error="connection refused")
    stopped = make_snapshot(engines=(replace(down, loaded=Unknown("connection refused")),))
    before = copies(BIG)
    assert told(before, stopped) == [
        ("engine_down", "Ollama on port 11434 does not answer: connection refused")
    ]
    settled = settle(before, stopped, NOW)
    assert told(settled, stopped) == []
    assert told(settled, copies()) == [
        ("engine_up", "Ollama on port 11434 answers again"),
        ("unloaded", "llama3.1:70b unloaded"),
    ]


def test_an_engine_that_is_busy_is_not_down() -> None:
    busy = make_snapshot(engines=(make_engine(state="busy", loaded=[BIG]),))
    assert told(copies(BIG), busy) == []


def test_the_first_reading_of_an_engine_is_the_base_line() -> None:
    silent = make_snapshot(engines=())
    assert told(silent, copies(BIG)) == []
    unread = make_snapshot(engines=(make_engine(loaded=[]),))
    unread = replace(unread, engines=(replace(unread.engines[0], loaded=Unknown("not read")),))
    assert told(unread, copies(BIG)) == []


def test_copies_of_an_offline_machine_are_compared_when_it_is_back() -> None:
    before = copies(BIG, SMALL)
    gone = copies(**failed())
    assert [kind for kind, _ in told(before, gone)] == ["offline"]
    settled = settle(before, gone, NOW)
    assert {copy.name for copy in settled.loaded} == {BIG.name, SMALL.name}
    assert told(settled, copies(SMALL), NOW + 60)[1:] == [("unloaded", "llama3.1:70b unloaded")]


def test_an_engines_failure_of_the_lost_connection_does_not_count_after_the_reconnect() -> None:
    down = make_engine(state="down", error="connection lost")
    link = LinkStatus("up", since=NOW - 1, address="192.0.2.10:22")
    fresh = make_snapshot(engines=(replace(down, loaded=Unknown("lost")),), link=link)
    assert told(copies(BIG), fresh) == []
    settled = settle(copies(BIG), fresh, NOW)
    assert [kind for kind, _ in told(settled, fresh, NOW + 10)] == ["engine_down"]
    assert told(settled, copies(BIG), NOW + 10) == []


def test_an_engine_taken_out_of_the_file_is_forgotten() -> None:
    second = EngineEndpoint("ollama", 11435)
    first = EngineEndpoint("ollama", 11434)
    both = make_snapshot(
        machine=make_machine(engines=(first, second)),
        engines=(make_engine(), make_engine(port=11435, loaded=[BIG])),
    )
    one = make_snapshot(machine=make_machine(engines=(first,)))
    assert settle(both, one, NOW).loaded == ()


def test_when_a_machine_is_read() -> None:
    assert is_read(make_snapshot())
    assert is_read(make_snapshot(**failed()))
    assert not is_read(make_snapshot(health="unknown"))
    asked = make_machine(engines=(EngineEndpoint("ollama", 11434),))
    assert not is_read(make_snapshot(machine=asked, engines=()))


# -- anything at all ---------------------------------------------------------------------------------

names = st.sampled_from(["a:1", "b:1", "c:1"])
a_copy = st.builds(
    LoadedModel,
    name=names,
    engine=st.just("ollama"),
    size_bytes=st.sampled_from([0, GIB, 4 * GIB, Unknown("?")]),
    vram_bytes=st.sampled_from([0, GIB, Unknown("?")]),
    expires_at=st.sampled_from([NOW - 5, NOW + 5, Unknown("?")]),
    is_pinned=st.booleans(),
    state=st.sampled_from(["loaded", "loading", "stopping", "sleeping"]),
)
an_engine = st.builds(
    lambda state, loaded, port: replace(
        make_engine(port=port), state=state, loaded=loaded if state == "ok" else Unknown("down")
    ),
    st.sampled_from(["ok", "ok", "busy", "down", "unauthorized", "not_an_engine"]),
    st.lists(a_copy, max_size=3, unique_by=lambda copy: copy.name).map(tuple),
    st.just(11434),
)
a_snapshot = st.builds(
    lambda health, trust, link, engines, flag, seen: make_snapshot(
        health=health,
        trust=trust,
        link=link,
        engines=engines,
        maintenance=flag,
        last_seen=seen,
        reasons=() if health in ("healthy", "unknown") else (Reason("note", "x", "why"),),
    ),
    st.sampled_from(["healthy", "degraded", "unhealthy", "offline", "unknown"]),
    st.sampled_from(["approved", "approved", "approved", "pending", "key_changed", "rejected"]),
    st.sampled_from(
        [
            LinkStatus("up", since=NOW - 999),
            LinkStatus("up", since=NOW),
            LinkStatus("failed", "connect", "refused", since=NOW),
            LinkStatus(),
            LinkStatus("connecting", since=NOW),
        ]
    ),
    st.lists(an_engine, max_size=1).map(tuple),
    st.sampled_from([None, MaintenanceFlag(None, "mia", NOW), MaintenanceFlag("x", "jo", NOW, NOW + 9)]),
    st.sampled_from([None, NOW - 3]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(a_snapshot, min_size=1, max_size=8))
def test_loads_minus_unloads_are_what_is_loaded(snapshots: list[MachineSnapshot]) -> None:
    base: MachineSnapshot | None = None
    loaded: set[str] | None = None
    for step, snapshot in enumerate(snapshots):
        now = NOW + step
        events = events_between(base, snapshot, now)
        base = settle(base, snapshot, now)
        assert all(event.kind in EVENT_KINDS and event.text and event.machine == "ada" for event in events)
        if loaded is not None:
            for event in events:
                name = event.details.get("model")
                if event.kind == "loaded":
                    assert name not in loaded
                    loaded.add(str(name))
                elif event.kind in ("unloaded", "expired", "evicted"):
                    loaded.remove(str(name))
        known = [engine.loaded for engine in base.engines if not isinstance(engine.loaded, Unknown)]
        if loaded is None and known:
            loaded = {copy.name for copy in known[0]}
        if loaded is not None:
            assert loaded == {copy.name for copy in base.loaded}
        assert events_between(base, base, now) == ()


# -- beside single machines --------------------------------------------------------------------------


def test_repetitions_are_counted_within_ten_minutes_and_an_hour() -> None:
    first = Event(NOW, "ada", "offline", "bad", "offline: x", subject="x")
    again = join_repetition(first, replace(first, at=NOW + 599))
    assert again == replace(first, count=2, last_at=NOW + 599)
    assert join_repetition(again, replace(first, at=NOW + 1100)) is not None
    assert join_repetition(first, replace(first, at=NOW + 601)) is None
    assert join_repetition(again, replace(first, at=NOW + 1200)) is None
    assert join_repetition(replace(first, last_at=NOW + 3500), replace(first, at=NOW + 3601)) is None
    assert join_repetition(first, replace(first, at=NOW + 1, subject="y")) is None
    load = replace(first, kind="loaded")
    assert join_repetition(load, replace(load, at=NOW + 1)) is None


def test_what_nobody_saw_is_one_event() -> None:
    events = events_between(copies(BIG), copies(health="degraded", reasons=(DISK,)), NOW)
    event = join_unseen("ada", events, NOW - 3600, NOW)
    assert (event.kind, event.severity, event.machine) == ("unseen", "warn", "ada")
    assert event.text == (
        "not watched since 13:03 UTC; meanwhile: healthy → degraded: disk / is 97 % full; "
        "llama3.1:70b unloaded"
    )
    assert join_unseen("ada", events, NOW - 3 * 86_400, NOW).text.startswith(
        f"not watched since {iso_utc(NOW - 3 * 86_400)[:10]} 14:03 UTC; meanwhile: "
    )
    last_night = join_unseen("ada", events, NOW - 18 * 3600, NOW).text
    assert last_night.startswith(f"not watched since {iso_utc(NOW - 86_400)[:10]} 20:03 UTC; meanwhile: ")


def test_times_in_details_are_iso() -> None:
    flag = MaintenanceFlag("fan swap", "mia", NOW, NOW + 3600)
    (event,) = events_between(make_snapshot(), make_snapshot(maintenance=flag), NOW)
    assert (event.details["since"], event.details["until"]) == (iso_utc(NOW), iso_utc(NOW + 3600))
    assert join_unseen("ada", [event], NOW - 60, NOW).details["since"] == iso_utc(NOW - 60)


def test_machine_files() -> None:
    machine = make_machine()
    assert added_event(machine, NOW).text == "machine file added: machines/ada.yaml"
    assert removed_event(machine, NOW).details["change"] == "removed"
    wrong = ConfigProblem("machines/ada.yaml", 7, "network.hostname", "Required.")
    more = ConfigProblem("machines/ada.yaml", 9, None, "Odd.")
    owners = {"machines/ada.yaml": "ada"}
    (broken,) = problem_events([], [wrong, more], owners, NOW)
    assert (broken.machine, broken.severity) == ("ada", "bad")
    assert broken.text == (
        "machine file broken: machines/ada.yaml:7: network.hostname: Required. (and 1 more)"
    )
    assert problem_events([wrong, more], [wrong, more], owners, NOW) == []
    (mended,) = problem_events([wrong], [], {}, NOW)
    assert (mended.machine, mended.details["change"]) == ("", "mended")


KEY = SeenKey("ED25519", "SHA256:aaa", NOW - 100)
WAITS = TrustDecision("ada", "ada.lan:22", "pending", offer=KEY)
APPROVED = TrustDecision(
    "ada", "ada.lan:22", "pinned", "ED25519", "SHA256:aaa", NOW - 50, "mia@desk", "approve"
)
CHANGED = replace(APPROVED, offer=SeenKey("ED25519", "SHA256:bbb", NOW - 10, ("SHA256:aaa",)))


@pytest.mark.parametrize(
    ("before", "after", "change", "at", "by"),
    [
        (None, WAITS, "pending", NOW - 100, None),
        (WAITS, APPROVED, "approved", NOW - 50, "mia@desk"),
        (None, APPROVED, "approved", NOW - 50, "mia@desk"),
        (APPROVED, CHANGED, "key_changed", NOW - 10, None),
        (APPROVED, replace(APPROVED, kind="rejected", decided_at=NOW), "rejected", NOW, "mia@desk"),
        (APPROVED, replace(APPROVED, kind="removed", fingerprint="", decided_at=None), "removed", NOW,
         "mia@desk"),
        (WAITS, replace(WAITS, offer=replace(KEY, fingerprint="SHA256:ccc", at=NOW)), "pending", NOW, None),
    ],
)  # fmt: skip
def test_trust(
    before: TrustDecision | None, after: TrustDecision, change: str, at: float, by: str | None
) -> None:
    key = ("ada", "ada.lan:22")
    events = trust_events({} if before is None else {key: before}, {key: after}, NOW)
    assert [(event.details["change"], event.at, event.by) for event in events] == [(change, at, by)]
    assert trust_events({key: after}, {key: replace(after)}, NOW) == []


def test_decisions_of_an_earlier_time() -> None:
    key = ("ada", "ada.lan:22")
    assert decisions_of(NOW - 60, {key: APPROVED}) == {}
    assert decisions_of(NOW - 40, {key: APPROVED}) == {key: APPROVED}
    assert decisions_of(NOW - 40, {key: CHANGED}) == {key: APPROVED}
