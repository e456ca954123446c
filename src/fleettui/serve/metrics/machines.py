"""Metrics of a machine itself: whether it answers, what the operator decided, processor, memory, disks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleettui.model.unknown import Unknown
from fleettui.serve.metrics.sheet import Sheet, gauge, info, label, word_label
from fleettui.view.figures import is_answering, net_rates, swap_used_kib

if TYPE_CHECKING:
    from fleettui.model.snapshot import MachineSnapshot

HEALTHS = ("healthy", "degraded", "unhealthy", "offline", "unknown")
TRUSTS = ("approved", "pending", "rejected", "key_changed")
DRAINS = ("planned", "running", "drained", "blocked", "failed", "cancelled")
LATE_KEPT_S = 60.0
"""A source that is late may be slow at every poll: what it said last counts that long."""
MAX_DISKS = 64
"""Of one machine: containers may mount thousands."""
_KIB = 1 << 10
_ASKED = ("ok", "late", "error")

MACHINE = ("machine",)
_SOURCE, _DISK = ("machine", "source"), ("machine", "mount")

INFO = info(
    "fleettui_machine_info", ("machine", "role", "hostname", "os", "kernel"),
    "What the machine is: role and hostname of its file, system as it tells it",
)  # fmt: skip
UP = gauge(
    "fleettui_machine_up", MACHINE, "1 while the machine answers, 0 while it is offline or not approved"
)
CONNECTED = gauge("fleettui_machine_connected", MACHINE, "1 while the SSH connection stands")
HEALTH = gauge("fleettui_machine_health", ("machine", "health"), "1 for the present health, 0 for the others")
TRUST = gauge("fleettui_machine_trust", ("machine", "trust"), "1 for what was decided about its host key")
MAINTENANCE = gauge("fleettui_machine_maintenance", MACHINE, "1 while the machine is in maintenance")
DRAIN = gauge(
    "fleettui_machine_drain", ("machine", "state"), "1 for the state of its drain; without a drain all are 0"
)
OUT_OF_SERVICE = gauge(
    "fleettui_machine_out_of_service", MACHINE,
    "1 in maintenance or drained: that it does not answer is no surprise",
)  # fmt: skip
UNTIL = gauge(
    "fleettui_machine_maintenance_until_timestamp_seconds", MACHINE,
    "When the maintenance should be over, seconds since the epoch", "seconds",
)  # fmt: skip
AGE = gauge("fleettui_machine_age_seconds", MACHINE, "Since the machine was last heard", "seconds")
SOURCE_AGE = gauge(
    "fleettui_source_age_seconds", _SOURCE, "Since the last good reading of a source", "seconds"
)
SOURCE_OK = gauge("fleettui_source_ok", _SOURCE, "1 while a source answers, 0 while it is late or fails")

CPU = gauge("fleettui_machine_cpu_utilisation_ratio", MACHINE, "Busy share of all cores", "ratio")
LOADS = tuple(
    gauge(f"fleettui_machine_load{minutes}", MACHINE, f"Load average over {minutes} min")
    for minutes in (1, 5, 15)
)
CORES = gauge("fleettui_machine_cpu_cores", MACHINE, "Logical processors that are online")
UPTIME = gauge("fleettui_machine_uptime_seconds", MACHINE, "Since the machine was started", "seconds")
MEMORY_TOTAL = gauge("fleettui_machine_memory_total_bytes", MACHINE, "Main memory", "bytes")
MEMORY_USED = gauge(
    "fleettui_machine_memory_used_bytes", MACHINE, "Main memory in use: total - available", "bytes"
)
SWAP_TOTAL = gauge("fleettui_machine_swap_total_bytes", MACHINE, "Swap", "bytes")
SWAP_USED = gauge("fleettui_machine_swap_used_bytes", MACHINE, "Swap in use", "bytes")
DISK_TOTAL = gauge("fleettui_disk_total_bytes", _DISK, "Size of a local file system", "bytes")
DISK_USED = gauge("fleettui_disk_used_bytes", _DISK, "Used on it", "bytes")
DISK_FREE = gauge("fleettui_disk_free_bytes", _DISK, "What an ordinary user may still write there", "bytes")
RECEIVED = gauge(
    "fleettui_machine_network_receive_bytes_per_second", MACHINE,
    "Received by all network cards together", "bytes_per_second",
)  # fmt: skip
SENT = gauge(
    "fleettui_machine_network_transmit_bytes_per_second", MACHINE,
    "Sent by all network cards together", "bytes_per_second",
)  # fmt: skip

METRICS = (
    INFO, UP, CONNECTED, HEALTH, TRUST, MAINTENANCE, UNTIL, DRAIN, OUT_OF_SERVICE, AGE, SOURCE_AGE, SOURCE_OK,
    CPU, *LOADS, CORES, UPTIME, MEMORY_TOTAL, MEMORY_USED, SWAP_TOTAL, SWAP_USED, DISK_TOTAL, DISK_USED,
    DISK_FREE, RECEIVED, SENT,
)  # fmt: skip


def is_of_now(snapshot: MachineSnapshot, source: str, now: float) -> bool:
    """Whether what a source said last is told as the value of this moment. What a machine said before it went
    is none, nor what was read before the source began to fail."""
    status = snapshot.sources.get(source)
    if status is None or not is_answering(snapshot):
        return False
    if status.state == "ok":
        return True
    age_s = status.age_s(now)
    return status.state == "late" and age_s is not None and age_s <= LATE_KEPT_S


def write_machine(sheet: Sheet, snapshot: MachineSnapshot, who: str, now: float) -> None:
    """All but its GPUs, engines and copies. `who`: the label of the machine."""
    machine, system = snapshot.machine, snapshot.system
    words = (
        who, label("role", machine.role), label("hostname", machine.hostname),
        word_label("os", None if system is None else system.os),
        word_label("kernel", None if system is None else system.kernel),
    )  # fmt: skip
    sheet.add_info(INFO, ",".join(words))
    is_up = is_answering(snapshot)
    sheet.add(UP, who, is_up)
    sheet.add(CONNECTED, who, snapshot.link.state == "up")
    sheet.add_state(HEALTH, who, "health", HEALTHS, snapshot.health)
    sheet.add_state(TRUST, who, "trust", TRUSTS, snapshot.trust)
    maintenance, drain = snapshot.maintenance, snapshot.drain
    sheet.add(MAINTENANCE, who, maintenance is not None)
    if maintenance is not None:
        sheet.add(UNTIL, who, maintenance.until)
    sheet.add_state(DRAIN, who, "state", DRAINS, "" if drain is None else drain.state)
    sheet.add(OUT_OF_SERVICE, who, snapshot.is_out_of_service)
    sheet.add(AGE, who, snapshot.age_s(now))
    for name, status in snapshot.sources.items():
        source = f"{who},{label('source', name)}"
        sheet.add(SOURCE_AGE, source, status.age_s(now))
        if is_up and status.state in _ASKED:
            sheet.add(SOURCE_OK, source, status.state == "ok")
    _write_host(sheet, snapshot, who, now)


def _write_host(sheet: Sheet, snapshot: MachineSnapshot, who: str, now: float) -> None:
    cpu, memory, disks, system = snapshot.cpu, snapshot.memory, snapshot.disks, snapshot.system
    if cpu is not None and is_of_now(snapshot, "cpu", now):
        sheet.add_percent(CPU, who, cpu.busy_percent)
        if not isinstance(cpu.load, Unknown):
            for metric, load in zip(LOADS, cpu.load, strict=True):
                sheet.add(metric, who, load)
        sheet.add(UPTIME, who, cpu.uptime_s)
    if system is not None and is_answering(snapshot):
        sheet.add(CORES, who, system.cores)
    if memory is not None and is_of_now(snapshot, "memory", now):
        sheet.add_bytes(MEMORY_TOTAL, who, memory.total_kib, _KIB)
        sheet.add_bytes(MEMORY_USED, who, memory.used_kib, _KIB)
        sheet.add_bytes(SWAP_TOTAL, who, memory.swap_total_kib, _KIB)
        sheet.add_bytes(SWAP_USED, who, swap_used_kib(memory), _KIB)
    if disks is not None and is_of_now(snapshot, "disks", now):
        for disk in disks.disks[:MAX_DISKS]:
            place = f"{who},{label('mount', disk.mount)}"
            sheet.add_bytes(DISK_TOTAL, place, disk.total_kib, _KIB)
            sheet.add_bytes(DISK_USED, place, disk.used_kib, _KIB)
            sheet.add_bytes(DISK_FREE, place, disk.free_kib, _KIB)
    if snapshot.net is not None and is_of_now(snapshot, "net", now):
        received, sent = net_rates(snapshot)
        sheet.add(RECEIVED, who, received)
        sheet.add(SENT, who, sent)
