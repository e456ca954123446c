"""Terminals that take 16 kB/s, or nothing: how late the event loop, and with it every poll, gets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from fleets import wait_until_quiet
from measure import ROOT, Report

GOAL_MS = 250.0
KEYS = b"\x1b[6~j\x1b[5~"


def measure(report: Report, title: str, allowance: Callable[[float], float], seconds: float) -> None:
    """64 machines of 8 GPUs in 200x60, all figures new every half second, keys pressed 30 times a second."""
    from slow_run import SlowRun  # type: ignore[import-not-found]  # a folder of tests

    wait_until_quiet()
    run = SlowRun(allowance, seconds, KEYS)
    last = run.lines[-1]
    note = f"{last['worst_own_gap_s'] * 1e3:.0f} ms without what other programs took of the cores"
    report.add(f"{title}: worst gap", last["worst_gap_s"] * 1e3, "ms", GOAL_MS, note)
    report.add("99th percentile", last["gap_p99_s"] * 1e3, "ms")
    frames = last["frames"] - run.lines[0]["frames"]
    if frames:
        report.add("written per frame", (last["bytes"] - run.lines[0]["bytes"]) / frames / 1e3, "kB")
    report.add("frames per second", frames / seconds, "")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rate", type=int, default=16_000, help="bytes a second")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "tui")]
    report = Report("Slow terminals (64 machines x 8 GPUs)")
    rate = options.rate
    measure(report, f"{rate / 1000:.0f} kB/s", lambda seconds: seconds * rate, options.seconds)
    measure(report, "read by nobody", lambda seconds: 0, options.seconds)
    report.finish()


if __name__ == "__main__":
    main()
