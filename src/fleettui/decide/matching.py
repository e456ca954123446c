"""Finds a model on a machine: the copy that is resident, the file that is installed."""

from __future__ import annotations

from fleettui.decide.natural import natural_key
from fleettui.model.names import canonical_name, family_of
from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown


@dataclass(frozen=True, slots=True)
class Match:
    """The asked model on one engine."""

    engine: EngineReading
    copy: LoadedModel | None
    """Resident; a copy that is stopping is not."""
    installed: InstalledModel | None


def is_usable_engine(engine: EngineReading) -> bool:
    """True when the engine answered with what it has loaded or installed."""
    if engine.state not in {"ok", "busy"}:
        return False
    return not (isinstance(engine.loaded, Unknown) and isinstance(engine.installed, Unknown))


def find_on_engine(engine: EngineReading, asked: str, canonical: str) -> Match | None:
    """The model on one engine; None when it is neither resident nor installed there.

    A copy with the digest of the asked tag is the asked model under another tag: tags that share one
    digest share one runner, and `/api/ps` lists only the tag that loaded it.
    """
    is_ollama = engine.kind == "ollama"
    found = None
    if not isinstance(engine.installed, Unknown):
        for model in engine.installed:
            name = model.name
            if name == asked or (is_ollama and canonical_name(name) == canonical):
                found = model
                break
    resident = None
    if not isinstance(engine.loaded, Unknown) and engine.loaded:
        digest = found.digest if found is not None else None
        for copy in engine.loaded:
            if copy.state == "stopping":
                continue
            if digest is not None and copy.digest == digest and not isinstance(digest, Unknown):
                resident = copy
                break
            name = copy.name
            if resident is None and (name == asked or (is_ollama and canonical_name(name) == canonical)):
                resident = copy
    if found is None and resident is None:
        return None
    return Match(engine, resident, found)


def nearest_installed(snapshot: MachineSnapshot, asked: str) -> str | None:
    """The installed tag of the same family, first in natural order; None when there is none."""
    family = family_of(asked)
    tags = [model.name for model in snapshot.installed if family_of(model.name) == family]
    return min(tags, key=natural_key) if tags else None
