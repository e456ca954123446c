"""Which process is which copy: joins runner processes with the copies an engine lists."""

from __future__ import annotations

from fleettui.model.gpu import GpuProcess, GpuReading, ProcessesReading, cards_of_uuids
from fleettui.model.gpu_users import may_hold
from fleettui.model.readings import CopyPlace, EngineReading, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown

RUNNER_WORDS = ("ollama", "llama-server", "llama_server", "vllm", "sglang", "lm-studio", "lmstudio")
"""Parts of the names and command lines of processes that hold copies of the engines we know."""

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CardShare:
    """The part of one copy that a process proves to lie on one card."""

    copy: LoadedModel
    gpu_index: int
    used_mib: Maybe[int]
    pid: int


def is_runner(process: GpuProcess) -> bool:
    """True for a process that holds models of an engine."""
    text = process.name if isinstance(process.command, Unknown) else f"{process.name} {process.command}"
    text = text.lower()
    return any(word in text for word in RUNNER_WORDS)


def copy_of_process(process: GpuProcess, copies: tuple[LoadedModel, ...]) -> LoadedModel | None:
    """The copy whose digest stands in the process's command line (`…/blobs/sha256-<digest>`), or whose
    whole name does (`vllm serve <id>`); None where nothing proves it.

    `/api/ps` gives the digest of the manifest, the runner's command line the digest of the weights; they
    agree for few builds only, so `shares_of` also goes by exclusion.
    """
    command = process.command
    if isinstance(command, Unknown):
        return None
    words = command.split()
    for copy in copies:
        if not isinstance(copy.digest, Unknown) and len(copy.digest) >= 12 and copy.digest in command:
            return copy
        if copy.engine != "ollama" and copy.name in words:
            return copy
    return None


def shares_of(snapshot: MachineSnapshot) -> tuple[CardShare, ...]:
    """What lies where, only as far as processes prove it; empty where nothing is proven."""
    if snapshot.gpu is None or snapshot.processes is None:
        return ()
    return _shares(snapshot.gpu, snapshot.processes.processes, snapshot.loaded)


def _shares(
    gpu: GpuReading, processes: tuple[GpuProcess, ...], loaded: tuple[LoadedModel, ...]
) -> tuple[CardShare, ...]:
    copies = tuple(copy for copy in loaded if copy.vram_bytes != 0)
    if not copies or not processes:
        return ()
    index_of = cards_of_uuids(gpu.cards)
    copy_of_pid = _copies_of_pids(processes, copies)
    shares = []
    for process in processes:
        index = None if isinstance(process.gpu_uuid, Unknown) else index_of.get(process.gpu_uuid)
        copy = copy_of_pid.get(process.pid)
        if index is not None and copy is not None:
            shares.append(CardShare(copy, index, process.used_mib, process.pid))
    return tuple(shares)


def _copies_of_pids(
    processes: tuple[GpuProcess, ...], copies: tuple[LoadedModel, ...]
) -> dict[int, LoadedModel]:
    """The copy of each runner: by its command line; the rest by exclusion.

    An only copy belongs to all runners. Several are told apart by size where each runner fits exactly one
    copy and each copy exactly one runner; two of like size stay unplaced.
    """
    named: dict[int, LoadedModel] = {}
    sizes: dict[int, Maybe[int]] = {}
    for process in processes:
        copy = copy_of_process(process, copies)
        if copy is not None:
            named[process.pid] = copy
        elif is_runner(process) and may_hold(process, copies):
            before = sizes.get(process.pid, 0)
            if isinstance(before, Unknown) or isinstance(process.used_mib, Unknown):
                sizes[process.pid] = Unknown()
            else:
                sizes[process.pid] = before + process.used_mib
    taken = list(named.values())
    rest = [copy for copy in copies if copy not in taken]
    if len(rest) == 1 and not named:
        return dict.fromkeys(sizes, rest[0])
    fits = {pid: [copy for copy in rest if _is_of_size(size, copy)] for pid, size in sizes.items()}
    if len(fits) == len(rest) and all(len(found) == 1 for found in fits.values()):
        only = {pid: found[0] for pid, found in fits.items()}
        if len({id(copy) for copy in only.values()}) == len(rest):
            named.update(only)
    return named


def _is_of_size(used_mib: Maybe[int], copy: LoadedModel) -> bool:
    """True when a runner's VRAM may be that copy's: what the engine says, plus CUDA contexts and buffers."""
    if isinstance(used_mib, Unknown) or isinstance(copy.vram_bytes, Unknown):
        return False
    told_mib = copy.vram_bytes / _MIB
    return told_mib * 0.9 <= used_mib <= told_mib * 1.1 + 1024


def cards_of_copy(shares: tuple[CardShare, ...], copy: LoadedModel) -> tuple[int, ...]:
    """Indices of the cards a copy is proven to lie on, ascending."""
    return tuple(sorted({share.gpu_index for share in shares if share.copy is copy}))


def find_places(
    gpu: GpuReading, processes: ProcessesReading, engines: tuple[EngineReading, ...]
) -> tuple[CopyPlace, ...]:
    """The cards of each copy, as far as processes prove them; engine by engine."""
    listed = [
        (engine.port, copy)
        for engine in engines
        if not isinstance(engine.loaded, Unknown)
        for copy in engine.loaded
    ]
    shares = _shares(gpu, processes.processes, tuple(copy for _, copy in listed))
    if not shares:
        return ()
    found = (CopyPlace(port, copy.name, cards_of_copy(shares, copy)) for port, copy in listed)
    return tuple(place for place in found if place.cards)


def cards_of(snapshot: MachineSnapshot, engine: EngineReading, copy: LoadedModel) -> tuple[int, ...]:
    """Indices of the cards a copy is proven to lie on; empty where nothing proves any."""
    places = snapshot.places
    if places is None:
        if snapshot.gpu is None or snapshot.processes is None:
            return ()
        places = find_places(snapshot.gpu, snapshot.processes, snapshot.engines)
    for place in places:
        if place.port == engine.port and place.name == copy.name:
            return place.cards
    return ()


def unexplained_mib(snapshot: MachineSnapshot) -> Maybe[int]:
    """VRAM in use that neither the known copies nor the known processes explain, MiB, never below 0.

    Runner processes and copies are the same memory seen twice: the larger of the two sums counts.
    Unknown where any figure it needs is unknown; unified memory is never judged.
    """
    if snapshot.gpu is None or snapshot.processes is None or not snapshot.gpu.cards:
        return Unknown("GPU or processes not read")
    used = 0
    for card in snapshot.gpu.cards:
        if card.is_unified:
            return Unknown("unified memory")
        if isinstance(card.used_mib, Unknown):
            return card.used_mib
        used += card.used_mib
    copies = 0
    for copy in snapshot.loaded:
        if isinstance(copy.vram_bytes, Unknown):
            return copy.vram_bytes
        copies += copy.vram_bytes // _MIB
    runners = others = 0
    for process in snapshot.processes.processes:
        if isinstance(process.used_mib, Unknown):
            return process.used_mib
        if is_runner(process):
            runners += process.used_mib
        else:
            others += process.used_mib
    return max(0, used - max(copies, runners) - others)
