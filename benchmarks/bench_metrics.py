"""CPU of one answer of `/metrics` over a fleet in memory, and how late the event loop is meanwhile."""

from __future__ import annotations

import asyncio
import gzip
import time

from bench_decide import ASKED, GIB, NOW, digest_of, make_machine
from fleettui.model.gpu import GpuCard, GpuReading
from fleettui.model.readings import CpuReading, LoadedModel
from fleettui.model.record import replace
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot, SourceStatus
from fleettui.serve.metrics.exposition import METRICS, make_sheet
from fleettui.serve.metrics.server import ServerFacts
from fleettui.serve.metrics.sheet import write_openmetrics
from measure import Report

MACHINES, CARDS, COPIES = 300, 8, 3
GOAL_MS = 150.0
GOAL_LATE_MS = 50.0
REPEAT = 8
SOURCES = ("cpu", "memory", "disks", "net", "sockets", "system", "gpu", "processes", "ollama")


def make_full_machine(number: int) -> MachineSnapshot:
    """Eight cards, three copies, every source."""
    machine = make_machine(number, "fits")
    assert machine.gpu is not None
    cards: list[GpuCard] = [
        replace(machine.gpu.cards[0], index=index, uuid=f"GPU-{number}-{index}") for index in range(CARDS)
    ]
    names = (f"model{copy}:8b" for copy in range(COPIES - 1))
    copies = tuple(
        LoadedModel(name, "ollama", digest_of(name), 5 * GIB, 5 * GIB, 32768, expires_at=NOW + number)
        for name in (ASKED, *names)
    )
    return replace(
        machine,
        gpu=GpuReading(tuple(cards)),
        cpu=CpuReading(12.5, (1.0, 0.5, 0.25), 86_400.0),
        engines=(replace(machine.engines[0], loaded=copies),),
        sources=dict.fromkeys(SOURCES, SourceStatus("ok", NOW - 0.5, NOW - 3600)),
    )


def write(fleet: FleetSnapshot, facts: ServerFacts) -> bytes:
    """What a scrape of Prometheus gets."""
    return gzip.compress(write_openmetrics(make_sheet(fleet, facts, (), NOW), METRICS).encode(), 1)


async def worst_lateness_ms(fleet: FleetSnapshot, facts: ServerFacts) -> float:
    """Of a timer of one millisecond, while answers are written in a thread."""
    work = asyncio.to_thread(lambda: [write(fleet, facts) for _ in range(REPEAT)])
    writing = asyncio.ensure_future(work)
    worst = 0.0
    while not writing.done():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, time.perf_counter() - began - 0.001)
    await writing
    return worst * 1e3


def main() -> None:
    """The least of several answers, the worst lateness beside them."""
    report = Report(f"Metrics ({MACHINES} machines of {CARDS} GPUs and {COPIES} copies)")
    fleet = FleetSnapshot(
        1, NOW, 2.0, tuple(map(make_full_machine, range(MACHINES))), machines_dir="machines"
    )
    polls = tuple((f"gpu{number}", loop, 1.0, 5) for number in range(MACHINES) for loop in ("facts", "gpu"))
    facts = ServerFacts(True, 0, 0, {}, polls)
    samples = sum(map(len, make_sheet(fleet, facts, (), NOW).samples.values()))
    least = float("inf")
    for _ in range(REPEAT):
        began = time.process_time()
        body = write(fleet, facts)
        least = min(least, time.process_time() - began)
    note = f"{samples:,} samples, {len(body) / 1000:.0f} kB with gzip"
    report.add("one answer, CPU", least * 1e3, "ms", GOAL_MS, note)
    late = asyncio.run(worst_lateness_ms(fleet, facts))
    report.add("event loop meanwhile, late by at most", late, "ms", GOAL_LATE_MS)
    report.finish()


if __name__ == "__main__":
    main()
