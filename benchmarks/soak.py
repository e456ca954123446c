"""A long run with faults: does the dashboard stay as small as it was, and does every machine come back?

    python benchmarks/soak.py [--seconds 600] [--machines 14] [--seed 7]

The dashboard runs as ever, on a terminal of its own, against the demo fleet, some of it behind a proxy, and
on this computer. Faults begin after a calm start and end before a calm end; then it is quit, and a second
one is killed. Exit code 1 when a check fails. docs/reliability.md tells how to read the table.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from fleets import Screen
from fleettui.demo.launcher import DemoFleet
from measure import Report, environment_lines, table_lines
from soak_faults import LOCAL, Chaos, Field, make_machine_files, new_proxy

MARKER = "SOAK_MARK"
CALM_S = 60.0
"""At the start: everything is loaded, caches fill, and this is what the end is compared with."""
RECOVERY_S = 50.0
"""After the last fault: the longest delay between two attempts (30 s), the deadlines of a login (8 s and 5 s)
and two intervals."""
GONE_S = 10.0
"""After the end of the client, however it ended."""
MOST_GROWTH_MIB = 4.0
"""By the line through the last two thirds of the samples. The allocator keeps the room of the busiest moment,
and with each restart of all machines a busier one may come; what is in use is compared more narrowly:"""
MOST_OBJECTS = 1.03

Line = dict[str, Any]


@dataclass
class Watched:
    """The dashboard's process and what it reports."""

    screen: Screen
    report: Path
    log: Path

    def lines(self) -> list[Line]:
        """Everything reported so far."""
        text = self.report.read_text(encoding="utf-8") if self.report.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def samples(self) -> list[Line]:
        return [line for line in self.lines() if "rss_mib" in line]

    def health(self) -> dict[str, str]:
        """Of each machine, as last reported."""
        found = [line["health"] for line in self.lines() if "health" in line]
        return found[-1] if found else {}


@contextmanager
def dashboard(folder: Path, home: Path, mark: str, sample_s: float) -> Iterator[Watched]:
    """The process under test."""
    client = Path(__file__).with_name("soak_client.py")
    state = home / "state"
    report = home / f"report-{uuid.uuid4().hex[:6]}.jsonl"
    command = ["env", f"{MARKER}={mark}", sys.executable, str(client), str(folder), str(state), str(report)]
    screen = Screen([*command, "--sample", str(sample_s)], str(home), 180, 50)
    try:
        yield Watched(screen, report, state / "fleettui.log")
    finally:
        screen.close()


def marked_pids(mark: str) -> list[int]:
    """Processes that the dashboard started, orphans too, and itself."""
    wanted = f"{MARKER}={mark}".encode()
    found = []
    for process in psutil.process_iter():
        try:
            if wanted in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                found.append(process.pid)
        except OSError:
            continue
    return found


async def wait_for(condition: Callable[[], object], limit_s: float) -> float | None:
    """Seconds until the condition held; None: it did not."""
    started = time.monotonic()
    while time.monotonic() - started < limit_s:
        if condition():
            return time.monotonic() - started
        await asyncio.sleep(0.25)
    return None


