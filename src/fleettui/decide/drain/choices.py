"""What one copy would take on each machine, or why it cannot go there; and who serves it already."""

from __future__ import annotations

from fleettui.decide.drain.bay import Load, Rank
from fleettui.decide.drain.sources import Found, is_movable
from fleettui.decide.drain.targets import Target
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.matching import Asked, Match, find_on_engine, nearest_installed
from fleettui.decide.model_need import ContextUse, ModelFacts, ModelNeed, SeenCopy, adjust_use, find_need
from fleettui.decide.need import Needs
from fleettui.decide.ollama_forecast import Prediction, predict
from fleettui.decide.ollama_use import OllamaUse, find_ollama_use, settings_of
from fleettui.decide.room import IdleCopy
from fleettui.model.busy import find_busy_signs
from fleettui.model.drain import DrainOptions, SourceCopy
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel
from fleettui.model.record import dataclass, replace
from fleettui.model.residency import shares_of
from fleettui.model.route import Rejection
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown

LEAST_KEEP_S = 600.0
"""How long a moved copy stays at least without a request."""
_NOT_TOLD = Unknown("as its server was started")
_UNLIMITED = 1 << 30


@dataclass(frozen=True, slots=True)
class Choice:
    """A copy on one target."""

    match: Match
    file: InstalledModel | None
    """On the target's disk, or what would be fetched."""
    load: Load


