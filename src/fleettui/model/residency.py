"""Which process is which copy: joins runner processes with the copies an engine lists."""

from __future__ import annotations

from fleettui.model.readings import GpuProcess, LoadedModel
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
    agree for few builds only, so an only copy is also matched to an only runner by `shares_of`.
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
    """What lies where, only as far as processes prove it; empty where nothing is proven.

    One copy with VRAM and runner processes only of one program: those are its processes. Two copies need
    a digest or id in the command line.
    """
    if snapshot.gpu is None or snapshot.processes is None or not snapshot.processes.processes:
        return ()
    copies = tuple(copy for copy in snapshot.loaded if copy.vram_bytes != 0)
    if not copies:
        return ()
    index_of = {card.uuid: card.index for card in snapshot.gpu.cards if not isinstance(card.uuid, Unknown)}
    shares = []
    for process in snapshot.processes.processes:
        if isinstance(process.gpu_uuid, Unknown):
            continue
        index = index_of.get(process.gpu_uuid)
        if index is None:
            continue
        copy = copy_of_process(process, copies)
        if copy is None and len(copies) == 1 and is_runner(process):
            copy = copies[0]
        if copy is not None:
            shares.append(CardShare(copy, index, process.used_mib, process.pid))
    return tuple(shares)


def cards_of_copy(shares: tuple[CardShare, ...], copy: LoadedModel) -> tuple[int, ...]:
    """Indices of the cards a copy is proven to lie on, ascending."""
    return tuple(sorted({share.gpu_index for share in shares if share.copy is copy}))


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
