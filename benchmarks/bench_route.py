"""What `fleettui --route MODEL` costs: answered from a stored snapshot (warm) and by polling (cold)."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from fleets import FLEETTUI, Fleet, demo_fleet, folder_options, temporary_state, wait_until_quiet
from measure import Report, Run, clean_environment, cpus, interleave, run_process, walls

MODEL = "llama3.1:8b"
FORBIDDEN = ("asyncssh", "httpx", "pydantic", "textual")
WARM_GOAL_RATIO = 5.0
COLD_GOAL_S = 3.0
COLD_GOAL_MACHINES = 64


def store_snapshot(fleet: Fleet, home: str, machines: int) -> None:
    """Have `status --watch` store the fleet, then stop it, so that it does not disturb what is measured."""
    command = [*FLEETTUI, *folder_options(fleet, home), "status", "--watch", "--json"]
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, env=clean_environment(HOME=home))
    assert watcher.stdout
    try:
        deadline = time.monotonic() + 60
        for line in watcher.stdout:
            heard = machines - line.count(b'"last_seen":null')
            if heard >= machines - 1 or time.monotonic() > deadline:
                break
        time.sleep(2.5)  # one more interval: the keeper writes the complete snapshot
    finally:
        watcher.terminate()
        watcher.wait()
        watcher.stdout.close()
    if not Path(home, "state", "state.db").exists():
        raise SystemExit("status --watch stored no snapshot")


def route(fleet: Fleet, home: str, *options: str, has_lease: bool = False) -> Run:
    """One `--route`; ends the benchmark when it does not answer."""
    lease = [] if has_lease else ["--no-lease"]
    command = [*FLEETTUI, "--route", MODEL, "-q", *lease, *folder_options(fleet, home), *options]
    run = run_process(command, clean_environment(HOME=home))
    if run.exit_code:
        raise SystemExit(f"--route failed ({run.exit_code}): {run.stderr.decode(errors='replace')}")
    return run


def loaded_modules(fleet: Fleet, home: str) -> set[str]:
    """Modules that a warm `--route` imports."""
    command = [sys.executable, "-X", "importtime", "-m", "fleettui", "--route", MODEL, "-q", "--no-lease"]
    run = run_process(
        [*command, *folder_options(fleet, home), "--max-age", "3600"], clean_environment(HOME=home)
    )
    return set(re.findall(r"import time: +\d+ \| +\d+ \| +(\S+)", run.stderr.decode(errors="replace")))


def measure_route(report: Report, machines: int, warm_rounds: int, cold_rounds: int) -> None:
    """Warm and cold on a demo fleet of `machines`."""
    title = "1 machine" if machines == 1 else f"{machines} machines"
    with demo_fleet(machines, cards=8) as fleet, temporary_state() as home:
        store_snapshot(fleet, home, machines)
        wait_until_quiet()
        runs = interleave(
            {
                "pass": partial(run_process, [sys.executable, "-c", "pass"], clean_environment(HOME=home)),
                "warm": partial(route, fleet, home, "--max-age", "3600"),
                "leased": partial(route, fleet, home, "--max-age", "3600", has_lease=True),
            },
            warm_rounds,
        )
        bare, warm = walls(runs["pass"]), walls(runs["warm"])
        report.add(
            f"warm, {title}: wall / python -c pass",
            warm.least / bare.least,
            "times",
            WARM_GOAL_RATIO,
            f"{warm.least * 1e3:.0f} / {bare.least * 1e3:.0f} ms; "
            f"medians {warm.median * 1e3:.0f} / {bare.median * 1e3:.0f}",
        )
        leased = walls(runs["leased"])
        report.add(
            f"warm with a lease, {title}: wall / python -c pass",
            leased.least / bare.least,
            "times",
            None,
            f"{leased.least * 1e3:.0f} ms; median {leased.median * 1e3:.0f}",
        )
        bare_cpu, warm_cpu = cpus(runs["pass"]), cpus(runs["warm"])
        report.add(
            f"warm, {title}: CPU / python -c pass",
            warm_cpu.least / bare_cpu.least,
            "times",
            None,
            f"{warm_cpu.least * 1e3:.0f} / {bare_cpu.least * 1e3:.0f} ms",
        )
        modules = loaded_modules(fleet, home)
        heavy = [name for name in FORBIDDEN if name in modules]
        report.add(
            f"warm, {title}: heavy libraries loaded",
            float(len(heavy)),
            "",
            0,
            " ".join(heavy) or f"{len(modules)} modules in all",
        )
        wait_until_quiet()
        cold = interleave({"cold": partial(route, fleet, home, "--max-age", "0")}, cold_rounds)["cold"]
        goal = COLD_GOAL_S if machines == COLD_GOAL_MACHINES else None
        report.add(f"cold, {title}: wall", walls(cold).least, "s", goal, f"median {walls(cold).median:.2f}")
        report.add(f"cold, {title}: CPU", cpus(cold).least * 1e3, "ms")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", type=int, nargs="*", default=[1, 64])
    parser.add_argument("--warm-rounds", type=int, default=30)
    parser.add_argument("--cold-rounds", type=int, default=3)
    options = parser.parse_args()
    report = Report(f"fleettui --route {MODEL}")
    for machines in options.machines:
        measure_route(report, machines, options.warm_rounds, options.cold_rounds)
    report.finish()


if __name__ == "__main__":
    main()
