"""The texts that a machine's tools print: what the section loops of a real machine would send."""

from __future__ import annotations

from fleettui.demo.doctor_answers import DOCTOR_SECTIONS, Answer, doctor_answer
from fleettui.demo.facts_answers import FACTS
from fleettui.demo.log_answers import LOG_SECTIONS, log_answer
from fleettui.demo.machine import SimulatedMachine
from fleettui.probes.loops_gpu import FAST_FIELDS

NOT_AVAILABLE = "[N/A]"
MISMATCH_EXIT = 18
NO_TOOL_EXIT = 127
UNKNOWN_SECTION_EXIT = 64
_IDLE = "0x0000000000000001"
_CUDA_OF_BRANCH = {"535": "12.2", "550": "12.4", "570": "12.8", "575": "12.9", "580": "13.0"}
BUSES = ("01", "41", "81", "C1", "21", "61", "A1", "E1")


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
    elif name in FACTS:
        code, text = 0, FACTS[name](machine, now)
    elif name in LOG_SECTIONS:
        code, text = log_answer(machine, section)
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
