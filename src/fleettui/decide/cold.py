"""Tier and reject reasons of a copy that has to be loaded first: does it fit, what has to go, how long it
takes.

Processes on the cards decide nothing here: a stored snapshot has none for `--route`, and the same question
has the same answer wherever it is asked.
"""

from __future__ import annotations

from fleettui.decide.busy import find_busy_signs, idle_s
from fleettui.decide.candidates import (
    Verdict,
    Wanted,
    busy_words,
    count_in_flight,
    gib,
    less,
    no_room,
    unknown_room,
    where,
)
from fleettui.decide.eta import Eta, estimate_load, evict_cost_s, not_known
from fleettui.decide.fit import Fit, judge_fit
from fleettui.decide.inquiry import Inquiry
from fleettui.decide.matching import Match
from fleettui.decide.model_need import MIB, ContextUse, ModelFacts, ModelNeed
from fleettui.decide.need import Needs, vram_need
from fleettui.decide.ollama_use import OllamaUse, find_ollama_use
from fleettui.decide.room import IdleCopy, find_room
from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel
from fleettui.model.record import dataclass, replace
from fleettui.model.route import (
    TIER_EVICTS,
    TIER_FITS,
    TIER_OFFLOAD,
    TIER_PULL,
    TIER_RELOAD,
    Eviction,
    Rejection,
    VramNeed,
)
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.model.vram import FreeVram, has_no_gpu

