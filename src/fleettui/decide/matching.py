"""Finds a model on a machine: the copy that is resident, the file that is installed."""

from __future__ import annotations

from operator import attrgetter

from fleettui.decide.natural import natural_key
from fleettui.model.catalog import EMPTY_CATALOG, Catalog, find_in_catalog
from fleettui.model.names import canonical_name, family_of
from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import TypeVar

    Listed = TypeVar("Listed", bound=LoadedModel | InstalledModel)

OWN, ALIAS, CATALOG = 0, 1, 2
"""Ranks of a name, best first; an alias that the catalog names is CATALOG + ALIAS."""
_CLOUD = 8
"""Added for a cloud entry: it counts only where nothing local has the name."""
_UNSEEN = -1
_name_of = attrgetter("name")


@dataclass(frozen=True, slots=True)
class Match:
    """The asked model on one engine."""

    engine: EngineReading
    copy: LoadedModel | None
    """Resident; a copy that is stopping is not."""
    installed: InstalledModel | None
    name: str = ""
    """What a request to this engine has to call it: its name there, else the alias or adapter."""
    is_by_catalog: bool = False
    """Only the catalog says that this is the asked model."""


def is_usable_engine(engine: EngineReading) -> bool:
    """True when the engine answered with what it has loaded or installed."""
    if type(engine.loaded) is Unknown and type(engine.installed) is Unknown:
        return False
    return engine.state == "ok" or engine.is_answering


class Asked:
    """The name a caller asked for, with every name that means the same on some engine.

    By the catalog its id means all of its names. A name that it gives to one engine means, on every other
    engine, the names there; on its own engine only itself, for that is what the caller will send.
    """

    __slots__ = ("_families", "_ollama", "_others", "_skipped", "_strangers", "canonical", "model", "name")

    def __init__(self, name: str, catalog: Catalog = EMPTY_CATALOG) -> None:
        self.name = name
        self.canonical = canonical_name(name)
        self.model = find_in_catalog(catalog, name)
        """The model of the catalog that was meant; None: none."""
        ranks = {canonical_name(other): CATALOG for other in self._elsewhere("ollama")}
        self._ollama: dict[str, int | None] = {**ranks, self.canonical: OWN}
        self._ollama[name] = self._ollama[self.canonical]
        self._skipped: set[str] = set()
        """Names on Ollama that are other models: most of a fleet's."""
        self._others: dict[str, dict[str, int]] = {}
        self._families = {family_of(other) for other in (name, *self._elsewhere("ollama"))}
        self._strangers: set[str] = set()
        """Names of other families."""

    @property
    def shown(self) -> str:
        """How to speak of it: Ollama's full form, but a word of the catalog as it stands there."""
        model = self.model
        if model is None or (
            self.name != model.id and self.canonical in map(canonical_name, model.names_on("ollama"))
        ):
            return self.canonical
        return self.name

    def _elsewhere(self, kind: str) -> tuple[str, ...]:
        """Names that the catalog has for it on engines of that kind."""
        if self.model is None:
            return ()
        names = self.model.names_on(kind)
        if self.name == self.model.id:
            return names
        is_own = self.name in names or (kind == "ollama" and self.canonical in map(canonical_name, names))
        return () if is_own else names

    def name_on(self, kind: str) -> str | None:
        """What a request calls it on an engine of that kind that has not said so itself; None: the catalog
        names it on other engines only."""
        if self.model is None or not self.model.names:
            return self.name
        names = self._elsewhere(kind)
        if names:
            return names[0]
        return self.name if self.model.names_on(kind) else None

    def rank_on_ollama(self, name: str) -> int | None:
        """How Ollama's name fits what was asked; None: it is another model. Remembered for thousands."""
        rank = self._ollama.get(name, _UNSEEN)
        if rank == _UNSEEN:
            rank = self._ollama[name] = self._ollama.get(canonical_name(name))
            if rank is None:
                self._skipped.add(name)
        return rank

    def ranks_on(self, kind: str) -> dict[str, int]:
        """Whole ids, as every engine but Ollama compares them, with their ranks."""
        ranks = self._others.get(kind)
        if ranks is None:
            ranks = self._others[kind] = {**dict.fromkeys(self._elsewhere(kind), CATALOG), self.name: OWN}
        return ranks

    def find_among(self, models: Collection[Listed], kind: str) -> list[tuple[int, str, Listed]]:
        """(rank, name to call it by, model) of those that are the asked one, in their order."""
        if kind != "ollama":
            return self._among_ids(models, kind)
        skipped, found = self._skipped, []
        for model in models:
            if model.name in skipped:
                continue
            rank = self.rank_on_ollama(model.name)
            if rank is not None:
                found.append((rank, model.name, model))
                if rank == OWN:
                    break
        return found

    def relatives_among(self, models: Collection[InstalledModel]) -> list[str]:
        """Names of the same family: the model with another tag."""
        if self._strangers.issuperset(map(_name_of, models)):
            return []
        names: set[str] = {*map(_name_of, models)} - self._strangers
        found = {name for name in names if family_of(name) in self._families}
        self._strangers |= names - found
        return list(found)

    def _among_ids(self, models: Collection[Listed], kind: str) -> list[tuple[int, str, Listed]]:
        ranks = self.ranks_on(kind)
        found: list[tuple[int, str, Listed]] = []
        for model in models:
            rank = ranks.get(model.name)
            if rank is not None:
                found.append((rank, model.name, model))
            names = None if rank == OWN else model.names
            if names is not None:
                for other in (*names[0], *names[1]):
                    if other in ranks:
                        found.append((ranks[other] + ALIAS, other, model))
        return found


