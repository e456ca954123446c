"""What one refresh of the dashboard costs: bytes written to a real terminal, CPU time, lines painted again.

    python benchmarks/paint_bytes.py [--rows 24] [--size 160x50] [--refreshes 40] [--json]

The dashboard runs in a process of its own on a pseudo terminal; a fake service publishes snapshots in which a
share of the machines changed. The clock stands still, so that only the share under test changes.
"""

from __future__ import annotations

import argparse
import asyncio
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
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parents[1] / "tests" / "tui")]

SHARES = {"nothing": 0.0, "a quarter": 0.25, "everything": 1.0}
GAP_S = 0.3
"""Between two snapshots: longer than the dashboard's own pace, so that each is painted."""


def run_child(report_fd: int, rows: int, refreshes: int, share: float) -> None:
    """The dashboard: publishes, then says what it cost."""
    from tui_fleet import Clock, FakeService, fleet, moved, rack

    from fleettui.tui.app import FleetApp

    service = FakeService(fleet(rack(rows)))
    app = FleetApp(service, clock=Clock())

    async def publish() -> None:
        await asyncio.sleep(1.5)
        report = os.fdopen(report_fd, "w")
        print("begin", file=report, flush=True)
        await asyncio.sleep(0.3)
        cpu_before, paints_before = time.process_time(), app.painter.count
        for step in range(refreshes):
            machines = list(service.snapshot.machines)
            changed = int(rows * share)
            for offset in range(changed):
                index = (step * changed + offset) % rows
                machines[index] = moved(machines[index], step * rows + offset)
            service.publish_exactly(tuple(machines))
            await asyncio.sleep(GAP_S)
        cpu_s = time.process_time() - cpu_before
        print(
            json.dumps({"cpu_s": cpu_s, "paints": app.painter.count - paints_before}), file=report, flush=True
        )
        await asyncio.sleep(0.2)
        app.exit()

    async def main() -> None:
        publishing = asyncio.create_task(publish())
        await app.run_async()
        await publishing

    asyncio.run(main())


def measure(rows: int, size: tuple[int, int], refreshes: int, share: float) -> dict[str, float]:
    """Run the dashboard on a pseudo terminal and count what it writes between its two reports."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    report_read, report_write = os.pipe()
    os.set_inheritable(report_write, True)
    command = [sys.executable, str(HERE), "--child", str(report_write), "--rows", str(rows)]
    command += ["--refreshes", str(refreshes), "--share", str(share)]
    environment = dict(os.environ, TERM="xterm-256color", COLORTERM="truecolor")
    environment.pop("NO_COLOR", None)
    child = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, pass_fds=(report_write,), env=environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    os.close(report_write)
    written, report, counted_from, counted_to = 0, b"", None, None
    deadline = time.monotonic() + 30 + refreshes * GAP_S
    while time.monotonic() < deadline and counted_to is None:
        readable, _, _ = select.select([master, report_read], [], [], 0.5)
        if report_read in readable:
            chunk = os.read(report_read, 4096)
            report += chunk
            if b"begin\n" in report and counted_from is None:
                counted_from = written
            if not chunk or report.endswith(b"}\n"):
                counted_to = written
        if master in readable:
            try:
                written += len(os.read(master, 1 << 16))
            except OSError:
                break
    while child.poll() is None and time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            try:
                os.read(master, 1 << 16)
            except OSError:
                break
    child.wait(timeout=10)
    os.close(master)
    os.close(report_read)
    if counted_from is None or counted_to is None:
        raise SystemExit(f"paint_bytes: the dashboard ended early: {report!r}")
    outcome = json.loads(report.split(b"\n", 1)[1])
    paints = max(1, outcome["paints"])
    return {
        "bytes": round((counted_to - counted_from) / refreshes),
        "cpu_ms": round(outcome["cpu_s"] / refreshes * 1e3, 2),
        "paints": paints,
    }


def main() -> None:
    """Print a line for each share of changed machines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=24)
    parser.add_argument("--size", default="160x50")
    parser.add_argument("--refreshes", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--share", type=float, default=0.25, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        run_child(options.child, options.rows, options.refreshes, options.share)
        return
    columns, lines = (int(part) for part in options.size.split("x"))
    results = {
        name: measure(options.rows, (columns, lines), options.refreshes, share)
        for name, share in SHARES.items()
    }
    if options.json:
        print(json.dumps(results))
        return
    print(f"{options.rows} machines, {options.size}, mean of {options.refreshes} refreshes")
    for name, result in results.items():
        print(
            f"  {name + ' changed':20} {result['bytes']:>6} bytes {result['cpu_ms']:>7.2f} ms CPU a refresh"
        )


if __name__ == "__main__":
    main()
