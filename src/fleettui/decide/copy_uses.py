"""When each copy of an engine was last used, from one reading to the next.

Ollama does not say it; `expires_at` tells. It is set anew when a request has ended and no other runs, and
stands still while one runs; while the first request of a copy runs, the server makes it up as now plus
keep_alive, so that it moves with the clock (ollama/ollama server/sched.go, PsHandler). A copy with keep_alive
-1 expires 2^63-1 ns after its last request ended, which tells when that was even at first sight. Of a finite
one only a change tells: nobody says its keep_alive.
"""

from __future__ import annotations

from fleettui.model.readings import CopyUse, EngineReading, LoadedModel
from fleettui.model.record import replace
from fleettui.model.unknown import Maybe, Unknown

FOREVER_S = (2**63 - 1) / 1e9
"""Go's longest duration, 292.277 years."""

MOVED_S = 1.5
"""Less is no movement: an expiry that is corrected by the server's clock is rounded to whole seconds."""

KEPT_S = 10.0
"""While an engine works, the moment of use is renewed this often: a new one is a new reading."""


BLIND_S = 30.0
"""After a longer time without a reading nobody can say when in it something moved."""


def note_uses(
    reading: EngineReading, before: EngineReading | None, now: float, looked_at: float | None = None
) -> EngineReading:
    """The reading with the last known use of each copy; the very same one where nothing of it changed.

    `before`: the reading until now, None at first; `now`: epoch seconds of the answer; `looked_at`: of the
    answer before.
    """
    if isinstance(reading.loaded, Unknown):
        return replace(reading, uses=()) if reading.uses else reading
    uses: tuple[CopyUse, ...] = ()
    if reading.loaded:
        look = _Look(reading, before, now, looked_at)
        found = [(copy.name, look.find_use(copy)) for copy in reading.loaded]
        uses = tuple(CopyUse(name, used_at) for name, used_at in found if used_at is not None)
    if before is not None and uses == before.uses:
        uses = before.uses
    return reading if uses is reading.uses else replace(reading, uses=uses)


class _Look:
    """Two readings of one engine, compared."""

    __slots__ = ("_before", "_is_blind", "_known", "_now", "_old", "_reading")

    def __init__(
        self, reading: EngineReading, before: EngineReading | None, now: float, looked_at: float | None
    ) -> None:
        self._reading, self._before, self._now = reading, before, now
        self._is_blind = looked_at is not None and not 0 <= now - looked_at <= BLIND_S
        self._known = {use.name: use.used_at for use in before.uses} if before is not None else {}
        self._old: dict[str, LoadedModel] | None = None
        if before is not None and not isinstance(before.loaded, Unknown):
            self._old = {copy.name: copy for copy in before.loaded}

    def find_use(self, copy: LoadedModel) -> float | None:
        """Epoch seconds of its last use; None where nothing tells."""
        if copy.engine == "ollama" and copy.is_pinned and not isinstance(copy.expires_at, Unknown):
            used_at = copy.expires_at - FOREVER_S
            if used_at > 0:
                return min(used_at, self._now)
        known = self._known.get(copy.name)
        if self._old is None:
            return known
        was = self._old.get(copy.name)
        if was is None:  # it was loaded since: for a request
            return None if self._is_blind else self._now
        moves = self._has_moved(copy, was) if copy.engine == "ollama" else self._has_worked(known)
        if not moves:
            return known
        return None if self._is_blind else self._now

    def _has_moved(self, copy: LoadedModel, was: LoadedModel) -> bool:
        if (copy.digest, copy.context) != (was.digest, was.context):
            return True
        if isinstance(copy.expires_at, Unknown) or isinstance(was.expires_at, Unknown):
            return False
        return abs(copy.expires_at - was.expires_at) > MOVED_S

    def _has_worked(self, known: float | None) -> bool:
        """Of an engine that counts requests: only where a single copy can be meant."""
        reading, before = self._reading, self._before
        if isinstance(reading.loaded, Unknown) or len(reading.loaded) != 1 or before is None:
            return False
        if has_work(reading) or _has_generated(reading, before):
            return known is None or not 0 <= self._now - known < KEPT_S
        return has_work(before)


def has_work(engine: EngineReading) -> bool:
    """The engine says that requests are in work or queued."""
    counts: list[Maybe[int]] = [engine.running, engine.waiting]
    if engine.load is not None:
        counts.append(engine.load.in_flight)
    return any(not isinstance(count, Unknown) and count > 0 for count in counts)


def _has_generated(reading: EngineReading, before: EngineReading) -> bool:
    """Tokens were counted since the last look."""
    if before.load is None or reading.load is None:
        return False
    now, then = reading.load.generated_tokens, before.load.generated_tokens
    return not isinstance(now, Unknown) and not isinstance(then, Unknown) and now > then
