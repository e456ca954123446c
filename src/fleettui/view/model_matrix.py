"""Models over the fleet: a line for each model with what every machine has of it, kept until that changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fleettui.model.machine import Machine
from fleettui.model.order import natural_key
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown, total
from fleettui.view.model_holdings import (
    Entry,
    Holding,
    Liveness,
    MachineEntries,
    flag_word,
    liveness_of,
    make_holding,
    read_entries,
)
from fleettui.view.model_join import Join, ModelTitle, join_models


class ModelFigures(NamedTuple):
    """Counts over the machines that answer; what others said last is in none of them but `old_copies`."""

    copies: int
    vram_bytes: Maybe[int]
    """Of all copies whose VRAM is known; Unknown where none is, and without copies."""
    has_unknown_vram: bool
    """There is at least one copy more than `vram_bytes` knows of."""
    gpu_percent: Maybe[int]
    """Share of the copies that lies on GPUs, all together."""
    expires_at: float | None
    """Epoch seconds at which the first copy expires; None: none does, or nobody says when."""
    expires_on: str
    """Its machine."""
    expiring_bytes: Maybe[int]
    """VRAM that becomes free then."""
    unexpiring: str
    """What the copies are where none expires: `pinned`, `loading`, `stopping`, `sleeping`."""
    spare_copies: int
    """Copies beyond the first, those that are stopping not counted."""
    spare_bytes: Maybe[int]
    """VRAM beyond that of the largest copy: what one copy alone would leave free."""
    installed: int
    declared: int
    missing: int
    """Declared, and not installed."""
    drifting: int
    """Machines whose digest differs."""
    old_copies: int
    """Copies on machines that do not answer now."""


class ModelLine(NamedTuple):
    """One model with everything the fleet has of it."""

    key: str
    """Stable while the model is there."""
    title: ModelTitle
    holdings: tuple[Holding, ...]
    """By machine, in natural order."""
    figures: ModelFigures

    @property
    def name(self) -> str:
        """What it is called first."""
        return self.title.name


class _Kept(NamedTuple):
    """What the entries of a machine were read from."""

    machine: Machine
    engines: tuple[EngineReading, ...]
    live: Liveness
    last_seen: float | None
    flag: str
    entries: MachineEntries
    structure: frozenset[tuple[str, str | None]]


class ModelIndex:
    """Follows the fleet from snapshot to snapshot; only what changed is read, joined and counted again."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._join = Join({}, {}, {})
        self._groups: dict[str, dict[str, list[Entry]]] = {}
        """By machine, then by key of the line."""
        self._holdings: dict[str, dict[str, Holding]] = {}
        """By key of the line, then by machine."""
        self._lines: dict[str, ModelLine] = {}
        self._shown: tuple[ModelLine, ...] = ()
        self.read = 0
        """Machines read so far."""
        self.joined = 0
        """Times that all names were compared."""
        self.counted = 0
        """Lines made so far."""

    def lines_of(self, fleet: FleetSnapshot, now: float) -> tuple[ModelLine, ...]:
        """Every model that is loaded, installed or declared somewhere, in natural order of the names.

        A line, and the whole tuple, is the same object while nothing of it changed."""
        before, self._kept = self._kept, {}
        judged_at = fleet.judged_at(now)
        changed: list[str] = []
        for snapshot in fleet.machines:
            known = before.get(snapshot.name)
            kept = self._read(snapshot, known, judged_at, 2 * fleet.interval_s)
            self._kept[snapshot.name] = kept
            if kept is not known:
                changed.append(snapshot.name)
        gone = before.keys() - self._kept.keys()
        if not changed and not gone:
            return self._shown
        renamed: set[str] = set()
        is_joined = bool(gone) or any(
            self._has_other_names(before.get(name), self._kept[name]) for name in changed
        )
        if is_joined:
            moved, renamed = self._join_again()
            known_changes = set(changed)
            changed += [
                name
                for name, kept in self._kept.items()
                if name not in known_changes and not moved.isdisjoint(kept.structure)
            ]
        touched = self._take_holdings(changed, gone, before, is_joined=is_joined) | renamed
        if touched:
            self._make_lines(touched, {item.name: place for place, item in enumerate(fleet.machines)})
        return self._shown

    def _read(self, snapshot: MachineSnapshot, before: _Kept | None, now: float, fresh_s: float) -> _Kept:
        live = liveness_of(snapshot, now, fresh_s)
        last_seen = None if live.is_heard else snapshot.last_seen
        source = (snapshot.machine, snapshot.engines, live, last_seen, flag_word(snapshot))
        if before is not None and before[: len(source)] == source:
            return before
        self.read += 1
        entries = read_entries(snapshot, live, None if before is None else before.entries)
        return _Kept(*source, entries, entries.structure)

    @staticmethod
    def _has_other_names(before: _Kept | None, after: _Kept) -> bool:
        return before is None or before.structure != after.structure

    def _join_again(self) -> tuple[set[tuple[str, str | None]], set[str]]:
        """Compare all names; answers what belongs to another line now, and lines with another title."""
        old, new = self._join, join_models([kept.entries for kept in self._kept.values()])
        self._join = new
        self.joined += 1
        moved = {
            pair
            for pair, line in new.line_of.items()
            if old.line_of.get(pair) != line or old.usual.get(pair[0], "") != new.usual.get(pair[0], "")
        }
        return moved, {key for key in self._lines if old.titles.get(key) != new.titles.get(key)}

    def _take_holdings(
        self,
        changed: Iterable[str],
        gone: Iterable[str],
        before: Mapping[str, _Kept],
        *,
        is_joined: bool,
    ) -> set[str]:
        """Put what these machines have in its places; keys of the lines that differ now."""
        touched: set[str] = set()
        for machine in gone:
            for key in self._groups.pop(machine):
                del self._holdings[key][machine]
                touched.add(key)
        for machine in changed:
            part = self._kept[machine].entries
            groups = self._join.group(part)
            old_groups = self._groups.get(machine, {})
            self._groups[machine] = groups
            for key in old_groups.keys() - groups.keys():
                del self._holdings[key][machine]
                touched.add(key)
            was = None if is_joined or machine not in before else before[machine].entries
            is_alike = was is not None and was.standing == part.standing
            for key, entries in groups.items():
                if is_alike and old_groups.get(key) == entries:
                    continue
                holding = make_holding(part, entries, self._join.drift_of(entries))
                holdings = self._holdings.setdefault(key, {})
                if holdings.get(machine) != holding:
                    holdings[machine] = holding
                    touched.add(key)
        return touched

    def _make_lines(self, touched: set[str], places: Mapping[str, int]) -> None:
        """`places` of the machines in the fleet, which is in natural order."""
        names = {key: line.name for key, line in self._lines.items()}
        for key in touched:
            holdings = self._holdings.get(key)
            if not holdings:
                self._holdings.pop(key, None)
                self._lines.pop(key, None)
                continue
            self.counted += 1
            ordered = tuple([holdings[name] for name in sorted(holdings, key=places.__getitem__)])
            self._lines[key] = ModelLine(key, self._join.titles[key], ordered, figures_of(ordered))
        if names == {key: line.name for key, line in self._lines.items()}:
            self._shown = tuple([self._lines[line.key] for line in self._shown])
        else:
            self._shown = tuple(sorted(self._lines.values(), key=lambda line: natural_key(line.name)))


