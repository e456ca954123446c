"""Room of a target while copies are planned onto it one after the other: what each takes, what has to go.

It follows Ollama: idle copies go in its own order, one too many goes first, and where it predicts more than
may be used of what is free it evicts though there is room. What stays in any case (at work, or needed by the
plan) is never counted as room; where Ollama would have to drop it, the target is refused.
"""

from __future__ import annotations

from fleettui.decide.fit import find_place, judge_room
from fleettui.decide.model_need import GIB, ModelNeed
from fleettui.decide.ollama_forecast import USABLE_PERCENT, Prediction, weigh_prediction
from fleettui.decide.room import CardRoom, IdleCopy, Room, free_cards
from fleettui.model.record import dataclass
from fleettui.model.route import Rejection
from fleettui.model.unknown import Maybe, Unknown

Rank = tuple[bool, float, str]
"""Place in Ollama's order of eviction, as `eviction_order` gives it."""


@dataclass(frozen=True, slots=True)
class EngineBay:
    """What an engine of the target holds."""

    idle: tuple[tuple[Rank, IdleCopy], ...] = ()
    """Copies that may go, in the order in which they do; the first that may not ends the list."""
    count: int = 0
    """All copies, idle or not."""
    staying: str = ""
    """Name of the copy behind the idle ones that would go next, and why it may not."""


@dataclass(frozen=True, slots=True)
class Bay:
    """Room of one machine."""

    cards: tuple[CardRoom, ...]
    """By index; empty on a machine without GPU."""
    ram_bytes: Maybe[int]
    engines: tuple[EngineBay, ...]

    @property
    def free_bytes(self) -> int:
        """Of all cards."""
        return sum([card.free_bytes for card in self.cards])


@dataclass(frozen=True, slots=True)
class Load:
    """What one copy takes on one target; equal ones of machines that are alike are one object."""

    engine: int
    """Place of its engine in the bay."""
    most: int
    """Copies that the engine keeps at most."""
    need: ModelNeed | None
    """None: nothing is loaded, since it is there or on the way."""
    told: Maybe[Prediction] = Unknown("not an Ollama")
    spreads: bool = False
    evicts: bool = True
    """The engine makes room by itself, and puts nothing into main memory beside what is loaded: Ollama."""
    is_lesser: bool = False
    """Whatever the room: a smaller context than at the source, or it is there partly in main memory."""
    least_percent: int = 100
    """Share on the GPU that it has at the source."""
    own: IdleCopy | None = None
    """The copy of it that is there and is loaded anew."""
    pull_bytes: int = 0
    context: Maybe[int] = Unknown("not known")
    """Tokens it will have there."""
    num_ctx: int | None = None
    """Tokens that the load names."""
    size_bytes: Maybe[int] = Unknown("not known")
    """Of the file."""
    is_pull: bool = False
    rank: Rank = (True, 0.0, "")
    """Of the copy, once it is there: what would go after it does not go for later ones."""

    @property
    def least_bytes(self) -> int:
        """VRAM without which it does not lie on GPUs as at the source; 0 where it needs none."""
        return 0 if self.need is None or self.least_percent < 100 else self.need.total_bytes()


@dataclass(frozen=True, slots=True)
class Placed:
    """A load that finds its place."""

    bay: Bay
    """What is left."""
    gpus: tuple[int, ...] = ()
    victims: tuple[IdleCopy, ...] = ()
    foretold: int = 0
    """How many of the victims, the last ones, only Ollama's own prediction drops."""
    ram_bytes: int = 0
    free_bytes: int = 0
    """On those cards before, victims not counted."""
    quality: tuple[int, int, int] = (0, 0, 0)
    """(degraded, bytes evicted, bytes fetched): less is better."""

    @property
    def is_degraded(self) -> bool:
        return self.quality[0] > 0


def place(bay: Bay, load: Load) -> Placed | Rejection:
    """Where the load lies and what goes for it; else why not."""
    need, engine = load.need, bay.engines[load.engine]
    if need is None:
        return Placed(bay, quality=(int(load.is_lesser), 0, 0))
    cards, ranked, count, loose_own = bay.cards, engine.idle, engine.count, 0
    if load.own is not None:
        cards, count = free_cards(cards, (load.own,)), count - 1
        loose_own = 0 if load.own.by_card else load.own.vram_bytes
        ranked = tuple([one for one in ranked if one[1].name != load.own.name])
    idle = tuple([copy for _, copy in ranked])
    forced = max(0, count - load.most + 1)
    if forced > len(idle):
        return _stays(engine, f"it keeps {load.most} copies at most")
    first_with_room, is_short = -1, False
    for gone in range(forced, len(idle) + 1):
        victims = idle[:gone]
        left = free_cards(cards, victims) if gone else cards
        loose = loose_own + sum([copy.vram_bytes for copy in victims if not copy.by_card])
        found = find_place(left, need, loose)
        if found is None:
            continue
        first_with_room = gone if first_with_room < 0 else first_with_room
        is_short = count > gone and _is_short(load, left, loose)
        if not is_short:
            after = _take(left, need, found.gpus)
            free = sum([card.free_bytes for card in bay.cards if card.index in found.gpus])
            return Placed(
                _changed(
                    bay, load, after, bay.ram_bytes, EngineBay(ranked[gone:], count - gone, engine.staying)
                ),
                found.gpus,
                victims,
                gone - max(forced, first_with_room),
                free_bytes=free,
                quality=(int(load.is_lesser), sum([copy.vram_bytes for copy in victims]), load.pull_bytes),
            )
    if is_short and not isinstance(load.told, Unknown):
        predicted = f"Ollama predicts {load.told.predicted_bytes / GIB:.1f} GiB"
        return _stays(engine, f"it has the room, but {predicted} and makes more")
    return _offload(bay, load, need, EngineBay(ranked, count, engine.staying), cards, forced)


