"""Notes on copies against cards: short contexts, cards at work for an engine that says nothing runs."""

from __future__ import annotations

from fleettui.decide.engine_words import engine_title
from fleettui.model.busy import claims_idle
from fleettui.model.contexts import longest_context
from fleettui.model.gpu import BUSY_SAMPLES_KEPT, GpuCard, is_on_card
from fleettui.model.readings import EngineReading
from fleettui.model.residency import cards_of, is_runner
from fleettui.model.snapshot import MachineSnapshot, Reason
from fleettui.model.unknown import Unknown

SHORT_CONTEXT = 4096
"""What Ollama takes on cards below 23 GiB when nobody says more; longer requests are cut without a word."""
TIMES_LONGER = 4
"""A model made for less than that times more is not worth a note."""


def copy_notes(snapshot: MachineSnapshot) -> list[Reason]:
    """All of them; none without both figures read."""
    return [*_context_notes(snapshot), *_unasked_work(snapshot)]


def _context_notes(snapshot: MachineSnapshot) -> list[Reason]:
    reasons = []
    for engine in snapshot.engines:
        for copy in () if isinstance(engine.loaded, Unknown) else engine.loaded:
            context, longest = copy.context, longest_context(engine, copy)
            if isinstance(context, Unknown) or isinstance(longest, Unknown) or context > SHORT_CONTEXT:
                continue
            if longest >= TIMES_LONGER * context:
                text = (
                    f"{copy.name} has context {context}, it was made for {longest}: longer requests are cut; "
                    "set the engine's context or num_ctx"
                )
                reasons.append(Reason("note", "copy_context", text))
    return reasons


def _unasked_work(snapshot: MachineSnapshot) -> list[Reason]:
    """Cards that were busy in many samples in a row, where every engine with a copy counts no request."""
    gpu, processes, status = snapshot.gpu, snapshot.processes, snapshot.sources.get("gpu")
    if gpu is None or gpu.is_stale or processes is None or status is None or status.state != "ok":
        return []
    reasons = []
    for card in gpu.cards:
        if card.busy_samples < BUSY_SAMPLES_KEPT:
            continue
        on_card = [process for process in processes.processes if is_on_card(process, card)]
        if not on_card or not all(is_runner(process) for process in on_card):
            continue
        engines = _engines_on(snapshot, card)
        if engines and all(claims_idle(engine) for engine in engines):
            titles = ", ".join(engine_title(engine.kind, engine.port) for engine in engines)
            verb = "says" if len(engines) == 1 else "say"
            text = (
                f"GPU {card.index} is busy although {titles} {verb} that nothing runs: does a request hang? "
                "see the engine's log"
            )
            reasons.append(Reason("note", "gpu_busy_idle_engine", text))
    return reasons


def _engines_on(snapshot: MachineSnapshot, card: GpuCard) -> list[EngineReading]:
    return [
        engine
        for engine in snapshot.engines
        if not isinstance(engine.loaded, Unknown)
        and any(card.index in cards_of(snapshot, engine, copy) for copy in engine.loaded)
    ]
