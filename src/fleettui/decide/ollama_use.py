"""How an Ollama on a machine would load a model: context, sequences, cache type, by its settings."""

from __future__ import annotations

from fleettui.decide.kv_cache import BYTES_OF_32, F16, CacheTypes
from fleettui.decide.model_need import ContextUse
from fleettui.decide.ollama_forecast import default_context
from fleettui.model.model_shape import NOT_TOLD, ModelShape
from fleettui.model.ollama_settings import OllamaSettings
from fleettui.model.readings import SystemReading
from fleettui.model.record import dataclass, replace
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown, known_or
from fleettui.model.vram import has_no_gpu, vram_sum

ASSUMES_ONE = "assumes 1 request at a time"
_SMALLEST_CONTEXT = 4096
_COPIES_PER_GPU = 3
"""That are kept, where OLLAMA_MAX_LOADED_MODELS says nothing."""


@dataclass(frozen=True, slots=True)
class OllamaUse:
    """The use of a model there, and what of it is assumed."""

    use: ContextUse
    spreads: bool = False
    """OLLAMA_SCHED_SPREAD is set."""
    context_basis: str = "asked for"
    """`asked for`, `num_ctx of the model`, `OLLAMA_CONTEXT_LENGTH`, `default by VRAM`, `assumed`."""
    is_parallel_known: bool = False
    max_loaded: Maybe[int] = Unknown("not read")
    """Copies it keeps at most, where it is set."""

    def most_copies(self, snapshot: MachineSnapshot) -> int:
        """How many it keeps there at most, whatever the room."""
        if not isinstance(self.max_loaded, Unknown) and self.max_loaded > 0:
            return self.max_loaded
        return _COPIES_PER_GPU * max(1, 0 if snapshot.gpu is None else len(snapshot.gpu.cards))

    @property
    def sure_copies(self) -> int:
        """How many it keeps on any machine."""
        known = known_or(self.max_loaded, 0)
        return known if known > 0 else _COPIES_PER_GPU

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.is_parallel_known else (ASSUMES_ONE,)


def settings_of(snapshot: MachineSnapshot, port: int) -> OllamaSettings | None:
    """Of the server at that port; None where they could not be read."""
    told = None if snapshot.system is None else snapshot.system.ollama
    return told if told is not None and told.port == port else None


def with_last_settings(fleet: FleetSnapshot, last: FleetSnapshot) -> FleetSnapshot:
    """The fleet with settings that were read earlier where they were not read now: they change only when a
    service is started anew, and reading them takes longer than asking a machine for its models."""
    known = {item.machine.name: item for item in last.machines}
    machines = []
    for snapshot in fleet.machines:
        old, system = known.get(snapshot.machine.name), snapshot.system
        told = None if old is None or old.system is None else old.system.ollama
        if old is not None and told is not None and (system is None or system.ollama is None):
            now, then = snapshot.machine, old.machine
            if (now.hostname, now.port, now.engines) == (then.hostname, then.port, then.engines):
                system = replace(SystemReading() if system is None else system, ollama=told)
        machines.append(snapshot if system is snapshot.system else replace(snapshot, system=system))
    return replace(fleet, machines=tuple(machines))


def find_ollama_use(
    snapshot: MachineSnapshot, port: int, context: int | None = None, shape: Maybe[ModelShape] = NOT_TOLD
) -> OllamaUse:
    """How the server at that port would load a model; `context`: tokens that the request will name.

    `shape`: of the model, whose own Modelfile may name a context.
    """
    settings = settings_of(snapshot, port)
    tokens, basis = _context(snapshot, settings, context, shape)
    if settings is None:
        return OllamaUse(ContextUse(tokens), context_basis=basis)
    parallel = 1 if isinstance(settings.parallel, Unknown) else settings.parallel
    has_flash = settings.flash_attention != "off"
    # Without flash attention the server ignores a quantised cache (llm/server.go).
    types = _types(settings.cache_type) if has_flash else F16
    return OllamaUse(
        ContextUse(tokens, parallel, types, has_flash), settings.spreads, basis, True, settings.max_loaded
    )


def copy_settings(snapshot: MachineSnapshot, port: int) -> tuple[int | None, CacheTypes]:
    """Sequences (None: not known) and cache of the copies that the server at that port holds."""
    if settings_of(snapshot, port) is None:
        return None, F16
    use = find_ollama_use(snapshot, port, _SMALLEST_CONTEXT).use
    return use.parallel, use.types


def _context(
    snapshot: MachineSnapshot, settings: OllamaSettings | None, asked: int | None, shape: Maybe[ModelShape]
) -> tuple[int, str]:
    if asked is not None:
        return asked, "asked for"
    if not isinstance(shape, Unknown) and not isinstance(shape.own_context, Unknown):
        return shape.own_context, "num_ctx of the model"
    if settings is not None and not isinstance(settings.context, Unknown):
        return settings.context, "OLLAMA_CONTEXT_LENGTH"
    if snapshot.gpu is None or not snapshot.gpu.cards:
        return _SMALLEST_CONTEXT, "default by VRAM" if has_no_gpu(snapshot) else "assumed"
    tokens = default_context(vram_sum(snapshot).total_mib)
    if isinstance(tokens, Unknown):
        return _SMALLEST_CONTEXT, "assumed"
    return tokens, "default by VRAM"


def _types(name: Maybe[str]) -> CacheTypes:
    """The server takes f16, q8_0 and q4_0; it ignores any other word."""
    kind = next((known for known in BYTES_OF_32 if known == name), None)
    return CacheTypes(kind, kind) if kind in ("f16", "q8_0", "q4_0") else F16
