"""GPU cards as `nvidia-smi --query-gpu=… --format=csv,noheader,nounits` prints them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final

from fleettui.model.gpu import GpuCard, GpuFault, GpuReading, ProcessesReading
from fleettui.model.readings import MemoryReading
from fleettui.model.record import replace
from fleettui.model.unknown import NOT_READ, Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.loops_gpu import QUERY_FIELDS
from fleettui.probes.numbers import is_digits, read_float, read_text, read_word, unknown
from fleettui.probes.nvidia_problems import (
    ASLEEP_EXIT,
    FAULT_WORDS,
    HUNG_EXIT,
    fault_code,
    find_bus_id,
    read_bus_id,
    read_fault,
    read_problem,
    read_refused_field,
)

RECOVERY_FIELD: Final = "gpu_recovery_action"
"""Newer drivers only: `None`, or what the card needs (`Reset`, …)."""

_Pick = Callable[[list[str | None]], tuple[str | None, ...]]
_POWER_EXCESS = 1.5
"""A draw above limit × this is implausible: 588 W were reported for a 35 W part."""
_HOTTEST_C = 130
_MAX_WARNINGS = 8
_WARNING_LIMIT = 160
_NO_SUCH_MEMORY = ("N/A", "Not Supported")


def gpu_section(unsupported: Collection[str] = (), extra: Sequence[str] = ()) -> str:
    """The section that asks for our fields without those a driver refused (`unsupported_fields`)."""
    fields = query_fields(unsupported, extra)
    return "gpu" if fields == QUERY_FIELDS else "gpu:" + ":".join(fields)


def query_fields(unsupported: Collection[str] = (), extra: Sequence[str] = ()) -> tuple[str, ...]:
    """The fields that `gpu_section` asks for, in order; `parse_gpus` needs the same."""
    if not unsupported and not extra:
        return QUERY_FIELDS
    return tuple(name for name in (*QUERY_FIELDS, *extra) if name not in unsupported)


def parse_gpus(payload: bytes, exit_code: int = 0, fields: tuple[str, ...] = QUERY_FIELDS) -> GpuReading:
    """The reading in an answer of nvidia-smi, stdout and stderr together; good rows count whatever the code.

    When `unsupported_fields` is not empty there are no cards: ask again at once without those fields.
    """
    if exit_code in (HUNG_EXIT, ASLEEP_EXIT):
        return GpuReading(problem=read_problem([payload.decode("utf-8", "replace")], exit_code))
    cards: list[GpuCard] = []
    others: list[str] = []
    # split, not splitlines: that breaks at U+2028 and the like, which hostile names may hold.
    for line in payload.decode("utf-8", "replace").split("\n"):
        card = _read_card(line, fields)
        if card is not None:
            cards.append(card)
        elif text := line.strip():
            others.append(text)
    cards.sort(key=_card_index)
    if not others and cards:
        return GpuReading(tuple(cards))
    return _read_sentences(tuple(cards), others, exit_code)


def _card_index(card: GpuCard) -> int:
    return card.index


def _read_sentences(cards: tuple[GpuCard, ...], lines: list[str], exit_code: int) -> GpuReading:
    faults: list[GpuFault] = []
    warnings: list[str] = []
    refused: list[str] = []
    rest: list[str] = []
    for line in lines:
        if fault := read_fault(line):
            faults.append(fault)
        elif field := read_refused_field(line):
            refused.append(field)
        elif "infoROM is corrupted" in line:
            bus_id = find_bus_id(line)
            warnings.append(f"infoROM corrupted{'' if isinstance(bus_id, Unknown) else f' {bus_id}'}")
        else:
            rest.append(line)
    problem = None
    if cards:
        warnings += [clean_text(line, _WARNING_LIMIT) for line in rest]
    elif not faults and not refused:
        problem = read_problem(rest, exit_code)
    return GpuReading(cards, tuple(faults), tuple(warnings[:_MAX_WARNINGS]), problem, tuple(refused))


_NAMES = ("uuid", "name", "driver_version", "pstate", "pci.bus_id")
_NUMBERS = (
    "memory.total", "memory.used", "memory.free", "utilization.gpu", "temperature.gpu", "fan.speed",
    "power.draw", "power.limit",
)  # fmt: skip


@lru_cache(maxsize=256)
def _positions(fields: tuple[str, ...]) -> tuple[int, _Pick, _Pick, int]:
    """Where `index` stands in a row, what picks its names and its numbers, and where the recovery action
    stands; a column that was not asked is picked from behind the last one, where None stands."""

    def place(name: str) -> int:
        return fields.index(name) if name in fields else len(fields)

    names, numbers = itemgetter(*map(place, _NAMES)), itemgetter(*map(place, _NUMBERS))
    return place("index"), names, numbers, place(RECOVERY_FIELD)


# Idle cards print the same row at every poll: then the card of the last poll is the answer.
@lru_cache(maxsize=2048)
def _read_card(line: str, fields: tuple[str, ...]) -> GpuCard | None:
    """The card of one row; None when the line is no row of exactly these fields."""
    row: list[str | None] = [*line.rstrip("\r").split(", "), None]
    if len(row) != len(fields) + 1:
        return None
    at_index, at_names, at_numbers, at_action = _positions(fields)
    index = row[at_index]
    if index is None or not is_digits(index):
        return None
    uuid, name, driver, pstate, bus_id = [
        read_word(text) if text else _no_text(text) for text in at_names(row)
    ]
    *counts, power_text, limit_text = at_numbers(row)
    # One line in ten of a poll's parsing runs here: no call for a plain number of at most 15 ASCII digits.
    total, used, free, utilisation, temperature, fan = [
        int(text) if text and text.isdecimal() and len(text) < 16 and text.isascii() else _no_text(text)
        for text in counts
    ]
    power, limit = _read_float(power_text), _read_float(limit_text)
    action = row[at_action]
    is_faulty = action is not None or "GPU is lost" in line or "reset" in line
    return GpuCard(
        int(index),
        uuid,
        name,
        driver,
        total,
        used,
        free,
        utilisation,
        temperature,
        power,
        limit,
        fan,
        pstate,
        bus_id,
        isinstance(total, Unknown) and _is_unified(name, total, used, free),
        _find_fault(row, action, bus_id) if is_faulty else None,
        _find_suspect(power, limit, utilisation, temperature),
    )


def _no_text(text: str | None) -> Unknown:
    """What stands where a value should."""
    return NOT_READ if text is None else unknown(text)


def _read_float(text: str | None) -> Maybe[float]:
    return NOT_READ if text is None else read_float(text)


def _is_unified(name: Maybe[str], total: Maybe[int], used: Maybe[int], free: Maybe[int]) -> bool:
    """Memory columns all `[N/A]` in a live row: GPU and CPU share one memory (GB10, Jetson)."""
    return not isinstance(name, Unknown) and all(
        isinstance(value, Unknown) and value.reason in _NO_SUCH_MEMORY for value in (total, used, free)
    )


def _find_fault(row: list[str | None], action: str | None, bus_id: Maybe[str]) -> GpuFault | None:
    if action and action[0].isalpha() and action not in ("None", "N/A"):
        text = f"{FAULT_WORDS['reset']} (recovery action: {clean_text(action, 40)})"
        return GpuFault(bus_id, "reset", text)
    for value in row:
        code = fault_code(value) if value and value[0] == "[" else None
        if code is not None:
            return GpuFault(bus_id, code, FAULT_WORDS[code])
    return None


def _find_suspect(
    power: Maybe[float], limit: Maybe[float], utilisation: Maybe[int], temperature: Maybe[int]
) -> tuple[str, ...]:
    suspect: tuple[str, ...] = ()
    if not isinstance(power, Unknown) and not isinstance(limit, Unknown) and power > limit * _POWER_EXCESS:
        suspect += ("power_w",)
    if not isinstance(utilisation, Unknown) and utilisation > 100:
        suspect += ("utilisation_percent",)
    if not isinstance(temperature, Unknown) and temperature > _HOTTEST_C:
        suspect += ("temperature_c",)
    return suspect


def parse_rows(payload: bytes, fields: Sequence[str]) -> tuple[dict[str, Maybe[str]], ...]:
    """Rows of any nvidia-smi CSV query by column name; lines of another width are left out."""
    rows = []
    for line in payload.decode("utf-8", "replace").split("\n"):
        values = line.rstrip("\r").split(", ")
        if len(values) == len(fields):
            rows.append({name: read_text(value) for name, value in zip(fields, values, strict=True)})
    return tuple(rows)


def with_unified_memory(
    reading: GpuReading, memory: MemoryReading | None, processes: ProcessesReading | None
) -> GpuReading:
    """The reading with the memory of unified cards filled in: total and free from MemTotal and
    MemAvailable, used as the sum of the card's compute processes."""
    if not any(card.is_unified for card in reading.cards):
        return reading
    cards = tuple(_fill_unified(card, memory, processes) for card in reading.cards)
    return replace(reading, cards=cards)


