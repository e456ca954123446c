"""Does a model fit on a machine, how, and why: what it really takes against what is free."""

from __future__ import annotations

from fleettui.decide.model_need import CUDA_CONTEXT_BYTES, GIB, ContextUse, ModelFacts, ModelNeed, find_need
from fleettui.decide.ollama_forecast import FIT_MARGIN_BYTES, USABLE_PERCENT, OllamaForecast, forecast
from fleettui.decide.room import CardRoom, IdleCopy, Room, free_cards
from fleettui.model.fit_verdict import FitVerdict
from fleettui.model.record import dataclass, replace
from fleettui.model.unknown import Maybe, Unknown


@dataclass(frozen=True, slots=True)
class Fit:
    """How a model fits on one machine."""

    verdict: FitVerdict
    text: str
    """The numbers behind it."""
    need: Maybe[ModelNeed]
    gpus: tuple[int, ...] = ()
    """Cards it would lie on; empty where that is not known."""
    evicted: tuple[str, ...] = ()
    """Idle copies that have to go, in that order."""
    ram_bytes: int = 0
    """What would lie in main memory."""
    forecast: Maybe[OllamaForecast] = Unknown("not an Ollama")
    """What Ollama itself predicts; it may evict or spread where there is no need to."""
    notes: tuple[str, ...] = ()
    needed_bytes: int = 0
    """VRAM on those cards, what cannot be divided among them included; of an offload on all of them."""
    free_bytes: int = 0
    """Free on those cards, once the evicted copies are gone."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Cards that have the room, and how much."""

    gpus: tuple[int, ...]
    free_bytes: int
    needed_bytes: int


def judge_fit(
    room: Maybe[Room],
    facts: ModelFacts,
    use: ContextUse,
    *,
    spreads: bool = False,
    need: Maybe[ModelNeed] | None = None,
) -> Fit:
    """The verdict for one machine with Ollama's own forecast beside it. More free VRAM never makes it worse.

    `spreads`: OLLAMA_SCHED_SPREAD is set there. `need`: where it was found already, for many machines alike.
    """
    need = find_need(facts, use) if need is None else need
    if isinstance(room, Unknown):
        return Fit("unknown", f"free VRAM not known: {room.reason}", need)
    if isinstance(need, Unknown):
        return Fit("unknown", f"need not known: {need.reason}", need, notes=room.left_out)
    free = {card.index: card.free_bytes for card in room.cards}
    told: Maybe[OllamaForecast] = Unknown("no GPU")
    if free:
        told = forecast(facts, use, free, has_other_models=room.has_other_models, spreads=spreads)
    fit = judge_room(room, need)
    return replace(fit, forecast=told, notes=(*room.left_out, *_notes(fit, told, need, room)))


def judge_room(room: Room, need: ModelNeed) -> Fit:
    """What the room says to a need; without Ollama's forecast."""
    place = find_place(room.cards, need)
    if place is not None:
        verdict: FitVerdict = "one_gpu" if len(place.gpus) == 1 else "several_gpus"
        return _with_place(Fit(verdict, _say_place(place), need, place.gpus), place)
    for count in range(1, len(room.idle) + 1):
        victims = room.idle[:count]
        place = _place_without(room.cards, victims, need)
        if place is not None:
            names = tuple(copy.name for copy in victims)
            text = f"{_say_place(place)} once {', '.join(names)} is evicted"
            return _with_place(Fit("evictions", text, need, place.gpus, names), place)
    return _judge_offload(room, need)


def _with_place(fit: Fit, place: _Place) -> Fit:
    return replace(fit, needed_bytes=place.needed_bytes, free_bytes=place.free_bytes)


def find_place(cards: tuple[CardRoom, ...], need: ModelNeed, loose_bytes: int = 0) -> _Place | None:
    """The freest card if it has the room, else the fewest cards that have it together.

    `loose_bytes`: VRAM that will be free on one or several of the cards, nobody knows which.
    """
    ranked = sorted(cards, key=lambda card: (-card.free_bytes, card.index))
    if ranked and ranked[0].free_bytes >= need.total_bytes():
        return _Place((ranked[0].index,), ranked[0].free_bytes, need.total_bytes())
    joined = [card for card in ranked if not card.is_alone]
    for count in range(2, len(joined) + 1):
        chosen = joined[:count]
        free = sum(card.free_bytes for card in chosen) + (loose_bytes if count == len(joined) else 0)
        # Cards take whole layers: on all but one of them part of a layer may stay free.
        needed = need.total_bytes(count) + (count - 1) * need.layer_bytes
        if free >= needed and (chosen[-1].free_bytes >= need.per_gpu_bytes or loose_bytes):
            return _Place(tuple(sorted(card.index for card in chosen)), free, needed)
    return None


