"""Where in the fleet a model fits, and how: one verdict for each machine, the best first."""

from __future__ import annotations

from fleettui.decide.filters import age_limit_s, data_age_s, data_rejection, flag_rejections, trust_rejection
from fleettui.decide.fit import Fit, judge_fit
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.kv_cache import BYTES_OF_32, CacheTypes
from fleettui.decide.matching import Asked, Match, find_on_engine
from fleettui.decide.model_need import GIB, ModelFacts
from fleettui.decide.names import nearest_names
from fleettui.decide.natural import natural_key
from fleettui.decide.need import Needs
from fleettui.decide.ollama_use import OllamaUse, find_ollama_use
from fleettui.decide.outcome import all_names
from fleettui.decide.room import find_room
from fleettui.model.busy import find_busy_signs
from fleettui.model.catalog import catalog_names
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.fit import FitForecast, FitNeed, FitQuery, FitReport, FitUse, MachineFit
from fleettui.model.fit_verdict import VERDICTS
from fleettui.model.model_shape import ModelShape
from fleettui.model.names import canonical_name
from fleettui.model.readings import EngineReading, InstalledModel, LoadedModel
from fleettui.model.record import replace
from fleettui.model.route import (
    EXIT_NO_DATA,
    EXIT_NONE_ELIGIBLE,
    EXIT_ROUTED,
    EXIT_UNKNOWN_MODEL,
    RouteQuery,
)
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import has_no_gpu

_NOWHERE = Unknown("on no disk of the fleet")
_NOT_ASKED = Unknown("not asked")


def judge_fleet(fleet: FleetSnapshot, query: FitQuery, now: float, knowledge: RouteKnowledge) -> FitReport:
    """The verdict for each machine that was asked for."""
    asked = Asked(query.model, knowledge.catalog)
    needs = Needs(fleet, knowledge)
    wanted = [snapshot for snapshot in fleet.machines if _is_wanted(snapshot, query)]
    matches = {snapshot.name: _find_match(snapshot, asked) for snapshot in fleet.machines}
    files = _local_files(matches)
    usual = _most_common(files)
    fits = [
        _judge(snapshot, matches[snapshot.name], usual, asked, needs, query, fleet, now)
        for snapshot in wanted
    ]
    fits.sort(key=_order)
    digest: Maybe[str] = _NOWHERE if usual is None else usual.digest
    shape: Maybe[ModelShape] = _NOT_ASKED
    if not isinstance(digest, Unknown):
        shape = knowledge.shapes.get(digest, _NOT_ASKED)
    is_served = any(_served_by(snapshot, asked) for snapshot in fleet.machines)
    is_known = bool(files) or is_served or asked.model is not None or _is_declared(fleet, asked)
    exit_code = _exit_code(fits, is_known=is_known)
    return FitReport(
        query,
        asked.shown,
        tuple(fits),
        exit_code,
        fleet.taken_at,
        now,
        digest,
        shape,
        _NOWHERE if usual is None else usual.size_bytes,
        tuple(nearest_names(query.model, [*all_names(fleet), *catalog_names(knowledge.catalog)]))
        if exit_code == EXIT_UNKNOWN_MODEL
        else (),
        len({file.digest for file in files}) > 1,
    )


def _is_wanted(snapshot: MachineSnapshot, query: FitQuery) -> bool:
    machine = snapshot.machine
    return (not query.machines or machine.name in query.machines) and set(query.tags) <= set(machine.tags)


def _find_match(snapshot: MachineSnapshot, asked: Asked) -> Match | None:
    """The model on the machine's Ollama; files of other engines are other weights."""
    engines = (engine for engine in snapshot.engines if engine.kind == "ollama")
    return next((match for engine in engines if (match := find_on_engine(engine, asked)) is not None), None)


def _served_by(snapshot: MachineSnapshot, asked: Asked) -> list[str]:
    """Other engines that have the model resident; what they take does not depend on it alone."""
    others = [engine for engine in snapshot.engines if engine.kind != "ollama"]
    matches = [match for engine in others if (match := find_on_engine(engine, asked)) is not None]
    return [
        f"{ENGINE_TITLES[match.engine.kind]} serves it there; this is about a copy in Ollama"
        for match in matches
        if match.copy is not None
    ]


