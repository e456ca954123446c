"""What /proc, df, lsblk and their like print on a simulated machine: the sections of the facts loop."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from hashlib import sha256

from fleettui.demo.gauges import JIFFIES_S
from fleettui.demo.machine import SimulatedMachine, runner_command


def _stat(machine: SimulatedMachine, now: float) -> str:
    counters, host = machine.counters, machine.plan.host
    busy = counters.sums_at(now)[0]
    everything = counters.uptime_at(now) * JIFFIES_S * host.threads
    user, system, softirq = int(busy * 0.78), int(busy * 0.19), int(busy * 0.03)
    iowait = int(everything * 0.0004)
    idle = int(everything) - user - system - softirq - iowait
    return f"cpu  {user} 412 {system} {idle} {iowait} 0 {softirq} 0 0 0\n"


def _load(machine: SimulatedMachine, now: float) -> str:
    one, five, fifteen = machine.counters.load
    running = 1 + round(machine.counters.busy_share * machine.plan.host.threads)
    return (
        f"{one:.2f} {five:.2f} {fifteen:.2f} {running}/{machine.plan.host.threads * 22} {40_000 + int(now)}\n"
    )


def _uptime(machine: SimulatedMachine, now: float) -> str:
    uptime = machine.counters.uptime_at(now)
    return f"{uptime:.2f} {uptime * machine.plan.host.threads * 0.96:.2f}\n"


def _memory(machine: SimulatedMachine, now: float) -> str:
    total = machine.plan.host.memory_kib
    used = machine.ram_used_bytes() // 1024
    cached = machine.page_cache_bytes() // 1024
    available = max(0, total - used)
    swap = 16_777_212 if machine.plan.is_unified else 8_388_604
    rows = {
        "MemTotal": total,
        "MemFree": max(0, available - cached - 402_156),
        "MemAvailable": available,
        "Buffers": 402_156,
        "Cached": cached,
        "SwapCached": 0,
        "Active": used // 2,
        "Inactive": cached,
        "SwapTotal": swap,
        "SwapFree": swap,
        "Dirty": 212,
        "Shmem": 61_240,
    }
    return "".join(f"{name + ':':<15}{value:>9} kB\n" for name, value in rows.items())


def _network(machine: SimulatedMachine, now: float) -> str:
    _, received, sent = machine.counters.sums_at(now)
    rows = (
        ("lo", received * 0.4, received * 0.4),
        (machine.plan.host.network, received, sent),
        ("docker0", received * 0.01, sent * 0.01),
    )
    lines = [
        "Inter-|   Receive                                                |  Transmit",
        " face |bytes    packets errs drop fifo frame compressed multicast"
        "|bytes    packets errs drop fifo colls carrier compressed",
    ]
    lines += [
        f"{name:>6}: {int(rx):>8} {int(rx / 820):>7}    0    0    0     0          0         0 "
        f"{int(tx):>8} {int(tx / 940):>7}    0    0    0     0       0          0"
        for name, rx, tx in rows
    ]
    return "".join(line + "\n" for line in lines)


def _disks(machine: SimulatedMachine, now: float) -> str:
    host = machine.plan.host
    rows = [("tmpfs", host.memory_kib // 10, 3_120, "/run")]
    models_kib = machine.installed_bytes() // 1024
    size_kib = host.disk_gb * 1_000_000_000 // 1024
    if host.has_models_disk:
        rows.append(("/dev/nvme0n1p2", 937_367_552, 61_402_112 + int(now * 3), "/"))
        rows.append(("/dev/nvme1n1", size_kib, models_kib + size_kib // 3, "/models"))
    else:
        rows.append(("/dev/nvme0n1p2", size_kib, models_kib + 71_880_412 + int(now * 3), "/"))
    rows += [
        ("efivarfs", 148, 61, "/sys/firmware/efi/efivars"),
        ("/dev/nvme0n1p1", 1_098_632, 6_284, "/boot/efi"),
    ]
    lines = ["Filesystem     1024-blocks      Used Available Capacity Mounted on"]
    for device, size, used, mount in rows:
        free = size - used - (size // 20 if device.startswith("/dev/nvme") and mount != "/boot/efi" else 0)
        percent = -(-used * 100 // (used + free))
        lines.append(f"{device:<14} {size:>11} {used:>9} {free:>9} {percent:>7}% {mount}")
    return "".join(line + "\n" for line in lines)


def _uname(machine: SimulatedMachine, now: float) -> str:
    return f"Linux {machine.plan.host.kernel} {machine.plan.host.arch}\n"


def _os_release(machine: SimulatedMachine, now: float) -> str:
    pretty = machine.plan.host.os
    version = next((word for word in pretty.split() if word[0].isdigit()), "")
    name = pretty.split(f" {version}")[0]
    identity = name.split()[0].lower()
    return f'PRETTY_NAME="{pretty}"\nNAME="{name}"\nVERSION_ID="{version}"\nID={identity}\n'


def _cpuinfo(machine: SimulatedMachine, now: float) -> str:
    host = machine.plan.host
    if not host.cpu:
        parts = ["0xd87"] * 5 + ["0xd85"] * 5 + ["0xd87"] * 5 + ["0xd85"] * 5
        return "".join(
            f"processor\t: {core}\nCPU implementer\t: 0x41\nCPU part\t: {parts[core % len(parts)]}\n"
            for core in range(host.threads)
        )
    return "".join(f"processor\t: {core}\nmodel name\t: {host.cpu}\n" for core in range(host.threads))


def _boot_and_cpus(machine: SimulatedMachine, now: float) -> str:
    again = f" {machine.boots}" if machine.boots else ""
    digest = sha256(f"boot {machine.plan.name}{again}".encode()).hexdigest()
    boot = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    cpus = f"0-{machine.plan.host.threads - 1}"
    return f"boot {boot}\nonline {cpus}\nallowed {cpus}\ncontainer \ncgroup 0::/init.scope\n"


def _pressure(machine: SimulatedMachine, now: float) -> str:
    line = "avg10=0.00 avg60=0.00 avg300=0.00 total="
    return f"some {line}41240\nfull {line}39112\n"


def _swaps(machine: SimulatedMachine, now: float) -> str:
    size = 16_777_212 if machine.plan.is_unified else 8_388_604
    return f"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/swap.img  file {size} 0 -2\n"


def _cards(machine: SimulatedMachine, now: float) -> str:
    return f"device {machine.plan.host.network}\nbridge docker0\n"


def _blocks(machine: SimulatedMachine, now: float) -> str:
    host = machine.plan.host
    size = host.disk_gb * 1_000_000_000
    disks = [("nvme0n1", 960_197_124_096, ["/", "/boot/efi"]), ("nvme1n1", size, ["/models"])]
    if not host.has_models_disk:
        disks = [("nvme0n1", size, ["/", "/boot/efi"])]
    rows = [
        {
            "name": name, "type": "disk", "size": count, "rota": False, "model": None, "tran": "nvme",
            "mountpoint": None,
            "children": [
                {"name": f"{name}p{at}", "type": "part", "mountpoint": mount}
                for at, mount in enumerate(mounts)
            ],
        }
        for name, count, mounts in disks
    ]  # fmt: skip
    return json.dumps({"blockdevices": rows}, indent=3)


def _cores(machine: SimulatedMachine, now: float) -> str:
    """lscpu; two threads a core, on ARM one."""
    threads = machine.plan.host.threads
    per_core = 2 if machine.plan.host.cpu and threads % 2 == 0 else 1
    rows = {
        "Architecture": machine.plan.host.arch,
        "CPU(s)": threads,
        "Thread(s) per core": per_core,
        "Core(s) per socket": threads // per_core,
        "Socket(s)": 1,
    }
    return "".join(f"{label + ':':<40} {value}\n" for label, value in rows.items())


def _drives(machine: SimulatedMachine, now: float) -> str:
    """lsblk without what lies on the disks."""
    rows = json.loads(_blocks(machine, now))["blockdevices"]
    kept = [{key: row[key] for key in ("name", "size", "rota")} for row in rows]
    return json.dumps({"blockdevices": [{"name": "zram0", "size": 0, "rota": False}, *kept]}, indent=3)


def _runtime(machine: SimulatedMachine, now: float) -> str:
    return "Docker version 28.5.1, build e180ab8\n"


def _clock(machine: SimulatedMachine, now: float) -> str:
    return f"{time.time():.9f}\n"


def sockets_text(
    machine: SimulatedMachine, ssh_port: int, engine_port: int, connections: int, sides: Sequence[int] = ()
) -> bytes:
    """Listening sockets: SSH, the engine with its connections and its simulated clients, its runners; engines
    beside it with theirs (`sides`: connections of each)."""
    runners = machine.scheduler.runners.values()
    clients = sum(len(runner.active) for runner in runners) + len(machine.scheduler.waiting)
    rows = [
        f"00000000:{ssh_port:04X} 1",
        f"00000000:{engine_port:04X} {connections + clients}",
        *(f"0100007F:{runner.port:04X} {int(bool(runner.active))}" for runner in runners),
        *(
            f"00000000:{served.port:04X} {count + served.running + served.waiting}"
            for served, count in zip(machine.served, sides, strict=False)
            if served.is_up
        ),
    ]
    return "".join(f"{row}\n" for row in (*rows, len(rows))).encode()


def _servers(machine: SimulatedMachine, now: float) -> str:
    serving = 1_204
    rows = [f"{serving:>7} {1:>7} /usr/local/bin/ollama serve"]
    rows += [
        f"{runner.pid:>7} {serving:>7} {runner_command(runner)}"
        for runner in machine.scheduler.runners.values()
    ]
    rows += [f"{served.pid:>7} {1:>7} {served.command}" for served in machine.served if served.is_up]
    return "".join(f"{row}\n" for row in rows)


def settings_text(machine: SimulatedMachine, engine_port: int) -> bytes:
    """The environment of the engine's service, as far as the loop lets it through."""
    plan = machine.plan
    rows = [f"OLLAMA_HOST=0.0.0.0:{engine_port}", f"OLLAMA_KEEP_ALIVE={plan.keep_alive_s:.0f}s"]
    rows += [] if plan.context is None else [f"OLLAMA_CONTEXT_LENGTH={plan.context}"]
    return "".join(f"{row}\n" for row in rows).encode()


def _nothing(machine: SimulatedMachine, now: float) -> str:
    return ""


FACTS: dict[str, Callable[[SimulatedMachine, float], str]] = {
    "stat": _stat,
    "load": _load,
    "uptime": _uptime,
    "mem": _memory,
    "net": _network,
    "disks": _disks,
    "uname": _uname,
    "os": _os_release,
    "cpu": _cpuinfo,
    "host": _boot_and_cpus,
    "cgroup": _nothing,
    "arc": _nothing,
    "psi": _pressure,
    "swaps": _swaps,
    "links": _cards,
    "blocks": _blocks,
    "runtime": _runtime,
    "cores": _cores,
    "drives": _drives,
    "clock": _clock,
    "servers": _servers,
}
"""Text of each section of the facts loop."""
