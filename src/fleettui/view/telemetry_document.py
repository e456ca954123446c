"""The `telemetry` of a machine in JSON: processor, memory, disks, network, GPUs."""

from __future__ import annotations

from fleettui.model.clock import iso_utc
from fleettui.model.gpu import GpuCard, GpuProcess, GpuReading, XidEvent, condition_of, is_on_card
from fleettui.model.residency import unexplained_mib
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import card_memory, gib_of_mib, has_no_gpu
from fleettui.probes.nvidia_xid import card_of_xid
from fleettui.view.host_document import memory_document
from fleettui.view.json_values import KIB_IN_GIB, Document, gib, known, rounded, tidy

_NOT_ASKED = Unknown("not asked")


def telemetry_document(snapshot: MachineSnapshot, is_online: bool) -> Document:
    """Readings of the machine; `gpu` is absent on CPU-only machines."""
    cpu, memory, disks, net = snapshot.cpu, snapshot.memory, snapshot.disks, snapshot.net
    load = None if cpu is None or isinstance(cpu.load, Unknown) else [tidy(value) for value in cpu.load]
    telemetry: Document = {
        "cpu_percent": None if cpu is None else rounded(cpu.busy_percent),
        "load": load,
        "uptime_s": None if cpu is None else rounded(cpu.uptime_s),
        "ram_used_gb": None if memory is None else gib(memory.used_kib, KIB_IN_GIB),
        "ram_total_gb": None if memory is None else gib(memory.total_kib, KIB_IN_GIB),
        **memory_document(memory),
        "disks": None
        if disks is None
        else [
            {
                "mount": disk.mount,
                "used_gb": gib(disk.used_kib, KIB_IN_GIB),
                "free_gb": gib(disk.free_kib, KIB_IN_GIB),
                "total_gb": gib(disk.total_kib, KIB_IN_GIB),
            }
            for disk in disks.disks
        ],
        "net": None
        if net is None
        else [
            {
                "name": interface.name,
                "rx_mb_s": _megabytes(interface.rx_bytes_s),
                "tx_mb_s": _megabytes(interface.tx_bytes_s),
                "counted": interface.is_counted,
            }
            for interface in net.interfaces
        ],
    }
    if has_no_gpu(snapshot):
        return telemetry
    if snapshot.gpu is not None:
        telemetry["gpu"] = [_card(snapshot, snapshot.gpu, card) for card in snapshot.gpu.cards]
        telemetry["vram_unexplained_gb"] = gib_of_mib(unexplained_mib(snapshot))
        telemetry["gpu_faults"] = [
            {"index": fault.index, "bus_id": known(fault.bus_id), "fault": fault.text}
            for fault in snapshot.gpu.faults
        ]
    else:
        # A client that walks the cards of machines that are online must not meet null there.
        telemetry["gpu"] = [] if is_online else None
    return telemetry


def _card(snapshot: MachineSnapshot, reading: GpuReading, card: GpuCard) -> Document:
    memory = card_memory(snapshot, card)
    processes = snapshot.processes
    return {
        "index": card.index,
        "uuid": known(card.uuid),
        "vendor": card.vendor,
        "bus_id": known(card.bus_id),
        "name": known(card.name),
        "vram_total_gb": gib_of_mib(memory.total_mib),
        "vram_used_gb": gib_of_mib(memory.used_mib),
        "vram_free_gb": gib_of_mib(memory.free_mib),
        "utilisation": known(card.utilisation_percent),
        "temperature_c": known(card.temperature_c),
        "power_w": rounded(card.power_w),
        "power_limit_w": rounded(card.power_limit_w),
        "fan_percent": known(card.fan_percent),
        "pstate": known(card.pstate),
        "unified": card.is_unified,
        "disabled": card.index in snapshot.machine.disabled_gpus,
        "fault": None if card.fault is None else card.fault.text,
        "stale": reading.is_stale,
        "implausible": list(card.suspect),
        "mig": [
            {
                "profile": part.profile,
                "uuid": known(part.uuid),
                "vram_total_gb": gib_of_mib(part.total_mib),
                "vram_used_gb": gib_of_mib(part.used_mib),
                "vram_free_gb": gib_of_mib(part.free_mib),
            }
            for part in card.mig
        ],
        **_condition(reading, card),
        "processes": None
        if processes is None
        else [_process(process) for process in processes.processes if is_on_card(process, card)],
    }


def _condition(reading: GpuReading, card: GpuCard) -> Document:
    """What is asked about once a minute; null until then and where the driver does not tell."""
    xids = _NOT_ASKED if reading.condition is None else reading.condition.xids
    document: Document = {
        "persistence": None,
        "pcie": None,
        "ecc": None,
        "throttle": None,
        "compute_cap": None,
        "xid": None
        if isinstance(xids, Unknown)
        else [_xid(event) for event in xids if card_of_xid(reading, event) == card.index],
    }
    condition = condition_of(reading, card)
    if condition is not None:
        throttle = condition.throttle
        document |= {
            "persistence": known(condition.has_persistence),
            "pcie": {
                "width": known(condition.pcie_width),
                "width_max": known(condition.pcie_width_max),
                "generation": known(condition.pcie_generation),
                "generation_max": known(condition.pcie_generation_max),
            },
            "ecc": {
                "uncorrected": known(condition.ecc_uncorrected),
                "corrected": known(condition.ecc_corrected),
            },
            "throttle": None if isinstance(throttle, Unknown) else list(throttle),
            "compute_cap": known(condition.compute_cap),
        }
    return document


def _xid(event: XidEvent) -> Document:
    at = None if isinstance(event.at, Unknown) else iso_utc(event.at)
    return {"code": event.code, "at": at, "text": event.text}


def _process(process: GpuProcess) -> Document:
    return {
        "pid": process.pid,
        "name": process.short_name,
        "user": known(process.user),
        "command": known(process.command),
        "vram_gb": gib_of_mib(process.used_mib),
    }


def _megabytes(bytes_s: Maybe[float]) -> float | None:
    return None if isinstance(bytes_s, Unknown) else round(bytes_s / 1e6, 1)