def _local_files(matches: dict[str, Match | None]) -> list[InstalledModel]:
    """The model as each machine has it on its disk, cloud entries left out."""
    found = [match.installed for match in matches.values() if match is not None]
    return [file for file in found if file is not None and file.remote_host is None]


def _most_common(files: list[InstalledModel]) -> InstalledModel | None:
    """What most machines have; of equals the largest."""
    counts: dict[object, int] = {}
    for file in files:
        counts[file.digest] = counts.get(file.digest, 0) + 1
    return max(files, key=lambda file: (counts[file.digest], _size(file), str(file.digest)), default=None)


def _size(file: InstalledModel) -> int:
    return -1 if isinstance(file.size_bytes, Unknown) else file.size_bytes


def _is_declared(fleet: FleetSnapshot, asked: Asked) -> bool:
    names = (name for snapshot in fleet.machines for name in snapshot.machine.models)
    return any(canonical_name(name) == asked.canonical for name in names)


def _judge(
    snapshot: MachineSnapshot,
    match: Match | None,
    usual: InstalledModel | None,
    asked: Asked,
    needs: Needs,
    query: FitQuery,
    fleet: FleetSnapshot,
    now: float,
) -> MachineFit:
    refusal = trust_rejection(snapshot)
    age_s = None if refusal is not None else data_age_s(snapshot, now)
    if refusal is None:
        # A machine without an engine has figures too.
        seen_s = snapshot.age_s(now) if age_s is None else age_s
        route = RouteQuery(query.model, max_age_s=query.max_age_s, deadline_s=query.deadline_s)
        refusal = data_rejection(snapshot, route, seen_s, now, age_limit_s(route, fleet.interval_s))
    if refusal is not None:
        return MachineFit(snapshot.name, "unknown", refusal.text, has_data=False, age_s=age_s)
    own = None if match is None else match.installed
    file = own if own is not None and own.remote_host is None else usual
    facts = _facts_of(file, match, asked, needs)
    engine = _engine_of(snapshot, match)
    copy = None if match is None else match.copy
    use = _use_of(snapshot, engine, copy, facts, query)
    fit = _judge_on(snapshot, engine, copy, facts, use, needs, now)
    notes = [rejection.text for rejection in flag_rejections(snapshot, now)]
    notes += _served_by(snapshot, asked)
    if engine is None:
        notes.append("no Ollama there: another engine may take more")
    is_there = copy is not None and copy.context == use.use.context  # nothing has to be loaded
    if not is_there:
        notes += [*fit.notes, *_limit_notes(snapshot, engine, copy, use, fit)]
    notes += use.notes
    return replace(
        _told(snapshot.name, fit, use),
        is_installed=own is not None or copy is not None,
        resident_context=None if copy is None else copy.context,
        has_gpu=not has_no_gpu(snapshot),
        age_s=age_s,
        notes=tuple(dict.fromkeys(notes)),
    )


def _told(machine: str, fit: Fit, told: OllamaUse) -> MachineFit:
    """The verdict with everything behind it, for whoever shows it."""
    need, use, forecast = fit.need, told.use, fit.forecast
    return MachineFit(
        machine,
        fit.verdict,
        fit.text,
        fit.gpus,
        fit.evicted,
        fit.ram_bytes,
        fit.needed_bytes,
        fit.free_bytes,
        None
        if isinstance(need, Unknown)
        else FitNeed(
            need.basis,
            need.text,
            need.shared_bytes,
            need.per_gpu_bytes,
            need.kv_bytes,
            need.is_upper_bound,
        ),
        FitUse(
            use.context,
            told.context_basis,
            use.parallel,
            told.is_parallel_known,
            use.types.key,
            use.types.value,
            use.has_flash_attention,
            told.spreads,
        ),
        None
        if isinstance(forecast, Unknown)
        else FitForecast(
            forecast.predicted_bytes,
            forecast.kv_bytes,
            forecast.batch,
            forecast.surcharge_bytes,
            forecast.gpus,
            forecast.evicts,
        ),
    )


