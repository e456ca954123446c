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
    if not engine.is_answering:
        return False
    return not (isinstance(engine.loaded, Unknown) and isinstance(engine.installed, Unknown))


class Asked:
    """The name a caller asked for; remembers which of Ollama's names mean the same, for thousands of them."""

    __slots__ = ("_is_same", "canonical", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.canonical = canonical_name(name)
        self._is_same = {name: True, self.canonical: True}

    def is_ollama_s(self, name: str) -> bool:
        """True when Ollama serves `name` to that caller."""
        is_same = self._is_same.get(name)
        if is_same is None:
            is_same = self._is_same[name] = canonical_name(name) == self.canonical
        return is_same

    def is_id(self, name: str) -> bool:
        """True when any other engine does: they compare whole ids."""
        return name == self.name


def find_on_engine(engine: EngineReading, asked: Asked) -> Match | None:
    """The model on one engine; None when it is neither resident nor installed there.

    A copy with the digest of the asked tag is the asked model under another tag: tags that share one
    digest share one runner, and `/api/ps` lists only the tag that loaded it.
    """
    is_asked = asked.is_ollama_s if engine.kind == "ollama" else asked.is_id
    found = None
    if not isinstance(engine.installed, Unknown):
        for model in engine.installed:
            if is_asked(model.name):
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
            if resident is None and is_asked(copy.name):
                resident = copy
    if found is None and resident is None:
        return None
    return Match(engine, resident, found)


def nearest_installed(snapshot: MachineSnapshot, asked: str) -> str | None:
    """The installed tag of the same family, first in natural order; None when there is none."""
    family = family_of(asked)
    tags = [model.name for model in snapshot.installed if family_of(model.name) == family]
    return min(tags, key=natural_key) if tags else None
