"""What a worker sees from poll to poll: who is gone how often, what came new, whether VRAM is back."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from fleettui.decide.drain.keep import keep_lack
from fleettui.decide.drain.progress import SETTLE_S, STOPPING_LIMIT_S
from fleettui.decide.drain.sight import (
    Sight,
    find_cover,
    find_engine,
    is_closed,
    is_empty,
    lists_now,
    presence_of,
    read_at,
    target_problem,
    what_holds,
    work_of,
)
from fleettui.decide.drain.sources import find_copies
from fleettui.fleet.drain.engines import StepError, unloader_of
from fleettui.fleet.drain.shared import DrainRoom
from fleettui.model.drain import CopyProgress, Drain, PlannedCopy, SourceCopy
from fleettui.model.lease import Lease
from fleettui.model.names import canonical_name
from fleettui.model.readings import EngineReading
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown

Key = tuple[str, str, int, str]
OFFLINE_S = 30.0
"""A source that does not answer for so long is offline."""
SILENT_S = 120.0
"""An engine that does not answer for so long, on a machine that does, is waited for no more."""
BACK_SHARE = 0.75
"""Of its VRAM; Ollama's own test of what a runner gave back."""
_MIB = 1 << 20


class Observer:
    """Of one drained machine."""

    def __init__(self, room: DrainRoom, drain: Drain) -> None:
        self._room = room
        self.drain = drain
        self._offline_since: float | None = None
        self._stuck_since: float | None = None
        """Since when nothing is left to do, and the machine does not show that it is empty."""
        self._absent: dict[Key, int] = {}
        self._first_absent: dict[Key, float] = {}
        self._marks: dict[str, float] = {}
        """Engine -> when its last answer that was counted was read."""
        self._used_before: dict[Key, int] = {}
        """MiB in use on all cards when an unload was asked for."""
        self.leases: tuple[Lease, ...] = ()
        """Askers whose effect no poll has shown yet."""
        self.empty_polls = 0
        """Polls in a row in which nothing was loaded."""
        self._silent: dict[str, float] = {}
        """Engine -> since when it does not answer, on a machine that does."""
        self._empty_marks: dict[str, float] = {}
        self.wants_news = False
        """Something is about to go: ask the machine soon."""

    def is_offline(self, machine: MachineSnapshot | None) -> bool:
        """Nobody has reached it for a while."""
        if machine is not None and machine.link.state == "up":
            self._offline_since = None
            return False
        self._offline_since = self._offline_since or time.monotonic()
        return time.monotonic() - self._offline_since > OFFLINE_S

    def what_holds_it_up(self, machine: MachineSnapshot, copies: Sequence[CopyProgress]) -> str:
        """Why it is not empty though nothing is left to do, once that was waited for long enough: an engine
        that says nothing, a copy that never stops. Empty: it is, or there is time."""
        holder = "" if not all(copy.is_ended for copy in copies) else what_holds(machine)
        if not holder:
            self._stuck_since = None
            return ""
        self._stuck_since = self._stuck_since or time.monotonic()
        limit_s = SILENT_S if isinstance(is_empty(machine), Unknown) else STOPPING_LIMIT_S
        return holder if time.monotonic() - self._stuck_since > limit_s else ""

    def look(self, machine: MachineSnapshot, copies: Mapping[Key, CopyProgress], now: float) -> None:
        """Count what a new answer of an engine shows; an old one counts once."""
        fresh = set()
        for engine in machine.engines:
            name, mark = f"{engine.kind}:{engine.port}", _mark(machine, engine)
            if not lists_now(machine, engine) and not is_closed(machine, engine):
                self._silent.setdefault(name, now)
            else:
                self._silent.pop(name, None)
            if mark is not None and mark != self._marks.get(name):
                self._marks[name] = mark
                fresh.add(name)
        processes = machine.sources.get("processes")
        mark = None if processes is None else processes.read_at
        if mark is not None and mark != self._marks.get("process:0"):
            self._marks["process:0"] = mark
            fresh.add("process:0")
        for key, progress in copies.items():
            if f"{key[1]}:{key[2]}" in fresh:
                self._count(key, presence_of(machine, progress.copy) == "gone", now)
        self._count_empty(machine)
        self.wants_news = all(copy.is_ended for copy in copies.values()) or any(
            copy.state == "unloading" for copy in copies.values()
        )

    def _count(self, key: Key, is_gone: bool, now: float) -> None:
        if is_gone:
            self._absent[key] = self._absent.get(key, 0) + 1
            self._first_absent.setdefault(key, now)
        else:
            self._absent.pop(key, None)
            self._first_absent.pop(key, None)

    def _count_empty(self, machine: MachineSnapshot) -> None:
        if is_empty(machine) is not True:
            self.empty_polls = 0
            self._empty_marks = dict(self._marks)
            return
        engines = [f"{engine.kind}:{engine.port}" for engine in machine.engines]
        if all(self._marks.get(name) != self._empty_marks.get(name) for name in engines):
            self.empty_polls += 1
            self._empty_marks = dict(self._marks)
        if not engines:
            self.empty_polls += 1

    def sight_of(
        self, machine: MachineSnapshot, line: PlannedCopy, progress: CopyProgress, now: float
    ) -> Sight:
        """One copy, as of now."""
        room, options, copy = self._room, self.drain.options, line.copy
        target = None if line.target is None else line.target.machine
        problem = "" if target is None else room.stopped.get(target) or target_problem(room.fleet, target)
        absent = self._absent.get(copy.key, 0)
        if absent and not self._is_vram_back(machine, line, now):
            absent = 1
        presence, cover = presence_of(machine, copy), find_cover(room.fleet, line, progress.target, options)
        is_stopping = _is_stopping(machine, copy)
        if presence == "resident" and progress.state == "gone" and is_stopping:
            presence = "gone"  # listed once more on its way out
        return Sight(
            presence,
            absent,
            cover,
            problem,
            (*work_of(machine, copy, now), *self._on_their_way(copy, now)),
            is_stopping,
            *_unload_of(machine, copy),
            keep_lack(room.fleet, copy, line.keep),
            room.coming(line) if line.drain_class == "covered" else "",
            "" if target is None else room.load_on(target),
            "" if cover is None else room.loads_to_come(cover.machine, copy),
        )

    def _on_their_way(self, copy: SourceCopy, now: float) -> tuple[str, ...]:
        """Askers that were sent there before the drain began, and may not have arrived."""
        name = canonical_name(copy.name) if copy.engine == "ollama" else copy.name
        ages = [
            now - lease.taken_at
            for lease in self.leases
            if (lease.machine, lease.engine, lease.port) == copy.key[:3]
            and name in (lease.model, canonical_name(lease.model))
            and lease.until > now
        ]
        return (f"a client was sent there {max(0.0, min(ages)):.0f} s ago",) if ages else ()

    def silent_s(self, key: Key, now: float) -> float:
        """How long the copy's engine has not answered, on a machine that does."""
        return now - self._silent.get(f"{key[1]}:{key[2]}", now)

    def new_copies(
        self, machine: MachineSnapshot, known: Mapping[Key, CopyProgress]
    ) -> tuple[SourceCopy, ...]:
        """What is loaded there and was not when the work began."""
        return tuple([found.copy for found in find_copies(machine) if found.copy.key not in known])

    def note_unload(self, key: Key, machine: MachineSnapshot | None) -> None:
        """An unload goes out: what the cards hold now is compared later."""
        self._absent.pop(key, None)
        self._first_absent.pop(key, None)
        used = None if machine is None else _used_mib(machine)
        if used is not None:
            self._used_before[key] = used

    def _is_vram_back(self, machine: MachineSnapshot, line: PlannedCopy, now: float) -> bool:
        """So much is free again as the copy took; or it was waited for long enough."""
        if now - self._first_absent.get(line.copy.key, now) > SETTLE_S:
            return True
        return self._missing_mib(machine, line.copy) <= 0

    def _missing_mib(self, machine: MachineSnapshot, copy: SourceCopy) -> float:
        used, before, vram = _used_mib(machine), self._used_before.get(copy.key), copy.vram_bytes
        if used is None or before is None or isinstance(vram, Unknown):
            return 0.0
        wanted = BACK_SHARE * vram / _MIB
        return wanted - (before - used)

    def vram_text(self, progress: CopyProgress) -> str:
        """What is to be said of its VRAM once it is gone; empty: it is back."""
        machine = self._room.fleet.find(self.drain.machine)
        missing = 0.0 if machine is None else self._missing_mib(machine, progress.copy)
        return f"; {missing / 1024:.1f} GiB of its VRAM are not back" if missing > 0 else ""


