"""How maintenance is told: chips, expected outages, the summary. It changes no health."""

from __future__ import annotations

from builders import NOW, make_fleet, make_machine, make_offline, make_snapshot
from fleettui.decide.health import judge_health
from fleettui.model.clock import day_and_time
from fleettui.model.flags import MaintenanceChange, MaintenanceResult
from fleettui.model.snapshot import DrainFlag, DrainState, MachineSnapshot, MaintenanceFlag
from fleettui.view.column_cells import health
from fleettui.view.flags import flag_cells, flag_texts
from fleettui.view.glyphs import UNICODE
from fleettui.view.layout import fleet_layout
from fleettui.view.machine_view import MachineView
from fleettui.view.maintenance_text import change_document, change_lines
from fleettui.view.oneshot import status_lines
from fleettui.view.problems import machine_lines
from fleettui.view.summary import summarize, summary_cells

SWAP = MaintenanceFlag("fan swap", "mia", NOW - 7200)

STATES: tuple[DrainState, DrainState] = ("drained", "running")


def chips(flag: MaintenanceFlag) -> list[str]:
    return flag_texts(make_snapshot(maintenance=flag), NOW)


def judged(snapshot: MachineSnapshot) -> list[tuple[str, str, str]]:
    health, reasons = judge_health(snapshot, NOW, 2.0, 3600)
    return [(health, reason.code, reason.text) for reason in reasons]


def test_a_chip_says_why_who_how_long_and_when_it_is_to_end() -> None:
    assert chips(SWAP) == ['maintenance "fan swap" mia, 2h']
    assert chips(MaintenanceFlag(None, "mia", NOW - 60, NOW + 1800)) == ["maintenance mia, 1m, 30m left"]


def test_past_its_time_it_is_overdue_and_still_there() -> None:
    assert chips(MaintenanceFlag(None, "mia", NOW - 7200, NOW)) == ["maintenance mia, 2h, 0s overdue"]
    assert chips(MaintenanceFlag(None, "mia", NOW - 7200, NOW - 300)) == ["maintenance mia, 2h, 5m overdue"]


def test_an_overdue_chip_stands_out() -> None:
    def tones(until: float | None) -> list[str]:
        snapshot = make_snapshot(maintenance=MaintenanceFlag(None, "mia", NOW - 60, until))
        return [cell.tone for cells in flag_cells(snapshot, NOW, UNICODE) for cell in cells]

    assert (tones(None), tones(NOW + 1), tones(NOW)) == (["accent"], ["accent"], ["warn"])


def test_a_hostile_reason_is_cleaned_where_it_is_shown() -> None:
    assert "\x1b" not in chips(MaintenanceFlag("a\x1b[2Jb", "mi\x07a", NOW))[0]


def test_offline_in_maintenance_stays_offline_and_is_expected() -> None:
    (_, first, text), *rest = judged(make_offline(maintenance=SWAP))
    assert (first, text) == ("ssh_connect", "no answer on port 22 (timeout)")
    assert rest == [("offline", "expected", 'expected: maintenance "fan swap" by mia since 13:03')]
    assert [code for _, code, _ in judged(make_offline())] == ["ssh_connect"]


def test_only_maintenance_and_an_empty_machine_make_an_outage_expected() -> None:
    def tone(snapshot: MachineSnapshot) -> str:
        return health(MachineView(snapshot, NOW, fleet_layout(make_fleet(snapshot), 120)), 14)[0].tone

    drained, draining = (make_offline(drain=DrainFlag(state, "", "mia", NOW - 60)) for state in STATES)
    swapped = make_offline(maintenance=SWAP)
    assert (tone(make_offline()), tone(swapped)) == ("bad", "dim")
    assert (tone(drained), tone(draining)) == ("dim", "bad")
    other_key = make_snapshot(trust="key_changed", health="offline", maintenance=SWAP)
    assert tone(other_key) == "bad"


