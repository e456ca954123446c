"""Processes on AMD cards: `amd-smi process --json`, `rocm-smi --showpids --json`."""

from __future__ import annotations

from collections.abc import Mapping

from fleettui.model.gpu import GpuProcess, ProcessesReading
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.amd_json import find, read_document, read_entries, read_mib
from fleettui.probes.amd_problems import read_amd_problem, split_tool
from fleettui.probes.clean import clean_text
from fleettui.probes.numbers import is_digits

_NAME_LIMIT = 300
SEVERAL_CARDS = Unknown("listed under several cards with one figure for all")


def parse_amd_processes(
    payload: bytes, exit_code: int, uuid_of: Mapping[int, Maybe[str]]
) -> Maybe[ProcessesReading]:
    """The processes with graphics memory; `uuid_of` names the card of each number of the tool.

    amd-smi 26 lists each process under every card with its memory on all of them, so one figure that stands
    under several cards counts once and belongs to no card. Processes without graphics memory are left out:
    the driver lists every process that opened it.
    """
    tool, text = split_tool(payload)
    document, lines = read_document(text)
    if isinstance(document, dict) and isinstance(document.get("system"), dict):
        return ProcessesReading(_rocm_processes(document["system"], uuid_of))
    entries = read_entries(document)
    if not entries:
        is_empty = document in ([], {}) or any("No JSON data to report" in line for line in lines)
        if exit_code == 0 and is_empty:
            return ProcessesReading()
        return Unknown(read_amd_problem(tool, lines, exit_code).text)
    found: dict[int, list[GpuProcess]] = {}
    for index, entry in entries.items():
        items = entry.get("process_list")
        for item in items if isinstance(items, list) else ():
            process = _read_process(find(item, "process_info") or item, uuid_of.get(index))
            if process is not None and process.used_mib != 0:
                found.setdefault(process.pid, []).append(process)
    return ProcessesReading(tuple(one for listed in found.values() for one in _join(listed)))


def _read_process(info: object, uuid: Maybe[str] | None) -> GpuProcess | None:
    pid = find(info, "pid")
    if isinstance(pid, str) and is_digits(pid):
        pid = int(pid)
    if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 1 << 31:
        return None
    name = find(info, "name")
    text = clean_text(name, _NAME_LIMIT) if isinstance(name, str) and name != "N/A" else ""
    used = next(
        (
            value
            for value in (
                find(info, "memory_usage", "vram_mem"),
                find(info, "vram_mem"),
                find(info, "mem_usage"),
                find(info, "mem"),
            )
            if value is not None
        ),
        None,
    )
    return GpuProcess(uuid or Unknown("no such card"), pid, text or f"pid {pid}", read_mib(used, "B"))


def _join(listed: list[GpuProcess]) -> list[GpuProcess]:
    """One process under several cards: as it stands where the figures differ, else once."""
    first = listed[0]
    if len(listed) == 1 or len({process.used_mib for process in listed}) > 1:
        return listed
    return [GpuProcess(SEVERAL_CARDS, first.pid, first.name, first.used_mib)]


def _rocm_processes(
    system: Mapping[object, object], uuid_of: Mapping[int, Maybe[str]]
) -> tuple[GpuProcess, ...]:
    """`{"PID1234": "python, 1, 302239744, 0, UNKNOWN"}`: name, number of cards, bytes; no card is named."""
    uuid = next(iter(uuid_of.values())) if len(uuid_of) == 1 else Unknown("rocm-smi names no card")
    found = []
    for key, value in system.items():
        if not isinstance(key, str) or not isinstance(value, str) or not is_digits(key.removeprefix("PID")):
            continue
        words = value.rsplit(", ", 4)
        if len(words) != 5:
            continue
        used = read_mib(words[2], "B")
        if used != 0:
            name = clean_text(words[0], _NAME_LIMIT)
            found.append(GpuProcess(uuid, int(key.removeprefix("PID")), name or key, used))
    return tuple(found)