def _mark(machine: MachineSnapshot, engine: EngineReading) -> float | None:
    """When what it holds was read; of one whose port is closed, when the ports were."""
    if is_closed(machine, engine):
        status = machine.sources.get("sockets")
        return None if status is None else status.read_at
    return read_at(machine, engine)


def _unload_of(machine: MachineSnapshot, copy: SourceCopy) -> tuple[bool, str]:
    """Would it break requests off, and what is missing for it; empty: nothing."""
    try:
        unloader = unloader_of(copy.engine)
    except StepError as error:
        return False, str(error)
    return unloader.kills_work, unloader.refusal(machine, copy)


def _is_stopping(machine: MachineSnapshot, copy: SourceCopy) -> bool:
    engine = find_engine(machine, copy.engine, copy.port)
    loaded = () if engine is None or isinstance(engine.loaded, Unknown) else engine.loaded
    return any(item.name == copy.name and item.state == "stopping" for item in loaded)


def _used_mib(machine: MachineSnapshot) -> int | None:
    """Over all cards; None where one does not tell, or memory is shared."""
    cards = () if machine.gpu is None else machine.gpu.cards
    total = 0
    for card in cards:
        if card.is_unified or isinstance(card.used_mib, Unknown):
            return None
        total += card.used_mib
    return total if cards else None
