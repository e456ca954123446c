"""What is wrong with the GPUs of a machine, in the operator's words."""

from __future__ import annotations

from fleettui.decide.amd_reasons import amd_reasons, thermal_limit_c, tool_of
from fleettui.decide.condition_reasons import condition_reasons
from fleettui.decide.gpu_models import model_reasons
from fleettui.decide.lateness import LATE_LIMIT_S
from fleettui.model.clock import day_and_time
from fleettui.model.gpu import GpuCard, GpuReading, is_on_card
from fleettui.model.residency import is_runner, unexplained_mib
from fleettui.model.snapshot import MachineSnapshot, Reason, Severity, SourceStatus
from fleettui.model.unknown import Unknown
from fleettui.model.vram import card_memory

UNEXPLAINED_LIMIT_MIB = 1024
_SLOW_CODES = frozenset({"hung", "timed_out", "killed"})
_FAULT_STEPS: dict[str, str] = {
    "reset": "stop what runs on it, then `nvidia-smi --gpu-reset`",
    "unknown_error": "see the kernel log (Xid), then reset it or reboot",
}
_NO_CARD_CODES = frozenset({"no_tool", "no_devices"})
_NAMES = ("nvidia-smi", "amd-smi", "rocm-smi", "amdgpu", "AMD", "/dev/kfd")


def gpu_reasons(snapshot: MachineSnapshot, now: float, utc_offset_s: int | None = None) -> list[Reason]:
    """All reasons that the GPU source and its cards give, the more severe first within a severity."""
    reading = snapshot.gpu
    reasons = _source_reasons(snapshot, now, utc_offset_s)
    if reading is None:
        return reasons
    reasons += _fault_reasons(snapshot, reading)
    if reading.cards or reading.faults:
        reasons += _count_reasons(snapshot, reading)
        reasons += model_reasons(snapshot, reading)
    condition = condition_reasons(snapshot, reading, now, utc_offset_s)
    reasons += [reason for reason in condition if reason.severity != "note"]
    for card in reading.cards:
        if not _is_plainly_fine(card):
            reasons += _card_reasons(snapshot, card)
    reasons += [Reason("note", "gpu_warning", f"nvidia-smi: {text}") for text in reading.warnings]
    reasons += amd_reasons(snapshot, reading, now, utc_offset_s)
    reasons += [reason for reason in condition if reason.severity == "note"]
    reasons += _memory_reasons(snapshot)
    return reasons


def _source_reasons(snapshot: MachineSnapshot, now: float, utc_offset_s: int | None) -> list[Reason]:
    """No reading, or one with a problem: unhealthy where the file declares GPUs, else degraded."""
    machine = snapshot.machine
    status = snapshot.sources.get("gpu")
    problem = snapshot.gpu.problem if snapshot.gpu is not None else None
    has_cards = snapshot.gpu is not None and bool(snapshot.gpu.cards)
    is_slow = (
        status is not None and status.state != "ok" and problem is not None and problem.code in _SLOW_CODES
    )
    if status is not None and (status.state == "late" or is_slow):
        since = silent_since(snapshot, status)
        if since is None or now - since < LATE_LIMIT_S:
            return []
        moment = day_and_time(since, now, utc_offset_s)
        text = f"{tool_of(snapshot)} does not answer since {moment}: a hung driver needs a reboot"
        return [Reason("unhealthy" if machine.declares_gpus else "degraded", "gpu_late", text)]
    is_blind = not has_cards or (status is not None and status.state == "error")  # cards are old then
    severity: Severity = "unhealthy" if machine.declares_gpus and is_blind else "degraded"
    if problem is not None:
        if problem.code in _NO_CARD_CODES and not machine.declares_gpus:
            return []
        if problem.code == "asleep":
            return [Reason("note", "gpu_asleep", problem.text)]
        return [Reason(severity, f"gpu_{problem.code}", _named(problem.text))]
    if status is None:
        return []
    if status.state == "error":
        if snapshot.gpu is not None and snapshot.gpu.faults:
            return []  # the faults say it
        if _began_lately(status, now) and has_cards:
            return []
        return [Reason(severity, "gpu_error", _named(status.error or "cannot be read"))]
    if status.state == "unsupported" and machine.declares_gpus:
        text = status.error or "not found; install the NVIDIA driver, or declare `gpu: []`"
        return [Reason("unhealthy", "gpu_unsupported", _named(text))]
    if status.state == "ok" and machine.declares_gpus and snapshot.gpu is not None and not has_cards:
        if snapshot.gpu.faults:
            return []
        return [Reason("unhealthy", "gpu_none", f"no GPU found, {_count(machine.gpus)} declared")]
    return []


def silent_since(snapshot: MachineSnapshot, status: SourceStatus) -> float | None:
    """When the GPU source last gave something, or was first asked: its state may flip while it hangs."""
    if status.read_at is not None:
        return status.read_at
    known = [moment for moment in (status.since, snapshot.link.since) if moment is not None]
    return min(known) if known else None


def _began_lately(status: SourceStatus | None, now: float) -> bool:
    """True within the first 15 s of the present state: one slow or odd call is no news yet."""
    return status is not None and status.since is not None and now - status.since < LATE_LIMIT_S


def _named(text: str) -> str:
    """The text, with the tool it speaks of in front."""
    is_named = text.startswith("GPU") or any(word in text for word in _NAMES)
    return text if is_named else f"nvidia-smi: {text}"


def _count(declared: tuple[object, ...] | None) -> int:
    return len(declared) if declared is not None else 0


