"""GPU processes: `nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory`, owners from ps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from fleettui.model.gpu import GpuProcess, ProcessesReading
from fleettui.model.record import replace
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.numbers import is_digits, read_int, read_text
from fleettui.probes.nvidia_problems import read_problem

_NAME_LIMIT = 300
_COMMAND_LIMIT = 500
_MAX_PROCESSES = 4096
_KEPT_LENGTH = 1000
"""Rows are remembered up to this length: hostile ones must not fill the memory."""
NOT_AVAILABLE_EXIT = 77
NOT_AVAILABLE = "process list not available here (WSL)"


def parse_apps(payload: bytes, exit_code: int = 0) -> Maybe[ProcessesReading]:
    """The compute processes; Unknown with the tool's words when there is no list.

    An empty list is not an idle card: containers and desktops hide their processes.
    """
    if exit_code == NOT_AVAILABLE_EXIT:
        return Unknown(NOT_AVAILABLE)
    processes: list[GpuProcess] = []
    others: list[str] = []
    for line in payload.decode("utf-8", "replace").split("\n", _MAX_PROCESSES)[:_MAX_PROCESSES]:
        read = _read_process if len(line) <= _KEPT_LENGTH else _read_process.__wrapped__
        process = read(line)
        if process is not None:
            processes.append(process)
        elif text := line.strip():
            others.append(text)
    if not processes and (exit_code or others):
        return Unknown(read_problem(others, exit_code).text)
    return ProcessesReading(tuple(processes))


@lru_cache(maxsize=2048)
def _read_process(line: str) -> GpuProcess | None:
    # Names hold commas and are not quoted: two columns from the left, memory from the right.
    uuid, _, rest = line.rstrip("\r").partition(", ")
    pid, _, rest = rest.partition(", ")
    name, comma, used = rest.rpartition(", ")
    if not comma or not is_digits(pid) or not (uuid.startswith(("GPU-", "MIG-")) or uuid[:1] == "["):
        return None
    return GpuProcess(read_text(uuid), int(pid), clean_text(name, _NAME_LIMIT), read_int(used))


def parse_owners(payload: bytes) -> dict[int, tuple[str, str]]:
    """User and command line for each pid in rows of `ps -o pid= -o user= -o args=`."""
    owners: dict[int, tuple[str, str]] = {}
    for line in payload.decode("utf-8", "replace").split("\n"):
        words = line.split(None, 2)
        if len(words) >= 2 and is_digits(words[0]):
            command = clean_text(words[2], _COMMAND_LIMIT) if len(words) == 3 else ""
            owners[int(words[0])] = (clean_text(words[1], 64), command)
    return owners


def with_owners(reading: ProcessesReading, owners: Mapping[int, tuple[str, str]]) -> ProcessesReading:
    """The processes with user and command line where ps knew the pid."""
    if not owners:
        return reading
    return ProcessesReading(tuple(_own(process, owners.get(process.pid)) for process in reading.processes))


def _own(process: GpuProcess, owner: tuple[str, str] | None) -> GpuProcess:
    if owner is None:
        return process
    user, command = owner
    return replace(process, user=user or Unknown("ps gave no user"), command=command or process.name)
