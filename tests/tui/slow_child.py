"""The dashboard of a test with a slow terminal: publishes, and says how late its event loop was.

    python slow_child.py REPORT_FD MACHINES CARDS SECONDS

Lines of JSON: one each 0.2 s, a last one with the screen as it should be seen.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import TextIO

from tui_fleet import Clock, FakeService, card, fleet, machine, moved

from fleettui.model.snapshot import MachineSnapshot
from fleettui.tui.app import FleetApp

PUBLISH_S = 0.5
BEAT_S = 0.01
START_S = 2.0
"""Until the first screen stands."""
REPORT_S = 0.2
SETTLED_S = 0.5


def full_machine(number: int, cards: int) -> MachineSnapshot:
    """One with so many cards."""
    items = (card(index, "NVIDIA L40S", 46068, 8000, 3 * number % 100) for index in range(cards))
    return machine(f"gpu-{number:02}", *items)


def waited_for_core_s() -> float:
    """How long this thread was ready and others had the cores; 0 where the system does not say."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


class Child:
    """App, service and clocks."""

    def __init__(self, report: TextIO, machines: int, cards: int) -> None:
        self.report = report
        self.service = FakeService(fleet(tuple(full_machine(number, cards) for number in range(machines))))
        self.app = FleetApp(self.service, clock=Clock())
        self.gaps_s: list[float] = []
        self.own_gaps_s: list[float] = []
        """Without the time in which other programs had the cores."""

    async def beat(self) -> None:
        """How late the loop wakes up, against the monotonic clock."""
        while True:
            asked, waited_s = time.monotonic(), waited_for_core_s()
            await asyncio.sleep(BEAT_S)
            gap_s = time.monotonic() - asked - BEAT_S
            self.gaps_s.append(gap_s)
            self.own_gaps_s.append(gap_s - (waited_for_core_s() - waited_s))

    async def publish(self) -> None:
        """All machines have new figures each time."""
        step = 0
        while True:
            step += 1
            machines = tuple(
                moved(item, step * 7 + place) for place, item in enumerate(self.service.snapshot.machines)
            )
            self.service.publish_exactly(machines)
            await asyncio.sleep(PUBLISH_S)

    async def tell(self) -> None:
        """A line now and then."""
        while True:
            await asyncio.sleep(REPORT_S)
            self.say()

    def say(self, **more: object) -> None:
        """One line."""
        driver = self.app._driver
        line = {
            "published": self.service.snapshot.seq,
            "worst_own_gap_s": max(self.own_gaps_s, default=0.0),
            "worst_gap_s": max(self.gaps_s, default=0.0),
            "gap_p99_s": sorted(self.gaps_s)[len(self.gaps_s) * 99 // 100] if self.gaps_s else 0.0,
            "paints": self.app.painter.count,
            "frames": getattr(driver, "frames", 0),
            "bytes": getattr(driver, "bytes_written", 0),
        }
        print(json.dumps(line | more), file=self.report, flush=True)

    def screen_lines(self) -> list[str]:
        """What should be seen."""
        with self.app._context():
            strips = self.app.screen._compositor.render_strips()
        return ["".join(part.text for part in strip).rstrip() for strip in strips]

    async def direct(self, seconds: float) -> None:
        """The whole play; the app ends with it in any case."""
        try:
            await self.play(seconds)
        finally:
            self.app.exit()

    async def play(self, seconds: float) -> None:
        """Publish, then wait for the terminal, then tell what it should show."""
        await asyncio.sleep(START_S)
        tasks = [asyncio.create_task(each()) for each in (self.beat, self.publish, self.tell)]
        await asyncio.sleep(seconds)
        tasks[1].cancel()
        self.app.painter.paint_now()
        before: list[str] = []
        for _ in range(40):  # keys that wait are worked off first
            await asyncio.sleep(SETTLED_S)
            now = self.screen_lines()
            if now == before and not self.app.is_terminal_behind:
                break
            before = now
        self.say(screen=before)
        for task in tasks:
            task.cancel()


async def main() -> None:
    """Command line."""
    with os.fdopen(int(sys.argv[1]), "w") as report:
        child = Child(report, int(sys.argv[2]), int(sys.argv[3]))
        directing = asyncio.create_task(child.direct(float(sys.argv[4])))
        await child.app.run_async()
        await directing


if __name__ == "__main__":
    asyncio.run(main())
