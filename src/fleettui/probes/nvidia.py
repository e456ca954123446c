"""GPU cards as `nvidia-smi --query-gpu=… --format=csv,noheader,nounits` prints them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fleettui.model.gpu import GpuCard, GpuFault, GpuReading, ProcessesReading
from fleettui.model.readings import MemoryReading
from fleettui.model.record import replace
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import unified_memory
from fleettui.probes.clean import clean_text
from fleettui.probes.loops_gpu import FAST_FIELDS, QUERY_FIELDS
from fleettui.probes.numbers import read_text
from fleettui.probes.nvidia_problems import (
    ASLEEP_EXIT,
    HUNG_EXIT,
    find_bus_id,
    read_bus_id,
    read_fault,
    read_problem,
    read_refused_field,
)
from fleettui.probes.nvidia_rows import read_rows

_MAX_FAULTS = 64
_MAX_WARNINGS = 8
_WARNING_LIMIT = 160


def gpu_section(unsupported: Collection[str] = ()) -> str:
    """The section that asks for FAST_FIELDS without those a driver refused (`unsupported_fields`)."""
    fields = query_fields(unsupported)
    return "gpu" if fields == FAST_FIELDS else "gpu:" + ":".join(fields)


def query_fields(unsupported: Collection[str] = ()) -> tuple[str, ...]:
    """The fields that `gpu_section` asks for, in order; `parse_gpus` needs the same."""
    if not unsupported:
        return FAST_FIELDS
    return tuple(name for name in FAST_FIELDS if name not in unsupported)


def parse_gpus(payload: bytes, exit_code: int = 0, fields: tuple[str, ...] = QUERY_FIELDS) -> GpuReading:
    """The reading in an answer of nvidia-smi, stdout and stderr together; good rows count whatever the code.

    When `unsupported_fields` is not empty there are no cards: ask again at once without those fields.
    """
    if exit_code in (HUNG_EXIT, ASLEEP_EXIT):
        return GpuReading(problem=read_problem([payload.decode("utf-8", "replace")], exit_code))
    cards, others = read_rows(payload.decode("utf-8", "replace"), fields)
    last = -1
    for card in cards:
        if card.index <= last:
            cards = _in_order(cards)
            break
        last = card.index
    if not others and cards:
        return GpuReading(tuple(cards))
    return _read_sentences(tuple(cards), others, exit_code, fields)


def _in_order(cards: list[GpuCard]) -> list[GpuCard]:
    """By index; of two rows with one index the first counts, since rows of screens are named by it."""
    by_index: dict[int, GpuCard] = {}
    for card in cards:
        by_index.setdefault(card.index, card)
    return [by_index[index] for index in sorted(by_index)]


def _read_sentences(
    cards: tuple[GpuCard, ...], lines: list[str], exit_code: int, fields: tuple[str, ...]
) -> GpuReading:
    faults: list[GpuFault] = []
    warnings: list[str] = []
    refused: list[str] = []
    rest: list[str] = []
    for line in lines:
        if fault := read_fault(line):
            faults.append(fault)
        elif not cards and (field := read_refused_field(line)) in fields and field != "index":
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
    return GpuReading(
        cards, tuple(faults[:_MAX_FAULTS]), tuple(warnings[:_MAX_WARNINGS]), problem, tuple(refused)
    )


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
    filled = unified_memory(card, memory, processes)
    return replace(card, total_mib=filled.total_mib, free_mib=filled.free_mib, used_mib=filled.used_mib)


def same_bus_id(a: str, b: str) -> bool:
    """True when both name one PCI device; case and width of the domain do not count."""
    left = read_bus_id(a.strip())
    return left is not None and left == read_bus_id(b.strip())