def test_maintenance_changes_nothing_in_the_health_of_a_machine_that_answers() -> None:
    assert judged(make_snapshot(maintenance=SWAP)) == judged(make_snapshot())


def test_the_summary_counts_an_expected_outage_with_the_maintenance() -> None:
    fleet = make_fleet(
        make_offline("ada"), make_offline("bora", maintenance=SWAP), make_snapshot("cleo", maintenance=SWAP)
    )
    figures = summarize(fleet, NOW)
    assert (figures.offline, figures.in_maintenance, figures.expected_offline) == (2, 2, 1)
    line = "".join(cell.text for cell in summary_cells(fleet, NOW, 140))
    assert "1 offline · 2 in maintenance (1 offline)" in line
    expected = make_fleet(make_offline("bora", maintenance=SWAP))
    line = "".join(cell.text for cell in summary_cells(expected, NOW, 140))
    assert "1 in maintenance (1 offline)" in line
    assert "· 1 offline" not in line


def test_status_says_once_that_an_outage_is_expected() -> None:
    snapshot = make_offline("bora", maintenance=SWAP)
    health, reasons = judge_health(snapshot, NOW, 2.0)
    text = "\n".join(status_lines(make_fleet(snapshot), NOW, None))
    assert health == "offline"
    assert len(reasons) == 2
    assert text.count("expected") == 1
    assert 'maintenance "fan swap" mia, 2h' in text


def test_a_moment_of_another_day_has_its_date() -> None:
    assert day_and_time(NOW, NOW) == "14:03 UTC"
    assert day_and_time(NOW, NOW, 3600) == "15:03"
    assert day_and_time(NOW - 86_400, NOW) == "2026-11-29 14:03 UTC"
    assert day_and_time(NOW + 36_000, NOW, 0) == "2026-12-01 00:03"
    assert day_and_time(NOW, NOW, 36_000) == "2026-12-01 00:03"[11:], "the same day there"


CHANGE = MaintenanceChange(
    (
        MaintenanceResult("ada", None, SWAP),
        MaintenanceResult("bora", SWAP, MaintenanceFlag("move", "tom", NOW - 7200, NOW + 3600)),
        MaintenanceResult("cleo", SWAP, SWAP),
        MaintenanceResult("dora", SWAP, None),
        MaintenanceResult("e\x1b[2Jnno", None, None),
    )
)


def test_a_change_in_words() -> None:
    swap = 'maintenance "fan swap" by mia since 13:03'
    assert change_lines(CHANGE, NOW, 3600) == [
        f"ada: {swap}; not routed from now on, nothing is unloaded",
        f'bora: maintenance "move" by tom since 13:03, until 16:03; before: {swap}',
        f"cleo: {swap}; unchanged",
        f"dora: out of maintenance; it was: {swap}",
        "e [2Jnno: not in maintenance; unchanged",
    ]


def test_a_change_as_a_document() -> None:
    document = change_document(CHANGE, NOW)
    outcomes = [machine["outcome"] for machine in document["machines"]]
    assert outcomes == ["on", "changed", "already_on", "off", "already_off"]
    assert document["machines"][1]["maintenance"] == {
        "on": True,
        "reason": "move",
        "by": "tom",
        "since": "2026-11-30T12:03:12Z",
        "until": "2026-11-30T15:03:12Z",
    }
    assert document["machines"][1]["before"]["reason"] == "fan swap"


def test_the_list_of_machines_has_a_column_of_flags_where_there_are_any() -> None:
    machines = [make_machine("ada", gpus=1), make_machine("bora", gpus=1)]
    plain = machine_lines(machines, {})
    assert "FLAGS" not in plain[0]
    head, ada, bora = machine_lines(machines, {}, {"bora": "maintenance by mia since 12:03", "gone": "x"})
    assert head == f"{plain[0]}  FLAGS"
    assert ada == plain[1]
    assert bora[len(plain[0]) + 2 :] == "maintenance by mia since 12:03"
