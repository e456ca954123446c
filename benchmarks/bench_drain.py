"""CPU of one preview of a drain over a fleet in memory: classes, room of every target, packing, order."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from fleettui.decide.drain.plan import plan_drains
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.model.drain import DrainOptions
from fleettui.model.snapshot import FleetSnapshot
from measure import Report

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from drain_fleets import NOW, Problem, make_fleet, make_host, random_problem

MACHINES, DISK = 64, 30
GOAL_MS = 300.0
REPEAT = 10


def roomy_fleet() -> FleetSnapshot:
    """64 machines of two cards, two copies on each and thirty models on each disk; the first has twelve, half
    of which are nowhere else."""
    names = [f"model{number}:8b" for number in range(DISK)]
    first = make_host("gpu0", (2.0, 2.0), tuple((name, 4.0 + at) for at, name in enumerate(names[:12])), ())
    others = [
        make_host(
            f"gpu{number}", (6.0 + number % 17, 10.0 + number % 5),
            ((names[6 + number % 24], 6.0), (names[6 + (number + 7) % 24], 3.0)), tuple(names), 64.0,
        )
        for number in range(1, MACHINES)
    ]  # fmt: skip
    return FleetSnapshot(1, NOW, 2.0, (first, *others), machines_dir="machines")


def tight(copies: int, fill: float) -> FleetSnapshot:
    """63 targets with one card and idle copies each, of which not all that is to move finds a place."""
    problem = random_problem(7, hosts=MACHINES - 1, copies=copies, idle=2, spread=0.5, fill=fill)
    fleet: FleetSnapshot = make_fleet(Problem(problem.copies, problem.hosts, 8.0))
    return fleet


def least_ms(fleet: FleetSnapshot, sources: list[str], options: DrainOptions) -> tuple[float, str]:
    """CPU milliseconds of the quickest of some previews, and what it says."""
    least, plans = float("inf"), plan_drains(fleet, sources, RouteKnowledge(), options, NOW)
    for _ in range(REPEAT):
        started = time.process_time()
        plans = plan_drains(fleet, sources, RouteKnowledge(), options, NOW)
        least = min(least, time.process_time() - started)
    counts: dict[str, int] = {}
    for plan in plans:
        for line in plan.copies:
            counts[line.drain_class] = counts.get(line.drain_class, 0) + 1
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    return least * 1e3, f"{told}{'' if all(plan.is_exact for plan in plans) else '; not every packing tried'}"


def main() -> None:
    """A usual drain beside the goal, and the hardest ones: little room, several machines at once."""
    report = Report(f"Preview of a drain ({MACHINES} machines)")
    usual, forced = roomy_fleet(), DrainOptions(accept_degraded=True)
    cases = (
        ("12 copies, room to spare", usual, ["gpu0"], DrainOptions()),
        ("8 machines at once", usual, [f"gpu{number}" for number in range(8)], DrainOptions()),
        ("12 large copies, little room", tight(12, 1.0), ["source"], DrainOptions()),
        ("60 copies, little room", tight(60, 1.0), ["source"], DrainOptions()),
        ("60 copies, degraded accepted", tight(60, 1.0), ["source"], forced),
    )
    for name, fleet, sources, options in cases:
        value, note = least_ms(fleet, sources, options)
        report.add(name, value, "ms", GOAL_MS, note)
    report.finish()


if __name__ == "__main__":
    main()
