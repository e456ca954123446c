"""Tier and reject reasons of a copy that has to be loaded first: does it fit, what has to go, how long it
takes.
"""

from __future__ import annotations

from fleettui.decide.candidates import (
    Option,
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
from fleettui.decide.inquiry import Inquiry
from fleettui.decide.load_plan import LoadPlan, LoadPlanner
from fleettui.decide.matching import Match
from fleettui.decide.need import vram_need
from fleettui.model.busy import find_busy_signs, unused_s
from fleettui.model.fit_verdict import FitVerdict
from fleettui.model.readings import EngineReading, InstalledModel
from fleettui.model.record import replace
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
from fleettui.model.unknown import NOT_READ, Maybe, Unknown, known_or
from fleettui.model.vram import FreeVram

_MIB = 1 << 20
_TIERS: dict[FitVerdict, int] = {
    "one_gpu": TIER_FITS,
    "several_gpus": TIER_FITS,
    "evictions": TIER_EVICTS,
    "cpu_offload": TIER_OFFLOAD,
    "no": TIER_OFFLOAD,
    "unknown": TIER_OFFLOAD,
}


class ColdJudge:
    """Judges machines that have the model on their disk, for one query."""

    __slots__ = ("_donor", "_etas", "_inquiry", "_planner", "_told_needs")

    def __init__(self, inquiry: Inquiry) -> None:
        self._inquiry = inquiry
        self._planner = LoadPlanner(inquiry)
        self._told_needs: dict[tuple[int, int], VramNeed] = {}
        self._etas: dict[object, Eta] = {}
        self._donor: InstalledModel | None = None

    def judge(self, options: list[Option]) -> list[Verdict]:
        """Each step takes all of them before the next begins, which is quicker than one by one."""
        files = [self._file_of(match) for _, match, _ in options]
        works = [self._work_on(snapshot, match.engine) for snapshot, match, _ in options]
        plans = [
            self._planner.plan(snapshot, match.engine, file, free, bool(busy))
            for (snapshot, match, free), file, busy in zip(options, files, works, strict=True)
        ]
        verdicts = [
            self._judge(snapshot, match.engine, file.size_bytes, free, busy, plan)
            for (snapshot, match, free), file, busy, plan in zip(options, files, works, plans, strict=True)
        ]
        if not self._inquiry.query.allow_pull:
            return verdicts
        return [
            self._as_pull(file.size_bytes, verdict) if match.installed is None else verdict
            for (_, match, _), file, verdict in zip(options, files, verdicts, strict=True)
        ]

    def _work_on(self, snapshot: MachineSnapshot, engine: EngineReading) -> tuple[str, ...]:
        """Signs that anything on the engine is at work."""
        signs = find_busy_signs(snapshot, engine, None, self._inquiry.now)
        return busy_words(snapshot, engine, signs, self._inquiry)

    def _judge(
        self,
        snapshot: MachineSnapshot,
        engine: EngineReading,
        size_bytes: Maybe[int],
        free: FreeVram,
        busy: tuple[str, ...],
        plan: Maybe[LoadPlan],
    ) -> Verdict:
        """X of `--min-free-vram` is compared with free - need; with the sum where it spans cards."""
        query, rejections = self._inquiry.query, []
        if busy and query.avoid_busy:
            rejections.append(Rejection("busy", f"busy: {', '.join(busy)}"))
        if type(free.best_mib) is Unknown or type(free.sum_mib) is Unknown:
            unknown = free.best_mib if type(free.best_mib) is Unknown else Unknown()
            rejections.append(unknown_room(snapshot, unknown))
            return Verdict(TIER_OFFLOAD, "installed", tuple(rejections))
        rate = self._inquiry.knowledge.load_rates.get(snapshot.machine.name)
        if type(plan) is Unknown:
            if query.min_free_vram_mib > 0:
                rejections.append(Rejection("free_vram", f"free_vram: need unknown, {plan.reason}"))
            from fleettui.decide.load_words import say_cold

            eta = self._estimate(size_bytes, rate)
            unclear = f"installed, {say_cold(eta)}, need unknown: {plan.reason}"
            return Verdict(TIER_OFFLOAD, unclear, tuple(rejections), eta)
        told = self._told(plan)
        if query.min_free_vram_mib > 0 or plan.verdict == "no":
            rejections += self._lacks(snapshot, free, plan, told)
        evicts: tuple[Eviction, ...] = ()
        cost = 0.0
        if plan.victims or plan.likely:
            evicts, cost = self._evictions(engine, plan, rate)
        eta = self._estimate(size_bytes, rate, has_evictions=bool(plan.victims))
        if plan.waits:
            eta = not_known("waits for a copy at work")
        tier = _TIERS[plan.verdict]
        if tier == TIER_FITS and (plan.victims or plan.waits):
            tier = TIER_EVICTS
        in_flight = count_in_flight(engine, busy) if busy else 0
        against = tuple(rejections)
        return Verdict(tier, plan, against, eta, told, evicts, cost, plan.gpus, busy, NOT_READ, in_flight)

    def judge_reload(self, snapshot: MachineSnapshot, match: Match, reason: str) -> tuple[Verdict, str]:
        """A copy is loaded with another context: it goes first, then the same weights come again.

        With the reason, to which is added what comes of it.
        """
        engine, copy = match.engine, match.copy
        assert copy is not None  # noqa: S101 - the caller asks only for resident copies
        rate = self._inquiry.knowledge.load_rates.get(snapshot.machine.name)
        file_bytes = Unknown("not listed") if match.installed is None else match.installed.size_bytes
        plan = self._planner.plan_reload(snapshot, engine, copy, file_bytes)
        if isinstance(plan, Unknown):
            eta = estimate_load(copy.size_bytes, rate, is_cached=True)
            return Verdict(TIER_RELOAD, reason, eta=eta), reason
        eta = estimate_load(copy.size_bytes, rate, is_cached=True, has_evictions=bool(plan.victims))
        evicts, cost = self._evictions(engine, plan, rate)
        told = self._told(plan)
        if plan.verdict == "cpu_offload":
            reason += f", partly in RAM then: needs {gib(told.mib)} GiB = {told.basis}"
        elif plan.verdict == "no":
            reason += f", no room for that: needs {gib(told.mib)} GiB = {told.basis}"
        return Verdict(TIER_RELOAD, reason, (), eta, told, evicts, cost, plan.gpus), reason

    def _as_pull(self, size_bytes: Maybe[int], verdict: Verdict) -> Verdict:
        """The model has to be fetched first; what is known of it comes from machines that have it."""
        size = "size not known" if isinstance(size_bytes, Unknown) else f"{size_bytes / 1e9:.1f} GB"
        then = verdict.why
        if isinstance(then, LoadPlan):
            from fleettui.decide.load_words import say_load

            then = say_load(then, self._told(then), verdict.eta)
        why = f"not installed, pull of {size}, then {str(then).removeprefix('installed, ')}"
        return replace(verdict, tier=TIER_PULL, why=why, eta=not_known("speed of the download"))

    def _file_of(self, match: Match) -> InstalledModel:
        """What would be loaded: of an engine that has to fetch it, as others have it."""
        if match.installed is not None:
            return match.installed
        if self._donor is None:
            self._donor = self._find_donor()
        return self._donor

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

    def _told(self, plan: LoadPlan) -> VramNeed:
        """The need on the cards of the plan; machines that are alike have it in common."""
        key = (id(plan.need), len(plan.gpus))
        told = self._told_needs.get(key)
        if told is None:
            told = self._told_needs[key] = vram_need(plan.need, len(plan.gpus))
        return told

    def _estimate(
        self, size_bytes: Maybe[int], rate_bytes_s: float | None, *, has_evictions: bool = False
    ) -> Eta:
        key = (size_bytes, rate_bytes_s, has_evictions)
        eta = self._etas.get(key)
        if eta is None:
            eta = self._etas[key] = estimate_load(size_bytes, rate_bytes_s, has_evictions=has_evictions)
        return eta

    def _lacks(
        self, snapshot: MachineSnapshot, free: FreeVram, plan: LoadPlan, told: VramNeed
    ) -> list[Rejection]:
        """`free_vram` where X is asked for, `no_fit` where even main memory has no room for the rest."""
        query, found = self._inquiry.query, []
        best, summed = free.best_mib, free.sum_mib
        assert not isinstance(best, Unknown) and not isinstance(summed, Unknown)  # noqa: S101, PT018
        if query.min_free_vram_mib > 0:
            is_spanning = summed > best < told.mib or query.free_scope == "host"
            have = summed if is_spanning else best
            have += sum(known_or(copy.vram_bytes, 0) for copy in plan.victims) // _MIB
            wanted = told.mib + query.min_free_vram_mib
            if have < wanted:
                text = f"{less(have, wanted)}{where(free, query, is_spanning)}"
                text += f" ({gib(told.mib)} for the model + {gib(query.min_free_vram_mib)})"
                found += no_room(snapshot, "free_vram", Wanted(wanted, text))
        if plan.verdict == "no":
            ram_kib = Unknown() if snapshot.memory is None else snapshot.memory.free_kib
            text = f"needs {gib(told.mib)} GiB = {told.basis}"
            if free.best_index is not None:
                text += f", best GPU {gib(best)}, all GPUs {gib(summed)} GiB free"
            if not isinstance(ram_kib, Unknown):
                text += f", main memory {ram_kib / _MIB:.1f} GiB free"
            found += no_room(snapshot, "no_fit", Wanted(told.mib, text))
        return found

    def _evictions(
        self, engine: EngineReading, plan: LoadPlan, rate_bytes_s: float | None
    ) -> tuple[tuple[Eviction, ...], float]:
        """Each victim with its last use, and what all of them cost together.

        Of what is only likely to go the cost counts, and nothing is said of it.
        """
        evicts: tuple[Eviction, ...] = ()
        cost, now = 0.0, self._inquiry.now
        for copy in plan.victims or plan.likely:
            idle_s, size = unused_s(engine, copy, now), copy.vram_bytes  # one at work is no victim
            cost += evict_cost_s(size, idle_s, rate_bytes_s)
            if plan.victims:
                vram_mib = size if type(size) is Unknown else size // _MIB
                evicts += (Eviction(copy.name, idle_s, vram_mib),)
        return evicts, round(cost, 1)
