"""One line of a preview: the class of a copy, its target in figures, and why."""

from __future__ import annotations

from fleettui.decide.candidates import engine_address
from fleettui.decide.drain.bay import Load, Placed
from fleettui.decide.drain.choices import Choice, Choices
from fleettui.decide.drain.sources import is_movable
from fleettui.decide.drain.targets import Target
from fleettui.decide.eta import READY, Eta, estimate_load, not_known
from fleettui.decide.matching import Match
from fleettui.decide.model_need import GIB, MIB
from fleettui.decide.need import vram_need
from fleettui.model.busy import find_busy_signs, idle_s
from fleettui.model.drain import DrainClass, PlannedCopy, SourceCopy
from fleettui.model.readings import LoadedModel
from fleettui.model.record import replace
from fleettui.model.route import (
    TIER_BUSY,
    TIER_EVICTS,
    TIER_FITS,
    TIER_OFFLOAD,
    TIER_PULL,
    TIER_RELOAD,
    TIER_RESIDENT,
    Eviction,
    RejectedMachine,
    RouteCandidate,
)
from fleettui.model.unknown import Maybe, Unknown


def covered_line(
    choices: Choices, target: Target, match: Match, now: float, *, lacks: int = 0
) -> PlannedCopy:
    """A peer serves it already. `lacks`: how many more resident copies the catalog wants elsewhere."""
    copy, there = choices.found.copy, match.copy
    assert there is not None  # noqa: S101 - what covers is resident
    snapshot, engine = target.snapshot, match.engine
    busy = tuple([sign.text for sign in find_busy_signs(snapshot, engine, there, now)])
    is_known = not isinstance(copy.digest, Unknown) and not isinstance(there.digest, Unknown)
    text = f"also on {target.name} ({'same digest' if is_known else 'same name'}{_other_name(copy, match)})"
    source = choices.found.engine
    if source is not None and not is_movable(source) and choices.found.missing:
        text += "; it stays up without requests: no `stop:` is configured"
    if lacks:
        text += (
            f"; keep: {choices.keep} in the catalog, {lacks} more must be resident elsewhere before it goes"
        )
    return PlannedCopy(
        copy,
        "covered",
        text,
        replace(
            _candidate(target, match, READY),
            tier=TIER_BUSY if busy else TIER_RESIDENT,
            why="resident",
            busy=busy,
            resident_context=there.context,
            idle_s=idle_s(snapshot, engine, there, now),
        ),
        there.context,
        keep=choices.keep,
    )


def _other_name(copy: SourceCopy, match: Match) -> str:
    return f", as {match.copy.name}" if match.copy is not None and match.copy.name != copy.name else ""


def loading_line(
    choices: Choices, target: Target, choice: Choice, placed: Placed, rate_bytes_s: float | None, now: float
) -> PlannedCopy:
    """It is loaded on a target first."""
    copy, load = choices.found.copy, choice.load
    drain_class: DrainClass = "move_evicts" if placed.victims else "move"
    if placed.is_degraded:
        drain_class = "degraded"
    elif load.is_pull:
        drain_class = "pull"
    eta = _eta(choice, load, placed, rate_bytes_s)
    needs = None if load.need is None else vram_need(load.need, max(1, len(placed.gpus)))
    evicts = tuple(
        [_eviction(target, choice.match, victim.name, victim.vram_bytes, now) for victim in placed.victims]
    )
    is_spread = len(placed.gpus) > 1
    candidate = replace(
        _candidate(target, choice.match, eta),
        tier=_tier(load, placed),
        why=eta.words,
        free_mib=placed.free_bytes // MIB if placed.gpus or target.snapshot.gpu is None else 0,
        free_gpu=placed.gpus[0] if len(placed.gpus) == 1 and not is_spread else None,
        need=needs,
        evicts=evicts,
        gpus=placed.gpus,
    )
    return PlannedCopy(
        copy,
        drain_class,
        _loading_words(copy, choice, placed),
        candidate,
        load.context,
        keep=choices.keep,
        pull_bytes=load.size_bytes if load.is_pull else 0,
        num_ctx=load.num_ctx,
    )