def _facts_of(file: InstalledModel | None, match: Match | None, asked: Asked, needs: Needs) -> ModelFacts:
    if file is not None:
        return needs.facts_of(file.digest, file.size_bytes, asked.model)
    copy = None if match is None else match.copy
    if copy is not None:
        return needs.facts_of(copy.digest, _NOWHERE, asked.model)
    return needs.facts_of(_NOWHERE, _NOWHERE, asked.model)


def _engine_of(snapshot: MachineSnapshot, match: Match | None) -> EngineReading | None:
    """The Ollama that would load it; None where there is none."""
    if match is not None:
        return match.engine
    return next((engine for engine in snapshot.engines if engine.kind == "ollama"), None)


def _use_of(
    snapshot: MachineSnapshot,
    engine: EngineReading | None,
    copy: LoadedModel | None,
    facts: ModelFacts,
    query: FitQuery,
) -> OllamaUse:
    """As it is loaded there or as the server is set up, but for what was asked for."""
    port = 0 if engine is None else engine.port
    found = find_ollama_use(snapshot, port, query.context, facts.shape)
    use = found.use
    if query.context is None and copy is not None and not isinstance(copy.context, Unknown):
        use, found = replace(use, context=copy.context), replace(found, context_basis="as it is resident")
    kind = next((name for name in BYTES_OF_32 if name == query.cache_type), None)
    if kind is not None:
        use = replace(use, types=CacheTypes(kind, kind))
    if query.parallel is not None:
        return replace(found, use=replace(use, parallel=query.parallel), is_parallel_known=True)
    return replace(found, use=use)


def _judge_on(
    snapshot: MachineSnapshot,
    engine: EngineReading | None,
    copy: LoadedModel | None,
    facts: ModelFacts,
    use: OllamaUse,
    needs: Needs,
    now: float,
) -> Fit:
    """The resident copy goes first: the new one takes its place."""
    loaded = () if engine is None or isinstance(engine.loaded, Unknown) else engine.loaded
    busy = frozenset(
        item.name
        for item in loaded
        if item is not copy and engine is not None and find_busy_signs(snapshot, engine, item, now)
    )
    room = find_room(snapshot, busy=busy, reloads=None if copy is None else copy.name)
    fit = judge_fit(room, facts, use.use, spreads=use.spreads, need=needs.find(facts, use.use))
    if engine is None:
        return replace(fit, forecast=Unknown("no Ollama there"))
    return fit


def _limit_notes(
    snapshot: MachineSnapshot,
    engine: EngineReading | None,
    copy: LoadedModel | None,
    use: OllamaUse,
    fit: Fit,
) -> list[str]:
    """Ollama keeps so many copies at most, whatever the room."""
    if engine is None or isinstance(engine.loaded, Unknown) or fit.evicted:
        return []
    most = use.most_copies(snapshot)
    others = [item for item in engine.loaded if item is not copy and item.state != "stopping"]
    return [f"Ollama keeps {most} models at most: one of {len(others)} goes"] if len(others) >= most else []


def _order(item: MachineFit) -> tuple[object, ...]:
    """Best verdict, most room left over, name."""
    return (
        not item.has_data,
        VERDICTS.index(item.verdict),
        not item.has_gpu,
        item.ram_bytes // GIB,
        len(item.evicted),
        item.needed_bytes - item.free_bytes,
        natural_key(item.machine),
    )


def _exit_code(fits: list[MachineFit], *, is_known: bool) -> int:
    if not any(item.has_data for item in fits):
        return EXIT_NO_DATA
    if not is_known:
        return EXIT_UNKNOWN_MODEL
    has_room = any(item.verdict not in ("no", "unknown") for item in fits)
    return EXIT_ROUTED if has_room else EXIT_NONE_ELIGIBLE
