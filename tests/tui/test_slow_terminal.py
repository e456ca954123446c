"""A terminal that takes little, or nothing for a while: the loop never waits for it, and it ends up right."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fleettui.tui.terminal import SLICE
from little_terminal import LittleTerminal

HERE = Path(__file__).parent
WIDTH, HEIGHT = 200, 60
SECONDS = 6.0
RATE = 16_000
"""Bytes a second."""
MAX_GAP_S = 0.25
TRIES = 3
"""On a busy computer the loop is late for reasons of its own: the best of so many runs counts."""
KEYS_S = 0.05
"""Between two keys."""


class Run:
    """The dashboard with 64 machines of 8 GPUs on a terminal that takes what `allowance` says: so many bytes
    in the first so many seconds."""

    def __init__(self, allowance: Callable[[float], float], keys: bytes = b"") -> None:
        self.terminal = LittleTerminal(WIDTH, HEIGHT)
        self._allowance = allowance
        self._keys = keys
        self._report = b""
        self._began: float | None = None
        self._is_over = False
        self._taken = 0
        self._main, child_end = pty.openpty()
        fcntl.ioctl(child_end, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self._report_read, report_write = os.pipe()
        command = [sys.executable, str(HERE / "slow_child.py"), str(report_write), "64", "8", str(SECONDS)]
        variables = {**os.environ, "COLORTERM": "truecolor", "PYTHONPATH": os.pathsep.join(sys.path)}
        child = subprocess.Popen(
            command, stdin=child_end, stdout=child_end, stderr=child_end, pass_fds=(report_write,),
            env=variables, start_new_session=True,
        )  # fmt: skip
        os.close(child_end)
        os.close(report_write)
        try:
            self._watch()
            self.code = child.wait(timeout=10)
        finally:
            child.kill()
            os.close(self._main)
            os.close(self._report_read)
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in self._report.splitlines()]

    @property
    def worst_gap_s(self) -> float:
        """The longest that the event loop was late."""
        return float(self.lines[-1]["worst_gap_s"])

    def _watch(self) -> None:
        deadline, press_at = time.monotonic() + 90, 0.0
        while time.monotonic() < deadline:
            now = time.monotonic()
            seconds = 0.0 if self._began is None else now - self._began
            is_free = self._began is None or self._is_over
            room = 1 << 16 if is_free else self._allowance(seconds) - self._taken
            files = ([] if self._is_over else [self._report_read]) + ([self._main] if room > 0 else [])
            readable = select.select(files, [], [], 0.02)[0]
            if self._report_read in readable:
                self._take_report(now)
            if self._main in readable and not self._take_output(is_free):
                return
            if self._keys and 0 < seconds < SECONDS - 1 and now > press_at:
                press_at = now + KEYS_S
                os.write(self._main, self._keys)

    def _take_report(self, now: float) -> None:
        chunk = os.read(self._report_read, 1 << 16)
        self._report += chunk
        self._is_over = not chunk
        if self._began is None:
            self._began = now

    def _take_output(self, is_free: bool) -> bool:
        try:
            data = os.read(self._main, 1 << 16 if is_free else 512)
        except OSError:  # the child has ended
            return False
        self.terminal.feed(data)
        if not is_free:
            self._taken += len(data)
        return bool(data)


def best_of(make: Callable[[], Run]) -> Run:
    """The run with the shortest gap; no further one when that is short enough."""
    runs: list[Run] = []
    while len(runs) < TRIES and not any(run.worst_gap_s <= MAX_GAP_S for run in runs):
        runs.append(make())
    return min(runs, key=lambda run: run.worst_gap_s)


def test_a_slow_terminal_never_stalls_the_loop() -> None:
    """Every figure changes twice a second and the cursor moves without end: more than 16 kB/s takes."""
    run = best_of(lambda: Run(lambda seconds: seconds * RATE, keys=b"\x1b[6~\x1b[6~j\x1b[5~"))
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
    run = best_of(lambda: Run(lambda seconds: 1 << 30 if seconds > 5 else 0))
    assert run.worst_gap_s <= MAX_GAP_S
    middle = run.lines[len(run.lines) // 2]["frames"]  # until then the kernel took some
    still = [line for line in run.lines if line["frames"] == middle]
    assert len(still) >= 6, "nothing more was handed to it"
    assert still[-1]["published"] - still[0]["published"] >= 2
    assert still[-1]["paints"] - still[0]["paints"] <= 1, "what nobody sees is not painted"
    assert run.lines[-1]["frames"] > still[-1]["frames"]
    assert run.terminal.left == run.lines[-1]["screen"]
    assert run.code == 0