class Choices:
    """What one copy finds in the fleet."""

    __slots__ = (
        "_asked",
        "_entry",
        "_facts",
        "_loads",
        "_needs",
        "_now",
        "_options",
        "_percent",
        "found",
        "matches",
    )

    def __init__(
        self,
        fleet: FleetSnapshot,
        found: Found,
        targets: tuple[Target, ...],
        needs: Needs,
        knowledge: RouteKnowledge,
        options: DrainOptions,
        now: float,
    ) -> None:
        self.found = found
        self._asked = Asked(found.copy.name, knowledge.catalog)
        self._entry = self._asked.model
        self._needs, self._options, self._now = needs, options, now
        self._facts = needs.facts_of(found.copy.digest, _file_bytes(fleet, found), self._entry)
        self._percent = gpu_percent(found.copy)
        self._loads: dict[object, tuple[Load, Maybe[ModelNeed]]] = {}
        self.matches: tuple[tuple[Match, ...], ...] = tuple([self._matches_on(target) for target in targets])
        """For each target: the model on its engines of the same kind."""

    @property
    def keep(self) -> int:
        """Resident copies that the catalog wants; 0: it says nothing."""
        return 0 if self._entry is None else self._entry.keep

    @property
    def asked(self) -> Asked:
        return self._asked

    def _matches_on(self, target: Target) -> tuple[Match, ...]:
        found = []
        for engine in target.engines:
            if engine.kind == self.found.copy.engine:
                match = find_on_engine(engine, self._asked)
                if match is not None and (match.installed is None or match.installed.remote_host is None):
                    found.append(match)
        return tuple(found)

    def find_cover(self, at: int) -> Match | None:
        """Who on that target serves it already, as well as the source does."""
        for match in self.matches[at]:
            if match.copy is not None and not self._lacks(match.copy) and self._is_same(match.copy.digest):
                return match
        return None

    def _is_same(self, digest: Maybe[str]) -> bool:
        """The weights are the same, or nobody can say; then the name stands for them."""
        own = self.found.copy.digest
        return isinstance(own, Unknown) or isinstance(digest, Unknown) or own == digest

    def _lacks(self, there: LoadedModel) -> str:
        """What a resident copy lacks to stand for the source's; empty: nothing."""
        own, wanted = self.found.copy, self._wanted_context()
        if there.state != "loaded":
            return f"it is {there.state}"
        if wanted is not None:
            if isinstance(there.context, Unknown):
                return f"its context is not known, {wanted} here"
            if there.context < wanted:
                return f"ctx {there.context} there, {own.context} here"
        percent = there.gpu_percent
        if not isinstance(percent, Unknown) and percent < self._percent:
            return f"{percent} % of it on the GPU there, {self._percent} % here"
        return ""

    def _wanted_context(self) -> int | None:
        """Tokens that a copy elsewhere must have; None: nobody knows of any."""
        context = self.found.copy.context
        if isinstance(context, Unknown):
            return None
        named = self._named_context()
        return context if named is None else min(context, named)

    def _named_context(self) -> int | None:
        """Tokens that a load names; None: none."""
        copy = self.found.copy
        if copy.engine != "ollama":
            return None
        if self._options.keeps_context and not isinstance(copy.context, Unknown):
            return copy.context
        return None if self._entry is None else self._entry.num_ctx

    def choose(self, at: int, target: Target) -> Choice | Rejection:
        """What it takes on that target, else why it cannot go there."""
        engines = [engine for engine in target.engines if engine.kind == self.found.copy.engine]
        title = ENGINE_TITLES.get(self.found.copy.engine, self.found.copy.engine)
        if not engines:
            return Rejection("not_installed", f"not_installed (no {title} there)")
        movable = [engine for engine in engines if is_movable(engine)]
        if not movable:
            for match in self.matches[at]:
                if match.copy is not None and (lacks := self._lacks(match.copy)):
                    return Rejection("ctx", f"ctx: {title} serves it with {lacks.removeprefix('ctx ')}")
            return Rejection("not_installed", f"not_installed ({title} loads nothing on request)")
        entry, best = self._entry, target.best_capability
        if entry is not None and entry.min_cc is not None and best is not None and best < entry.min_cc:
            have, want = (f"{major}.{minor}" for major, minor in (best, entry.min_cc))
            return Rejection("cc", f"cc {have} < {want}")
        refused: Rejection | None = None
        for match in self.matches[at]:
            choice = self._choose_match(target, match) if is_movable(match.engine) else None
            if isinstance(choice, Choice):
                return choice
            refused = refused or choice
        if refused is not None:
            return refused
        if self._options.allow_pull and self.found.copy.engine == "ollama":
            return self._choose_pull(target, movable[0])
        nearest = nearest_installed(target.snapshot, self._asked)
        return Rejection("not_installed", f"not_installed (has {nearest})" if nearest else "not_installed")

    def _choose_match(self, target: Target, match: Match) -> Choice | Rejection:
        copy, file = match.copy, match.installed
        digest = copy.digest if copy is not None else file.digest if file is not None else Unknown()
        if not self._is_same(digest):
            return Rejection(
                "not_installed", f"not_installed (other weights by that name, digest {str(digest)[:12]})"
            )
        snapshot, engine = target.snapshot, match.engine
        place = target.engines.index(engine)
        if copy is not None and copy.state == "loading":
            load = Load(place, _UNLIMITED, None, context=copy.context, rank=self._rank())
            return Choice(match, file, load)
        named = self._named_context()
        if copy is not None and copy.state == "loaded":
            if named is None or copy.context == named:  # a request that names no other finds it as it is
                load = Load(place, _UNLIMITED, None, is_lesser=True, context=copy.context, rank=self._rank())
                return Choice(match, file, load)
            if find_busy_signs(snapshot, engine, copy, self._now):
                return Rejection("busy", f"busy: {copy.name} with ctx {copy.context} is at work there")
        size = file.size_bytes if file is not None else self._facts.file_bytes
        load_or_not = self._load(target, engine, place, size)
        if isinstance(load_or_not, Rejection):
            return load_or_not
        load = load_or_not
        if copy is not None and copy.state == "loaded" and not isinstance(copy.vram_bytes, Unknown):
            load = replace(load, own=_own(target.snapshot, copy))
        return Choice(match, file, load)

    def _choose_pull(self, target: Target, engine: EngineReading) -> Choice | Rejection:
        if isinstance(engine.installed, Unknown):
            return Rejection("timeout", "timeout: list of installed models not read yet")
        name, size = self._asked.name_on("ollama"), self._facts.file_bytes
        if name is None:
            return Rejection("not_installed", "not_installed")
        disks = target.snapshot.disks
        if disks is not None and disks.disks and not isinstance(size, Unknown):
            most = max([disk.free_kib * 1024 for disk in disks.disks])
            if most < size:
                return Rejection("no_fit", f"no_fit disk {most / 1e9:.1f} < {size / 1e9:.1f} GB")
        load = self._load(target, engine, target.engines.index(engine), size, is_pull=True)
        if isinstance(load, Rejection):
            return load
        file = InstalledModel(name, "ollama", self.found.copy.digest, size)
        return Choice(Match(engine, None, file, name), file, load)

    def _load(
        self, target: Target, engine: EngineReading, place: int, size: Maybe[int], *, is_pull: bool = False
    ) -> Load | Rejection:
        """Found once for machines that are alike."""
        snapshot, named = target.snapshot, self._named_context()
        settings = None if snapshot.system is None else settings_of(snapshot, engine.port)
        cards = 0 if snapshot.gpu is None else len(snapshot.gpu.cards)
        most = Unknown() if engine.traits is None else engine.traits.max_loaded
        key = (place, size, settings, cards, target.total_mib, most, is_pull)
        known = self._loads.get(key)
        if known is None:
            known = self._loads[key] = self._make_load(target, engine, place, size, named, is_pull)
        load, need = known
        if isinstance(need, Unknown):
            return Rejection("no_fit", f"no_fit need not known: {need.reason}")
        return load

    def _make_load(
        self,
        target: Target,
        engine: EngineReading,
        place: int,
        size: Maybe[int],
        named: int | None,
        is_pull: bool,
    ) -> tuple[Load, Maybe[ModelNeed]]:
        facts = self._needs.facts_of(self.found.copy.digest, size, self._entry)
        if engine.kind == "ollama":
            use = find_ollama_use(target.snapshot, engine.port, named, facts.shape)
            context: Maybe[int] = adjust_use(facts, use.use).context
            most = use.most_copies(target.snapshot)
        else:
            use, context = OllamaUse(_use_here(self.found.copy)), _NOT_TOLD
            told = Unknown() if engine.traits is None else engine.traits.max_loaded
            most = _UNLIMITED if isinstance(told, Unknown) or told <= 0 else told
        need = self._needs.find(facts, use.use)
        if isinstance(need, Unknown):
            need = self._seen_at_source(facts, use.use)
        wanted = self._wanted_context()
        return Load(
            place,
            most,
            None if isinstance(need, Unknown) else need,
            _foretell(facts, use.use) if engine.kind == "ollama" else Unknown("not an Ollama"),
            use.spreads,
            engine.kind == "ollama",
            wanted is not None and not isinstance(context, Unknown) and context < wanted,
            self._percent,
            pull_bytes=size if is_pull and not isinstance(size, Unknown) else 0,
            context=context,
            num_ctx=named,
            size_bytes=size,
            is_pull=is_pull,
            rank=self._rank(),
        ), need

    def find_files(self, at: int) -> bool:
        """The same weights lie on a disk of that target."""
        return any(
            match.installed is not None and self._is_same(match.installed.digest)
            for match in self.matches[at]
        )

    def lies_on(self, snapshot: MachineSnapshot) -> bool:
        """The same weights lie on a disk of a machine that is no target now, by its last answer."""
        for engine in snapshot.engines:
            match = find_on_engine(engine, self._asked) if engine.kind == self.found.copy.engine else None
            if match is not None and match.installed is not None and match.installed.remote_host is None:
                return self._is_same(match.installed.digest)
        return False

    def is_resident_on(self, at: int) -> bool:
        """Some copy of the same weights is loaded there, whatever it lacks."""
        return any(match.copy is not None and self._is_same(match.copy.digest) for match in self.matches[at])

    def _seen_at_source(self, facts: ModelFacts, use: ContextUse) -> Maybe[ModelNeed]:
        """By the VRAM that processes prove it to take at the source."""
        vram = 0
        for share in shares_of(self.found.snapshot):
            if share.copy is self.found.loaded and not isinstance(share.used_mib, Unknown):
                vram += share.used_mib << 20
        if not vram:
            return Unknown(
                "neither file size nor VRAM at the source is known; set vram_gb of it in models.yaml"
            )
        seen = SeenCopy(vram, use.context, where=self.found.copy.machine)
        return find_need(replace(facts, measured=(seen,)), use)

    def _rank(self) -> Rank:
        copy = self.found.copy
        if copy.is_pinned:
            return True, 0.0, copy.name
        left = LEAST_KEEP_S if isinstance(copy.expires_at, Unknown) else copy.expires_at - self._now
        return False, round(max(LEAST_KEEP_S, left) / 10), copy.name


