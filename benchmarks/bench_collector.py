"""CPU of the whole collector per machine-poll, against `ssh` over ControlMaster asking the same machines.

The collector makes SSH connections, asks facts, GPUs and the engine over HTTP, parses, judges, and stores.
`ssh` over ControlMaster, already connected, only starts the GPU question and reads the answer.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fleets import HERE, Fleet, demo_fleet, temporary_state, wait_until_quiet
from fleettui.config.machine_folder import load_machines
from fleettui.model.machine import Machine
from fleettui.probes.frames import request_line
from fleettui.probes.loops import loop_command
from measure import Report, clean_environment, process_cpu_s, run_process

GOAL_MS = 0.8
GOAL_RATIO = 0.1
IN_FLIGHT = 16
TOKEN = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Masters:
    """Open ControlMaster connections."""

    machines: tuple[Machine, ...]
    pids: tuple[int, ...]
    folder: Path

    def command(self, machine: Machine, *words: str) -> list[str]:
        """`ssh` to a machine through its master."""
        return [*ssh_command(machine, self.folder), *words]


def ssh_command(machine: Machine, folder: Path) -> list[str]:
    """`ssh` with a machine file's settings; loopback keys are made for each run, so none is checked."""
    ssh = machine.ssh
    command = ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"]
    command += ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
    command += ["-o", f"ControlPath={folder / machine.name}", "-o", "IdentitiesOnly=yes"]
    if ssh.identity:
        command += ["-i", ssh.identity]
    command += ["-p", str(ssh.port or 22)]
    return [*command, f"{ssh.user}@{ssh.host or machine.hostname}" if ssh.user else machine.hostname]


@contextmanager
def open_masters(fleet: Fleet, folder: Path) -> Iterator[Masters]:
    """One master for each machine that answers."""
    folder.mkdir()
    processes: dict[str, subprocess.Popen[bytes]] = {}
    machines = load_machines(fleet.machines_dir).machines
    try:
        for machine in machines:
            command = ssh_command(machine, folder)
            command[1:1] = ["-M", "-N", "-o", "ConnectTimeout=10"]
            processes[machine.name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not all((folder / name).exists() for name in processes):
            time.sleep(0.1)
        up = tuple(machine for machine in machines if (folder / machine.name).exists())
        if not up:
            raise SystemExit("no ControlMaster could be opened")
        yield Masters(up, tuple(processes[machine.name].pid for machine in up), folder)
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait()


def ask_by_ssh(masters: Masters, request: Path) -> int:
    """One GPU question to every machine, `IN_FLIGHT` at a time; returns how many answered."""

    def ask(machine: Machine) -> bool:
        with request.open("rb") as lines:
            done = subprocess.run(
                masters.command(machine, loop_command("gpu", TOKEN)),
                stdin=lines,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=30,
            )
        return TOKEN.encode() in done.stdout

    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        return sum(pool.map(ask, masters.machines))


def children_cpu_s() -> float:
    """CPU seconds of finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ssh_ms_per_poll(masters: Masters, request: Path, rounds: int) -> float:
    """CPU of `ssh` and its masters for one question to one machine, ms."""
    masters_cpu, cpu, answers = sum(map(process_cpu_s, masters.pids)), children_cpu_s(), 0
    for _ in range(rounds):
        answers += ask_by_ssh(masters, request)
    if not answers:
        raise SystemExit("no machine answered ssh over ControlMaster")
    used = children_cpu_s() - cpu + sum(map(process_cpu_s, masters.pids)) - masters_cpu
    return used / answers * 1e3


def collector_ms_per_poll(fleet: Fleet, home: str, seconds: float) -> tuple[float, dict[str, float]]:
    """CPU of the collector per machine-poll, ms, and its whole report."""
    command = [sys.executable, str(HERE / "client.py"), fleet.machines_dir, "--seconds", str(seconds)]
    run = run_process([*command, "--state-dir", f"{home}/state"], clean_environment(HOME=home))
    if run.exit_code:
        raise SystemExit(run.stderr.decode(errors="replace"))
    result = json.loads(run.stdout)
    if result["store_error"]:
        raise SystemExit(result["store_error"])
    return result["cpu_s"] / result["polls"] * 1e3, result


def measure_collector(report: Report, machines: int, cards: int, seconds: float, rounds: int) -> None:
    """Both on the same fleet, ssh before and after the collector."""
    with demo_fleet(machines, cards) as fleet, temporary_state() as home:
        request = Path(home, "request")
        request.write_bytes(request_line(1, ("gpu",)))
        with open_masters(fleet, Path(home, "masters")) as masters:
            wait_until_quiet(limit_cores=1.0)
            by_ssh = [ssh_ms_per_poll(masters, request, rounds)]
            own, result = collector_ms_per_poll(fleet, home, seconds)
            by_ssh.append(ssh_ms_per_poll(masters, request, rounds))
    report.add(
        f"collector, {machines} machines x {cards} GPUs at 2 s: CPU per machine-poll",
        own,
        "ms",
        GOAL_MS,
        f"{result['polls']} polls, {result['snapshots']} snapshots in {result['wall_s']:.0f} s, "
        f"{result['offline']:.0f} offline",
    )
    report.add("ssh over ControlMaster: CPU per GPU question", min(by_ssh), "ms", None, spread(by_ssh))
    report.add("collector / ssh over ControlMaster", own / min(by_ssh), "times", GOAL_RATIO)


def spread(values: Sequence[float]) -> str:
    """Before and after."""
    return " / ".join(f"{value:.1f}" for value in values) + " before / after the collector"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", type=int, default=64)
    parser.add_argument("--cards", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.pop("SSH_AUTH_SOCK", None)
    report = Report("Collector without a screen (demo fleet)")
    measure_collector(report, options.machines, options.cards, options.seconds, options.rounds)
    report.finish()


if __name__ == "__main__":
    main()
