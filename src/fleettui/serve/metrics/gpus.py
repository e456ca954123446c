"""Metrics of the cards of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleettui.model.gpu import condition_of
from fleettui.model.unknown import Unknown
from fleettui.model.vram import card_memory, has_no_gpu
from fleettui.serve.metrics.machines import MACHINE, is_of_now
from fleettui.serve.metrics.sheet import Sheet, counter, gauge, info, label, word_label
from fleettui.view.figures import is_answering

if TYPE_CHECKING:
    from fleettui.model.gpu import GpuCard, GpuReading
    from fleettui.model.snapshot import MachineSnapshot

MAX_CARDS = 64
"""Of one machine."""
SLOWED = ("thermal", "power brake", "hardware slowdown")
"""Reasons that something is wrong; a power limit is what the operator set."""
_MIB = 1 << 20
GPU = ("machine", "gpu")

INFO = info(
    "fleettui_gpu_info", ("machine", "gpu", "vendor", "name", "uuid", "bus_id", "driver"), "What the card is"
)
VRAM_TOTAL = gauge("fleettui_gpu_memory_total_bytes", GPU, "VRAM of the card", "bytes")
VRAM_USED = gauge("fleettui_gpu_memory_used_bytes", GPU, "VRAM in use", "bytes")
VRAM_FREE = gauge(
    "fleettui_gpu_memory_free_bytes",
    GPU,
    "Free VRAM as the driver counts it: less than total - used",
    "bytes",
)
UTILISATION = gauge(
    "fleettui_gpu_utilisation_ratio", GPU, "Share of the time in which the card worked", "ratio"
)
TEMPERATURE = gauge("fleettui_gpu_temperature_celsius", GPU, "Temperature of the card", "celsius")
POWER = gauge("fleettui_gpu_power_watts", GPU, "Power drawn", "watts")
POWER_LIMIT = gauge("fleettui_gpu_power_limit_watts", GPU, "Power it may draw", "watts")
FAN = gauge("fleettui_gpu_fan_speed_ratio", GPU, "Fan speed as a share of its most", "ratio")
THROTTLED = gauge(
    "fleettui_gpu_throttled", GPU, "1 while heat, the power brake or the hardware slows the card down"
)
ECC = counter(
    "fleettui_gpu_ecc_errors_total", ("machine", "gpu", "type"),
    "ECC errors since the card was reset, type corrected or uncorrected",
)  # fmt: skip
FAULT = gauge("fleettui_gpu_fault", GPU, "1 while the card is lost, needs a reset or cannot be read")
DISABLED = gauge("fleettui_gpu_disabled", GPU, "1 where the machine file takes the card out of use")
FAULTS = gauge(
    "fleettui_machine_gpu_faults",
    MACHINE,
    "Cards that are lost, need a reset or cannot be read, those without a number too",
)

METRICS = (
    INFO, VRAM_TOTAL, VRAM_USED, VRAM_FREE, UTILISATION, TEMPERATURE, POWER, POWER_LIMIT, FAN, THROTTLED, ECC,
    FAULT, DISABLED, FAULTS,
)  # fmt: skip


def write_gpus(sheet: Sheet, snapshot: MachineSnapshot, who: str, now: float) -> None:
    """All cards. `who`: the label of the machine."""
    reading = snapshot.gpu
    if reading is None or not is_answering(snapshot) or has_no_gpu(snapshot):
        return
    if not reading.is_stale or reading.faults:
        faulty = sum(1 for card in reading.cards if card.fault is not None)
        sheet.add(FAULTS, who, faulty + len(reading.faults))
    if reading.is_stale or not is_of_now(snapshot, "gpu", now):
        return
    for card in reading.cards[:MAX_CARDS]:
        _write_card(sheet, snapshot, reading, card, f'{who},gpu="{card.index}"')


def _write_card(
    sheet: Sheet, snapshot: MachineSnapshot, reading: GpuReading, card: GpuCard, which: str
) -> None:
    words = (
        which, label("vendor", card.vendor), word_label("name", card.name), word_label("uuid", card.uuid),
        word_label("bus_id", card.bus_id), word_label("driver", card.driver),
    )  # fmt: skip
    sheet.add_info(INFO, ",".join(words))
    sheet.add(FAULT, which, card.fault is not None)
    sheet.add(DISABLED, which, card.index in snapshot.machine.disabled_gpus)
    memory = card_memory(snapshot, card)
    sheet.add_bytes(VRAM_TOTAL, which, memory.total_mib, _MIB)
    sheet.add_bytes(VRAM_USED, which, memory.used_mib, _MIB)
    sheet.add_bytes(VRAM_FREE, which, memory.free_mib, _MIB)
    sheet.add_percent(UTILISATION, which, card.utilisation_percent)
    sheet.add(TEMPERATURE, which, card.temperature_c)
    if "power_w" not in card.suspect:
        sheet.add(POWER, which, card.power_w)
    sheet.add(POWER_LIMIT, which, card.power_limit_w)
    sheet.add_percent(FAN, which, card.fan_percent)
    condition = condition_of(reading, card)
    if condition is not None:
        if not isinstance(condition.throttle, Unknown):
            sheet.add(THROTTLED, which, any(reason in SLOWED for reason in condition.throttle))
        sheet.add(ECC, f'{which},type="corrected"', condition.ecc_corrected)
        sheet.add(ECC, f'{which},type="uncorrected"', condition.ecc_uncorrected)
