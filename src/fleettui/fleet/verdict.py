"""When a machine's health is judged anew: at once on news, else every ten seconds."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter, is_

from fleettui.decide.health import judge_health
from fleettui.fleet.source_record import SourceRecord
from fleettui.model.gpu import GpuReading
from fleettui.model.profile import Profile
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import replace
from fleettui.model.snapshot import Health, MachineSnapshot, Reason
from fleettui.model.unknown import Unknown

JUDGE_PERIOD_S = 10.0
"""Without news only figures moved, such as heat, and time passed, which counts from 15 s on.

Judging each snapshot took 7 % of the collector's CPU, and nearly all verdicts were those of before.
"""


class Verdict:
    """The last verdict on one machine and what it was made of."""

    def __init__(self) -> None:
        self.health: Health = "unknown"
        self.reasons: tuple[Reason, ...] = ()
        self._judged_at = float("-inf")
        self._news: tuple[object, ...] = ()
        self._engines: tuple[EngineReading, ...] = ()
        self._engine_news: list[object] = []
        """Of these engines."""

    def judge(
        self,
        snapshot: MachineSnapshot,
        sources: Iterable[SourceRecord],
        now: float,
        interval_s: float,
        utc_offset_s: int,
        profile: Profile | None = None,
    ) -> MachineSnapshot:
        """The snapshot with its health; it comes with that of the last verdict."""
        news = (profile, *_news_in(snapshot, sources), self._news_in_engines(snapshot.engines))
        if news == self._news and 0 <= now - self._judged_at < JUDGE_PERIOD_S:
            return snapshot
        self._news, self._judged_at = news, now
        health, reasons = judge_health(snapshot, now, interval_s, utc_offset_s, profile)
        if (health, reasons) == (self.health, self.reasons):
            return snapshot
        self.health, self.reasons = health, reasons
        return replace(snapshot, health=health, reasons=reasons)

    def _news_in_engines(self, engines: tuple[EngineReading, ...]) -> list[object]:
        """Looked for where an engine gave another reading."""
        if len(engines) != len(self._engines) or not all(map(is_, engines, self._engines)):
            self._engines, self._engine_news = engines, [*map(_news_in_engine, engines)]
        return self._engine_news


_MOVING = frozenset({"gpu", "processes", "cpu", "memory", "net", "sockets", "sources", "engines"})
"""Made anew with each answer."""
_OURS = frozenset({"health", "reasons", "last_seen", "seq"})
_steady_parts = attrgetter(*(name for name in MachineSnapshot.__slots__ if name not in _MOVING | _OURS))
_around_cards = attrgetter(*(name for name in GpuReading.__slots__ if name != "cards"))
_around_copies = attrgetter(*(name for name in EngineReading.__slots__ if name not in {"loaded", "uses"}))
_around_expiry = attrgetter(*(name for name in LoadedModel.__slots__ if name != "expires_at"))
"""Each request moves the expiry of its copy, which no reason is made of but that of a copy that stops."""


def _news_in(snapshot: MachineSnapshot, sources: Iterable[SourceRecord]) -> tuple[object, ...]:
    """What calls for a new verdict when it changes: everything but figures that move all the time."""
    gpu = snapshot.gpu
    return (
        _steady_parts(snapshot),
        snapshot.last_seen is None,
        [(source.state, source.error) for source in sources],
        None if gpu is None else (len(gpu.cards), _around_cards(gpu)),
    )


def _news_in_engine(engine: EngineReading) -> object:
    loaded = engine.loaded
    return _around_copies(engine), loaded if isinstance(loaded, Unknown) else [*map(_around_expiry, loaded)]
