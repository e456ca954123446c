"""What one machine has of each model: resident copies, what lies on its disk, what its file declares."""

from __future__ import annotations

from typing import Literal, NamedTuple

from fleettui.model.machine import Machine
from fleettui.model.names import canonical_name
from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown, known_or
from fleettui.view.figures import is_answering
from fleettui.view.flags import drain_word

HoldingState = Literal[
    "on_gpu",  # loaded, wholly on the GPU
    "partly",  # loaded, partly in RAM
    "in_ram",  # loaded, wholly in RAM
    "loaded",  # loaded, the engine does not say where
    "loading",
    "stopping",
    "sleeping",
    "installed",
    "missing",  # declared, and the engines list it neither as loaded nor as installed
    "unread",  # declared; what is installed was not read
    "cloud",  # an entry whose model runs elsewhere
]
LOADED_STATES: frozenset[HoldingState] = frozenset(
    {"on_gpu", "partly", "in_ram", "loaded", "loading", "stopping", "sleeping"}
)
_LATE_S = 6.0
"""An engine may be asked a little late without its answer being old."""


class Entry(NamedTuple):
    """One mention of a model on a machine."""

    key: str
    """What callers ask for: names of the same key are one name to every engine."""
    name: str
    """As it is spelled there."""
    digest: str | None
    """Of the manifest; None: not known."""
    what: LoadedModel | InstalledModel | None
    """None: the machine file declares it."""
    is_live: bool = True
    """Read just now; else it is what the machine said last."""


class DiskEntries(NamedTuple):
    """What one engine has installed; the longest list, and the one that changes rarely."""

    installed: Maybe[tuple[InstalledModel, ...]]
    is_live: bool
    entries: tuple[Entry, ...]
    elsewhere: frozenset[str]
    """Keys of entries whose model runs elsewhere."""


class MachineEntries(NamedTuple):
    """All mentions of models on one machine."""

    machine: str
    entries: tuple[Entry, ...]
    disks: tuple[DiskEntries, ...]
    """Of each engine."""
    is_heard: bool
    """The machine answers in time."""
    is_listed: bool
    """Every engine told what it has installed: what is not listed is not there."""
    last_seen: float | None
    """Epoch seconds of a machine that does not answer; None while it does, or if it never did."""
    flag: str
    """What the operator decided about the machine: `maintenance`, `drained`, …; empty: nothing."""

    @property
    def standing(self) -> tuple[bool, bool, float | None, str]:
        """What counts for each of its models beside their own entries."""
        return self.is_heard, self.is_listed, self.last_seen, self.flag

    @property
    def structure(self) -> frozenset[tuple[str, str | None]]:
        """What decides which line each entry belongs to: (key, digest)."""
        return frozenset([(entry.key, entry.digest) for entry in self.entries])


class Holding(NamedTuple):
    """What one machine has of one model."""

    machine: str
    state: HoldingState
    names: tuple[str, ...]
    """The model's names there, as spelled."""
    copies: tuple[LoadedModel, ...]
    """Most VRAM first."""
    installed_bytes: Maybe[int] | None
    """On its disk; None: not installed there, or not known to be."""
    is_declared: bool
    is_live: bool
    """Read just now; else what the machine said last."""
    last_seen: float | None = None
    """Of a machine that does not answer."""
    drift: str = ""
    """How its digest differs from that of others with the same tag."""
    flag: str = ""
    """What the operator decided about the machine."""

    @property
    def is_loaded(self) -> bool:
        """At least one copy is resident."""
        return bool(self.copies)

    @property
    def vram_bytes(self) -> Maybe[int]:
        """Of all its copies; Unknown where any of them is."""
        sizes = [copy.vram_bytes for copy in self.copies]
        unknown = next((size for size in sizes if isinstance(size, Unknown)), None)
        return unknown if unknown is not None else sum(known_or(size, 0) for size in sizes)


class Liveness(NamedTuple):
    """What of a machine was read just now."""

    is_heard: bool
    """The machine answers in time."""
    engines: tuple[bool, ...]
    """For each engine that was asked: its last answer is of now."""


def liveness_of(snapshot: MachineSnapshot, now: float, fresh_s: float) -> Liveness:
    """`fresh_s`: age up to which an answer is of now. Nothing is while the machine does not answer."""
    age_s = snapshot.age_s(now)
    if not is_answering(snapshot) or age_s is None or age_s > fresh_s:
        return Liveness(False, (False,) * len(snapshot.engines))
    return Liveness(True, tuple([_is_fresh(snapshot, engine, now, fresh_s) for engine in snapshot.engines]))


def _is_fresh(snapshot: MachineSnapshot, engine: EngineReading, now: float, fresh_s: float) -> bool:
    exact = snapshot.sources.get(f"{engine.kind}:{engine.port}")
    status = exact if exact is not None else snapshot.sources.get(engine.kind)
    age_s = None if status is None else status.age_s(now)
    return engine.is_answering and (age_s is None or age_s <= max(fresh_s, _LATE_S))