def _fill_unified(card: GpuCard, memory: MemoryReading | None, processes: ProcessesReading | None) -> GpuCard:
    if not card.is_unified or memory is None:
        return card
    used: Maybe[int] = Unknown("process list not read")
    if processes is not None:
        used = 0
        for process in processes.processes:
            if process.gpu_uuid != card.uuid and not isinstance(card.uuid, Unknown):
                continue
            if isinstance(process.used_mib, Unknown):
                used = process.used_mib
                break
            used += process.used_mib
    return replace(
        card, total_mib=_to_mib(memory.total_kib), free_mib=_to_mib(memory.available_kib), used_mib=used
    )


def _to_mib(kib: Maybe[int]) -> Maybe[int]:
    return kib if isinstance(kib, Unknown) else kib // 1024


def same_bus_id(a: str, b: str) -> bool:
    """True when both name one PCI device; case and width of the domain do not count."""
    left = read_bus_id(a.strip())
    return left is not None and left == read_bus_id(b.strip())


def is_same_gpu_model(a: str, b: str) -> bool:
    """True for the same model with or without the `NVIDIA ` that newer drivers put in front, any case."""
    return _model_key(a) == _model_key(b)


def _model_key(name: str) -> str:
    words = name.lower().split()
    return " ".join(words[1:] if words[:1] == ["nvidia"] and len(words) > 1 else words)


def parse_runtime_status(payload: bytes) -> tuple[tuple[str, str], ...]:
    """Bus id and power state of each device in the output of `grep -H . …/power/runtime_status`."""
    found = []
    for line in payload.decode("utf-8", "replace").split("\n"):
        path, _, state = line.strip().rpartition(":")
        parts = path.split("/")
        if len(parts) >= 3 and parts[-1] == "runtime_status" and read_bus_id(parts[-3]) is not None:
            found.append((parts[-3], clean_text(state, 20)))
    return tuple(found)


def asleep_bus_ids(payload: bytes) -> tuple[str, ...]:
    """Bus ids of the suspended devices."""
    return tuple(bus_id for bus_id, state in parse_runtime_status(payload) if state == "suspended")


def parse_hung(payload: bytes) -> tuple[int, str] | None:
    """Pid and process state in `hung <pid> <state>`, the payload of exit code 75."""
    words = payload.decode("ascii", "replace").split()
    if len(words) != 3 or words[0] != "hung" or not is_digits(words[1]):
        return None
    return int(words[1]), clean_text(words[2], 2)
