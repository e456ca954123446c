"""Machines that are asked at the same moment share one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from fleettui.fleet.grid import TickGrid, Turn

NOW = 1_000.0


class Loop:
    """Keeps what is to be called later, and when."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.timers: list[tuple[float, Callable[[], None]]] = []
        monkeypatch.setattr(asyncio, "get_running_loop", lambda: self)

    def call_later(self, delay_s: float, call: Callable[..., None], *arguments: object) -> None:
        self.timers.append((delay_s, lambda: call(*arguments)))

    def fire(self) -> None:
        """All of them, in order."""
        timers, self.timers = self.timers, []
        for _, call in sorted(timers, key=lambda timer: timer[0]):
            call()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    return Loop(monkeypatch)


def test_turns_at_one_point_share_a_timer(loop: Loop) -> None:
    grid, told = TickGrid(), list[str]()
    grid.take_turn(lambda: told.append("ada"), NOW + 0.3, 2.0, 0.0)
    grid.take_turn(lambda: told.append("bert"), NOW + 0.5, 2.0, 0.0)
    assert [round(delay_s, 6) for delay_s, _ in loop.timers] == [1.7]
    loop.fire()
    assert told == ["ada", "bert"]


def test_each_interval_and_phase_has_points_of_its_own(loop: Loop) -> None:
    grid = TickGrid()
    for interval_s, phase_s in ((2.0, 0.0), (2.0, 0.08), (5.0, 0.0)):
        grid.take_turn(lambda: None, NOW, interval_s, phase_s)
    # A point 0.08 s ahead is too near, so that the second one takes the next.
    assert [round(delay_s, 6) for delay_s, _ in loop.timers] == [2.0, 2.08, 5.0]


def test_a_point_that_is_too_near_is_left_out(loop: Loop) -> None:
    TickGrid().take_turn(lambda: None, NOW + 1.9, 2.0, 0.0)
    assert round(loop.timers[0][0], 6) == 2.1


def test_a_turn_that_was_given_back_is_not_called(loop: Loop) -> None:
    grid, told = TickGrid(), list[str]()
    grid.take_turn(lambda: told.append("ada"), NOW, 2.0, 0.0).cancel()
    loop.fire()
    assert told == []


def test_a_turn_may_be_given_back_by_one_before_it(loop: Loop) -> None:
    grid, told = TickGrid(), list[str]()
    turns: list[Turn] = []

    def give_back() -> None:
        turns[0].cancel()

    grid.take_turn(give_back, NOW, 2.0, 0.0)
    turns.append(grid.take_turn(lambda: told.append("bert"), NOW, 2.0, 0.0))
    loop.fire()
    assert told == []


def test_a_defect_of_one_machine_stops_no_other(loop: Loop) -> None:
    grid, told = TickGrid(), list[str]()
    grid.take_turn(lambda: told.append(str(1 // 0)), NOW, 2.0, 0.0)
    grid.take_turn(lambda: told.append("bert"), NOW, 2.0, 0.0)
    loop.fire()
    assert told == ["bert"]


def test_the_next_turn_may_be_taken_in_this_one(loop: Loop) -> None:
    grid, told = TickGrid(), list[float]()

    def tick() -> None:
        told.append(NOW)
        grid.take_turn(tick, NOW + 2.001, 2.0, 0.0)

    grid.take_turn(tick, NOW, 2.0, 0.0)
    loop.fire()
    assert told == [NOW]
    assert round(loop.timers[0][0], 6) == 1.999