MODELS_PER_GPU = 3
"""Copies that Ollama keeps for each card, where OLLAMA_MAX_LOADED_MODELS says nothing."""
_SMALLEST_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a model would be loaded on a machine."""

    fit: Fit
    victims: tuple[IdleCopy, ...] = ()
    """In the order in which they go."""
    likely: tuple[IdleCopy, ...] = ()
    """What Ollama evicts although there is room."""
    waits: bool = False
    """The engine keeps no more copies, and all of them work."""


class ColdJudge:
    """Judges machines that have the model on their disk, for one query."""

    __slots__ = ("_inquiry", "_needs")

    def __init__(self, inquiry: Inquiry) -> None:
        self._inquiry = inquiry
        self._needs = Needs(inquiry.fleet, inquiry.knowledge)

    def judge(self, snapshot: MachineSnapshot, match: Match, free: FreeVram) -> Verdict:
        """X of `--min-free-vram` is compared with free - need; with the sum where it spans cards."""
        engine, installed, inquiry = match.engine, match.installed, self._inquiry
        assert installed is not None  # noqa: S101 - the caller asks only for installed models
        busy = busy_words(snapshot, engine, None, inquiry)
        rejections = []
        if busy and inquiry.query.avoid_busy:
            rejections.append(Rejection("busy", f"busy: {', '.join(busy)}"))
        if isinstance(free.best_mib, Unknown) or isinstance(free.sum_mib, Unknown):
            unknown = free.best_mib if isinstance(free.best_mib, Unknown) else Unknown()
            rejections.append(unknown_room(snapshot, unknown))
            return Verdict(TIER_OFFLOAD, "installed", tuple(rejections))
        use = self._use(snapshot, engine, installed)
        facts = self._needs.facts_of(installed.digest, installed.size_bytes, inquiry.asked.model)
        need = self._needs.find(facts, use.use)
        rate = inquiry.knowledge.load_rates.get(snapshot.name)
        if isinstance(need, Unknown):
            if inquiry.query.min_free_vram_mib > 0:
                rejections.append(Rejection("free_vram", f"free_vram: need unknown, {need.reason}"))
            eta = estimate_load(installed.size_bytes, rate)
            reason = f"installed, {_cold_words(eta)}, need unknown: {need.reason}"
            return Verdict(TIER_OFFLOAD, reason, tuple(rejections), eta)
        plan = self._plan(snapshot, engine, free, facts, use, need)
        told = vram_need(need, len(plan.fit.gpus))
        rejections += self._lacks(snapshot, free, plan, need, told)
        evicts, cost = self._evictions(snapshot, engine, plan.victims or plan.likely, rate)
        eta = estimate_load(installed.size_bytes, rate, has_evictions=bool(plan.victims))
        if plan.waits:
            eta = not_known("waits for a copy at work")
        return Verdict(
            _tier(plan),
            f"installed, {_cold_words(eta)}, {_place_words(snapshot, plan, told)}",
            tuple(rejections),
            eta,
            told,
            evicts if plan.victims else (),
            cost,
            plan.fit.gpus,
            busy,
            in_flight=count_in_flight(engine, busy) if busy else 0,
        )

    def judge_reload(self, snapshot: MachineSnapshot, match: Match, context: int, reason: str) -> Verdict:
        """A copy is loaded with another context: it goes first, then the same weights come again."""
        engine, copy, inquiry = match.engine, match.copy, self._inquiry
        assert copy is not None  # noqa: S101 - the caller asks only for resident copies
        rate = inquiry.knowledge.load_rates.get(snapshot.name)
        file_bytes = Unknown("not listed") if match.installed is None else match.installed.size_bytes
        facts = self._needs.facts_of(copy.digest, file_bytes, inquiry.asked.model)
        use = find_ollama_use(snapshot, engine.port, context)
        need = self._needs.find(facts, use.use)
        if isinstance(need, Unknown):
            return Verdict(TIER_RELOAD, reason, eta=estimate_load(copy.size_bytes, rate, is_cached=True))
        plan = self._full_plan(snapshot, engine, facts, use, need, own=copy)
        eta = estimate_load(copy.size_bytes, rate, is_cached=True, has_evictions=bool(plan.victims))
        evicts, cost = self._evictions(snapshot, engine, plan.victims, rate)
        told = vram_need(need, len(plan.fit.gpus))
        if plan.fit.verdict == "cpu_offload":
            reason += f", partly in RAM then: needs {gib(told.mib)} GiB = {told.basis}"
        elif plan.fit.verdict == "no":
            reason += f", no room for that: needs {gib(told.mib)} GiB = {told.basis}"
        return Verdict(TIER_RELOAD, reason, (), eta, told, evicts, cost, plan.fit.gpus)

    def judge_pull(self, snapshot: MachineSnapshot, engine: EngineReading, free: FreeVram) -> Verdict:
        """The model has to be fetched first; what is known of it comes from machines that have it."""
        donor = self._find_donor()
        size_bytes = donor.size_bytes
        size = "size not known" if isinstance(size_bytes, Unknown) else f"{size_bytes / 1e9:.1f} GB"
        verdict = self.judge(snapshot, Match(engine, None, donor, donor.name), free)
        reason = f"not installed, pull of {size}, then {verdict.reason.removeprefix('installed, ')}"
        return replace(verdict, tier=TIER_PULL, reason=reason, eta=not_known("speed of the download"))

    def _find_donor(self) -> InstalledModel:
        """The asked model as another Ollama has it; the largest, where they differ."""
        asked, found = self._inquiry.asked, []
        for snapshot in self._inquiry.fleet.machines:
            for engine in snapshot.engines:
                if engine.kind == "ollama" and not isinstance(engine.installed, Unknown):
                    found += [
                        model
                        for _, _, model in asked.find_among(engine.installed, "ollama")
                        if model.remote_host is None and not isinstance(model.size_bytes, Unknown)
                    ]
        missing = InstalledModel(asked.name, "ollama", Unknown("not installed"), Unknown("not installed"))
        return max(found, key=lambda model: (model.size_bytes, str(model.digest)), default=missing)

    def _use(self, snapshot: MachineSnapshot, engine: EngineReading, installed: InstalledModel) -> OllamaUse:
        context = self._inquiry.query.context
        if engine.kind == "ollama":
            return find_ollama_use(snapshot, engine.port, context)
        if context is None:
            most = Unknown() if installed.traits is None else installed.traits.max_context
            context = _SMALLEST_CONTEXT if isinstance(most, Unknown) else most
        return OllamaUse(ContextUse(context))

    def _plan(
        self,
        snapshot: MachineSnapshot,
        engine: EngineReading,
        free: FreeVram,
        facts: ModelFacts,
        use: OllamaUse,
        need: ModelNeed,
    ) -> _Plan:
        """A card with room where nothing else is loaded needs no second look."""
        if engine.kind != "ollama" or not engine.loaded or isinstance(engine.loaded, Unknown):
            best, index = free.best_mib, free.best_index
            if index is not None and not isinstance(best, Unknown) and need.total_bytes() <= best * MIB:
                return _Plan(Fit("one_gpu", "", need, (index,)))
        return self._full_plan(snapshot, engine, facts, use, need)

    def _full_plan(
        self,
        snapshot: MachineSnapshot,
        engine: EngineReading,
        facts: ModelFacts,
        use: OllamaUse,
        need: ModelNeed,
        own: LoadedModel | None = None,
    ) -> _Plan:
        """`own`: the copy that the new one replaces; it goes first, and is no victim."""
        copies = [] if isinstance(engine.loaded, Unknown) else engine.loaded
        copies = [copy for copy in copies if copy.state != "stopping" and copy is not own]
        now = self._inquiry.now
        busy = frozenset([copy.name for copy in copies if find_busy_signs(snapshot, engine, copy, now)])
        lean = snapshot if snapshot.processes is None else replace(snapshot, processes=None)
        room = find_room(lean, busy=busy)
        if isinstance(room, Unknown):
            return _Plan(judge_fit(room, facts, use.use))
        names = {copy.name for copy in copies} if engine.kind == "ollama" else set()
        idle = tuple([item for item in room.idle if item.name in names])
        mine = tuple([item for item in room.idle if own is not None and item.name == own.name])
        room = replace(room, idle=(*mine, *idle), has_other_models=bool(names))
        fit = judge_fit(room, facts, use.use, spreads=use.spreads)
        victims = tuple([item for item in idle if item.name in fit.evicted])
        if engine.kind != "ollama":
            return _Plan(fit)
        kept = use.max_loaded
        if isinstance(kept, Unknown) or kept <= 0:
            kept = MODELS_PER_GPU * max(1, len(room.cards))
        forced = len(copies) - kept + 1
        if forced > len(victims):
            victims = idle[:forced]
        evicts = not isinstance(fit.forecast, Unknown) and fit.forecast.evicts and own is None
        return _Plan(fit, victims, idle[:1] if evicts else (), forced > len(idle))

    def _lacks(
        self, snapshot: MachineSnapshot, free: FreeVram, plan: _Plan, need: ModelNeed, told: VramNeed
    ) -> list[Rejection]:
        """`free_vram` where X is asked for, `no_fit` where even main memory has no room for the rest."""
        query, found = self._inquiry.query, []
        best, summed = free.best_mib, free.sum_mib
        assert not isinstance(best, Unknown) and not isinstance(summed, Unknown)  # noqa: S101, PT018
        if query.min_free_vram_mib > 0:
            is_spanning = told.mib > best or query.free_scope == "host"
            have = summed if is_spanning else best
            have += sum(item.vram_bytes for item in plan.victims) // MIB
            wanted = told.mib + query.min_free_vram_mib
            if have < wanted:
                text = f"{less(have, wanted)}{where(free, query, is_spanning)}"
                text += f" ({gib(told.mib)} for the model + {gib(query.min_free_vram_mib)})"
                found += no_room(snapshot, "free_vram", Wanted(wanted, text))
        if plan.fit.verdict == "no":
            ram_kib = Unknown() if snapshot.memory is None else snapshot.memory.free_kib
            text = f"needs {gib(told.mib)} GiB = {told.basis}"
            if free.best_index is not None:
                text += f", best GPU {gib(best)}, all GPUs {gib(summed)} GiB free"
            if not isinstance(ram_kib, Unknown):
                text += f", main memory {ram_kib / MIB:.1f} GiB free"
            found += no_room(snapshot, "no_fit", Wanted(told.mib, text))
        return found

    def _evictions(
        self,
        snapshot: MachineSnapshot,
        engine: EngineReading,
        victims: tuple[IdleCopy, ...],
        rate_bytes_s: float | None,
    ) -> tuple[tuple[Eviction, ...], float]:
        """Each victim with its last use, and what all of them cost together."""
        evicts, cost = [], 0.0
        loaded = () if isinstance(engine.loaded, Unknown) else engine.loaded
        for victim in victims:
            copy = next(copy for copy in loaded if copy.name == victim.name)
            unused_s = idle_s(snapshot, engine, copy, self._inquiry.now)
            evicts.append(Eviction(victim.name, unused_s, victim.vram_bytes // MIB))
            cost += evict_cost_s(victim.vram_bytes, unused_s, rate_bytes_s)
        return tuple(evicts), round(cost, 1)


def _tier(plan: _Plan) -> int:
    if plan.fit.verdict in ("one_gpu", "several_gpus"):
        return TIER_EVICTS if plan.victims or plan.waits else TIER_FITS
    return TIER_EVICTS if plan.fit.verdict == "evictions" else TIER_OFFLOAD


def _cold_words(eta: Eta) -> str:
    """`~27 s cold (1.5 GB/s assumed)`."""
    if isinstance(eta.seconds, Unknown):
        return f"cold, {eta.words}"
    return f"~{eta.seconds:.0f} s cold ({eta.text})"


def _place_words(snapshot: MachineSnapshot, plan: _Plan, told: VramNeed) -> str:
    """What it takes and where it would lie."""
    needs = f"needs {gib(told.mib)} GiB = {told.basis}"
    fit = plan.fit
    if fit.verdict in ("one_gpu", "several_gpus", "evictions"):
        spans = f" on GPUs {', '.join(map(str, fit.gpus))}" if len(fit.gpus) > 1 else ""
        likely = plan.likely[0].name if plan.likely and not plan.victims else ""
        return needs + spans + (f"; Ollama may evict {likely} though it fits" if likely else "")
    if has_no_gpu(snapshot):
        return f"CPU only, {needs}"
    rest = f", {fit.ram_bytes / 1024 / MIB:.1f} GiB of it in main memory" if fit.ram_bytes else ""
    return f"partly in RAM: {needs}{rest}"
