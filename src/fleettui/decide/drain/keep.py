"""How many copies of a model stay resident: those that the catalog wants, and those that are evicted."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fleettui.decide.drain.sight import holds_memory, is_out_of_service, is_same_model, lists_now
from fleettui.model.catalog import Catalog, find_in_catalog
from fleettui.model.drain import LOADING_CLASSES, PlannedCopy, SourceCopy
from fleettui.model.snapshot import FleetSnapshot
from fleettui.model.unknown import Unknown


def keep_lack(
    fleet: FleetSnapshot,
    copy: SourceCopy,
    planned: int,
    without: frozenset[str] = frozenset(),
    leaving: Collection[tuple[str, str]] = (),
) -> str:
    """Why the catalog wants this copy to stay; empty: it may go. `planned`: what the catalog wanted when the
    drain was planned, where it does not name the model any more; the others as in `count_resident`."""
    entry = find_in_catalog(fleet.catalog, copy.name)
    keep = planned if entry is None else entry.keep
    if not keep:
        return ""
    count = count_resident(fleet, copy, fleet.catalog, without, leaving)
    return "" if count >= keep else f"the catalog keeps {keep} resident, {count} would be left"


def count_resident(
    fleet: FleetSnapshot,
    copy: SourceCopy,
    catalog: Catalog,
    without: frozenset[str] = frozenset(),
    leaving: Collection[tuple[str, str]] = (),
) -> int:
    """Copies of the model, on any engine, beside this machine's: loaded, on machines in service that answer.

    A copy may be unloaded while that is no less than `keep` of its model. Not counted either: `without`,
    machines; `leaving`, (machine, name) of copies that were asked to go.
    """
    count = 0
    for machine in fleet.machines:
        name = machine.machine.name
        if name == copy.machine or name in without or is_out_of_service(machine):
            continue
        for engine in machine.engines:
            if isinstance(engine.loaded, Unknown) or not lists_now(machine, engine):
                continue
            count += sum([
                there.state == "loaded" and holds_memory(there) and is_same_model(copy, there, catalog)
                for there in engine.loaded
                if (name, there.name) not in leaving
            ])  # fmt: skip
    return count


def evicted_last(
    fleet: FleetSnapshot, lines: Iterable[PlannedCopy], sources: frozenset[str]
) -> dict[str, tuple[str, ...]]:
    """By machine that is drained: idle copies that go for its copies, and are resident nowhere else then."""
    loads = [line for line in lines if line.drain_class in LOADING_CLASSES]
    going: dict[str, set[str]] = {}
    found: dict[str, dict[str, SourceCopy]] = {}
    for line in loads:
        target = line.target
        if target is None:
            continue
        for item in target.evicts:
            going.setdefault(item.model, set()).add(target.machine)
            copy = SourceCopy(target.machine, target.engine, target.port, item.model)
            found.setdefault(line.copy.machine, {}).setdefault(item.model, copy)
    moved = {line.copy.name for line in loads}
    lost = {}
    for machine, copies in found.items():
        names = [
            name
            for name, copy in copies.items()
            if name not in moved and not count_resident(fleet, copy, fleet.catalog, sources | going[name])
        ]
        if names:
            lost[machine] = tuple(names)
    return lost