def _foretell(facts: ModelFacts, use: ContextUse) -> Maybe[Prediction]:
    """What Ollama predicts; at least the size of the file, where nothing tells of the cache."""
    told = predict(facts, use)
    if isinstance(told, Unknown) and not isinstance(facts.file_bytes, Unknown):
        return Prediction(facts.file_bytes, 0, 0)
    return told


def _use_here(copy: SourceCopy) -> ContextUse:
    return ContextUse(4096 if isinstance(copy.context, Unknown) else copy.context)


def gpu_percent(copy: SourceCopy) -> int:
    """Share on the GPU, as Ollama rounds it; 100 where nobody says."""
    size, vram = copy.size_bytes, copy.vram_bytes
    if isinstance(size, Unknown) or isinstance(vram, Unknown) or size <= 0:
        return 100
    return 100 - round(max(0, size - vram) / size * 100)


def _own(snapshot: MachineSnapshot, copy: LoadedModel) -> IdleCopy:
    """The copy that is there and goes first; on an only card it is known where it lies."""
    size = 0 if isinstance(copy.vram_bytes, Unknown) else copy.vram_bytes
    cards = () if snapshot.gpu is None else snapshot.gpu.cards
    return IdleCopy(copy.name, size, ((cards[0].index, size),) if len(cards) == 1 else ())


def _file_bytes(fleet: FleetSnapshot, found: Found) -> Maybe[int]:
    """Size of its files: as the source lists them, else as anybody lists the same weights."""
    copy = found.copy
    installed = Unknown() if found.engine is None else found.engine.installed
    for file in () if isinstance(installed, Unknown) else installed:
        if _is_file_of(file, copy) and not isinstance(file.size_bytes, Unknown):
            return file.size_bytes
    if isinstance(copy.digest, Unknown):
        return Unknown("size not reported")
    for snapshot in fleet.machines:
        for file in snapshot.installed:
            if file.digest == copy.digest and not isinstance(file.size_bytes, Unknown):
                return file.size_bytes
    return Unknown("size not reported")


def _is_file_of(file: InstalledModel, copy: SourceCopy) -> bool:
    if not isinstance(file.digest, Unknown) and not isinstance(copy.digest, Unknown):
        return file.digest == copy.digest
    return file.name == copy.name
