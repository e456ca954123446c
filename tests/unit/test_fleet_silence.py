"""Silence of a machine and sleep of this computer, on an event loop whose clock the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from fleettui.fleet.backoff import MAX_DELAY_S, retry_delay_s
from fleettui.fleet.silence import SilenceWatch, SleepWatch


class Clock:
    """The loop's clock and the wall clock, moved together or apart."""

    def __init__(self) -> None:
        self.loop_s = 1000.0
        self.wall_s = 1_800_000_000.0


class ScriptedLoop(asyncio.SelectorEventLoop):
    """Never waits: the test moves its clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        super().__init__()

    def time(self) -> float:
        return self.clock.loop_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def loop(clock: Clock) -> Iterator[ScriptedLoop]:
    loop = ScriptedLoop(clock)
    yield loop
    loop.close()


def run_for(loop: ScriptedLoop, seconds: float, step_s: float = 0.1) -> None:
    """Let both clocks run, in steps, with the loop's timers."""

    async def turn() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    for _ in range(round(seconds / step_s)):
        loop.clock.loop_s += step_s
        loop.clock.wall_s += step_s
        loop.run_until_complete(turn())


def in_loop(loop: ScriptedLoop, call: Callable[[], None]) -> None:
    async def work() -> None:
        call()

    loop.run_until_complete(work())


@pytest.fixture
def found(clock: Clock) -> list[float]:
    return []


@pytest.fixture
def watch(clock: Clock, found: list[float]) -> SilenceWatch:
    watch = SilenceWatch(lambda: found.append(clock.loop_s))
    watch.set_limit(6.0, 2.0)
    return watch


def test_silence_is_told_exactly_six_seconds_after_the_last_byte(
    loop: ScriptedLoop, watch: SilenceWatch, found: list[float]
) -> None:
    in_loop(loop, watch.ask)
    run_for(loop, 0.5)
    in_loop(loop, watch.hear)
    in_loop(loop, watch.answer)
    run_for(loop, 1.5)
    in_loop(loop, watch.ask)
    run_for(loop, 10)
    assert found == [pytest.approx(1006.5, abs=0.11)]


def test_a_channel_that_answers_is_never_silent(
    loop: ScriptedLoop, watch: SilenceWatch, found: list[float]
) -> None:
    for _ in range(40):
        in_loop(loop, watch.ask)
        run_for(loop, 1.9)
        in_loop(loop, watch.hear)
        in_loop(loop, watch.answer)
        run_for(loop, 0.1)
    run_for(loop, 100)  # paused: nothing is asked
    assert found == []


def test_bytes_of_a_slow_answer_count(loop: ScriptedLoop, watch: SilenceWatch, found: list[float]) -> None:
    in_loop(loop, watch.ask)
    for _ in range(10):
        run_for(loop, 3)
        in_loop(loop, watch.hear)
    assert found == []


def test_a_question_after_a_pause_gets_time_of_its_own(
    loop: ScriptedLoop, watch: SilenceWatch, found: list[float]
) -> None:
    in_loop(loop, watch.ask)
    in_loop(loop, watch.hear)
    in_loop(loop, watch.answer)
    run_for(loop, 300)
    in_loop(loop, watch.ask)
    run_for(loop, 3.8)
    assert found == []
    run_for(loop, 0.4)
    assert len(found) == 1


def test_the_first_question_of_a_connection_gets_the_whole_limit(
    loop: ScriptedLoop, watch: SilenceWatch, found: list[float]
) -> None:
    in_loop(loop, watch.ask)
    run_for(loop, 5.8)
    assert found == []
    run_for(loop, 0.4)
    assert len(found) == 1


def test_a_shorter_limit_holds_at_once(loop: ScriptedLoop, watch: SilenceWatch, found: list[float]) -> None:
    watch.set_limit(180.0, 60.0)
    in_loop(loop, watch.ask)
    run_for(loop, 4)
    in_loop(loop, lambda: watch.set_limit(6.0, 2.0))
    run_for(loop, 2.2)
    assert len(found) == 1


def test_time_in_which_we_were_stopped_is_nobody_s_silence(
    loop: ScriptedLoop, watch: SilenceWatch, found: list[float], clock: Clock
) -> None:
    """Ctrl-Z for ten minutes with a question on its way: the answer waits in the socket."""
    in_loop(loop, watch.ask)
    clock.loop_s += 600
    run_for(loop, 5)
    assert found == [], "a fresh limit begins where we go on"
    run_for(loop, 2)
    assert len(found) == 1


def test_stopping_ends_the_watch(loop: ScriptedLoop, watch: SilenceWatch, found: list[float]) -> None:
    in_loop(loop, watch.ask)
    watch.stop()
    run_for(loop, 20)
    assert found == []


@pytest.mark.parametrize(
    ("loop_jump_s", "wall_jump_s"),
    [(0.0, 28_800.0), (600.0, 600.0), (0.0, -3600.0)],
    ids=["slept", "stopped", "clock set back"],
)
def test_a_jump_of_the_clocks_is_noticed_once(
    loop: ScriptedLoop, clock: Clock, loop_jump_s: float, wall_jump_s: float
) -> None:
    woken: list[float] = []
    watch = SleepWatch(lambda: woken.append(clock.wall_s), lambda: clock.wall_s)
    in_loop(loop, watch.start)
    run_for(loop, 30)
    assert woken == []
    clock.loop_s += loop_jump_s
    clock.wall_s += wall_jump_s
    run_for(loop, 30)
    assert len(woken) == 1
    watch.stop()


def test_delays_grow_to_thirty_seconds_and_never_stop() -> None:
    delays = [retry_delay_s(failures, 2.0) for failures in range(1, 500)]
    assert max(delays) <= MAX_DELAY_S
    assert min(delays[20:]) > MAX_DELAY_S / 2
    assert len(set(delays[20:])) > 100, "machines do not come back in step"