def _fault_reasons(snapshot: MachineSnapshot, reading: GpuReading) -> list[Reason]:
    """Lost cards and cards that need a reset; on a disabled card only a note."""
    reasons = []
    found = [
        (f"GPU {card.index}", card.index, card.fault) for card in reading.cards if card.fault is not None
    ]
    for fault in reading.faults:
        title = "GPU" if isinstance(fault.bus_id, Unknown) else f"GPU at {fault.bus_id}"
        found.append((title, -1 if fault.index is None else fault.index, fault))
    for title, index, fault in found:
        severity: Severity = "degraded" if fault.code == "unknown_error" else "unhealthy"
        if index in snapshot.machine.disabled_gpus:
            severity = "note"
        text = fault.text if fault.text.startswith("GPU") else f"{title}: {fault.text}"
        step = _FAULT_STEPS.get(fault.code)
        reasons.append(Reason(severity, f"gpu_{fault.code}", text if step is None else f"{text}; {step}"))
    return reasons


def _count_reasons(snapshot: MachineSnapshot, reading: GpuReading) -> list[Reason]:
    """Cards declared in the file against cards measured; a faulty card without a row is not missing twice."""
    machine = snapshot.machine
    if machine.gpus is None:
        return []
    declared, measured = len(machine.gpus), len(reading.cards)
    missing = declared - measured - len(reading.faults)
    if missing > 0:
        indices = sorted(set(range(declared)) - {card.index for card in reading.cards})
        named = not reading.faults and len(indices) == missing
        which = "GPU " + ", ".join(map(str, indices)) if named else f"{missing} GPU" + "s" * (missing > 1)
        text = f"{which} missing: {declared} declared, {measured} measured"
        return [Reason("degraded", "gpu_missing", text)]
    if measured > declared:
        text = f"{measured} GPUs measured, {declared} declared: complete `hardware.gpu` in the machine file"
        return [Reason("note", "gpu_undeclared", text)]
    return []


def _is_plainly_fine(card: GpuCard) -> bool:
    """True for the card that has nothing to tell: cool, memory known, every field plausible."""
    return (
        not isinstance(card.temperature_c, Unknown)
        and card.temperature_c < thermal_limit_c(card)
        and not isinstance(card.free_mib, Unknown)
        and not card.suspect
    )


def _card_reasons(snapshot: MachineSnapshot, card: GpuCard) -> list[Reason]:
    """Heat, memory that is not reported, implausible fields."""
    if card.index in snapshot.machine.disabled_gpus or card.fault is not None:
        return []
    reasons = []
    heat = card.temperature_c
    if not isinstance(heat, Unknown) and heat >= thermal_limit_c(card):
        text = f"GPU {card.index} is at {heat} °C, its thermal limit: check fans and airflow"
        reasons.append(Reason("degraded", "gpu_hot", text))
    memory = card_memory(snapshot, card)
    if isinstance(memory.free_mib, Unknown) and not card.is_unified:
        text = f"GPU {card.index}: free memory is not reported, so nothing new is routed to it"
        reasons.append(Reason("degraded", "gpu_memory_unknown", text))
    if card.suspect:
        fields = ", ".join(field.replace("_", " ") for field in card.suspect)
        reasons.append(Reason("degraded", "gpu_field", f"GPU {card.index}: implausible {fields}"))
    return reasons


def _memory_reasons(snapshot: MachineSnapshot) -> list[Reason]:
    """VRAM that nobody accounts for, and runners without a copy."""
    reasons: list[Reason] = []
    status = snapshot.sources.get("gpu")
    if status is not None and status.state != "ok":
        return reasons  # old figures of the cards against new ones of the engines explain nothing
    unexplained = unexplained_mib(snapshot)
    if not isinstance(unexplained, Unknown) and unexplained > UNEXPLAINED_LIMIT_MIB:
        where = _card_most_used_by_nobody(snapshot)
        text = f"{unexplained / 1024:.1f} GiB of VRAM{where} in use by processes not visible here"
        reasons.append(Reason("note", "vram_unexplained", text))
    orphans = _orphan_runner_mib(snapshot)
    if orphans > UNEXPLAINED_LIMIT_MIB:
        text = (
            f"a runner holds {orphans / 1024:.1f} GiB of VRAM while its engine lists no copy: orphan runner?"
        )
        reasons.append(Reason("note", "orphan_runner", text))
    return reasons


def _card_most_used_by_nobody(snapshot: MachineSnapshot) -> str:
    """` on GPU 1` when no copy is loaded and only that card is in use without a process."""
    if snapshot.gpu is None or snapshot.processes is None or snapshot.loaded:
        return ""
    processes = snapshot.processes.processes
    hidden = [
        card.index
        for card in snapshot.gpu.cards
        if not any(is_on_card(process, card) for process in processes)
        and not isinstance(card.used_mib, Unknown)
        and card.used_mib > UNEXPLAINED_LIMIT_MIB
    ]
    return f" on GPU {hidden[0]}" if len(hidden) == 1 else ""


def _orphan_runner_mib(snapshot: MachineSnapshot) -> int:
    """VRAM of runner processes while every engine answered that nothing is loaded, MiB."""
    if snapshot.processes is None or not snapshot.engines or snapshot.loaded:
        return 0
    if any(isinstance(engine.loaded, Unknown) or engine.state != "ok" for engine in snapshot.engines):
        return 0
    return sum(
        process.used_mib
        for process in snapshot.processes.processes
        if not isinstance(process.used_mib, Unknown) and is_runner(process)
    )