def find_on_machine(snapshot: MachineSnapshot, asked: Asked) -> tuple[tuple[Match, ...], bool]:
    """The model on each engine that answered, and whether all of them listed everything they have."""
    matches: tuple[Match, ...] = ()
    is_complete = bool(snapshot.engines)
    for engine in snapshot.engines:
        if not is_usable_engine(engine):
            is_complete = False
            continue
        if type(engine.installed) is Unknown:
            is_complete = False
        match = find_on_engine(engine, asked)
        if match is not None:
            matches += (match,)
    return matches, is_complete


def find_on_engine(engine: EngineReading, asked: Asked) -> Match | None:
    """The model on one engine; None when it is neither resident nor installed there.

    A copy with the digest of the asked tag is the asked model under another tag: tags that share one
    digest share one runner, and `/api/ps` lists only the tag that loaded it. Then names by their rank; of
    equal ones, which only the catalog has, a resident one comes first.
    """
    kind = engine.kind
    loaded = () if type(engine.loaded) is Unknown else engine.loaded
    on_disk = [] if type(engine.installed) is Unknown else asked.find_among(engine.installed, kind)
    running = asked.find_among(loaded, kind) if loaded else []
    if not running and not on_disk:
        return None
    if running and (len(running) > 1 or running[0][2].state == "stopping"):
        running = asked.find_among([copy for copy in loaded if copy.state != "stopping"], kind)
        running.sort(key=_rank)
    if len(on_disk) > 1:
        on_disk.sort(key=_rank_locally)
    if on_disk:
        if loaded and not (running and running[0][0] < on_disk[0][0]):
            shared = _copy_with_digest(engine, loaded, on_disk)
            if shared is not None:
                return shared
        if not running or _rank_locally(on_disk[0]) < running[0][0]:
            rank, name, model = on_disk[0]
            return Match(engine, None, model, name, rank >= CATALOG)
    if not running:
        return None
    rank, name, copy = running[0]
    own = [model for _, spelled, model in on_disk if spelled == name]
    file = own[0] if own else on_disk[0][2] if on_disk and on_disk[0][0] == rank == OWN else None
    return Match(engine, copy, file, name, rank >= CATALOG)


def _copy_with_digest(
    engine: EngineReading, loaded: tuple[LoadedModel, ...], on_disk: list[tuple[int, str, InstalledModel]]
) -> Match | None:
    """The resident copy that has the weights of one of the best names on the disk."""
    rank, name, model = on_disk[0]
    if len(on_disk) == 1:  # nearly always: no need of an index
        digest = model.digest
        for copy in loaded:
            if copy.digest == digest and copy.state != "stopping" and type(digest) is not Unknown:
                return Match(engine, copy, model, name, rank >= CATALOG)
        return None
    copies = {
        copy.digest: copy
        for copy in reversed(loaded)
        if copy.state != "stopping" and type(copy.digest) is not Unknown
    }
    for found, name, model in on_disk:
        shared: LoadedModel | None = None if type(model.digest) is Unknown else copies.get(model.digest)
        if shared is not None and found == rank:
            return Match(engine, shared, model, name, rank >= CATALOG)
    return None


def _rank(item: tuple[int, str, LoadedModel]) -> int:
    return item[0]


def _rank_locally(item: tuple[int, str, InstalledModel]) -> int:
    """Cloud entries last."""
    return item[0] if item[2].remote_host is None else item[0] + _CLOUD


def nearest_installed(snapshot: MachineSnapshot, asked: Asked) -> str | None:
    """The installed tag of the same family, first in natural order; None when there is none."""
    tags: list[str] = []
    for engine in snapshot.engines:
        if not isinstance(engine.installed, Unknown):
            tags += asked.relatives_among(engine.installed)
    return min(tags, key=natural_key) if tags else None
