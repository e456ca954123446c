"""Follows whether a machine with a drain flag is empty: after two polls that say so it is drained."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.decide.drain.sight import is_empty
from fleettui.decide.drain.sources import find_strangers
from fleettui.decide.drained import drained, loaded_again, refilled
from fleettui.model.readings import EngineReading
from fleettui.model.snapshot import DrainFlag, MachineSnapshot

EMPTY_POLLS = 2
Told = tuple[EngineReading | None, float | None]
"""What an engine said (None: nothing yet), and when it answered last."""


class DrainWatch:
    """Of one machine. What it cannot see (offline, an engine without answer) changes nothing."""

    def __init__(self) -> None:
        self._stored: DrainFlag | None = None
        self._shown: DrainFlag | None = None
        self._empty_polls = 0
        self._counted_at = 0.0
        """The oldest answer of the poll that was counted last."""
        self._known_at: frozenset[float | None] = frozenset()
        """Of the answers that were there when the flag became what it is."""
        self._names: tuple[tuple[str, ...], tuple[str, ...]] = (), ()
        """What is loaded again on a drained machine, and other processes on its GPUs."""
        self._full_since = 0.0

    def judge(
        self,
        stored: DrainFlag | None,
        told: Sequence[Told],
        snapshot: MachineSnapshot,
        now: float,
        utc_offset_s: int,
    ) -> DrainFlag | None:
        """The flag with the state that the machine shows; the same object while nothing changes.

        `told`: of every engine that is asked.
        """
        if stored is None:
            self._stored = self._shown = None
            return None
        if stored is not self._stored and stored != self._stored:
            self._begin(stored)
            self._known_at = frozenset([*(at for _, at in told), _listed_at(snapshot)])
        names = self._loaded_again(stored, told), self._strangers(stored, snapshot)
        if any(names):
            since = max(at for at in (*(at for _, at in told), _listed_at(snapshot)) if at is not None)
            self._note_copies(stored, names, since, now, utc_offset_s)
        elif self._is_new_poll(told, snapshot.last_seen):
            self._empty_polls = self._empty_polls + 1 if is_empty(snapshot) is True else 0
            if self._empty_polls == EMPTY_POLLS:
                self._names = (), ()
                self._shown = stored if stored.is_drained else drained(stored)
        return self._shown

    def _begin(self, stored: DrainFlag) -> None:
        self._stored = self._shown = stored
        self._empty_polls, self._counted_at = 0, stored.changed_at
        self._names = (), ()

    def _is_later(self, stored: DrainFlag, at: float | None) -> bool:
        """An answer from before the flag became what it is says nothing against it; which those are does not
        hang on the clock alone, which may have been set back, or be another computer's."""
        return at is not None and (at > stored.changed_at or at not in self._known_at)

    def _loaded_again(self, stored: DrainFlag, told: Sequence[Told]) -> tuple[str, ...]:
        later = [item for item, at in told if item is not None and self._is_later(stored, at)]
        return tuple([name for item in later for name in loaded_again(item)])

    def _strangers(self, stored: DrainFlag, snapshot: MachineSnapshot) -> tuple[str, ...]:
        if not self._is_later(stored, _listed_at(snapshot)):
            return ()
        return tuple([found.copy.name for found in find_strangers(snapshot)])

    def _note_copies(
        self,
        stored: DrainFlag,
        names: tuple[tuple[str, ...], tuple[str, ...]],
        since: float,
        now: float,
        utc_offset_s: int,
    ) -> None:
        self._empty_polls = 0
        if not stored.is_drained:
            self._shown = stored
        elif names != self._names:
            if not any(self._names):
                self._full_since = since
            self._names = names
            self._shown = refilled(stored, *names, self._full_since, now, utc_offset_s)

    def _is_new_poll(self, told: Sequence[Told], heard_at: float | None) -> bool:
        """Every engine was asked again since the last poll that counted; one that is down counts as long as
        the machine is heard."""
        oldest = None
        for item, at in told:
            moment = heard_at if item is not None and item.state == "down" else at
            if item is None or moment is None or moment <= self._counted_at:
                return False
            oldest = moment if oldest is None else min(oldest, moment)
        if oldest is None:
            return False
        self._counted_at = oldest
        return True


def _listed_at(snapshot: MachineSnapshot) -> float | None:
    """When the processes on its GPUs were listed last."""
    status = snapshot.sources.get("processes")
    return None if status is None else status.read_at
