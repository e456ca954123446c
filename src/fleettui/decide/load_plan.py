"""How a model would be loaded on a machine: on which cards, what has to go for it, or partly in main memory.

Processes on the cards decide nothing here: a stored snapshot has none for `--route`, and the same question
has the same answer wherever it is asked.
"""

from __future__ import annotations

from fleettui.decide.busy import find_busy_signs
from fleettui.decide.fit import Fit, judge_room
from fleettui.decide.inquiry import Inquiry
from fleettui.decide.model_need import MIB, ContextUse, ModelFacts, ModelNeed
from fleettui.decide.need import Needs
from fleettui.decide.ollama_forecast import OllamaForecast, forecast
from fleettui.decide.ollama_use import OllamaUse, find_ollama_use, settings_of
from fleettui.decide.room import IdleCopy, Room, find_room
from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel
from fleettui.model.record import dataclass, replace
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import FreeVram, vram_sum

MODELS_PER_GPU = 3
"""Copies that Ollama keeps for each card, where OLLAMA_MAX_LOADED_MODELS says nothing."""
_SMALLEST_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """How a model would be loaded on a machine."""

    fit: Fit
    need: ModelNeed
    victims: tuple[IdleCopy, ...] = ()
    """In the order in which they go."""
    likely: tuple[IdleCopy, ...] = ()
    """What Ollama evicts although there is room, because it predicts more than the model takes."""
    waits: bool = False
    """The engine keeps no more copies, and all of them work."""


class LoadPlanner:
    """Plans for one query; what machines have in common is found once."""

    __slots__ = ("_inquiry", "_needs", "_uses")

    def __init__(self, inquiry: Inquiry) -> None:
        self._inquiry = inquiry
        self._needs = Needs(inquiry.fleet, inquiry.knowledge)
        self._uses: dict[object, OllamaUse] = {}

    def plan(
        self, snapshot: MachineSnapshot, engine: EngineReading, installed: InstalledModel, free: FreeVram
    ) -> Maybe[LoadPlan]:
        """The plan for a cold copy; Unknown where nobody knows what the model takes."""
        use = self._use_of(snapshot, engine, installed)
        facts = self._needs.facts_of(installed.digest, installed.size_bytes, self._inquiry.asked.model)
        need = self._needs.find(facts, use.use)
        if isinstance(need, Unknown):
            return need
        copies = _copies_on(engine)
        forced = _count_forced(snapshot, use, copies) if engine.kind == "ollama" else 0
        best, index = free.best_mib, free.best_index
        has_room = index is not None and not isinstance(best, Unknown) and need.total_bytes() <= best * MIB
        # A card with room needs no second look, unless Ollama's own forecast may be of another mind.
        if has_room and forced <= 0 and (not copies or isinstance(facts.shape, Unknown)):
            return LoadPlan(Fit("one_gpu", "", need, () if index is None else (index,)), need)
        room = self._find_room(snapshot, engine, copies)
        if isinstance(room, Unknown):
            return LoadPlan(Fit("unknown", room.reason, need), need)
        fit = judge_room(room, need)
        victims = room.idle[: max(forced, len(fit.evicted))]
        likely: tuple[IdleCopy, ...] = ()
        if fit.verdict in ("one_gpu", "several_gpus") and not victims and room.idle:
            told = _forecast(room, facts, use)
            likely = room.idle[:1] if not isinstance(told, Unknown) and told.evicts else ()
        return LoadPlan(fit, need, victims, likely, forced > len(room.idle))

    def plan_reload(
        self, snapshot: MachineSnapshot, engine: EngineReading, copy: LoadedModel, facts_bytes: Maybe[int]
    ) -> Maybe[LoadPlan]:
        """The plan for a copy that is loaded anew for the asked context; it goes first, and is no victim."""
        use = find_ollama_use(snapshot, engine.port, self._inquiry.query.context)
        facts = self._needs.facts_of(copy.digest, facts_bytes, self._inquiry.asked.model)
        need = self._needs.find(facts, use.use)
        if isinstance(need, Unknown):
            return need
        room = self._find_room(snapshot, engine, _copies_on(engine), copy.name)
        if isinstance(room, Unknown):
            return LoadPlan(Fit("unknown", room.reason, need), need)
        fit = judge_room(room, need)
        victims = tuple([item for item in room.idle[: len(fit.evicted)] if item.name != copy.name])
        return LoadPlan(fit, need, victims)

    def _use_of(
        self, snapshot: MachineSnapshot, engine: EngineReading, installed: InstalledModel
    ) -> OllamaUse:
        """How the engine would load it. Machines with the same settings and VRAM have it in common."""
        context = self._inquiry.query.context
        if engine.kind != "ollama":
            most = Unknown() if installed.traits is None else installed.traits.max_context
            if context is None:
                context = _SMALLEST_CONTEXT if isinstance(most, Unknown) else most
            return self._uses.setdefault(context, OllamaUse(ContextUse(context)))
        settings = settings_of(snapshot, engine.port)
        key = (settings, vram_sum(snapshot).total_mib if context is None else None, snapshot.gpu is None)
        use = self._uses.get(key)
        if use is None:
            use = self._uses[key] = find_ollama_use(snapshot, engine.port, context)
        return use

    def _find_room(
        self,
        snapshot: MachineSnapshot,
        engine: EngineReading,
        copies: tuple[LoadedModel, ...],
        first: str | None = None,
    ) -> Maybe[Room]:
        """The room with the copies of this engine that may go; `first`: one that goes before all others."""
        now = self._inquiry.now
        busy = frozenset([
            copy.name
            for copy in copies
            if copy.name != first and find_busy_signs(snapshot, engine, copy, now)
        ])  # fmt: skip
        room = find_room(snapshot, busy=busy, by_processes=False)
        if isinstance(room, Unknown) or (first is None and len(snapshot.engines) == 1):
            return room
        names = {copy.name for copy in copies} if engine.kind == "ollama" else set()
        idle = [item for item in room.idle if item.name in names]
        idle.sort(key=lambda item: item.name != first)
        return replace(room, idle=tuple(idle), has_other_models=bool(names))


def _copies_on(engine: EngineReading) -> tuple[LoadedModel, ...]:
    if not engine.loaded or isinstance(engine.loaded, Unknown):
        return ()
    return tuple([copy for copy in engine.loaded if copy.state != "stopping"])


def _count_forced(snapshot: MachineSnapshot, use: OllamaUse, copies: tuple[LoadedModel, ...]) -> int:
    """How many copies have to go because the engine keeps no more of them."""
    if not copies:
        return 0
    kept = use.max_loaded
    if isinstance(kept, Unknown) or kept <= 0:
        kept = MODELS_PER_GPU * max(1, 0 if snapshot.gpu is None else len(snapshot.gpu.cards))
    return max(0, len(copies) - kept + 1)


def _forecast(room: Room, facts: ModelFacts, use: OllamaUse) -> Maybe[OllamaForecast]:
    free = {card.index: card.free_bytes for card in room.cards}
    return forecast(facts, use.use, free, has_other_models=room.has_other_models, spreads=use.spreads)
