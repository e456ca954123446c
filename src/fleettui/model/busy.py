"""Is an engine, or one copy on it, at work? Signs of it in words; never a number where none was read.

Engines that count requests say it. Ollama does not; three weak signs stand for it: connections to its port
beyond our own, cards of the copy that are busy in two samples in a row, an expiry that moved a moment ago.
"""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown, known_or

BusyCode = Literal["running", "waiting", "connections", "gpu", "expiry"]

SAMPLES_IN_A_ROW = 2
"""One busy sample may be anything: a desktop, a card that wakes up."""
AT_REST_PERCENT = 5
JUST_USED_S = 10.0
"""Whoever asks again and again leaves gaps."""
SOCKETS_MAX_AGE_S = 30.0
"""Three times as old as they are read."""

_STRONG = frozenset({"running", "waiting"})
_NO_USE_SEEN = Unknown("no use of it was seen")


@dataclass(frozen=True, slots=True)
class BusySign:
    """One sign that requests are in work."""

    code: BusyCode
    text: str


def find_busy_signs(
    snapshot: MachineSnapshot, engine: EngineReading, copy: LoadedModel | None, now: float
) -> tuple[BusySign, ...]:
    """All signs that `copy` (None: anything on the engine) works now; empty: none was seen."""
    if engine.load is None and type(engine.running) is Unknown and type(engine.waiting) is Unknown:
        weak = _weak_signs(snapshot, engine, copy, now)  # Ollama: it counts nothing
        return tuple(weak) if weak else ()
    found = _counted(engine)
    if not found and not _counts(engine):
        found = _weak_signs(snapshot, engine, copy, now)
    return tuple(found)


def idle_s(
    snapshot: MachineSnapshot,
    engine: EngineReading,
    copy: LoadedModel,
    now: float,
    signs: tuple[BusySign, ...] | None = None,
) -> Maybe[float]:
    """Seconds since the last use of a copy that is known; 0 while it works, Unknown where nothing tells.

    Behind a weak sign of work it is unknown: a long request leaves no trace before it ends. `signs`: of that
    copy, where they were looked for already.
    """
    if signs is None:
        signs = find_busy_signs(snapshot, engine, copy, now)
    if any(sign.code in _STRONG for sign in signs):
        return 0.0
    for sign in signs:
        if sign.code != "expiry":
            return Unknown(sign.text)
    return unused_s(engine, copy, now)


def unused_s(engine: EngineReading, copy: LoadedModel, now: float) -> Maybe[float]:
    """Seconds since the last use of a copy that is not at work; Unknown where nothing tells."""
    for use in engine.uses:
        if use.name == copy.name:
            return max(0.0, now - use.used_at)
    return _NO_USE_SEEN


def _counted(engine: EngineReading) -> list[BusySign]:
    """What the engine counts itself."""
    found = []
    if not isinstance(engine.running, Unknown) and engine.running > 0:
        found.append(BusySign("running", f"{engine.running} running"))
    if not isinstance(engine.waiting, Unknown) and engine.waiting > 0:
        found.append(BusySign("waiting", f"{engine.waiting} waiting"))
    in_flight = Unknown() if engine.load is None else engine.load.in_flight
    if not found and not isinstance(in_flight, Unknown) and in_flight > 0:  # metrics lag behind it
        found.append(BusySign("running", f"{in_flight} in flight"))
    return found


def _counts(engine: EngineReading) -> bool:
    """It counts requests: that it counts none means that there are none."""
    if not isinstance(engine.running, Unknown):
        return True
    has_count = engine.load is not None and not isinstance(engine.load.in_flight, Unknown)
    return has_count and engine.traits is not None and engine.traits.counts_load


def claims_idle(engine: EngineReading) -> bool:
    """It answers, counts requests, and counts none."""
    return engine.state == "ok" and _counts(engine) and not _counted(engine)


