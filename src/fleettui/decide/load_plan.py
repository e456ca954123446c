"""How a model would be loaded on a machine: on which cards, what has to go for it, or partly in main memory.

The verdicts are those of decide/fit.py, found for hundreds of machines at once and so without words.
Processes on the cards decide nothing here: a stored snapshot has none for `--route`, and the same question
has the same answer wherever it is asked. So it is not known on which of several cards a copy lies.
"""

from __future__ import annotations

from fleettui.decide.eta import Eta
from fleettui.decide.inquiry import Inquiry
from fleettui.decide.model_need import MIB, ContextUse, ModelNeed
from fleettui.decide.need import Needs, vram_need
from fleettui.decide.ollama_forecast import USABLE_PERCENT, Prediction, predict, weigh_prediction
from fleettui.decide.ollama_use import OllamaUse, find_ollama_use, settings_of
from fleettui.decide.room import eviction_order, last_uses
from fleettui.model.busy import find_busy_signs
from fleettui.model.fit_verdict import FitVerdict
from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.route import RouteCandidate
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown, known_or
from fleettui.model.vram import FreeVram, free_on_cards, has_no_gpu, vram_sum

_SMALLEST_CONTEXT = 4096
_NO_MEMORY = Unknown("main memory not read")
_AS_IT_IS = frozenset({"one_gpu", "several_gpus"})
_ON_CARDS = _AS_IT_IS | {"evictions"}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    _Placing = tuple[FitVerdict, tuple[int, ...], int, int]
    """(verdict, cards, how many idle copies go, bytes in main memory)."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """How a model would be loaded on a machine."""

    verdict: FitVerdict
    need: ModelNeed
    gpus: tuple[int, ...] = ()
    """Cards it would lie on."""
    victims: tuple[LoadedModel, ...] = ()
    """Idle copies, in the order in which they go."""
    likely: tuple[LoadedModel, ...] = ()
    """What Ollama evicts although there is room, because it predicts more than the model takes."""
    ram_bytes: int = 0
    """What would lie in main memory."""
    waits: bool = False
    """The engine keeps no more copies, and all of them work."""
    is_cpu_only: bool = False
    """There is no card at all."""

    @property
    def is_offload(self) -> bool:
        """The cards have no room for all of it, whatever goes."""
        return self.verdict not in _ON_CARDS

    def words(self, candidate: RouteCandidate) -> str:
        """Why a copy that would be loaded like that has its tier."""
        from fleettui.decide.load_words import say_load

        eta = Eta(candidate.eta_s, candidate.eta_basis, candidate.eta_text)
        return f"installed, {say_load(self, vram_need(self.need, len(self.gpus)), eta)}"


def place_on_cards(free: FreeVram, idle: list[int], need: ModelNeed) -> _Placing | None:
    """Where it would lie, perhaps once idle copies are gone; None where not even all of them make the room.

    `idle`: VRAM of copies that may go, in that order, bytes.
    """
    joined, alone, per_gpu = free.joined, free.alone, need.per_gpu_bytes
    wanted = need.shared_bytes + per_gpu
    summed = known_or(free.sum_mib, 0) * MIB
    if summed + sum(idle) < wanted:
        return None
    cards = joined + alone
    if cards and max(cards)[0] >= wanted:
        return "one_gpu", (-max(cards)[1],), 0, 0
    # Cards take whole layers: on all but one of them part of a layer may stay free.
    more = per_gpu + need.layer_bytes
    if summed >= wanted + more:
        ranked, have = sorted(joined, reverse=True), 0
        for count, (room, _) in enumerate(ranked, 1):
            have += room
            if count > 1 and have >= wanted + (count - 1) * more and room >= per_gpu:
                return "several_gpus", _indices(ranked[:count]), 0, 0
    if idle and (len(joined) > 1 or len(cards) == 1):
        cards = joined or alone
        have, wanted = sum([room for room, _ in cards]), wanted + (len(cards) - 1) * more
        for victims, size in enumerate(idle, 1):
            have += size
            if have >= wanted:
                return "evictions", _indices(cards), victims, 0
    return None


def place_partly(free: FreeVram, idle: list[int], need: ModelNeed, ram_bytes: Maybe[int]) -> _Placing:
    """Not even without all idle copies: the rest goes into main memory, if there is room."""
    joined, alone, per_gpu, shared = free.joined, free.alone, need.per_gpu_bytes, need.shared_bytes
    on_gpu = 0
    if len(joined) + len(alone) == 1:
        on_gpu = max(0, (joined or alone)[0][0] + sum(idle) - per_gpu)
    elif joined or alone:
        on_gpu = sum([room - per_gpu for room, _ in joined if room > per_gpu]) + sum(idle)
        if alone:
            on_gpu = max(on_gpu, max(alone)[0] - per_gpu)
    rest = max(shared - on_gpu, min(shared, need.layer_bytes or 1))  # a whole layer at least
    if type(ram_bytes) is Unknown:
        return "unknown", (), 0, rest
    if rest > ram_bytes:
        return "no", (), 0, rest
    if not on_gpu or not shared:
        return "cpu_offload", (), 0, rest
    return "cpu_offload", _indices(joined + alone), len(idle), rest


def _indices(cards: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Of cards as `FreeVram` lists them, ascending."""
    return tuple(sorted([-index for _, index in cards]))


