"""How far each copy of a drain is: lines, states, what failed, what is looked at later."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fleettui.decide.drain.progress import RETRIES
from fleettui.fleet.drain.shared import DrainRoom
from fleettui.model.drain import (
    FORCED_CLASSES,
    CopyProgress,
    CopyState,
    DrainOptions,
    DrainPlan,
    DrainStatus,
    JournalEntry,
    PlannedCopy,
)
from fleettui.model.record import replace
from fleettui.model.unknown import NOT_READ

Key = tuple[str, str, int, str]
"""Machine, engine, port, name of a copy."""
AGAIN_S = 3.0
"""Before a copy is looked at again that nothing came of."""
DOUBTS = 10
"""Half a minute: servers restart, machines change hands."""
TURNED_DOWN = 4
"""A target that has changed so often since it was planned counts as failed."""


class CopyBoard:
    """The copies of one drained machine, in the order of the work."""

    def __init__(self, room: DrainRoom, machine: str) -> None:
        self._room = room
        self._machine = machine
        self.lines: dict[Key, PlannedCopy] = {}
        self.copies: dict[Key, CopyProgress] = {}
        self.failed: dict[Key, set[str]] = {}
        """Targets that failed for a copy."""
        self.plans: dict[Key, int] = {}
        """How often another target was looked for."""
        self._loaded: set[tuple[str, str]] = set()
        """(name of a copy, machine) that an earlier worker of this drain had loaded there."""
        self._held: dict[Key, float] = {}
        """Copies that nothing is done for before that moment."""
        self._refusals: dict[Key, int] = {}
        """Unloads in a row that an engine refused."""
        self._doubts: dict[Key, int] = {}
        """How often in a row nothing was unloaded because nobody could tell whether that does harm."""
        self._turned_down: dict[tuple[Key, str], int] = {}
        """How often a target had changed since the copy was planned there."""
        self.is_changed = False
        """Something is to be written down."""

    @property
    def progress(self) -> tuple[CopyProgress, ...]:
        """In the order of the work."""
        return tuple(self.copies.values())

    def is_held(self, key: Key) -> bool:
        """It was looked at a moment ago."""
        return self._held.get(key, 0.0) > time.monotonic()

    def fill(
        self, plan: DrainPlan, options: DrainOptions, stored: DrainStatus | None, *, is_anew: bool
    ) -> None:
        """Lines by observation, beside them what was unloaded before. `is_anew`: the operator began again."""
        hints = {} if stored is None else {copy.copy.key: copy for copy in stored.copies}
        journal = () if stored is None else stored.journal
        self._loaded = {(entry.copy, entry.target) for entry in journal if entry.step == "load"}
        for line in plan.copies:
            hint = hints.pop(line.copy.key, None)
            if hint is not None and is_anew:
                hint = replace(hint, unloads=0, state="pending", drain_class=line.drain_class)
            self.add(line, options, hint)
        for hint in hints.values():  # not listed any more
            if hint.unloads:
                self.add_gone(hint)
        for entry in _since_start(journal):  # asked for while nobody worked
            if entry.step == "skip":
                self.skip(entry)
        self.is_changed = True
        self.publish()

    def add(self, line: PlannedCopy, options: DrainOptions, hint: CopyProgress | None = None) -> None:
        """A new line; of what was written down only counts what observation cannot tell."""
        key, target = line.copy.key, None if line.target is None else line.target.machine
        fresh = CopyProgress(
            line.copy, line.drain_class, "pending", self._room.now(), target, line.text,
            UNKNOWN_ETA if line.target is None else line.target.eta_s,
        )  # fmt: skip
        is_moved = line.drain_class == "covered" and (line.copy.name, target) in self._loaded
        if hint is not None:
            if line.is_lost and hint.drain_class not in FORCED_CLASSES:
                line = replace(line, drain_class=hint.drain_class)  # no word was given to let it go
                fresh = replace(fresh, drain_class=hint.drain_class)
            is_moved = is_moved or (hint.is_moved and line.drain_class == "covered")
            fresh = replace(fresh, unloads=hint.unloads)
        fresh = replace(fresh, is_moved=is_moved)
        if options.skips_copy(line.copy) or (hint is not None and hint.state == "skipped"):
            fresh = replace(fresh, state="skipped", text="skipped by the operator")
        self.lines[key], self.copies[key] = line, fresh
        self.is_changed = True

    def add_gone(self, hint: CopyProgress) -> None:
        """A copy that an earlier worker unloaded."""
        self.lines[hint.copy.key] = PlannedCopy(hint.copy, hint.drain_class)
        self.copies[hint.copy.key] = replace(hint, state="gone")
        self.is_changed = True

    def plan_anew(self, key: Key, line: PlannedCopy) -> None:
        """Another target, or none."""
        target = None if line.target is None else line.target.machine
        eta_s = UNKNOWN_ETA if line.target is None else line.target.eta_s
        self.lines[key] = line
        self.copies[key] = replace(self.copies[key], drain_class=line.drain_class, target=target, eta_s=eta_s)
        self.plans[key] = self.plans.get(key, 0) + 1
        self.change(key, "pending", line.text)
        self.is_changed = True

    def change(
        self,
        key: Key,
        state: CopyState,
        text: str = "",
        target: str | None = None,
        *,
        is_moved: bool | None = None,
    ) -> None:
        """How a copy stands now."""
        before = self.copies[key]
        since = before.since if before.state == state else self._room.now()
        after = replace(
            before,
            state=state,
            text=text,
            since=since,
            target=target or before.target,
            is_moved=before.is_moved if is_moved is None else is_moved,
        )
        if after != before:
            self.copies[key] = after
            self.is_changed = True
        self._room.rely(self._machine, self.lines[key], after)

    def begin_unload(self, key: Key, cover: str | None) -> None:
        """It is about to go, `cover` serves it instead; that is a move where this drain had it loaded there,
        also by an earlier worker, and with less than it has here."""
        is_moved = self.copies[key].is_moved or (key[3], cover) in self._loaded
        self.change(key, "unloading", "", cover, is_moved=is_moved)

    def hold(self, key: Key, state: CopyState, text: str) -> None:
        """Nothing came of a step: look again in a moment."""
        if self.copies[key].state != "skipped":
            self._held[key] = time.monotonic() + AGAIN_S
            self.change(key, state, text)

    def doubt(self, key: Key, state: CopyState, text: str) -> None:
        """Whether it may be unloaded is not known: look again some times, then it is blocked."""
        count = self._doubts[key] = self._doubts.get(key, 0) + 1
        if count < DOUBTS:
            self.hold(key, state, text)
        elif self.copies[key].state != "skipped":
            self.change(key, "blocked", f"{text}; looked {count} times")

    def refuse_target(self, key: Key, target: str, text: str, *, is_failure: bool) -> None:
        """It was not loaded there: another target is looked for."""
        progress = self.copies[key]
        if progress.state == "skipped":
            return
        self.lines[key] = replace(self.lines[key], target=None)
        count = self._turned_down[key, target] = self._turned_down.get((key, target), 0) + 1
        if is_failure or count >= TURNED_DOWN:  # what plans choose and loads refuse would go on for ever
            self.failed.setdefault(key, set()).add(target)
            self.plans.pop(key, None)
            self.copies[key] = replace(progress, failures=(*progress.failures, text))
        else:
            self._held[key] = time.monotonic() + AGAIN_S
        self.change(key, "pending", text)

    def refuse_unload(self, key: Key, text: str) -> None:
        """Its engine refused: a few times more, then it is blocked."""
        count = self._refusals[key] = self._refusals.get(key, 0) + 1
        if count > RETRIES:
            self.change(key, "blocked", f"unload: {text}")
        else:
            self.hold(key, "pending", text)

    def skip(self, entry: JournalEntry) -> list[Key]:
        """The operator leaves that copy where it is; which ones are meant."""
        found = [
            key
            for key, progress in self.copies.items()
            if (key[3], f"{key[1]}:{key[2]}") == (entry.copy, entry.target) and not progress.is_ended
        ]
        for key in found:
            self.change(key, "skipped", f"skipped by {entry.by}")
        return found

    def count_unload(self, key: Key) -> None:
        """An unload goes out. It has its time from now on: the second look before it may take minutes."""
        progress = self.copies[key]
        self.copies[key] = replace(progress, unloads=progress.unloads + 1, since=self._room.now())
        self._doubts.pop(key, None)
        self.is_changed = True

    def publish(self) -> None:
        """Let other drains see what is still to come here."""
        self._room.lines[self._machine] = tuple([(self.lines[key], self.copies[key]) for key in self.copies])


UNKNOWN_ETA = NOT_READ


def _since_start(journal: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
    """What was written down since the operator began last."""
    starts = [place for place, entry in enumerate(journal) if entry.step == "started"]
    return journal[starts[-1] :] if starts else journal
