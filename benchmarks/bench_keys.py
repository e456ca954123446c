"""From a key to what it paints: 64 machines of 8 GPUs, all expanded, so 512 rows of GPUs in 200x60."""

from __future__ import annotations

import argparse
import sys
import time

from fleets import HERE, Screen, temporary_state, wait_until_quiet
from measure import Report, percentile, threads_cpu_s

KEYS = {
    "one line down": b"j",
    "one page down": b"\x1b[6~",
    "one page up": b"\x1b[5~",
    "to the end": b"G",
    "to the top": b"g",
    "collapse or expand a machine": b"x",
}
GOAL_MS = 50.0
SETTLED_S = 0.05
"""Nothing was written for so long: the key is painted."""
LIMIT_S = 3.0


def press(screen: Screen, key: bytes) -> tuple[float, float]:
    """Press it; answers CPU seconds until it is painted, and seconds until the last byte of that."""
    cpu, pressed, written = threads_cpu_s(screen.process.pid), time.perf_counter(), screen.bytes_read
    screen.press(key)
    painted = pressed
    while (now := time.perf_counter()) < pressed + LIMIT_S:
        if screen.bytes_read != written:
            written, painted = screen.bytes_read, now
        elif painted > pressed and now > painted + SETTLED_S:
            break
        time.sleep(0.002)
    return threads_cpu_s(screen.process.pid) - cpu, painted - pressed


def measure_keys(report: Report, machines: int, cards: int, rounds: int) -> None:
    """Open it, expand everything, press each key so many times."""
    command = [sys.executable, str(HERE / "keys_child.py"), str(machines), str(cards)]
    with temporary_state() as home:
        screen = Screen(command, home, 200, 60)
        try:
            time.sleep(4.0)
            press(screen, b"X")
            wait_until_quiet()
            every: list[tuple[float, float]] = []
            for name, key in KEYS.items():
                figures = [press(screen, key) for _ in range(rounds)]
                every += figures
                cpus = [cpu for cpu, _ in figures]
                note = f"median {percentile(cpus, 0.5) * 1e3:.1f} ms"
                report.add(f"{name}: CPU, 95th percentile", percentile(cpus, 0.95) * 1e3, "ms", None, note)
            if screen.process.poll() is not None:
                raise SystemExit(f"the dashboard ended: {screen.tail.decode(errors='replace')}")
        finally:
            screen.close()
    share = percentile([cpu for cpu, _ in every], 0.95)
    report.add("all of them: CPU, 95th percentile", share * 1e3, "ms", GOAL_MS)
    share = percentile([wall for _, wall in every], 0.95)
    report.add("all of them: until the last byte, 95th percentile", share * 1e3, "ms")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", type=int, default=64)
    parser.add_argument("--cards", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    report = Report(f"Keys ({options.machines} machines x {options.cards} GPUs, expanded)")
    measure_keys(report, options.machines, options.cards, options.rounds)
    report.finish()


if __name__ == "__main__":
    main()
