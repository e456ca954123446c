"""Who is on the GPUs: engines that the machine file declares, engines that it does not, anybody else."""

from __future__ import annotations

from fleettui.model.gpu import GpuProcess
from fleettui.model.machine import EngineKind
from fleettui.model.readings import LoadedModel
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_WORDS: tuple[tuple[str, EngineKind], ...] = (
    ("ollama", "ollama"),
    ("llama-swap", "llamaswap"),
    ("sglang", "sglang"),
    ("vllm", "vllm"),
    ("lm-studio", "lmstudio"),
    ("lmstudio", "lmstudio"),
    ("llama-server", "llamacpp"),
    ("llama_server", "llamacpp"),
)
"""Parts of names and command lines, the first that is found counts: Ollama's runner may be a llama-server."""


def engine_kind_of(process: GpuProcess) -> EngineKind | None:
    """The kind of engine whose process it is, by its name and command line."""
    text = process.name if isinstance(process.command, Unknown) else f"{process.name} {process.command}"
    return engine_kind_of_text(text)


def engine_kind_of_text(text: str) -> EngineKind | None:
    """The kind of engine whose name or command line it is."""
    text = text.lower()
    return next((kind for word, kind in _WORDS if word in text), None)


def is_declared_kind(snapshot: MachineSnapshot, kind: EngineKind) -> bool:
    """True when the file has an engine of that kind, or one that starts such processes."""
    declared = {engine.kind for engine in snapshot.machine.engines} or {"ollama"}
    return kind in declared or (kind == "llamacpp" and "llamaswap" in declared)


def may_hold(process: GpuProcess, copies: Iterable[LoadedModel]) -> bool:
    """True when the engine of one of the copies may run its models in such a process: vLLM never holds what
    Ollama has loaded. A bare llama-server may be anybody's, llama-swap starts what it is told to."""
    kind = engine_kind_of(process)
    return kind in (None, "llamacpp") or any(copy.engine in (kind, "llamaswap") for copy in copies)


def undeclared_engines(snapshot: MachineSnapshot) -> dict[EngineKind, list[GpuProcess]]:
    """Processes of engines that the file does not declare, by kind."""
    found: dict[EngineKind, list[GpuProcess]] = {}
    for process in snapshot.processes.processes if snapshot.processes is not None else ():
        kind = engine_kind_of(process)
        if kind is not None and not is_declared_kind(snapshot, kind):
            found.setdefault(kind, []).append(process)
    return found


def other_processes(snapshot: MachineSnapshot) -> list[GpuProcess]:
    """Processes of no engine that is known."""
    processes = snapshot.processes.processes if snapshot.processes is not None else ()
    return [process for process in processes if engine_kind_of(process) is None]
