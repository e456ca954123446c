"""How long answers take: each counts from its own question, and what nobody asked for counts for nothing."""

from __future__ import annotations

import pytest

from fleettui.fleet.poll_time import PollTime


def test_each_answer_counts_from_its_question() -> None:
    moments = iter((10.0, 10.25, 20.0, 20.5))
    time = PollTime(lambda: next(moments))
    time.ask()
    time.answer()
    time.ask()
    time.answer()
    time.answer()  # nobody asked
    assert time.answers == 2
    assert time.sum_s == pytest.approx(0.75)


def test_what_was_given_up_counts_for_nothing() -> None:
    moments = iter((10.0, 500.0))
    time = PollTime(lambda: next(moments))
    time.ask()
    time.give_up()
    time.answer()
    assert (time.answers, time.sum_s) == (0, 0.0)