def _tier(load: Load, placed: Placed) -> int:
    if load.is_pull:
        return TIER_PULL
    if load.need is None or load.own is not None:
        return TIER_RELOAD
    if placed.ram_bytes:
        return TIER_OFFLOAD
    return TIER_EVICTS if placed.victims else TIER_FITS


def _eta(choice: Choice, load: Load, placed: Placed, rate_bytes_s: float | None) -> Eta:
    there = choice.match.copy
    if load.is_pull:
        return not_known("speed of the download")
    if load.need is None:
        return (
            READY
            if there is None or there.state == "loaded"
            else estimate_load(load.size_bytes, rate_bytes_s)
        )
    return estimate_load(
        load.size_bytes, rate_bytes_s, is_cached=load.own is not None, has_evictions=bool(placed.victims)
    )


def _loading_words(copy: SourceCopy, choice: Choice, placed: Placed) -> str:
    """What the fields do not say: what is lesser there, what Ollama drops by prediction, what is fetched."""
    load, there, words = choice.load, choice.match.copy, []
    if load.is_pull:
        size = load.size_bytes
        words.append("pull first" if isinstance(size, Unknown) else f"pull of {size / 1e9:.1f} GB first")
    if there is not None and load.need is None:
        words.append("it is loading there" if there.state == "loading" else "resident there already")
    if placed.ram_bytes:
        words.append(f"{placed.ram_bytes / GIB:.1f} GiB of it in main memory")
    elif there is not None and load.need is None and there.state == "loaded":
        percent = there.gpu_percent
        if not isinstance(percent, Unknown) and percent < 100:
            words.append(f"{percent} % of it on the GPU")
    if load.is_lesser and _is_less(load.context, copy.context):
        words.append(f"ctx {copy.context} -> {load.context}")
    if placed.foretold:
        names = ", ".join([victim.name for victim in placed.victims[-placed.foretold :]])
        words.append(f"Ollama may evict {names} though it fits")
    return "; ".join(words)


def _is_less(context: Maybe[int], than: Maybe[int]) -> bool:
    return not isinstance(context, Unknown) and not isinstance(than, Unknown) and context < than


def _eviction(target: Target, match: Match, name: str, vram_bytes: int, now: float) -> Eviction:
    copy = _loaded_as(match, name)
    unused = Unknown() if copy is None else idle_s(target.snapshot, match.engine, copy, now, ())
    return Eviction(name, unused, vram_bytes // MIB)


def _loaded_as(match: Match, name: str) -> LoadedModel | None:
    loaded = match.engine.loaded
    return None if isinstance(loaded, Unknown) else next((copy for copy in loaded if copy.name == name), None)


def _candidate(target: Target, match: Match, eta: Eta) -> RouteCandidate:
    host, port, url = engine_address(target.snapshot.machine, match.engine)
    source = match.copy if match.copy is not None else match.installed
    return RouteCandidate(
        target.name,
        host,
        port,
        url,
        match.engine.kind,
        TIER_FITS,
        "",
        match.name,
        digest=Unknown() if source is None else source.digest,
        resident_context=Unknown("not resident") if match.copy is None else match.copy.context,
        age_s=target.age_s,
        eta_s=eta.seconds,
        eta_basis=eta.basis,
        eta_text=eta.text,
    )


def lost_line(
    choices: Choices, cold_on: tuple[str, ...], rejected: tuple[RejectedMachine, ...], doubts: str = ""
) -> PlannedCopy:
    """No target. `cold_on`: machines with the files; `doubts`: of those, which are out of service."""
    copy = choices.found.copy
    if cold_on:
        text = f"will be cold on {', '.join(cold_on)}{f' ({doubts})' if doubts else ''}"
        return PlannedCopy(copy, "last_copy", text, cold_on=cold_on, rejected=rejected, keep=choices.keep)
    text = "no target, and its files are on no other machine"
    if choices.found.engine is not None and not is_movable(choices.found.engine):
        text = "nobody else serves it, and nothing loads it elsewhere on request"
    return PlannedCopy(copy, "cannot", text, rejected=rejected, keep=choices.keep)


def unmanaged_line(choices: Choices) -> PlannedCopy:
    """Nobody can unload it from here."""
    found = choices.found
    return PlannedCopy(
        found.copy, "unmanaged", f'{found.missing}; stays, blocks "drained"', keep=choices.keep
    )
