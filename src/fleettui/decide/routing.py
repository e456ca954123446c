"""Which machine should serve a model now, and why no other. The procedure: docs/routing.md.

Filters never stop at the first failure: every machine gets all its reject reasons.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.decide.candidates import Verdict, engine_address, judge_cold, judge_resident
from fleettui.decide.engine_words import engine_trouble
from fleettui.decide.filters import (
    age_limit_s,
    data_age_s,
    data_rejection,
    flag_rejections,
    selector_rejections,
    trust_rejection,
)
from fleettui.decide.knowledge import NOTHING_KNOWN, RouteKnowledge
from fleettui.decide.matching import Asked, Match, find_on_engine, is_usable_engine, nearest_installed
from fleettui.decide.natural import natural_key
from fleettui.decide.outcome import Judged, all_names, exit_code_of, is_known, warnings_of
from fleettui.model.catalog import catalog_names
from fleettui.model.route import (
    EXIT_ROUTED,
    RejectedMachine,
    Rejection,
    RouteCandidate,
    RouteDecision,
    RouteQuery,
)
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import FreeVram, free_vram, gib_of_mib

__all__ = ["RouteCandidate", "RouteDecision", "RouteQuery", "decide_route"]


_LAST = float("inf")
"""Sorts an unknown figure after every real one."""


def decide_route(
    fleet: FleetSnapshot, query: RouteQuery, now: float, knowledge: RouteKnowledge = NOTHING_KNOWN
) -> RouteDecision:
    """The decision for one query."""
    asked = Asked(query.model, knowledge.catalog)
    canonical = asked.canonical
    limit_s = age_limit_s(query, fleet.interval_s)
    candidates, rejected, judged_machines = [], [], []
    for snapshot in fleet.machines:
        judged = _judge(snapshot, query, asked, now, limit_s)
        judged_machines.append((snapshot, judged))
        if judged.candidate is not None:
            candidates.append(judged.candidate)
        else:
            rejected.append(RejectedMachine(snapshot.machine.name, judged.rejections, judged.age_s))
    candidates.sort(key=_guide_order if query.require_loaded else _order)
    rejected.sort(key=lambda item: natural_key(item.machine))
    chosen = candidates[0] if candidates else None
    exit_code = EXIT_ROUTED
    nearest: tuple[str, ...] = ()
    if chosen is None:
        known_names = catalog_names(knowledge.catalog)
        exit_code = exit_code_of(judged_machines, canonical, known_names)
        if not is_known(judged_machines, canonical, known_names):
            from fleettui.decide.names import nearest_names

            nearest = tuple(nearest_names(query.model, [*all_names(fleet), *known_names]))
    return RouteDecision(
        query=query,
        canonical=canonical,
        chosen=chosen,
        candidates=tuple(candidates),
        rejected=tuple(rejected),
        exit_code=exit_code,
        taken_at=fleet.taken_at,
        decided_at=now,
        digest=chosen.digest if chosen is not None else Unknown("nothing chosen"),
        warnings=warnings_of(judged_machines, chosen, canonical),
        nearest=nearest,
    )


def _order(candidate: RouteCandidate) -> tuple[object, ...]:
    """Tier, most free VRAM, least used GPU, natural name; unknown figures last."""
    free, used = candidate.free_mib, candidate.utilisation_percent
    return (
        candidate.tier,
        _LAST if isinstance(free, Unknown) else -free,
        _LAST if isinstance(used, Unknown) else used,
        natural_key(candidate.machine),
    )


def _guide_order(candidate: RouteCandidate) -> tuple[object, ...]:
    """`--require-loaded`: all resident copies alike, most free VRAM, then name.

    Compared in the one-decimal GiB of `GET /api/infrastructure`, so that a client who applies the same
    rule to that document picks the same machine.
    """
    free = gib_of_mib(candidate.free_mib)
    return (_LAST if free is None else -free, natural_key(candidate.machine))


def _judge(snapshot: MachineSnapshot, query: RouteQuery, asked: Asked, now: float, limit_s: float) -> Judged:
    against = operator_rejections(snapshot, query, now)
    distrust = trust_rejection(snapshot)
    if distrust is not None:
        return Judged(None, (distrust, *against), None, False, False, ())
    age_s = data_age_s(snapshot, now)
    missing = data_rejection(snapshot, query, age_s, now, limit_s)
    matches, is_complete = _find_matches(snapshot, asked)
    if missing is not None:
        for match in matches:
            if match.copy is not None:
                missing = Rejection(missing.code, f"{missing.text}, last seen resident")
                break
        return Judged(None, (missing, *against), age_s, False, False, matches)
    if not matches:
        answered, rejection = _absence(snapshot, query, is_complete)
        return Judged(None, (*against, rejection), age_s, True, answered, ())
    free = _fresh_free_vram(snapshot, now, limit_s)
    best = _best_verdict(snapshot, matches, query, free)
    rejections = (*against, *best[1].rejections)
    if rejections:
        return Judged(None, rejections, age_s, True, False, matches)
    return Judged(_candidate(snapshot, query, best, free, age_s), (), age_s, True, False, matches)


def _find_matches(snapshot: MachineSnapshot, asked: Asked) -> tuple[list[Match], bool]:
    """The model on each engine that answered, and whether all of them listed everything they have."""
    matches, is_complete = [], bool(snapshot.engines)
    for engine in snapshot.engines:
        if not is_usable_engine(engine):
            is_complete = False
            continue
        if isinstance(engine.installed, Unknown):
            is_complete = False
        match = find_on_engine(engine, asked)
        if match is not None:
            matches.append(match)
    return matches, is_complete


def operator_rejections(snapshot: MachineSnapshot, query: RouteQuery, now: float) -> list[Rejection]:
    """What the operator decided about the machine, and what the caller wants none of."""
    if snapshot.maintenance is None and snapshot.drain is None and not query.exclude and not query.tags:
        return []
    return [*flag_rejections(snapshot, now), *selector_rejections(snapshot, query)]


def engine_down(snapshot: MachineSnapshot) -> Rejection:
    """No engine of the machine gave a usable answer."""
    if not snapshot.engines:
        errors = [
            status.error for name, status in snapshot.sources.items() if name == "ollama" and status.error
        ]
        return Rejection(
            "engine_down", f"engine_down: no engine answered{': ' + errors[0] if errors else ''}"
        )
    return Rejection("engine_down", f"engine_down: {'; '.join(map(engine_trouble, snapshot.engines))}")


def _absence(snapshot: MachineSnapshot, query: RouteQuery, is_complete: bool) -> tuple[bool, Rejection]:
    """Whether the machine answered without the model, and the reason why it cannot serve it."""
    down = [engine for engine in snapshot.engines if not is_usable_engine(engine)]
    if len(down) == len(snapshot.engines):
        return False, engine_down(snapshot)
    if not is_complete and not down:
        return False, Rejection("timeout", "timeout: list of installed models not read yet")
    nearest = nearest_installed(snapshot, query.model)
    text = f"not_installed (has {nearest})" if nearest is not None else "not_installed"
    if down:
        text += f"; {engine_trouble(down[0])}"
    return is_complete, Rejection("not_installed", text)


def _fresh_free_vram(snapshot: MachineSnapshot, now: float, limit_s: float) -> FreeVram:
    """Free VRAM, Unknown when the GPU reading is stale: an old figure decides nothing."""
    status = snapshot.sources.get("gpu")
    if status is not None and status.read_at is not None and now - status.read_at > limit_s:
        if snapshot.gpu is not None and not snapshot.gpu.cards:
            return free_vram(snapshot)
        unknown = Unknown(f"GPU data {now - status.read_at:.0f} s old")
        return FreeVram(unknown, None, unknown)
    return free_vram(snapshot)


def _best_verdict(
    snapshot: MachineSnapshot, matches: Sequence[Match], query: RouteQuery, free: FreeVram
) -> tuple[Match, Verdict]:
    """The engine of the machine that would serve best; without any, the one nearest to it."""
    best: tuple[Match, Verdict] | None = None
    for match in matches:
        judge = judge_resident if match.copy is not None else judge_cold
        verdict = judge(snapshot, match, query, free)
        if best is None or (len(verdict.rejections), verdict.tier) < (len(best[1].rejections), best[1].tier):
            best = match, verdict
    assert best is not None  # noqa: S101 - called with at least one match
    return best


def _candidate(
    snapshot: MachineSnapshot,
    query: RouteQuery,
    best: tuple[Match, Verdict],
    free: FreeVram,
    age_s: float | None,
) -> RouteCandidate:
    match, verdict = best
    copy, installed = match.copy, match.installed
    host, port, url = engine_address(snapshot.machine, match.engine)
    is_sum = query.free_scope == "host"
    source = copy if copy is not None else installed
    digest: Maybe[str] = source.digest if source is not None else Unknown()
    return RouteCandidate(
        machine=snapshot.machine.name,
        hostname=host,
        port=port,
        url=url,
        engine=match.engine.kind,
        tier=verdict.tier,
        reason=verdict.reason,
        model=source.name if source is not None else query.model,
        free_mib=free.sum_mib if is_sum else free.best_mib,
        free_gpu=None if is_sum else free.best_index,
        utilisation_percent=_utilisation(snapshot),
        digest=digest,
        resident_context=copy.context if copy is not None else Unknown("not resident"),
        need=verdict.need,
        age_s=age_s,
    )


def _utilisation(snapshot: MachineSnapshot) -> Maybe[float]:
    """Mean utilisation of the usable cards."""
    gpu = snapshot.gpu
    if gpu is None:
        return Unknown("no GPU reading")
    disabled, summed, count = snapshot.machine.disabled_gpus, 0, 0
    for card in gpu.cards:
        used = card.utilisation_percent
        if card.fault is None and card.index not in disabled and not isinstance(used, Unknown):
            summed, count = summed + used, count + 1
    return summed / count if count else Unknown("no utilisation known")