def _stays(engine: EngineBay, why: str) -> Rejection:
    return Rejection("busy", f"busy: {why}, and {engine.staying or 'what is loaded'} has to stay")


def _is_short(load: Load, cards: tuple[CardRoom, ...], loose: int) -> bool:
    """Ollama predicts more than it would use of what is free, and evicts."""
    told = load.told
    if isinstance(told, Unknown) or not cards:
        return False
    free = [card.free_bytes for card in cards]
    best, summed = max(free), sum([card.free_bytes for card in cards if not card.is_alone]) + loose
    if len(cards) == 1:
        best = summed = free[0] + loose
    is_one = not load.spreads and told.predicted_bytes * 100 <= best * USABLE_PERCENT
    return weigh_prediction(told, best if is_one else max(best, summed))[2]


def _take(cards: tuple[CardRoom, ...], need: ModelNeed, gpus: tuple[int, ...]) -> tuple[CardRoom, ...]:
    """The cards with the load on them. Several take shares by what they have free; of room whose card nobody
    knows nothing is counted on afterwards."""
    room = {card.index: max(0, card.free_bytes - need.per_gpu_bytes) for card in cards if card.index in gpus}
    summed = sum(room.values())
    left = max(0, summed - need.shared_bytes)
    return tuple([
        CardRoom(card.index, room[card.index] * left // summed if summed else 0, card.is_alone)
        if card.index in room
        else card
        for card in cards
    ])  # fmt: skip


def _changed(bay: Bay, load: Load, cards: tuple[CardRoom, ...], ram: Maybe[int], engine: EngineBay) -> Bay:
    """The bay with the copy in it, which stays: Ollama would drop it before what has a later rank."""
    idle = tuple([one for one in engine.idle if one[0] < load.rank])
    staying = engine.staying if len(idle) == len(engine.idle) and engine.staying else load.rank[2]
    engine = EngineBay(idle, engine.count + 1, staying)
    engines = tuple([engine if at == load.engine else other for at, other in enumerate(bay.engines)])
    return Bay(cards, ram, engines)


def _offload(
    bay: Bay, load: Load, need: ModelNeed, engine: EngineBay, cards: tuple[CardRoom, ...], forced: int
) -> Placed | Rejection:
    """Partly or wholly in main memory; Ollama drops all that is loaded on the cards first."""
    has_others = engine.count > len(engine.idle)
    if cards and has_others and load.evicts:
        return _no_fit(bay, load, need, engine.staying)
    victims = tuple([copy for _, copy in (engine.idle if cards else engine.idle[:forced])])
    left = free_cards(cards, victims)
    fit = judge_room(Room(left, (), bay.ram_bytes), need)
    if fit.verdict == "unknown":
        return Rejection("gpu_unknown", f"gpu_unknown: {fit.text}")
    if fit.verdict != "cpu_offload" or isinstance(bay.ram_bytes, Unknown):
        return _no_fit(bay, load, need)
    percent = 100 * (need.shared_bytes - fit.ram_bytes) // max(1, need.shared_bytes)
    if fit.gpus:
        left = tuple([CardRoom(card.index, 0, card.is_alone) for card in left])
    after = EngineBay(engine.idle[len(victims) :], engine.count - len(victims), engine.staying)
    return Placed(
        _changed(bay, load, left, bay.ram_bytes - fit.ram_bytes, after),
        fit.gpus,
        victims,
        ram_bytes=fit.ram_bytes,
        free_bytes=bay.free_bytes,
        quality=(
            int(load.is_lesser or percent < load.least_percent),
            sum([copy.vram_bytes for copy in victims]),
            load.pull_bytes,
        ),
    )


def _no_fit(bay: Bay, load: Load, need: ModelNeed, staying: str = "") -> Rejection:
    """`no_fit 24.0 < 66.0 GiB`, with what could go and what has to stay."""
    free = bay.free_bytes + sum([copy.vram_bytes for _, copy in bay.engines[load.engine].idle])
    text = f"no_fit {free / GIB:.1f} < {need.total_bytes(max(1, len(bay.cards))) / GIB:.1f} GiB"
    if bay.cards and free >= need.total_bytes(len(bay.cards)):
        best = max([card.free_bytes for card in bay.cards])
        text = f"no_fit needs {need.total_bytes() / GIB:.1f} GiB, best GPU {best / GIB:.1f} GiB free"
    if not bay.cards:
        ram = "not known" if isinstance(bay.ram_bytes, Unknown) else f"{bay.ram_bytes / GIB:.1f}"
        text = f"no_fit main memory {ram} < {need.shared_bytes / GIB:.1f} GiB"
    return Rejection("no_fit", f"{text}; {staying} has to stay" if staying else text)
