"""Rows of `nvidia-smi --query-gpu=… --format=csv,noheader,nounits` as cards.

A fleet's busy cards print a new row at each poll, so this is where a poll's parsing spends most of its time.
A row of FAST_FIELDS is cut once, behind what changes; the rest is the same text as before and is looked up
whole.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from fleettui.model.gpu import GpuCard, GpuFault
from fleettui.model.unknown import NOT_READ, Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.loops_gpu import CHANGING_FIELDS, FAST_FIELDS
from fleettui.probes.numbers import is_digits, read_float, read_int, read_text, unknown
from fleettui.probes.nvidia_problems import FAULT_WORDS, fault_code, read_bus_id

_POWER_EXCESS = 1.5
"""A draw above limit × this is implausible: 588 W were reported for a 35 W part."""
_HOTTEST_C = 130
_NO_SUCH_MEMORY = ("N/A", "Not Supported")
_INTEGRATED = ("gb10", "gb11", "orin", "xavier", "thor", "tegra", "nvgpu", "jetson")
"""Parts without memory of their own, by words of their names. A Grace Hopper has some and is none of them."""
_HEALTHY_ACTIONS = frozenset({"None", "N/A"})
"""Of gpu_recovery_action, which newer drivers tell; else what the card needs: `Reset`, `Reboot`, `Drain P2P`,
`Drain and Reset`."""
_MAX_CARDS, _MAX_OTHERS, _MAX_LINES = 256, 256, 2048
_KEPT = 4096
"""Cards of a fleet whose unchanging part is remembered."""
_KEPT_LENGTH = 600
"""It is, up to this length: a hostile one must not fill the memory."""

_FIXED_FIELDS = FAST_FIELDS[len(CHANGING_FIELDS) :]
_COUNTS: dict[str, Maybe[int]] = {
    **{str(number): number for number in range(1000)},
    **{text: unknown(text) for text in ("[N/A]", "[Not Supported]")},
}
"""Percent and degrees: looked up in a third of the time of reading them."""

_Texts = tuple[str | None, ...]


class _Fixed(NamedTuple):
    """What the unchanging part of a row says."""

    number: int
    """The card's index."""
    uuid: Maybe[str]
    name: Maybe[str]
    driver: Maybe[str]
    total_mib: Maybe[int]
    power_limit_w: Maybe[float]
    highest_power_w: float
    """Above it a draw is implausible."""
    pstate: Maybe[str]
    bus_id: Maybe[str]
    fault: GpuFault | None
    is_mig: bool
    is_integrated: bool


class _Plan:
    """How rows of one list of fields are cut."""

    __slots__ = ("fixed", "is_fast", "pick_changing", "pick_fixed", "width")

    def __init__(self, fields: tuple[str, ...]) -> None:
        first = len(CHANGING_FIELDS)
        self.width = len(fields)
        self.is_fast = fields[:first] == CHANGING_FIELDS and self.width > first
        self.fixed: dict[str, _Fixed] = {}
        self.pick_changing = _picker(CHANGING_FIELDS, fields)
        self.pick_fixed = _picker(_FIXED_FIELDS, fields[first:] if self.is_fast else fields)


def _picker(wanted: tuple[str, ...], fields: tuple[str, ...]) -> Callable[[list[str | None]], _Texts]:
    """Takes the wanted columns out of a row with a None behind it, which stands for columns not asked."""
    return itemgetter(*(fields.index(name) if name in fields else len(fields) for name in wanted))


plan_for = lru_cache(maxsize=64)(_Plan)
"""The plan for a list of fields, always the same."""


def read_rows(text: str, fields: tuple[str, ...]) -> tuple[list[GpuCard], list[str]]:
    """Cards in the order of their rows, and the lines that are no rows of exactly these fields."""
    plan = plan_for(fields)
    cards: list[GpuCard] = []
    others: list[str] = []
    # split, not splitlines: that breaks at U+2028 and the like, which hostile names may hold.
    for line in text.split("\n", _MAX_LINES):
        card = _read_row(line[:-1] if line[-1:] == "\r" else line, plan)
        if card is not None:
            if len(cards) >= _MAX_CARDS:
                break
            cards.append(card)
        elif (stripped := line.strip()) and len(others) < _MAX_OTHERS:
            others.append(stripped)
    return cards, others