def fitted_growth(samples: Sequence[Line], key: str) -> float:
    """What a straight line through the last two thirds gains from their first to their last sample."""
    rest = samples[len(samples) // 3 :]
    times, values = [sample["at"] for sample in rest], [float(sample[key]) for sample in rest]
    if len(rest) < 3:
        return 0.0
    middle_t, middle_v = sum(times) / len(times), sum(values) / len(values)
    over = sum((t - middle_t) ** 2 for t in times)
    slope: float = sum((t - middle_t) * (v - middle_v) for t, v in zip(times, values, strict=True)) / over
    return slope * float(times[-1] - times[0])


def print_left(state: Line, mark: str) -> None:
    """What is still there."""
    for item in state["machines"]:
        if item["ssh_connections"]:
            print("left:", item["name"], item["presence"], item["ssh_connections"], file=sys.stderr)
    for pid in marked_pids(mark):
        print("left:", pid, Path(f"/proc/{pid}/cmdline").read_bytes()[-200:], file=sys.stderr)


async def wait_until_gone(demo: DemoFleet, mark: str) -> float | None:
    """Seconds until the machines have no SSH connection of ours and no process of ours is left.

    Connections to engines are not counted: what goes straight ends with our process, and what the demo's own
    SSH servers opened just when a connection broke off they sometimes keep.
    """
    started = time.monotonic()
    state: Line = {"machines": ()}
    while time.monotonic() - started < GONE_S:
        state = await demo.command_async("state")
        held = sum(item["ssh_connections"] for item in state["machines"])
        if held == 0 and not marked_pids(mark):
            return time.monotonic() - started
        await asyncio.sleep(0.25)
    print_left(state, mark)
    return None


def add_counts(report: Report, calm: Sequence[Line], end: Sequence[Line]) -> None:
    """Counts at the calm end against the calm start: the least now is not above the most then."""
    allowed = dict.fromkeys(("fds", "threads", "connections", "channels", "pollers", "children"), 0)
    allowed["threads"] = 4  # asyncio's pool makes each of its threads when it is first needed
    allowed["tasks"] = 2  # a scroll bar is a widget that is made when it is first needed, and has a task
    for key, more in allowed.items():
        before, now = max(line[key] for line in calm), min(line[key] for line in end)
        report.add(f"{key} at the end", now, "", before + more, f"{before} at the start")


def print_tasks(calm: Sequence[Line], end: Sequence[Line]) -> None:
    """Which kinds of tasks there are more of."""
    before, now = calm[-1]["task_names"], end[-1]["task_names"]
    more = [
        f"{name} {before.get(name, 0)} -> {count}"
        for name, count in now.items()
        if count > before.get(name, 0)
    ]
    print("more tasks:", ", ".join(more) or "none", file=sys.stderr)


def collected_pair(samples: Sequence[Line]) -> tuple[Line, Line]:
    """The first sample after a collection of the last two thirds, and the last one."""
    collected = [sample for sample in samples[len(samples) // 3 :] if sample["is_collected"]]
    return collected[0], collected[-1]


def add_memory(report: Report, samples: Sequence[Line]) -> None:
    """Memory over the last two thirds, and what it is made of."""
    rest = samples[len(samples) // 3 :]
    growth = fitted_growth(samples, "rss_mib")
    span_s = rest[-1]["at"] - rest[0]["at"]
    report.add("memory gained over the last two thirds, fitted", growth, "MiB", MOST_GROWTH_MIB,
               f"in {span_s:.0f} s, {len(rest)} samples")  # fmt: skip
    most = max(sample["rss_mib"] for sample in samples)
    note = f"{rest[0]['rss_mib']:.1f} after the first third, at most {most:.1f}"
    report.add("memory (RSS) at the end", samples[-1]["rss_mib"], "MiB", None, note)
    first, last = collected_pair(samples)
    for key, name in (("objects", "objects that the collector knows"), ("blocks", "blocks of memory in use")):
        note = f"{last[key]} against {first[key]}, after a collection"
        report.add(f"{name}, end / first third", last[key] / first[key], "", MOST_OBJECTS, note)
    kinds = last["kinds"]
    kept = kinds.get("asyncssh.connection.SSHClientConnection", 0) - last["connections"]
    report.add("closed connections in memory", kept, "", 0, "after a collection")
    kept = sum(count for name, count in kinds.items() if name.startswith("asyncssh.channel.SSH"))
    report.add("closed channels in memory", kept - last["channels"], "", 0, "after a collection")


def print_growth(samples: Sequence[Line]) -> None:
    """What there is more of, by type: for finding a leak."""
    first, last = (sample["kinds"] for sample in collected_pair(samples))
    more = {kind: count - first.get(kind, 0) for kind, count in last.items() if kind in first}
    grown = sorted(more.items(), key=lambda item: -item[1])[:8]
    print(
        "more objects:", ", ".join(f"{kind} +{count}" for kind, count in grown if count > 50), file=sys.stderr
    )


async def run_long(report: Report, watched: Watched, field: Field, options: argparse.Namespace) -> Chaos:
    """Calm, faults, calm; adds what was seen."""
    calm_s = min(CALM_S, options.seconds / 5)
    await asyncio.sleep(calm_s)
    calm = watched.samples()[-3:]
    healthy = watched.health()
    chaos = Chaos(field, options.seed, options.gap)
    await chaos.run(options.seconds - 2 * calm_s)
    for _ in range(3):  # back to the fleet; two escapes at once would be another key
        field.press(b"\x1b")
        await asyncio.sleep(0.5)
    recovered_s = await wait_for(lambda: watched.health() == healthy, RECOVERY_S)
    different = {name: state for name, state in watched.health().items() if state != healthy.get(name)}
    report.add("machines as before after the last fault", recovered_s, "s", RECOVERY_S,
               "" if recovered_s is not None else f"NOT all: {different}")  # fmt: skip
    await asyncio.sleep(calm_s)
    others = sum(watched.health().get(name) != state for name, state in healthy.items())
    report.add("machines otherwise than before at the end", others, "", 0)
    samples = watched.samples()
    if options.keep is not None:
        options.keep.write_bytes(watched.report.read_bytes())
    add_counts(report, calm, samples[-3:])
    print_tasks(calm, samples[-3:])
    add_memory(report, samples)
    print_growth(samples)
    return chaos


async def soak(options: argparse.Namespace) -> list[tuple[str, bool]]:
    """The whole run; prints the table. Answers the checks that are no figures."""
    report = Report(f"Soak: {options.seconds:.0f} s, seed {options.seed}")
    checks: list[tuple[str, bool]] = []
    with tempfile.TemporaryDirectory(prefix="fleettui-soak-") as home_name:
        home = Path(home_name)
        async with DemoFleet(machines=options.machines) as demo:
            near = [machine for machine in demo.machines if machine["name"] != "bora"][
                : options.machines // 3
            ]
            proxies = {machine["name"]: await new_proxy(machine["ssh_port"]) for machine in near}
            folder = home / "machines"
            sources = make_machine_files(demo, folder, proxies)
            mark = uuid.uuid4().hex
            with dashboard(folder, home, mark, options.sample) as watched:

                def local_pids() -> list[int]:
                    return [pid for pid in marked_pids(mark) if pid != watched.screen.process.pid]

                field = Field(demo, folder, sources, proxies, watched.screen.press, local_pids)
                chaos = await run_long(report, watched, field, options)
                checks.append(("the dashboard is alive at the end", watched.screen.process.poll() is None))
                watched.screen.press(b"q")
                ended_s = await wait_for(lambda: watched.screen.process.poll() is not None, GONE_S)
                report.add("leaving takes", ended_s, "s", GONE_S)
                report.add(
                    "after leaving nothing of ours anywhere", await wait_until_gone(demo, mark), "s", GONE_S
                )
                logged = watched.log.read_text(encoding="utf-8") if watched.log.exists() else ""
                checks.append(("no defect in the log", "Traceback" not in logged))
                if "Traceback" in logged:
                    print(logged[-3000:], file=sys.stderr)
            await kill_one(report, demo, folder, home, options)
            for proxy in proxies.values():
                await proxy.stop()
    print("\n".join([*environment_lines(), "", *table_lines([report]), ""]))
    print("faults: " + ", ".join(f"{count} x {name}" for name, count in sorted(chaos.counts.items())))
    checks += [(figure.name, figure.value is not None) for figure in report.figures]
    checks += [(figure.name, figure.verdict != "MISSED") for figure in report.figures]
    return checks


async def kill_one(
    report: Report, demo: DemoFleet, folder: Path, home: Path, options: argparse.Namespace
) -> None:
    """A second dashboard, killed at work."""
    mark = uuid.uuid4().hex
    with dashboard(folder, home, mark, options.sample) as watched:
        await wait_for(lambda: watched.health().get(LOCAL) not in (None, "unknown"), 30.0)
        await asyncio.sleep(5.0)
        os.kill(watched.screen.process.pid, signal.SIGKILL)
        report.add("after SIGKILL nothing of ours anywhere", await wait_until_gone(demo, mark), "s", GONE_S)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="calm start and end included")
    parser.add_argument("--machines", type=int, default=14)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--gap", type=float, default=3.0, metavar="S", help="between two faults, on average")
    parser.add_argument("--sample", type=float, default=10.0, metavar="S", help="between two samples")
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # ends what it started
    parser.add_argument("--keep", type=Path, metavar="FILE", help="copy what the dashboard reported there")
    failed = [name for name, is_good in asyncio.run(soak(parser.parse_args())) if not is_good]
    print(f"soak: FAILED: {'; '.join(dict.fromkeys(failed))}" if failed else "soak: all is as it should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
