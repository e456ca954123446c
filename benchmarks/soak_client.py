"""The process that `soak.py` watches: the dashboard as `fleettui` runs it, which also reports on itself.

A JSON line in the report file for each change of a machine's health, and one with counts every SAMPLE_S.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

import asyncssh

from fleettui.cli.dashboard import log_to_file
from fleettui.cli.folders import Folders
from fleettui.cli.serving import make_service, run_serving
from fleettui.fleet.service import FleetService
from fleettui.model.snapshot import FleetSnapshot, Health
from fleettui.tui.app import run_dashboard

PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
COLLECTED_EVERY = 6
"""Samples: only after a collection are counts of objects exact, and collecting at each one would hide garbage
that lies about for long."""


def count_objects() -> tuple[Counter[str], list[asyncssh.SSHClientConnection]]:
    """Objects by type; open SSH connections."""
    kinds: Counter[str] = Counter()
    connections: list[asyncssh.SSHClientConnection] = []
    for item in gc.get_objects():
        kind = type(item)
        kinds[f"{kind.__module__}.{kind.__qualname__}"] += 1
        if isinstance(item, asyncssh.SSHClientConnection) and not item.is_closed():
            connections.append(item)
    return kinds, connections


def take_sample(service: FleetService, *, is_collected: bool) -> dict[str, Any]:
    """What this process holds now."""
    rss_kib = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_KIB
    if is_collected:
        gc.collect()
    kinds, connections = count_objects()
    tasks = Counter(getattr(task.get_coro(), "__qualname__", "?") for task in asyncio.all_tasks())
    return {
        "at": time.time(),
        "rss_mib": rss_kib / 1024,
        "tasks": tasks.total(),
        "task_names": dict(tasks),
        "fds": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "threads": threading.active_count(),
        "pollers": len(service.pollers),
        "connections": len(connections),
        "channels": sum(len(item._channels) for item in connections),
        "children": len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()),
        "objects": kinds.total(),
        "blocks": sys.getallocatedblocks(),
        "is_collected": is_collected,
        "kinds": {
            name: count for name, count in kinds.items() if count > 200 or name.startswith("asyncssh.")
        },
    }


class Reporter:
    """Writes the report file."""

    def __init__(self, service: FleetService, file: TextIO, sample_s: float) -> None:
        self._service = service
        self._file = file
        self._sample_s = sample_s
        self._health: dict[str, Health] = {}
        service.subscribe(self.note_health)

    def note_health(self, fleet: FleetSnapshot) -> None:
        """A line when any machine's health, or the list of machines, changed."""
        health = {machine.name: machine.health for machine in fleet.machines}
        if health != self._health:
            self._health = health
            self._write({"at": time.time(), "health": health, "problems": len(fleet.problems)})

    async def run(self) -> None:
        """Samples until cancelled."""
        count = 0
        while True:
            await asyncio.sleep(self._sample_s)
            count += 1
            self._write(take_sample(self._service, is_collected=count % COLLECTED_EVERY == 0))

    def _write(self, line: dict[str, Any]) -> None:
        print(json.dumps(line), file=self._file, flush=True)


async def run_watched(service: FleetService, file: TextIO, sample_s: float) -> int:
    """The dashboard, with the reporter beside it."""
    reporting = asyncio.create_task(Reporter(service, file, sample_s).run())
    try:
        return await run_dashboard(service)
    finally:
        reporting.cancel()


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("machines_dir")
    parser.add_argument("state_dir")
    parser.add_argument("report", type=Path)
    parser.add_argument("--sample", type=float, default=10.0, metavar="S")
    parser.add_argument("--interval", type=float, default=2.0, metavar="S")
    options = parser.parse_args()
    folders = Folders(options.machines_dir, options.state_dir, options.interval)
    Path(options.state_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    log_to_file(folders)
    service = make_service(folders, "dashboard")
    with options.report.open("a", encoding="utf-8") as file:
        return run_serving(run_watched(service, file, options.sample))


if __name__ == "__main__":
    raise SystemExit(main())