def read_entries(
    snapshot: MachineSnapshot, live: Liveness, before: MachineEntries | None = None
) -> MachineEntries:
    """Every mention of a model on a machine. `before`: what was read last; entries that still hold are the
    same objects."""
    disks: list[DiskEntries] = []
    entries: list[Entry] = []
    for place, (engine, is_live) in enumerate(zip(snapshot.engines, live.engines, strict=True)):
        known = before.disks[place] if before is not None and place < len(before.disks) else None
        if known is None or known.installed is not engine.installed or known.is_live != is_live:
            known = _read_disk(engine, is_live)
        disks.append(known)
        entries += known.entries
        loaded = () if isinstance(engine.loaded, Unknown) else engine.loaded
        copies = [_entry_of(copy, is_live) for copy in loaded]
        entries += [entry for entry in copies if entry.key not in known.elsewhere]
    entries += _declared_entries(snapshot.machine, entries, live.is_heard)
    is_listed = (
        bool(live.engines)
        and all(live.engines)
        and len(snapshot.engines) >= len(snapshot.machine.engines)
        and not any(isinstance(engine.installed, Unknown) for engine in snapshot.engines)
    )
    last_seen = None if live.is_heard else snapshot.last_seen
    return MachineEntries(
        snapshot.name, tuple(entries), tuple(disks), live.is_heard, is_listed, last_seen, flag_word(snapshot)
    )


def flag_word(snapshot: MachineSnapshot) -> str:
    """`maintenance`, `drained`, `drain running`; empty without a flag."""
    if snapshot.maintenance is not None:
        return "maintenance"
    if snapshot.drain is not None:
        return drain_word(snapshot.drain)
    return ""


def _read_disk(engine: EngineReading, is_live: bool) -> DiskEntries:
    installed = () if isinstance(engine.installed, Unknown) else engine.installed
    elsewhere = frozenset(
        [_key_of(model, model.name) for model in installed if model.remote_host is not None]
    )
    entries = tuple([_entry_of(model, is_live) for model in installed])
    return DiskEntries(engine.installed, is_live, entries, elsewhere)


def _entry_of(what: LoadedModel | InstalledModel, is_live: bool) -> Entry:
    digest = what.digest
    known = None if isinstance(digest, Unknown) else digest.removeprefix("sha256:")
    return Entry(_key_of(what, what.name), what.name, known, what, is_live)


def _key_of(what: LoadedModel | InstalledModel, name: str) -> str:
    """Ollama fills in defaults and ignores case; every other engine compares whole ids."""
    return ollama_key(name) if what.engine == "ollama" else name.strip()


def ollama_key(name: str) -> str:
    """The shortest name that Ollama takes for the same model: `Library/X:latest` -> `x`."""
    return canonical_name(name).removesuffix(":latest")


def _declared_entries(machine: Machine, known: list[Entry], is_live: bool) -> list[Entry]:
    """Names of the file by the rules of the engine that serves them there."""
    keys = {entry.key for entry in known}
    has_ollama = not machine.engines or any(engine.kind == "ollama" for engine in machine.engines)
    found = []
    for name in dict.fromkeys(machine.models):
        is_id = name in keys or not has_ollama
        found.append(Entry(name if is_id else ollama_key(name), name, None, None, is_live))
    return found


def make_holding(part: MachineEntries, entries: list[Entry], drift: str) -> Holding:
    """One model on one machine, from all its mentions there."""
    copies = [entry.what for entry in entries if isinstance(entry.what, LoadedModel)]
    copies.sort(key=lambda copy: (-known_or(copy.vram_bytes, 0), copy.name))
    disk = [entry.what for entry in entries if isinstance(entry.what, InstalledModel)]
    local = [model for model in disk if model.remote_host is None]
    is_declared = any(entry.what is None for entry in entries)
    state: HoldingState
    if copies:
        state = _copies_state(copies)
    elif local:
        state = "installed"
    elif disk:
        state = "cloud"
    else:
        state = "missing" if part.is_listed else "unread"
    mentioned = [entry for entry in entries if entry.what is not None]
    is_live = part.is_heard and all(entry.is_live for entry in mentioned)
    return Holding(
        part.machine,
        state,
        tuple(dict.fromkeys(entry.name for entry in mentioned or entries)),
        tuple(copies),
        local[0].size_bytes if local else None,
        is_declared,
        is_live,
        part.last_seen,
        drift,
        part.flag,
    )


def _copies_state(copies: list[LoadedModel]) -> HoldingState:
    """Of several copies what the operator should look at first."""
    states = [copy_state(copy) for copy in copies]
    order: tuple[HoldingState, ...] = (
        "partly", "in_ram", "loading", "loaded", "on_gpu", "stopping", "sleeping",
    )  # fmt: skip
    return min(states, key=order.index)


def copy_state(copy: LoadedModel) -> HoldingState:
    """Where a copy lies, or what becomes of it."""
    if copy.state != "loaded":
        return copy.state
    percent = copy.gpu_percent
    if isinstance(percent, Unknown):
        return "loaded"
    return "on_gpu" if percent >= 100 else "partly" if percent > 0 else "in_ram"
