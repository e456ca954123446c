"""The doctor's report, progress and document: what stands where, in columns that fit."""

from __future__ import annotations

import pytest

from fleettui.model.doctor import CheckResult, CheckState, Checkup
from fleettui.view.cells import text_of, width_of
from fleettui.view.doctor_document import doctor_document
from fleettui.view.doctor_progress import progress_lines
from fleettui.view.doctor_report import report_lines, summary_text
from fleettui.view.glyphs import ASCII, UNICODE

TITLES = ("file", "TCP", "driver", "persistence")


def checkup(name: str, *states: CheckState) -> Checkup:
    results = tuple(
        CheckResult(
            title.lower(),
            title,
            state,
            f"evidence of {title}" if state != "skip" else "needs TCP",
            f"what to do about {title}" if state in ("warn", "fail") else None,
            10,
        )
        for title, state in zip(TITLES, states, strict=False)
    )
    return Checkup(name, TITLES, results)


FINE = checkup("ada", "pass", "pass", "pass", "skip")
WARNED = checkup("bora", "pass", "pass", "pass", "warn")
FAILED = checkup("cleo", "pass", "fail", "skip", "skip")
FLEET = (FAILED, FINE, WARNED)


def lines(*fleet: Checkup, **options: object) -> list[str]:
    return [text_of(cells) for cells in report_lines(fleet, **options)]  # type: ignore[arg-type]


def test_the_report_has_fine_machines_in_a_line_and_troubles_last() -> None:
    assert lines(*FLEET) == [
        "✓ ada   3 checks passed, 1 skipped, 40 ms",
        "",
        "! bora  1 warning, 40 ms",
        "  ✓ file         evidence of file",
        "  ✓ TCP          evidence of TCP",
        "  ✓ driver       evidence of driver",
        "  ! persistence  warning: evidence of persistence",
        "                 → what to do about persistence",
        "",
        "✗ cleo  1 failed, 40 ms",
        "  ✓ file         evidence of file",
        "  ✗ TCP          failed: evidence of TCP",
        "                 → what to do about TCP",
        "  · 2 checks     skipped, needs TCP (driver, persistence)",
        "",
        "3 machines: 1 fine, 1 warning, 1 failed",
    ]


def test_named_and_verbose_machines_are_shown_whole() -> None:
    whole = [
        "✓ ada  all is well, 40 ms",
        "  ✓ file         evidence of file",
        "  ✓ TCP          evidence of TCP",
        "  ✓ driver       evidence of driver",
        "  · persistence  skipped, needs TCP",
        "",
        "1 machine: 1 fine",
    ]
    assert lines(FINE, named=("ada",)) == whole
    assert lines(FINE, is_verbose=True) == whole
    both = lines(FAILED, is_verbose=True)
    assert "  · driver       skipped, needs TCP" in both
    assert "  · persistence  skipped, needs TCP" in both


def test_the_summary_counts_machines() -> None:
    assert summary_text((FINE,) * 4 + (WARNED, FAILED)) == "6 machines: 4 fine, 1 warning, 1 failed"
    assert summary_text((WARNED, WARNED)) == "2 machines: 0 fine, 2 warnings"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_sentences_wrap_within_the_terminal(width: int) -> None:
    long = CheckResult("tcp", "TCP", "fail", "word " * 60, "advice " * 40, 3000)
    printed = report_lines((Checkup("ada", ("TCP",), (long,)),), width=width)
    assert all(width_of(cells) <= width for cells in printed)
    assert sum(text_of(cells).count("word") for cells in printed) == 60, "nothing is cut"


def test_ascii_signs_and_hostile_text() -> None:
    evil = CheckResult("shell", "shell", "warn", "said \x1b[31mred\n± 1 s …", "do", 1)
    printed = lines(Checkup("a\x1bb", ("shell",), (evil,)), glyphs=ASCII)
    assert "".join(printed).isascii()
    assert "".join(printed).isprintable()
    assert printed[0].startswith("! a b")


def running(name: str, done: int) -> Checkup:
    return Checkup(name, TITLES, FINE.results[:done])


def test_progress_shows_each_machine_and_what_it_is_at() -> None:
    fleet = (FINE, running("bora", 1), running("cleo", 0))
    shown = [text_of(cells).rstrip() for cells in progress_lines(fleet, 80, 24, 0, UNICODE)]
    assert shown == [
        "ada   ✓✓✓·  fine",
        "bora  ✓⠋··  TCP",
        "cleo  ⠋···  file",
        "checked 1 of 3 machines · 1 fine",
    ]
    plain = "".join(text_of(cells) for cells in progress_lines(fleet, 80, 24, 1, ASCII))
    assert plain.isascii()


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 12), (200, 60), (20, 3)])
def test_progress_fits_any_terminal(columns: int, rows: int) -> None:
    fleet = [checkup(f"gpu-{at:03}", "pass", "fail", "skip", "skip") for at in range(40)]
    fleet += [running(f"run-{at:03}", at % 4) for at in range(100)]
    shown = progress_lines(fleet, columns, rows, 7, UNICODE)
    assert len(shown) < rows
    assert all(width_of(cells) < max(columns, 21) for cells in shown)
    assert text_of(shown[-1]).startswith("checked 40 of")
    if rows > 3:
        assert text_of(shown[0]).startswith("run-000"), "those that are done give way"
        assert text_of(shown[-2]).strip() == f"… and {100 - (len(shown) - 2)} more"


def test_the_document() -> None:
    document = doctor_document((FAILED,), ("known_hosts:3: odd",))
    assert document["schema"] == 1
    assert document["notices"] == ["known_hosts:3: odd"]
    (machine,) = document["machines"]
    assert (machine["name"], machine["verdict"]) == ("cleo", "fail")
    assert machine["checks"][1] == {
        "id": "tcp", "title": "TCP", "state": "fail", "evidence": "evidence of TCP",
        "hint": "what to do about TCP", "took_ms": 10,
    }  # fmt: skip
