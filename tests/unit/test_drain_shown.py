"""How a drain is told and obeyed: derived state, chips, expected outages, summary, filter, events."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import (
    NOW,
    make_copy,
    make_engine,
    make_fleet,
    make_machine,
    make_offline,
    make_process,
    make_snapshot,
)
from fleettui.decide.events import events_between
from fleettui.decide.filters import flag_rejections
from fleettui.decide.health import judge_health
from fleettui.decide.plan_nodes import why_unavailable
from fleettui.fleet.drain_watch import DrainWatch
from fleettui.fleet.record import MachineRecord
from fleettui.model.gpu import ProcessesReading
from fleettui.model.readings import EngineReading
from fleettui.model.snapshot import DrainFlag, DrainState, MaintenanceFlag, SourceStatus
from fleettui.model.sockets import FoundEngine, ListeningPort, SocketsReading
from fleettui.model.unknown import Unknown
from fleettui.net.errors import LinkError
from fleettui.view.filter_language import Filter, parse_filter
from fleettui.view.flags import flag_cells, flag_texts
from fleettui.view.glyphs import UNICODE
from fleettui.view.oneshot import status_lines
from fleettui.view.summary import summary_cells

DRAINING: tuple[DrainState, ...] = ("planned", "running", "blocked", "failed", "cancelled")
COPY = make_copy("qwen3:8b")
EMPTY, FULL = make_engine(), make_engine(loaded=[COPY])
UNKNOWN = Unknown("connection refused")
DOWN = replace(EMPTY, state="down", loaded=UNKNOWN)


def flag(state: DrainState = "running", **changes: Any) -> DrainFlag:
    return replace(DrainFlag(state, "PSU swap", "mia", NOW - 7200, id="d1", changed_at=NOW), **changes)


# -- the state is what the machine shows -----------------------------------------------------------------


def watched(stored: DrainFlag, *polls: EngineReading | None, **more: Any) -> DrainFlag:
    """What is shown after these answers, two seconds apart; None: the engine said nothing yet."""
    watch, shown, lacks, sources = DrainWatch(), None, more.pop("lacks", {}), more.pop("sources", {})
    for number, reading in enumerate(polls, 1):
        at = NOW + 2 * number
        told = [(reading, None if reading is None or reading.state == "down" else at)]
        engines = () if reading is None else (reading,)
        snapshot = replace(make_snapshot(**more), **{"engines": engines, "last_seen": at, **lacks})
        read = {name: SourceStatus("ok", at) for name in ("processes", "sockets")}
        snapshot = replace(snapshot, sources={**snapshot.sources, **read, **sources})
        shown = watch.judge(stored, told, snapshot, at, 0)
    assert shown is not None
    return shown


@pytest.mark.parametrize("state", DRAINING)
def test_a_machine_is_drained_after_two_polls_without_a_copy(state: DrainState) -> None:
    stored = flag(state, text="vllm stays")
    assert watched(stored, EMPTY) is stored, "one poll may have missed one"
    assert watched(stored, EMPTY, EMPTY) == replace(stored, state="drained", text="")
    assert watched(stored, EMPTY, FULL, EMPTY) is stored
    assert watched(stored, EMPTY, EMPTY, FULL) is stored, "a copy is there again: as it is stored"


@pytest.mark.parametrize(
    ("reading", "is_drained"),
    [
        (make_engine(loaded=[make_copy(state="sleeping")]), True),
        (make_engine(loaded=[make_copy(state="stopping")]), False),
        (make_engine(loaded=[make_copy(state="loading")]), False),
        (replace(EMPTY, loaded=UNKNOWN), False),
        (None, False),
        (replace(EMPTY, state="busy", loaded=UNKNOWN), False),
    ],
)
def test_what_counts_as_a_copy(reading: EngineReading | None, is_drained: bool) -> None:
    assert watched(flag(), reading, reading).is_drained is is_drained


def test_an_engine_without_answer_is_empty_where_nothing_listens_on_its_port() -> None:
    open_port = SocketsReading((ListeningPort(11434, False),))
    assert not watched(flag(), DOWN, DOWN).is_drained, "nobody looked at its ports"
    assert not watched(flag(), DOWN, DOWN, sockets=open_port).is_drained
    assert not watched(flag(), DOWN, DOWN, sockets=SocketsReading(is_cut=True)).is_drained
    assert watched(flag(), DOWN, DOWN, sockets=SocketsReading()).is_drained
    late = {"sockets": SourceStatus("late", NOW)}
    assert not watched(flag(), DOWN, DOWN, sockets=SocketsReading(), sources=late).is_drained, "of before"


def test_an_engine_that_was_found_and_is_not_asked_may_hold_anything() -> None:
    assert not watched(flag(), EMPTY, EMPTY, found=(FoundEngine("vllm", 8001, True),)).is_drained
    assert watched(
        flag(), EMPTY, EMPTY, found=(FoundEngine("ollama", 11434, True, is_polled=True),)
    ).is_drained


def test_another_process_on_its_gpus_is_what_blocks_it() -> None:
    trainer = make_process(name="/usr/bin/python3", command="python3 train.py", user="jonas")
    assert not watched(flag(), EMPTY, EMPTY, processes=[trainer]).is_drained
    assert not watched(flag(), EMPTY, EMPTY, lacks={"processes": None}).is_drained, "nobody looked"
    assert watched(flag(), EMPTY, EMPTY, machine=make_machine(gpus=0)).is_drained
    unlisted = {"processes": SourceStatus("unsupported", error="the driver lists none")}
    assert watched(flag(), EMPTY, EMPTY, lacks={"processes": None}, sources=unlisted).is_drained


def test_another_process_on_a_drained_machine_is_told() -> None:
    trainer = make_process(name="/usr/bin/python3", command="python3 train.py", user="jonas")
    text = "on its GPUs since 14:03, of no engine that is asked: python3 (pid 4242)"
    full = watched(flag("drained"), EMPTY, processes=[trainer])
    assert (full.state, full.text) == ("blocked", text)
    both = watched(flag("drained"), FULL, processes=[trainer])
    assert both.text == f"loaded again since 14:03: qwen3:8b; {text}"
    before = {"processes": SourceStatus("ok", NOW - 1)}
    assert watched(flag("drained"), EMPTY, processes=[trainer], sources=before).is_drained, "listed before"
    watch, stored, idle = DrainWatch(), flag(), make_snapshot()
    for number, processes in enumerate([idle.processes, idle.processes, ProcessesReading((trainer,))], 1):
        at = NOW + 2 * number
        sources = {**idle.sources, "processes": SourceStatus("ok", at)}
        seen = replace(idle, processes=processes, sources=sources, last_seen=at)
        shown = watch.judge(stored, [(EMPTY, at)], seen, at, 0)
        assert shown is not None
        assert shown.is_drained is (number == 2), "what it showed is taken back"


def test_the_same_answer_twice_is_one_poll() -> None:
    watch, stored = DrainWatch(), flag()
    for _ in range(3):
        assert watch.judge(stored, [(EMPTY, NOW + 1)], make_snapshot(engines=(EMPTY,)), NOW + 2, 0) is stored


def test_a_machine_that_was_filled_again_is_blocked_with_what_is_loaded() -> None:
    stored = flag("drained")
    assert watched(stored, EMPTY) is stored
    full = watched(stored, EMPTY, FULL)
    assert (full.state, full.text) == ("blocked", "loaded again since 14:03: qwen3:8b")
    assert watched(stored, FULL, EMPTY) == watched(stored, FULL)
    assert watched(stored, FULL, EMPTY, EMPTY) is stored


def test_an_answer_from_before_it_was_drained_says_nothing() -> None:
    stored = flag("drained", changed_at=NOW + 10)
    assert watched(stored, FULL) is stored


def test_what_is_not_seen_changes_nothing() -> None:
    """Offline, rebooting, the engine not up yet: drained stays drained, blocked stays blocked."""
    assert watched(flag(), EMPTY, EMPTY, DOWN, None, DOWN).is_drained
    stored = flag("drained")
    assert watched(stored, DOWN, None, DOWN) is stored
    blocked = flag("blocked", text="vllm stays")
    assert watched(blocked, None, DOWN, None) is blocked


@pytest.mark.parametrize("state", [*DRAINING, "drained"])
def test_no_outage_reboot_or_new_connection_takes_the_flag_away(state: DrainState) -> None:
    record = MachineRecord(make_machine())
    record.drain = flag(state)
    for number in range(3):
        at = NOW + 60 * number
        record.link_up("192.0.2.10:22", at)
        assert record.freeze(at + 1, 2.0).drain == record.drain
        record.link_failed(LinkError("connect", "no answer"), at + 30, at + 20)
        offline = record.freeze(at + 21, 2.0)
        assert (offline.health, offline.drain) == ("offline", record.drain)
        is_expected = any(reason.code == "expected" for reason in offline.reasons)
        assert is_expected is (state == "drained")


# -- who obeys it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", DRAINING)
def test_a_machine_with_the_flag_takes_nothing_before_it_is_drained(state: DrainState) -> None:
    snapshot = make_snapshot(drain=flag(state))
    (rejection,) = flag_rejections(snapshot, NOW)
    assert rejection.code == "draining"
    assert rejection.text == f'draining ({state}) "PSU swap" by mia since 12:03 UTC'
    assert why_unavailable(snapshot) == "draining"


def test_a_drained_machine_takes_nothing_either() -> None:
    snapshot = make_snapshot(drain=flag("drained", until=NOW - 60))
    (rejection,) = flag_rejections(snapshot, NOW)
    assert rejection.code == "drained"
    assert rejection.text == 'drained "PSU swap" by mia since 12:03 UTC, overdue since 14:02 UTC'
    assert why_unavailable(snapshot) == "drained"


def test_both_flags_are_told() -> None:
    snapshot = make_snapshot(
        drain=flag("blocked", text="vllm stays"), maintenance=MaintenanceFlag("fan", "jo", NOW)
    )
    assert [item.code for item in flag_rejections(snapshot, NOW)] == ["maintenance", "draining"]
    assert 'draining (blocked: vllm stays) "PSU swap"' in flag_rejections(snapshot, NOW)[1].text


# -- how it looks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drain", "text", "tone"),
    [
        (flag(), 'drain running "PSU swap" mia, 2h', "accent"),
        (flag(until=NOW + 1800), 'drain running "PSU swap" mia, 2h, 30m left', "accent"),
        (flag("drained", until=NOW - 300), 'drained "PSU swap" mia, 2h, 5m overdue', "warn"),
        (flag("blocked", text="vllm stays"), 'drain blocked "PSU swap" mia, 2h: vllm stays', "warn"),
        (flag("failed", text="source\x1b[2J off"), 'drain failed "PSU swap" mia, 2h: source [2J off', "warn"),
    ],
)
def test_chips(drain: DrainFlag, text: str, tone: str) -> None:
    snapshot = make_snapshot(drain=drain)
    assert flag_texts(snapshot, NOW) == [text]
    assert [cell.tone for cells in flag_cells(snapshot, NOW, UNICODE) for cell in cells] == [tone]


def test_an_outage_of_a_drained_machine_is_expected_and_of_a_draining_one_is_not() -> None:
    health, reasons = judge_health(make_offline(drain=flag("drained")), NOW, 2.0, 0)
    assert (health, [reason.code for reason in reasons]) == ("offline", ["ssh_connect", "expected"])
    assert reasons[1].text == 'expected: drained "PSU swap" by mia since 12:03'
    for state in DRAINING:
        assert len(judge_health(make_offline(drain=flag(state)), NOW, 2.0)[1]) == 1


def test_status_says_so_in_the_line_of_the_machine() -> None:
    text = "\n".join(status_lines(make_fleet(make_offline("bora", drain=flag("drained"))), NOW, None))
    assert "; expected: drained" in text
    assert 'drained "PSU swap" mia, 2h' in text


def test_the_summary_tells_draining_from_drained() -> None:
    fleet = make_fleet(
        make_offline("ada", drain=flag("drained")),
        make_snapshot("bora", drain=flag("drained")),
        make_snapshot("cleo", drain=flag()),
        make_snapshot("dora", drain=flag("blocked")),
        make_offline("enno", drain=flag("drained"), maintenance=MaintenanceFlag(None, "jo", NOW)),
    )
    line = "".join(cell.text for cell in summary_cells(fleet, NOW, 200))
    assert "1 in maintenance (1 offline) · 2 draining (1 stuck) · 3 drained (1 offline)" in line
    assert "· 2 offline" not in line


@pytest.mark.parametrize(
    ("asked", "states"),
    [
        ("drain:draining", DRAINING),
        ("drain:drained", ("drained",)),
        ("drain:on", (*DRAINING, "drained")),
        ("drain:off", (None,)),
        ("drain:blocked", ("blocked",)),
        ("!drain:draining", ("drained", None)),
    ],
)
def test_the_filter(asked: str, states: tuple[DrainState | None, ...]) -> None:
    everything: tuple[DrainState | None, ...] = (*DRAINING, "drained", None)
    asked_for = parse_filter(asked)
    assert isinstance(asked_for, Filter)
    matches = asked_for.matches
    shown = [
        state for state in everything
        if matches(make_snapshot(drain=None if state is None else flag(state)), NOW)
    ]  # fmt: skip
    assert shown == [state for state in everything if state in states]


def told(before: DrainFlag | None, after: DrainFlag | None) -> list[tuple[str, str, str | None]]:
    events = events_between(make_snapshot(drain=before), make_snapshot(drain=after), NOW, 0)
    return [(event.text, event.severity, event.by) for event in events]


def test_the_timeline_says_what_became_of_it_and_who_did_it() -> None:
    running = flag(by="mia@jump", until=NOW + 60)
    assert told(None, running) == [('drain running: "PSU swap", until 14:04', "note", "mia@jump")]
    assert told(running, replace(running, state="drained")) == [('drained: "PSU swap"', "good", "mia@jump")]
    blocked = replace(running, state="blocked", text="vllm stays")
    assert told(running, blocked) == [('drain blocked: vllm stays ("PSU swap")', "bad", "mia@jump")]
    cancelled = replace(running, state="cancelled", changed_by="jo@desk")
    assert told(running, cancelled) == [('drain cancelled: "PSU swap"', "note", "jo@desk")]
    assert told(blocked, None) == [("drain ended, it was blocked", "good", None)]


def test_progress_is_no_news() -> None:
    running = flag(text="loads 1 of 3", revision=1)
    assert told(running, replace(running, text="loads 2 of 3", revision=2, changed_at=NOW + 5)) == []


def test_an_outage_of_a_drained_machine_is_no_alarm_in_the_timeline() -> None:
    before = make_snapshot(drain=flag("drained"))
    after = make_offline("ada", machine=before.machine, drain=flag("drained"))
    (event,) = events_between(before, after, NOW)
    assert (event.severity, event.details["expected"]) == ("note", True)
    assert event.text.endswith("(expected: drained)")


def test_a_clock_that_was_set_back_hides_no_copy_on_a_drained_machine() -> None:
    """The flag was changed by a clock an hour ahead."""
    stored = flag("drained", changed_at=NOW + 3600)
    assert watched(stored, EMPTY, EMPTY).is_drained
    assert watched(stored, FULL).is_drained, "an answer that may be from before the flag"
    assert watched(stored, EMPTY, FULL).state == "blocked"