@dataclass(frozen=True, slots=True)
class _Basis:
    """What machines that are alike have in common."""

    use: OllamaUse
    """How the model would be loaded."""
    need: Maybe[ModelNeed]
    """What that takes."""
    least_bytes: int
    """Of it, on a single card."""
    told: Maybe[Prediction]
    """What Ollama predicts."""
    kept: int
    """Copies that it keeps on any machine."""


class LoadPlanner:
    """Plans for one query; what machines have in common is found once."""

    __slots__ = ("_bases", "_inquiry", "_needs")

    def __init__(self, inquiry: Inquiry) -> None:
        self._inquiry = inquiry
        self._needs = Needs(inquiry.fleet, inquiry.knowledge)
        self._bases: dict[object, _Basis] = {}

    def plan(
        self,
        snapshot: MachineSnapshot,
        engine: EngineReading,
        installed: InstalledModel,
        free: FreeVram,
        is_busy: bool,
    ) -> Maybe[LoadPlan]:
        """The plan for a cold copy; Unknown where nobody knows what the model takes.

        `is_busy`: something on the engine shows signs of work.
        """
        basis = self._basis_of(snapshot, engine, installed.digest, installed.size_bytes)
        need = basis.need
        if type(need) is Unknown:
            return need
        count, idle = _copies_on(engine)
        forced = 0
        if count >= basis.kept:
            forced = max(0, count + 1 - basis.use.most_copies(snapshot))
        best, index = free.best_mib, free.best_index
        if not forced and index is not None and type(best) is not Unknown and basis.least_bytes <= best * MIB:
            likely: tuple[LoadedModel, ...] = ()
            if idle and _is_short(basis, free):
                likely = tuple(self._in_order(snapshot, engine, idle, is_busy)[:1])
            return LoadPlan("one_gpu", need, (index,), (), likely)
        if is_busy or len(idle) > 1:
            idle = self._in_order(snapshot, engine, idle, is_busy)
        verdict, gpus, gone, rest = _place(snapshot, free, idle, need)
        victims = tuple(idle[: max(forced, gone)])
        likely = ()
        if idle and not victims and verdict in _AS_IT_IS and _is_short(basis, free):
            likely = tuple(idle[:1])
        is_cpu_only = verdict not in _ON_CARDS and has_no_gpu(snapshot)
        return LoadPlan(verdict, need, gpus, victims, likely, rest, forced > len(idle), is_cpu_only)

    def plan_reload(
        self, snapshot: MachineSnapshot, engine: EngineReading, copy: LoadedModel, file_bytes: Maybe[int]
    ) -> Maybe[LoadPlan]:
        """The plan for a copy that is loaded anew for the asked context; it goes first, and is no victim."""
        need = self._basis_of(snapshot, engine, copy.digest, file_bytes).need
        if isinstance(need, Unknown):
            return need
        others = [other for other in _copies_on(engine)[1] if other is not copy]
        idle = [copy, *self._in_order(snapshot, engine, others, is_busy=True)]
        free = free_on_cards(snapshot, () if snapshot.gpu is None else snapshot.gpu.cards)
        verdict, gpus, count, rest = _place(snapshot, free, idle, need)
        return LoadPlan(verdict, need, gpus, tuple(idle[1:count]), (), rest)

    def _basis_of(
        self, snapshot: MachineSnapshot, engine: EngineReading, digest: Maybe[str], size_bytes: Maybe[int]
    ) -> _Basis:
        """How it would be loaded, what that takes, what Ollama predicts: alike on machines that are alike."""
        context = self._inquiry.query.context
        told = None if snapshot.system is None else settings_of(snapshot, engine.port)
        settings = None if told is None else told.load_values
        total = _total_mib(snapshot) if context is None else None
        key = (digest, size_bytes, engine.kind, settings, total)
        basis = self._bases.get(key)
        if basis is None:
            facts = self._needs.facts_of(digest, size_bytes, self._inquiry.asked.model)
            if engine.kind == "ollama":
                use = find_ollama_use(snapshot, engine.port, context, facts.shape)
            else:
                use = OllamaUse(ContextUse(_SMALLEST_CONTEXT if context is None else context))
            need = self._needs.find(facts, use.use)
            least_bytes = 0 if isinstance(need, Unknown) else need.total_bytes()
            basis = _Basis(use, need, least_bytes, predict(facts, use.use), use.sure_copies)
            self._bases[key] = basis
        return basis

    def _in_order(
        self, snapshot: MachineSnapshot, engine: EngineReading, copies: list[LoadedModel], is_busy: bool
    ) -> list[LoadedModel]:
        """Those that do not work, in the order in which they go. `is_busy`: something on the engine does."""
        now = self._inquiry.now
        idle = copies
        if is_busy:
            idle = [copy for copy in copies if not find_busy_signs(snapshot, engine, copy, now)]
        if len(idle) > 1:
            used = last_uses((engine,))
            idle = sorted(idle, key=lambda copy: eviction_order(copy, used.get(copy.name, now)))
        return idle


