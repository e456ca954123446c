"""The whole collector without a screen, in a process of its own; says what it cost as one JSON line.

    python benchmarks/client.py MACHINES_DIR [--seconds 30] [--warm-up 10] [--state-dir DIR] [--interval 2]

Polls like the dashboard does: SSH, probes, HTTP, parsers, health, snapshots, and the store if given one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import dataclass, field

from fleettui.fleet.keeper import SnapshotKeeper
from fleettui.fleet.pace import new_gathering_loop
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings

BEAT_S = 0.01


@dataclass(slots=True)
class Tally:
    """What came out of the service."""

    snapshots: int = 0
    polls: int = 0
    """Fact frames that arrived, over all machines."""
    _heard: dict[str, float | None] = field(default_factory=dict)

    def take(self, fleet: FleetSnapshot) -> None:
        """Count the machines that were heard since the last snapshot."""
        self.snapshots += 1
        for machine in fleet.machines:
            if machine.last_seen is not None and self._heard.get(machine.name) != machine.last_seen:
                self._heard[machine.name] = machine.last_seen
                self.polls += 1


async def beat(lags: list[float]) -> None:
    """Sample how late the event loop wakes up, seconds."""
    while True:
        asked = time.perf_counter()
        await asyncio.sleep(BEAT_S)
        lags.append(max(0.0, time.perf_counter() - asked - BEAT_S))


def is_complete(fleet: FleetSnapshot) -> bool:
    """True when every machine answered once and none is still connecting."""
    return bool(fleet.machines) and all(
        machine.last_seen is not None or machine.link.state == "failed" for machine in fleet.machines
    )


async def collect(options: argparse.Namespace) -> dict[str, object]:
    """Connect, warm up, then measure."""
    keeper = SnapshotKeeper(options.state_dir, "benchmark") if options.state_dir else None
    service = FleetService(
        FleetSettings(options.machines_dir, interval_s=options.interval),
        Connector(ConnectorSettings.from_environment()),
        keeper,
    )
    complete = asyncio.Event()
    tally, lags = Tally(), list[float]()

    def take(fleet: FleetSnapshot) -> None:
        tally.take(fleet)
        if is_complete(fleet):
            complete.set()

    service.subscribe(take)
    beating = asyncio.create_task(beat(lags))
    started, cpu = time.perf_counter(), time.process_time()
    await service.start()
    await asyncio.wait_for(complete.wait(), 120)
    result: dict[str, object] = {
        "connect_s": time.perf_counter() - started,
        "connect_cpu_s": time.process_time() - cpu,
        "connect_lags_s": sorted(lags),
        "machines": len(service.snapshot.machines),
        "offline": sum(machine.last_seen is None for machine in service.snapshot.machines),
        "errors": sorted({machine.link.error or "" for machine in service.snapshot.machines} - {""}),
    }
    beating.cancel()
    if options.seconds:
        await asyncio.sleep(options.warm_up)
        before, cpu, started = (tally.polls, tally.snapshots), time.process_time(), time.perf_counter()
        print("steady", file=sys.stderr, flush=True)
        await asyncio.sleep(options.seconds)
        result |= {
            "cpu_s": time.process_time() - cpu,
            "wall_s": time.perf_counter() - started,
            "polls": tally.polls - before[0],
            "snapshots": tally.snapshots - before[1],
            "store_error": keeper.error if keeper else None,
        }
    await service.stop()
    return result


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("machines_dir")
    parser.add_argument("--seconds", type=float, default=0.0, help="steady state to measure; 0: only connect")
    parser.add_argument("--warm-up", type=float, default=10.0)
    parser.add_argument("--state-dir")
    parser.add_argument("--interval", type=float, default=2.0)
    with asyncio.Runner(loop_factory=new_gathering_loop) as runner:
        print(json.dumps(runner.run(collect(parser.parse_args()))))


if __name__ == "__main__":
    main()
