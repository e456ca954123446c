"""A dashboard on a pseudo terminal that is read slowly; what it says of itself meanwhile (slow_child.py)."""

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

from little_terminal import LittleTerminal

HERE = Path(__file__).parent
WIDTH, HEIGHT = 200, 60
QUESTION = b"\x1b[?2026$p"
KEYS_S = 0.1
"""Between two presses of the keys."""


class SlowRun:
    """The dashboard with 64 machines of 8 GPUs on a terminal that takes what `allowance` says: so many bytes
    in the first so many seconds.

    `is_far`: a network lies between, which takes whatever is written and carries it no faster; the terminal
    answers what it is asked."""

    def __init__(
        self,
        allowance: Callable[[float], float],
        seconds: float,
        keys: bytes = b"",
        *,
        is_far: bool = False,
    ) -> None:
        self.terminal = LittleTerminal(WIDTH, HEIGHT)
        self._allowance = allowance
        self._keys = keys
        self._is_far = is_far
        self._sent = bytearray()
        self._shown = b""
        self.most_under_way = 0
        """Bytes that the network held at most."""
        self._seconds = seconds
        self._report = b""
        self._began: float | None = None
        self._is_over = False
        self._taken = 0
        self._main, child_end = pty.openpty()
        fcntl.ioctl(child_end, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self._report_read, report_write = os.pipe()
        command = [sys.executable, str(HERE / "slow_child.py"), str(report_write), "64", "8", str(seconds)]
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
        assert self._report.count(b"screen"), f"ended early with {self.code}: {self.terminal.text[-3000:]}"
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in self._report.splitlines()]

    @property
    def worst_gap_s(self) -> float:
        """The longest that the event loop was late, not counting what other programs took of the cores."""
        return float(self.lines[-1]["worst_own_gap_s"])

    def _watch(self) -> None:
        deadline, press_at = time.monotonic() + self._seconds + 80, 0.0
        while time.monotonic() < deadline:
            now = time.monotonic()
            seconds = 0.0 if self._began is None else now - self._began
            is_free = self._began is None or self._is_over
            room = 1 << 16 if is_free else self._allowance(seconds) - self._taken
            files = ([] if self._is_over else [self._report_read]) + (
                [self._main] if room > len(self._sent) or self._is_far else []
            )
            readable = select.select(files, [], [], 0.02)[0]
            if self._report_read in readable:
                self._take_report(now)
            if self._main in readable and not self._take_output(is_free):
                return
            self._show(1 << 20 if is_free else max(0, int(room)), is_free)
            if self._keys and 0 < seconds < self._seconds - 1 and now > press_at:
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
            data = os.read(self._main, 1 << 16 if is_free or self._is_far else 512)
        except OSError:  # the child has ended
            data = b""
        self._sent += data
        if not is_free:
            self.most_under_way = max(self.most_under_way, len(self._sent))
        return bool(data)

    def _show(self, count: int, is_free: bool) -> None:
        data = bytes(self._sent[:count])
        del self._sent[:count]
        self.terminal.feed(data)
        if not is_free:
            self._taken += len(data)
        self._shown = self._shown[-len(QUESTION) + 1 :] + data
        for _ in range(self._shown.count(QUESTION) if self._is_far else 0):
            os.write(self._main, b"\x1b[?2026;2$y")