def _place_without(
    cards: tuple[CardRoom, ...], victims: tuple[IdleCopy, ...], need: ModelNeed
) -> _Place | None:
    loose = sum(copy.vram_bytes for copy in victims if not copy.by_card)
    return find_place(free_cards(cards, victims), need, loose)


def _judge_offload(room: Room, need: ModelNeed) -> Fit:
    """Not even without all idle copies: the rest goes into main memory, if there is room."""
    names = tuple(copy.name for copy in room.idle)
    cards = free_cards(room.cards, room.idle)
    loose = sum(copy.vram_bytes for copy in room.idle if not copy.by_card)
    joined = [max(0, card.free_bytes - need.per_gpu_bytes) for card in cards if not card.is_alone]
    alone = [max(0, card.free_bytes - need.per_gpu_bytes) for card in cards if card.is_alone]
    on_gpu = min(need.shared_bytes, max([sum(joined) + loose, *alone])) if cards else 0
    # It failed for less than a layer: then one layer has to go.
    rest = max(need.shared_bytes - on_gpu, min(need.shared_bytes, max(1, need.layer_bytes)))
    free, needed = sum(card.free_bytes for card in cards) + loose, need.total_bytes(len(cards))
    have = f"{_gib(free)} GiB VRAM free" if cards else "no GPU"
    have += " once all idle copies are evicted" if names and cards else ""
    text = f"needs {_gib(needed)} GiB, {have}; {_gib(rest)} GiB for main memory"
    made = Fit("no", text, need, ram_bytes=rest, needed_bytes=needed, free_bytes=free)
    if isinstance(room.ram_bytes, Unknown):
        return replace(made, verdict="unknown", text=f"{text}: {room.ram_bytes.reason}")
    made = replace(made, text=f"{text}, {_gib(room.ram_bytes)} free there")
    if rest > room.ram_bytes:
        return made
    if not on_gpu:
        return replace(made, verdict="cpu_offload")
    return replace(made, verdict="cpu_offload", gpus=tuple(card.index for card in cards), evicted=names)


def _notes(fit: Fit, told: Maybe[OllamaForecast], need: ModelNeed, room: Room) -> tuple[str, ...]:
    """Where Ollama will do something else than the numbers ask for."""
    if isinstance(told, Unknown):
        return ()
    notes = []
    wanted = f"Ollama predicts {_gib(told.predicted_bytes)} GiB"
    if told.surcharge_bytes and room.has_other_models:
        wanted += f" + {_gib(told.surcharge_bytes)} for batches of {told.batch}"
    if fit.verdict in ("one_gpu", "several_gpus") and told.evicts:
        notes.append(f"{wanted}, more than {USABLE_PERCENT} % of what is free: it evicts though it would fit")
    elif fit.verdict == "one_gpu" and len(told.gpus) > 1:
        notes.append(f"{wanted}, more than {USABLE_PERCENT} % of any GPU: it spreads over {len(told.gpus)}")
    elif fit.verdict == "evictions" and not told.evicts:
        notes.append(f"{wanted} and sees room: it evicts only once loading fails")
    if fit.verdict == "one_gpu" and len(told.gpus) == 1:
        free = next(card.free_bytes for card in room.cards if card.index == fit.gpus[0])
        if free - (need.total_bytes() - CUDA_CONTEXT_BYTES) < FIT_MARGIN_BYTES:
            notes.append("less than Ollama's margin of 1 GiB stays free: it may put layers into main memory")
    return tuple(notes)


def _say_place(place: _Place) -> str:
    where = f"GPU {place.gpus[0]}" if len(place.gpus) == 1 else f"GPUs {', '.join(map(str, place.gpus))}"
    return f"needs {_gib(place.needed_bytes)} GiB, {_gib(place.free_bytes)} GiB on {where}"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f}"
