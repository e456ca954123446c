"""The account of frames under way to a terminal that answers."""

from __future__ import annotations

import pytest

from fleettui.tui import answers as module
from fleettui.tui.answers import LIMIT_S, WINDOW, Answers


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that a test moves."""
    clock = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: clock[0])
    return clock


def test_nothing_is_asked_before_the_first_answer(now: list[float]) -> None:
    answers = Answers()
    assert not answers.can_ask
    answers.note_answer()
    assert answers.can_ask
    assert not answers.is_full
    assert answers.room == WINDOW


def test_a_full_window_waits_for_answers_in_order(now: list[float]) -> None:
    answers = Answers()
    answers.note_answer()
    answers.note_sent(WINDOW // 2)
    assert not answers.is_full
    answers.note_sent(WINDOW)
    assert answers.is_full
    answers.note_answer()
    assert answers.is_full
    answers.note_answer()
    assert not answers.is_full
    assert answers.room == WINDOW


def test_a_long_line_is_not_a_slow_one(now: list[float]) -> None:
    answers = Answers()
    answers.note_answer()
    for _ in range(20):  # a fifth of a second around the world
        answers.note_sent(1000)
        now[0] += 0.2
        answers.note_answer()
    assert answers.lag_s == pytest.approx(0.0, abs=0.01)
    answers.note_sent(8000)
    now[0] += 0.7
    answers.note_answer()
    assert answers.lag_s == pytest.approx(0.5, abs=0.02)


def test_answers_that_never_come_stop_nothing_for_ever(now: list[float]) -> None:
    answers = Answers()
    answers.note_answer()
    answers.note_sent(2 * WINDOW)
    now[0] += LIMIT_S / 2
    answers.give_up_old()
    assert answers.is_full
    now[0] += LIMIT_S / 2
    answers.give_up_old()
    assert not answers.is_full
    answers.note_answer()  # late: it counts for nothing
    assert answers.room == WINDOW
