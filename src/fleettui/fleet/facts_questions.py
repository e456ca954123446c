"""Which sections of the facts loop are due on a tick."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fleettui.fleet.needs import (
    DISKS_PERIOD_S,
    FAST_FACTS,
    LATER_FACTS,
    MEMORY_FACTS,
    MEMORY_PERIOD_S,
    MINUTE_FACTS,
    MINUTE_PERIOD_S,
    RATE_FACTS,
    SETTINGS_FACTS,
    SETTINGS_PERIOD_S,
    SOCKET_FACTS,
    SOCKETS_PERIOD_S,
    SYSTEM_FACTS,
    Needs,
)

_ONCE = frozenset((*SYSTEM_FACTS, *LATER_FACTS))
_MAY_HANG = ("disks", "blocks", "runtime", "servers", *SETTINGS_FACTS)
"""Sections whose tools look at disks, at processes behind a hung driver, or talk to others."""
_NOT_AT_FIRST = (*_MAY_HANG, *SOCKET_FACTS)

_EARLY_S = 0.5
"""A tick comes a little early or late: half a second must not postpone a section by a whole interval."""


class FactsQuestions:
    """When each slow section was last asked, and which hang on this machine."""

    def __init__(self, needs: Needs) -> None:
        self._periods = dict.fromkeys(MEMORY_FACTS, MEMORY_PERIOD_S)
        self._periods.update(dict.fromkeys(MINUTE_FACTS, MINUTE_PERIOD_S))
        self._periods.update(dict.fromkeys(SOCKET_FACTS, SOCKETS_PERIOD_S))
        self._periods.update(dict.fromkeys(SETTINGS_FACTS, SETTINGS_PERIOD_S))
        if needs.disks:
            self._periods["disks"] = DISKS_PERIOD_S
        self._asked_at: dict[str, float] = {}
        self._hanging: set[str] = set()
        self._next_slow_at = 0.0

    def begin(self) -> None:
        """A new connection, or the operator wants everything fresh."""
        self._asked_at.clear()
        self._hanging.clear()
        self._next_slow_at = 0.0

    def restart(self) -> None:
        """The clock jumped: whatever has a period is due."""
        self._asked_at = {name: at for name, at in self._asked_at.items() if name in _ONCE}
        self._next_slow_at = 0.0

    def due(self, now: float) -> tuple[str, ...]:
        """Sections for this tick; what may take long waits for the second one."""
        if now < self._next_slow_at:
            return FAST_FACTS
        is_first = "uname" not in self._asked_at
        once = SYSTEM_FACTS if is_first else LATER_FACTS
        slow = [name for name in once if name not in self._asked_at]
        slow += [name for name, period_s in self._periods.items() if self._is_due(name, period_s, now)]
        if is_first:
            # A shell that never answers must not pass for a df that hangs.
            slow = [name for name in slow if name not in _NOT_AT_FIRST]
        return (*FAST_FACTS, *self._answering(slow))

    def second_sample(self) -> tuple[str, ...]:
        """Sections half a second after the first frame: rates take two samples."""
        waiting = dict.fromkeys(("disks",) if "disks" in self._periods else ())
        waiting.update(dict.fromkeys((*LATER_FACTS, *SETTINGS_FACTS, *SOCKET_FACTS)))
        return (*RATE_FACTS, *self._answering(name for name in waiting if name not in self._asked_at))

    def note_asked(self, sections: tuple[str, ...], now: float) -> bool:
        """The question went out; False: it was none for this loop."""
        if sections is FAST_FACTS:
            return True
        ours = [name for name in sections if name in _ONCE or name in self._periods]
        if ours:
            self._asked_at.update(dict.fromkeys(ours, now))
            self._next_slow_at = min(self._next_times()) if self._is_complete() else 0.0
        return bool(ours)

    def give_up_hanging(self, asked: Collection[str]) -> bool:
        """The loop fell silent: true, if a tool of these sections may be why; they are not asked again.

        Until the next connection, or until the operator wants everything fresh.
        """
        hanging = [name for name in _MAY_HANG if name in asked]
        self._hanging.update(hanging)
        return bool(hanging)

    def _is_due(self, name: str, period_s: float, now: float) -> bool:
        asked_at = self._asked_at.get(name)
        return asked_at is None or now - asked_at >= period_s - _EARLY_S

    def _answering(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self._hanging]

    def _is_complete(self) -> bool:
        """Everything that is asked once on a connection was asked."""
        return _ONCE.issubset(self._hanging.union(self._asked_at))

    def _next_times(self) -> Iterable[float]:
        return (
            self._asked_at.get(name, 0.0) + period_s - _EARLY_S
            for name, period_s in self._periods.items()
            if name not in self._hanging
        )
