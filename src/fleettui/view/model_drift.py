"""Where declared, installed and loaded models of a machine differ, and its weights from those of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fleettui.model.literal import Literal
from fleettui.model.names import canonical_name, is_served_as
from fleettui.model.record import dataclass
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown

DriftKind = Literal[
    "not_installed",  # declared
    "not_declared",  # installed
    "loaded_not_declared",
    "gone",  # loaded, and not installed any more
    "other_digest",  # the same name is something else on other machines
]


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference."""

    kind: DriftKind
    model: str
    size_bytes: Maybe[int] = Unknown("not installed")
    digest: str = ""
    """Of `other_digest`: what it is here."""
    other_digest: str = ""
    """What it is on most of the others."""
    machines: tuple[str, ...] = ()
    """Those that have the other digest."""


def find_drift(snapshot: MachineSnapshot) -> tuple[Drift, ...] | None:
    """Differences within one machine; None while what is installed was not read.

    A file without models declares nothing, so that nothing can be missing or too much.
    """
    declared = snapshot.machine.models
    lists = [engine.installed for engine in snapshot.engines]
    if not lists or any(isinstance(models, Unknown) for models in lists):
        return None
    installed, loaded = snapshot.installed, snapshot.loaded
    found: list[Drift] = []
    here = [(item.engine, item.name) for item in installed] + [(copy.engine, copy.name) for copy in loaded]
    for name in dict.fromkeys(declared):
        if not any(is_served_as(kind, spelled, name) for kind, spelled in here):
            found.append(Drift("not_installed", name))
    for copy in loaded:
        is_local = any(
            item.engine == copy.engine and is_served_as(item.engine, item.name, copy.name)
            for item in installed
        )
        if not is_local and copy.engine == "ollama":
            found.append(Drift("gone", copy.name, copy.size_bytes))
        elif declared and not any(is_served_as(copy.engine, copy.name, name) for name in declared):
            found.append(Drift("loaded_not_declared", copy.name, copy.size_bytes))
    told = {drift.model for drift in found}
    for model in installed:
        is_declared = any(is_served_as(model.engine, model.name, name) for name in declared)
        if declared and not is_declared and model.remote_host is None and model.name not in told:
            found.append(Drift("not_declared", model.name, model.size_bytes))
    return tuple(found)


def find_other_digests(snapshot: MachineSnapshot, machines: Iterable[MachineSnapshot]) -> tuple[Drift, ...]:
    """Installed models whose name stands for other weights on most of the machines that have it.

    Where as many have this as the other, it is told on both sides: nobody knows which one is right.
    """
    own = digests_of(snapshot)
    if not own:
        return ()
    others: dict[str, dict[str, list[str]]] = {}
    for machine in machines:
        if machine.name == snapshot.name:
            continue
        for name, (_, digest) in digests_of(machine).items():
            if name in own:
                others.setdefault(name, {}).setdefault(digest, []).append(machine.name)
    found = []
    for name, by_digest in others.items():
        spelled, digest = own[name]
        counts = Counter({other: len(names) for other, names in by_digest.items() if other != digest})
        if not counts:
            continue
        usual, most = counts.most_common(1)[0]
        if most >= 1 + len(by_digest.get(digest, ())):
            machines_there = tuple(by_digest[usual])
            found.append(Drift("other_digest", spelled, Unknown(), digest, usual, machines_there))
    return tuple(found)


def digests_of(snapshot: MachineSnapshot) -> dict[str, tuple[str, str]]:
    """Canonical name of each model on the disk of an Ollama -> name as spelled, digest."""
    return {
        canonical_name(model.name): (model.name, model.digest.removeprefix("sha256:"))
        for model in snapshot.installed
        if model.engine == "ollama" and model.remote_host is None and not isinstance(model.digest, Unknown)
    }
