"""The dashboard on large fleets: 64 and 256 machines with 8 GPUs at 2 s, painting into a 200x60 terminal."""

from __future__ import annotations

import argparse
import time

from fleets import (
    FLEETTUI,
    Fleet,
    Screen,
    demo_fleet,
    folder_options,
    light_fleet,
    temporary_state,
    wait_until_quiet,
)
from measure import Report, tree_memory, watch

GOALS = (6.0, 100.0)
"""Of 64 machines: per cent of a core, MiB."""


def measure_dashboard(
    report: Report,
    fleet: Fleet,
    machines: int,
    goals: tuple[float | None, float | None],
    options: argparse.Namespace,
) -> None:
    """Open it, let it settle, then look at its process. `goals`: per cent of a core, MiB."""
    seconds = options.seconds
    title = f"{machines} machines x {options.cards} GPUs at 2 s"
    with temporary_state() as home:
        wait_until_quiet(limit_cores=1.0)
        screen = Screen([*FLEETTUI, *folder_options(fleet, home)], home, 200, 60)
        try:
            time.sleep(options.warm_up)
            written = screen.bytes_read
            with watch(screen.process.pid, fleet.server_pids) as window:
                time.sleep(seconds)
            if screen.process.poll() is not None:
                tail = screen.tail.decode(errors="replace")
                raise SystemExit(f"the dashboard ended with {screen.process.returncode}: {tail}")
            memory = tree_memory(screen.process.pid)
            written = screen.bytes_read - written
        finally:
            screen.close()
    share_goal, memory_goal = goals
    report.add(
        f"{title}: share of one core",
        window.core_share * 100,
        "%",
        share_goal,
        f"over {window.wall_s:.0f} s; the rest of the machine used {window.other_cores:.2f} cores",
    )
    polls = machines * seconds / 2.0
    report.add("CPU per machine-poll, painting included", window.cpu_s / polls * 1e3, "ms")
    report.add("memory (RSS)", memory.rss_mib, "MiB", memory_goal, f"PSS {memory.pss_mib:.0f} MiB")
    report.add("written to the terminal", written / 1024 / (seconds / 2.0), "KiB / 2 s")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", type=int, default=64, help="of the demo fleet; 0: leave it out")
    parser.add_argument("--light-machines", type=int, default=256, help="of light_server.py; 0: none")
    parser.add_argument("--cards", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--warm-up", type=float, default=20.0)
    options = parser.parse_args()
    report = Report("Dashboard in steady state")
    cards = options.cards
    if options.machines:
        with demo_fleet(options.machines, cards) as fleet:
            measure_dashboard(report, fleet, options.machines, GOALS, options)
    if options.light_machines:
        with light_fleet(options.light_machines, cards) as fleet:
            measure_dashboard(report, fleet, options.light_machines, (None, None), options)
    report.finish()


if __name__ == "__main__":
    main()