def _read_row(line: str, plan: _Plan) -> GpuCard | None:
    if plan.is_fast:
        values = line.split(", ", 6)
        if len(values) != 7:
            return None
        used_text, free_text, busy_text, heat_text, power_text, fan_text, rest = values
        fixed = plan.fixed.get(rest)
        if fixed is None:
            fixed = _read_fixed(rest, plan)
            if fixed is None:
                return None
        used, free = _COUNTS.get(used_text), _COUNTS.get(free_text)
        # Two of three lines of a poll's parsing run here: no call for a plain number.
        if used is None:
            is_plain = used_text.isdecimal() and len(used_text) < 16 and used_text.isascii()
            used = int(used_text) if is_plain else unknown(used_text)
        if free is None:
            is_plain = free_text.isdecimal() and len(free_text) < 16 and free_text.isascii()
            free = int(free_text) if is_plain else unknown(free_text)
        busy, heat, fan = _COUNTS.get(busy_text), _COUNTS.get(heat_text), _COUNTS.get(fan_text)
        if busy is None:
            busy = read_int(busy_text)
        if heat is None:
            heat = read_int(heat_text)
        if fan is None:
            fan = read_int(fan_text)
        if len(power_text) < 16 and power_text.isascii() and power_text.replace(".", "", 1).isdigit():
            power: Maybe[float] = float(power_text)
        else:
            power = read_float(power_text)
    else:
        row: list[str | None] = [*line.split(", ", plan.width)]
        if len(row) != plan.width:
            return None
        row.append(None)
        fixed = _fixed_of(plan.pick_fixed(row))
        if fixed is None:
            return None
        *counts, watts, speed = plan.pick_changing(row)
        used, free, busy, heat = [NOT_READ if text is None else read_int(text) for text in counts]
        power = NOT_READ if watts is None else read_float(watts)
        fan = NOT_READ if speed is None else read_int(speed)
    (
        index, uuid, name, driver, total, limit, highest_w, pstate, bus_id, fault, is_mig, is_integrated,
    ) = fixed  # fmt: skip
    suspect: tuple[str, ...] = ()
    if power.__class__ is float and power > highest_w:
        suspect = ("power_w",)
    if busy.__class__ is int and busy > 100:
        suspect += ("utilisation_percent",)
    if heat.__class__ is int and heat > _HOTTEST_C:
        suspect += ("temperature_c",)
    if fault is None and busy.__class__ is Unknown and ("GPU is lost" in line or "reset" in line):
        fault = _fault_in(line, bus_id)
    is_unified = is_integrated or (total.__class__ is Unknown and _is_unified(fixed, used, free))
    return GpuCard(
        index, uuid, name, driver, total, used, free, busy, heat, power, limit, fan, pstate, bus_id,
        is_unified, fault, suspect, (), is_mig,
    )  # fmt: skip


def _read_fixed(rest: str, plan: _Plan) -> _Fixed | None:
    """The unchanging part of a fast row; remembered, since it comes again with each poll."""
    columns = plan.width - len(CHANGING_FIELDS)
    row: list[str | None] = [*rest.split(", ", columns)]
    if len(row) != columns:
        return None
    fixed = _fixed_of(plan.pick_fixed([*row, None]))
    if fixed is not None and len(rest) <= _KEPT_LENGTH:
        if len(plan.fixed) >= _KEPT:
            plan.fixed.clear()
        plan.fixed[rest] = fixed
    return fixed


def _fixed_of(texts: _Texts) -> _Fixed | None:
    """From the texts of _FIXED_FIELDS; None without an index."""
    index, uuid, name, driver, total, limit, pstate, action, mig, bus_id = texts
    if index is None or not is_digits(index):
        return None
    known_name = _word(name)
    bus = _word(bus_id)
    if not isinstance(bus, Unknown) and read_bus_id(bus) is None:
        bus = unknown(bus)
    known_limit = NOT_READ if limit is None else read_float(limit)
    highest = float("inf") if isinstance(known_limit, Unknown) else known_limit * _POWER_EXCESS
    return _Fixed(
        int(index),
        _word(uuid),
        known_name,
        _word(driver),
        NOT_READ if total is None else read_int(total),
        known_limit,
        highest,
        _word(pstate),
        bus,
        _recovery_fault(action, bus),
        mig == "Enabled",
        not isinstance(known_name, Unknown) and is_integrated_name(known_name),
    )


def _word(text: str | None) -> Maybe[str]:
    return NOT_READ if text is None else read_text(text)


def is_integrated_name(name: str) -> bool:
    """True for parts that share the machine's memory: GB10 (DGX Spark), Jetson."""
    words = name.lower().replace("(", " ").replace(")", " ").split()
    return any(word in _INTEGRATED for word in words)


def _is_unified(fixed: _Fixed, used: Maybe[int], free: Maybe[int]) -> bool:
    """Memory columns all `[N/A]` in a live row: GPU and CPU share one memory."""
    return not isinstance(fixed.name, Unknown) and all(
        isinstance(value, Unknown) and value.reason in _NO_SUCH_MEMORY
        for value in (fixed.total_mib, used, free)
    )


def _recovery_fault(action: str | None, bus_id: Maybe[str]) -> GpuFault | None:
    if action is None or not action[:1].isalpha() or action in _HEALTHY_ACTIONS:
        return None
    needs = "needs a reboot" if action == "Reboot" else FAULT_WORDS["reset"]
    return GpuFault(bus_id, "reset", f"{needs} (recovery action: {clean_text(action, 40)})")


def _fault_in(line: str, bus_id: Maybe[str]) -> GpuFault | None:
    """The fault that a field's reason names: `[GPU is lost]`, `[GPU requires reset]`."""
    for value in line.split(", "):
        code = fault_code(value) if value[:1] == "[" else None
        if code is not None:
            return GpuFault(bus_id, code, FAULT_WORDS[code])
    return None
