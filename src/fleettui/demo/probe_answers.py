"""The texts that a machine's tools print: what the section loops of a real machine would send."""

from __future__ import annotations

from collections.abc import Callable

from fleettui.demo.doctor_answers import DOCTOR_SECTIONS, doctor_answer
from fleettui.demo.gauges import JIFFIES_S
from fleettui.demo.machine import SimulatedMachine
from fleettui.probes.loops_gpu import FAST_FIELDS

NOT_AVAILABLE = "[N/A]"
MISMATCH_EXIT = 18
NO_TOOL_EXIT = 127
UNKNOWN_SECTION_EXIT = 64
_IDLE = "0x0000000000000001"
_CUDA_OF_BRANCH = {"535": "12.2", "550": "12.4", "570": "12.8", "575": "12.9", "580": "13.0"}
BUSES = ("01", "41", "81", "C1", "21", "61", "A1", "E1")

Answer = tuple[int, str]
"""Exit code and text."""


def answer_section(machine: SimulatedMachine, section: str, now: float) -> Answer:
    """What the machine's loops say to one section of a request."""
    name, _, argument = section.partition(":")
    if name in {"gpu", "condition"}:
        code, text = gpu_rows(machine, tuple(argument.split(":")) if argument else FAST_FIELDS)
    elif name == "apps":
        code, text = process_rows(machine)
    elif name == "ps":
        code, text = 0, process_owners(machine)
    elif name == "version":
        code, text = version_text(machine)
    elif name == "xid":
        code, text = 0, f"{machine.counters.uptime_at(now):.2f}\n" if machine.plan.cards else ""
    elif name == "find":
        code, text = 0, "/usr/bin/nvidia-smi" if machine.plan.cards else ""
    elif name in _FACTS:
        code, text = 0, _FACTS[name](machine, now)
    elif name in DOCTOR_SECTIONS:
        code, text = doctor_answer(machine, name)
    else:
        code, text = UNKNOWN_SECTION_EXIT, ""
    if name in _KEPT_LINES:
        return code, _kept_lines(text, *_KEPT_LINES[name])
    return code, text.rstrip("\n")


def _kept_lines(text: str, start: tuple[str, ...], dropped: tuple[str, ...]) -> str:
    """The lines that the loop's `read` keeps, stripped."""
    lines = (line.strip() for line in text.splitlines())
    return "".join(
        line + "\n"
        for line in lines
        if ":" in line and line.startswith(start) and not line.startswith(dropped)
    )


_KEPT_LINES = {
    "mem": (("Mem", "SwapT", "SwapF"), ("\0",)),
    "net": (("",), ("lo:", "veth", "face")),
}
"""Sections of which the loop keeps only some lines: starts kept, starts dropped."""


# --- nvidia-smi


def _tool_failure(machine: SimulatedMachine) -> Answer | None:
    if not machine.plan.cards:
        return NO_TOOL_EXIT, ""
    if machine.plan.has_driver_failure:
        library = ".".join(machine.plan.host.driver.split(".")[:2])
        text = (
            f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {library}\n"
        )
        return MISMATCH_EXIT, text
    return None


def gpu_rows(machine: SimulatedMachine, fields: tuple[str, ...]) -> Answer:
    """`nvidia-smi --query-gpu=… --format=csv,noheader,nounits`."""
    failure = _tool_failure(machine)
    if failure is not None:
        return failure
    rows = []
    for card, used_mib in enumerate(machine.used_mib_by_card()):
        values = card_values(machine, card, used_mib)
        for field in fields:
            if field not in values:
                return 2, f'Field "{field}" is not a valid field to query.\n'
        rows.append(", ".join(values[field] for field in fields))
    return 0, "".join(row + "\n" for row in rows)