def _place(snapshot: MachineSnapshot, free: FreeVram, idle: list[LoadedModel], need: ModelNeed) -> _Placing:
    """On cards or partly in main memory; that of a unified part counts as VRAM already."""
    sizes = [size for copy in idle if not isinstance(size := copy.vram_bytes, Unknown)] if idle else []
    placing = place_on_cards(free, sizes, need)
    if placing is not None:
        return placing
    if free.is_unified and free.joined:
        return place_partly(free, sizes, need, 0)
    ram_kib = _NO_MEMORY if snapshot.memory is None else snapshot.memory.free_kib
    return place_partly(free, sizes, need, ram_kib if type(ram_kib) is Unknown else ram_kib * 1024)


def _total_mib(snapshot: MachineSnapshot) -> object:
    """VRAM of all cards: what Ollama's own context depends on."""
    total = 0
    for card in () if snapshot.gpu is None else snapshot.gpu.cards:
        if card.is_unified or type(card.total_mib) is Unknown:
            return vram_sum(snapshot).total_mib
        total += card.total_mib
    return total or snapshot.machine.name


def _copies_on(engine: EngineReading) -> tuple[int, list[LoadedModel]]:
    """How many copies an Ollama has to reckon with, and those in VRAM; other engines make no room."""
    count, held = 0, []
    if engine.kind == "ollama" and type(engine.loaded) is not Unknown:
        for copy in engine.loaded:
            if copy.state != "stopping":
                count += 1
                size = copy.vram_bytes
                if copy.state == "loaded" and type(size) is not Unknown and size > 0:
                    held.append(copy)
    return count, held


def _is_short(basis: _Basis, free: FreeVram) -> bool:
    """Ollama predicts more than it would use: of the freest card where that could do, else of all cards."""
    told, best, summed = basis.told, free.best_mib, free.sum_mib
    if type(told) is Unknown or type(best) is Unknown or type(summed) is Unknown:
        return False
    is_one = not basis.use.spreads and told.predicted_bytes * 100 <= best * MIB * USABLE_PERCENT
    return weigh_prediction(told, (best if is_one else summed) * MIB)[2]
