"""What changes rarely on the cards of one machine, where it is worth a line: link, clocks, ECC, Xid."""

from __future__ import annotations

from fleettui.model.clock import day_and_time
from fleettui.model.gpu import CardCondition, GpuCard, GpuReading, condition_of
from fleettui.model.unknown import NOT_READ, Unknown
from fleettui.probes.nvidia_xid import card_of_xid
from fleettui.probes.nvidia_xid_catalogue import meaning_of
from fleettui.view.cells import Cell
from fleettui.view.machine_view import MachineView
from fleettui.view.tables import Line, table
from fleettui.view.text import clean

_SLOW_CALL_S = 1.0


def card_details(reading: GpuReading, card: GpuCard) -> list[str]:
    """One line of what is not as usual; none for a plain card."""
    words = [_limited(card)]
    condition = condition_of(reading, card)
    if condition is not None:
        words += _condition_words(condition)
    told = ", ".join(word for word in words if word)
    return [f"GPU {card.index}: {told}"] if told else []


def identity_lines(reading: GpuReading) -> list[Line]:
    """Where each card sits and which one it is: what one needs in front of the machine."""
    rows = []
    for card in reading.cards:
        condition = condition_of(reading, card)
        bus = "" if isinstance(card.bus_id, Unknown) else clean(card.bus_id)
        uuid = "" if isinstance(card.uuid, Unknown) else clean(card.uuid)
        capability = NOT_READ if condition is None else condition.compute_cap
        words = "" if isinstance(capability, Unknown) else f"compute {clean(capability)}"
        rows.append(
            (
                (Cell(str(card.index), "dim"),),
                (Cell(bus.removeprefix("0000"), "dim"),),
                (Cell("" if condition is None else _link_text(condition), "dim"),),
                (Cell(words, "dim"),),
                (Cell(uuid, "dim"),),
            )
        )
    return table((), [row for row in rows if any(cells[0].text for cells in row[1:])])


def _link_text(condition: CardCondition) -> str:
    """`PCIe 4.0 x16`: what the slot and the card can do together."""
    generation, width = condition.pcie_generation_max, condition.pcie_width_max
    if isinstance(generation, Unknown) or isinstance(width, Unknown):
        return ""
    return f"PCIe {generation}.0 x{width}"


def _limited(card: GpuCard) -> str:
    """Cards whose tool tells little of them."""
    if card.fault is not None or card.is_mig:
        return ""
    is_silent = isinstance(card.utilisation_percent, Unknown) and isinstance(card.power_w, Unknown)
    if not is_silent:
        return ""
    return "integrated GPU: limited telemetry" if card.is_unified else "limited telemetry"


def _condition_words(condition: CardCondition) -> list[str]:
    words = []
    if not isinstance(condition.throttle, Unknown) and condition.throttle:
        words.append(f"clocks held down: {', '.join(condition.throttle)}")
    width, most = condition.pcie_width, condition.pcie_width_max
    if not isinstance(width, Unknown) and not isinstance(most, Unknown) and width < most:
        rest = "" if condition.is_at_work else " at rest"
        words.append(f"PCIe x{width} of x{most}{rest}")
    if condition.has_persistence is False:
        words.append("persistence off")
    for count, what in ((condition.ecc_uncorrected, "uncorrected"), (condition.ecc_corrected, "corrected")):
        if not isinstance(count, Unknown) and count > 0:
            words.append(f"{count} {what} ECC errors")
    if condition.is_retirement_pending is True:
        words.append("bad pages wait for a reset")
    return words


def xid_lines(view: MachineView, reading: GpuReading) -> list[Line]:
    """The last Xid events, and how long nvidia-smi takes where it takes long."""
    condition = reading.condition
    if condition is None:
        return []
    lines: list[Line] = []
    for event in () if isinstance(condition.xids, Unknown) else condition.xids:
        index = card_of_xid(reading, event)
        where = f"GPU at {clean(str(event.bus_id))}" if index is None else f"GPU {index}"
        offset_s = view.layout.utc_offset_s
        when = "" if isinstance(event.at, Unknown) else f" at {day_and_time(event.at, view.now, offset_s)}"
        text = f"{where}: Xid {event.code}{when}, {meaning_of(event.code).what}: {clean(event.text)}"
        lines.append((Cell(text, "dim"),))
    if not isinstance(condition.call_s, Unknown) and condition.call_s >= _SLOW_CALL_S:
        lines.append((Cell(f"nvidia-smi took {condition.call_s:.1f} s", "dim"),))
    return lines