def _weak_signs(
    snapshot: MachineSnapshot, engine: EngineReading, copy: LoadedModel | None, now: float
) -> list[BusySign]:
    found = []
    port = None if snapshot.sockets is None else snapshot.sockets.find(engine.port)
    others = 0
    if port is not None and port.connections > port.ours:
        others = known_or(count_others(snapshot, engine, now), 0)
    if others or _has_busy_card(snapshot):  # else nobody asks where the copies lie, which takes long
        copies = _copies(engine, copy)
        cards = {index for item in copies for index in _cards_of(snapshot, engine, item)}
        busy = _busy_cards(snapshot, cards)
        if others and not (not busy and cards and _rest(snapshot, cards) and _are_on_cards(copies)):
            words = "connection" if others == 1 else "connections"
            found.append(BusySign("connections", f"{others} {words} to its port"))
        if busy:
            words = "GPU" if len(busy) == 1 else "GPUs"
            found.append(BusySign("gpu", f"{words} {', '.join(map(str, busy))} busy"))
    if engine.uses and engine.kind == "ollama":
        used_at = None
        for use in engine.uses:
            if (copy is None or use.name == copy.name) and (used_at is None or use.used_at > used_at):
                used_at = use.used_at
        if used_at is not None and 0 <= now - used_at < JUST_USED_S:
            found.append(BusySign("expiry", "used a moment ago"))
    return found


_NOT_COUNTED = Unknown("not counted lately")


def count_others(snapshot: MachineSnapshot, engine: EngineReading, now: float) -> Maybe[int]:
    """Connections to the engine's port that are not our own."""
    sockets, status = snapshot.sockets, snapshot.sources.get("sockets")
    if sockets is None or status is None or status.read_at is None:
        return _NOT_COUNTED
    if now - status.read_at > SOCKETS_MAX_AGE_S or _is_elsewhere(snapshot, engine):
        return _NOT_COUNTED
    port = sockets.find(engine.port)
    return _NOT_COUNTED if port is None else max(0, port.connections - port.ours)


def _is_elsewhere(snapshot: MachineSnapshot, engine: EngineReading) -> bool:
    """The file gives it a URL: the machine's own port of that number may be another's."""
    for endpoint in snapshot.machine.engines:
        if endpoint.url is not None and endpoint.port == engine.port and endpoint.kind == engine.kind:
            return True
    return False


def _copies(engine: EngineReading, copy: LoadedModel | None) -> tuple[LoadedModel, ...]:
    if copy is not None:
        return (copy,)
    return () if isinstance(engine.loaded, Unknown) else engine.loaded


def _cards_of(snapshot: MachineSnapshot, engine: EngineReading, copy: LoadedModel) -> tuple[int, ...]:
    """The cards it is proven to lie on; processes are joined with copies where nobody did it yet."""
    if snapshot.places is None:
        from fleettui.model.residency import cards_of

        return cards_of(snapshot, engine, copy)
    for place in snapshot.places:
        if place.port == engine.port and place.name == copy.name:
            return place.cards
    return ()


def _has_busy_card(snapshot: MachineSnapshot) -> bool:
    gpu = snapshot.gpu
    if gpu is not None and not gpu.is_stale:
        for card in gpu.cards:
            if card.busy_samples >= SAMPLES_IN_A_ROW:
                return True
    return False


def _busy_cards(snapshot: MachineSnapshot, cards: set[int]) -> list[int]:
    gpu = snapshot.gpu
    if gpu is None or gpu.is_stale:
        return []
    return [card.index for card in gpu.cards if card.index in cards and card.busy_samples >= SAMPLES_IN_A_ROW]


def _rest(snapshot: MachineSnapshot, cards: set[int]) -> bool:
    """None of the cards does anything, and that was read: an open connection is then one that is kept."""
    gpu = snapshot.gpu
    if gpu is None or gpu.is_stale:
        return False
    used = [card.utilisation_percent for card in gpu.cards if card.index in cards]
    return all(not isinstance(percent, Unknown) and percent < AT_REST_PERCENT for percent in used)


def _are_on_cards(copies: tuple[LoadedModel, ...]) -> bool:
    """Wholly: what lies in main memory works without the cards."""
    return all(copy.gpu_percent == 100 for copy in copies)