def figures_of(holdings: Iterable[Holding]) -> ModelFigures:
    """Count one model."""
    every = list(holdings)
    live = [holding for holding in every if holding.is_live]
    copies = [(copy, holding.machine) for holding in live for copy in holding.copies]
    sizes = [copy.vram_bytes for copy, _ in copies]
    staying = [copy for copy, _ in copies if copy.state != "stopping"]
    first = min(
        (
            (copy.expires_at, machine, copy.vram_bytes)
            for copy, machine in copies
            if copy.state == "loaded" and not copy.is_pinned and not isinstance(copy.expires_at, Unknown)
        ),
        key=lambda item: item[:2],
        default=None,
    )
    return ModelFigures(
        copies=len(copies),
        vram_bytes=total(sizes),  # type: ignore[arg-type]
        has_unknown_vram=any(isinstance(size, Unknown) for size in sizes),
        gpu_percent=_gpu_percent([copy for copy, _ in copies]),
        expires_at=None if first is None else first[0],
        expires_on="" if first is None else first[1],
        expiring_bytes=Unknown("no copy expires") if first is None else first[2],
        unexpiring="" if first is not None else _unexpiring([copy for copy, _ in copies]),
        spare_copies=max(0, len(staying) - 1),
        spare_bytes=_spare_bytes(staying),
        installed=sum(holding.installed_bytes is not None for holding in live),
        declared=sum(holding.is_declared for holding in every),
        missing=sum(holding.state == "missing" for holding in live),
        drifting=sum(bool(holding.drift) for holding in every),
        old_copies=sum(len(holding.copies) for holding in every if not holding.is_live),
    )


def _gpu_percent(copies: list[LoadedModel]) -> Maybe[int]:
    """Over all copies, as of one: 100 - round(CPU share). Unknown where any copy's is."""
    whole = on_gpu = 0
    for copy in copies:
        size, vram = copy.size_bytes, copy.vram_bytes
        if isinstance(size, Unknown):
            return size
        if isinstance(vram, Unknown):
            return vram
        whole += size
        on_gpu += min(vram, size)
    return Unknown("no copy") if not whole else 100 - round((whole - on_gpu) / whole * 100)


def _unexpiring(copies: list[LoadedModel]) -> str:
    states = {copy.state for copy in copies}
    for state in ("loading", "stopping", "sleeping"):
        if state in states:
            return state
    return "pinned" if any(copy.is_pinned for copy in copies) else ""


def _spare_bytes(copies: list[LoadedModel]) -> Maybe[int]:
    """At least so much: a copy whose VRAM is unknown may be the one to keep."""
    if len(copies) < 2:
        return 0
    known = [copy.vram_bytes for copy in copies if not isinstance(copy.vram_bytes, Unknown)]
    if len(known) == len(copies) or len(known) > 1:
        return sum(known) - max(known)
    return Unknown("VRAM of the copies is not known")