def card_values(machine: SimulatedMachine, card: int, used_mib: int) -> dict[str, str]:
    """Every field of one card that we know, as nvidia-smi prints it."""
    gauge = machine.cards[card]
    kind = gauge.kind
    memory = dict.fromkeys(
        ("memory.total", "memory.used", "memory.free", "memory.reserved"), NOT_AVAILABLE
    )  # unified memory: all of them
    if not kind.is_unified:
        memory = {
            "memory.total": str(kind.total_mib),
            "memory.reserved": str(kind.reserved_mib),
            "memory.used": str(used_mib),
            "memory.free": str(kind.total_mib - kind.reserved_mib - used_mib),
        }
    limit = NOT_AVAILABLE if kind.power_limit_w is None else f"{kind.power_limit_w:.2f}"
    domain = "0000000F" if kind.is_unified else "00000000"
    return {
        "index": str(card),
        "uuid": machine.card_uuids[card],
        "gpu_uuid": machine.card_uuids[card],
        "name": kind.name,
        "driver_version": machine.plan.host.driver,
        **memory,
        "utilization.gpu": str(round(gauge.utilisation_percent)),
        "utilization.memory": str(round(gauge.utilisation_percent * 0.6)),
        "temperature.gpu": str(round(gauge.temperature_c)),
        "power.draw": f"{max(1.0, gauge.power_w):.2f}",
        "power.limit": limit,
        "fan.speed": str(round(gauge.fan_percent)) if kind.has_fan else NOT_AVAILABLE,
        "pstate": gauge.pstate,
        "pci.bus_id": f"{domain}:{BUSES[card % len(BUSES)]}:{card // len(BUSES):02X}.0",
        "mig.mode.current": "Disabled" if kind.total_mib > 80_000 else NOT_AVAILABLE,
        **_condition_values(machine, card),
    }


def _condition_values(machine: SimulatedMachine, card: int) -> dict[str, str]:
    """Fields that change rarely, as far as the machine's driver knows them."""
    gauge = machine.cards[card]
    kind = gauge.kind
    branch = int(machine.plan.host.driver.partition(".")[0] or 0)
    has_ecc = kind.total_mib > 40_000
    link = {"width": "[N/A]", "gen": "[N/A]"} if kind.is_unified else {"width": "16", "gen": "4"}
    gen = link["gen"] if gauge.pstate in {"P0", "P2"} or kind.is_unified else "1"
    masks = {
        "clocks_throttle_reasons.active": "0x0000000000000000" if gauge.utilisation_percent > 1 else _IDLE
    }
    if branch >= 535:
        masks["clocks_event_reasons.active"] = masks["clocks_throttle_reasons.active"]
    newer = {"gpu_recovery_action": "None", "addressing_mode": "ATS" if kind.is_unified else "None"}
    return {
        "persistence_mode": "Enabled",
        "pcie.link.width.current": link["width"],
        "pcie.link.width.max": link["width"],
        "pcie.link.gen.current": gen,
        "pcie.link.gen.max": link["gen"],
        "ecc.errors.uncorrected.volatile.total": "0" if has_ecc else NOT_AVAILABLE,
        "ecc.errors.corrected.volatile.total": "0" if has_ecc else NOT_AVAILABLE,
        "retired_pages.pending": NOT_AVAILABLE,
        "compute_cap": kind.compute_cap,
        **masks,
        **(newer if branch >= 565 else {}),
    }


def version_text(machine: SimulatedMachine) -> Answer:
    """`nvidia-smi --version`."""
    failure = _tool_failure(machine)
    if failure is not None:
        return failure
    driver = machine.plan.host.driver
    cuda = _CUDA_OF_BRANCH.get(driver.partition(".")[0], "12.4")
    labels = {"NVIDIA-SMI": driver, "NVML": driver.rpartition(".")[0], "DRIVER": driver, "CUDA": cuda}
    return 0, "".join(
        f"{label + (' Version' if label == 'CUDA' else ' version'):<20}: {value}\n"
        for label, value in labels.items()
    )


def process_rows(machine: SimulatedMachine) -> Answer:
    """`nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory …`."""
    failure = _tool_failure(machine)
    if failure is not None:
        return failure
    return 0, "".join(
        f"{machine.card_uuids[item.card]}, {item.pid}, {item.name}, {item.used_mib}\n"
        for item in machine.processes()
    )


def process_owners(machine: SimulatedMachine) -> str:
    """`ps -o pid=,user=,args=` of the processes on the cards."""
    if _tool_failure(machine) is not None:
        return ""
    owners = {item.pid: f"{item.pid:>7} {item.user:<8} {item.command}\n" for item in machine.processes()}
    return "".join(owners.values())


# --- /proc, df, uname


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


_FACTS: dict[str, Callable[[SimulatedMachine, float], str]] = {
    "stat": _stat,
    "load": _load,
    "uptime": _uptime,
    "mem": _memory,
    "net": _network,
    "disks": _disks,
    "uname": _uname,
    "os": _os_release,
    "cpu": _cpuinfo,
}
