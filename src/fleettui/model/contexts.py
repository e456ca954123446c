"""How long a context a loaded model was made for, as far as an engine says it."""

from __future__ import annotations

from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import NOT_READ, Maybe, Unknown


def engine_of(snapshot: MachineSnapshot, copy: LoadedModel) -> EngineReading | None:
    """The engine that lists this very copy."""
    for engine in snapshot.engines:
        if not isinstance(engine.loaded, Unknown) and any(item is copy for item in engine.loaded):
            return engine
    return None


def longest_context(engine: EngineReading | None, copy: LoadedModel) -> Maybe[int]:
    """Tokens; Ollama says it of the model on the disk, others of the copy."""
    if copy.traits is not None and not isinstance(copy.traits.max_context, Unknown):
        return copy.traits.max_context
    if engine is None or isinstance(engine.installed, Unknown):
        return NOT_READ
    for model in engine.installed:
        if model.traits is not None and model.name == copy.name and model.digest == copy.digest:
            return model.traits.max_context
    return NOT_READ
