"""A terminal that takes little, or nothing for a while: the loop never waits for it, and it ends up right."""

from __future__ import annotations

from collections.abc import Callable

from slow_run import SlowRun

from fleettui.tui.answers import WINDOW
from fleettui.tui.terminal import SLICE

SECONDS = 6.0
RATE = 16_000
"""Bytes a second."""
MAX_GAP_S = 0.25
TRIES = 3
"""On a busy computer the loop is late for reasons of its own: the best of so many runs counts."""


def best_of(make: Callable[[], SlowRun]) -> SlowRun:
    """The run with the shortest gap; no further one when that is short enough."""
    runs: list[SlowRun] = []
    while len(runs) < TRIES and not any(run.worst_gap_s <= MAX_GAP_S for run in runs):
        runs.append(make())
    return min(runs, key=lambda run: run.worst_gap_s)


def test_a_slow_terminal_never_stalls_the_loop() -> None:
    """Every figure changes twice a second and the cursor moves without end: more than 16 kB/s takes."""
    run = best_of(lambda: SlowRun(lambda seconds: seconds * RATE, SECONDS, keys=b"\x1b[6~\x1b[6~j\x1b[5~"))
    assert run.worst_gap_s <= MAX_GAP_S
    first, last = run.lines[0], run.lines[-1]
    assert last["published"] - first["published"] >= SECONDS / 0.5 - 3
    frames = last["frames"] - first["frames"]
    assert frames >= 4, "it went on painting"
    assert (last["bytes"] - first["bytes"]) / frames <= 2 * SLICE
    assert run.terminal.left == last["screen"]
    assert run.code == 0


def test_a_terminal_that_stands_still_stops_nothing_and_ends_up_right() -> None:
    """For 5 of 6 seconds nobody reads."""
    run = best_of(lambda: SlowRun(lambda seconds: 1 << 30 if seconds > 5 else 0, SECONDS))
    assert run.worst_gap_s <= MAX_GAP_S
    middle = run.lines[len(run.lines) // 2]["frames"]  # until then the kernel took some
    still = [line for line in run.lines if line["frames"] == middle]
    assert len(still) >= 6, "nothing more was handed to it"
    assert still[-1]["published"] - still[0]["published"] >= 2
    assert still[-1]["paints"] - still[0]["paints"] <= 1, "what nobody sees is not painted"
    assert run.lines[-1]["frames"] > still[-1]["frames"]
    assert run.terminal.left == run.lines[-1]["screen"]
    assert run.code == 0


def test_what_a_network_would_hold_back_is_not_sent() -> None:
    """sshd and both kernels take all at once: only a terminal that answers says how far behind it is."""
    run = SlowRun(lambda seconds: seconds * RATE, SECONDS, keys=b"\x1b[6~j\x1b[5~", is_far=True)
    first, last = run.lines[0], run.lines[-1]
    assert run.most_under_way <= 2 * WINDOW + SLICE
    assert last["frames"] - first["frames"] >= 4, "it went on painting"
    assert run.terminal.left == last["screen"]
    assert run.code == 0
