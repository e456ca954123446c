"""Which leases are over because a poll shows what their askers set going.

A cold one when the model is resident. A resident one when the copy works or was used since: one lease for
each request that is seen, the oldest first, so that twenty askers are not forgotten for the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.busy import find_busy_signs
from fleettui.model.lease import Lease
from fleettui.model.names import canonical_name
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Unknown


def shown_leases(
    leases: Sequence[Lease], before: FleetSnapshot | None, after: FleetSnapshot
) -> tuple[str, ...]:
    """Ids of the leases whose effect `after` shows; `before`: the snapshot that was looked at last."""
    groups: dict[tuple[str, int, str], list[Lease]] = {}
    for lease in sorted(leases, key=lambda lease: lease.taken_at):
        groups.setdefault((lease.machine, lease.port, lease.model), []).append(lease)
    shown: list[str] = []
    for (name, port, _), group in groups.items():
        snapshot = after.find(name)
        engine = None if snapshot is None else _engine_at(snapshot, port)
        if snapshot is None or engine is None:
            continue
        read_at = _read_at(snapshot, engine)
        known = [lease for lease in group if read_at is not None and read_at > lease.taken_at]
        copy = _copy_of(engine, group[0])
        if not known or copy is None:
            continue
        shown += [lease.id for lease in known if lease.kind == "cold" and copy.state == "loaded"]
        resident = [lease for lease in known if lease.kind == "resident"]
        if resident:
            seen = _count_requests(before, snapshot, engine, copy, resident[0])
            shown += [lease.id for lease in resident[:seen]]
    return tuple(shown)


def _count_requests(
    before: FleetSnapshot | None,
    snapshot: MachineSnapshot,
    engine: EngineReading,
    copy: LoadedModel,
    oldest: Lease,
) -> int:
    """Requests that began since the last look, as far as anything shows; at least those in work more."""
    old = None if before is None else before.find(snapshot.name)
    old_engine = None if old is None else _engine_at(old, engine.port)
    used_at = _used_at(engine, copy)
    was_used = used_at is not None and used_at > oldest.taken_at
    if old_engine is None or old is None or before is None:
        return 1 if was_used else 0
    if was_used and used_at == _used_at(old_engine, copy):
        was_used = False  # ended a lease of the last look
    at, old_at = snapshot.last_seen or 0.0, old.last_seen or 0.0
    is_busy = bool(find_busy_signs(snapshot, engine, copy, at))
    was_busy = bool(find_busy_signs(old, old_engine, copy, old_at))
    more = _in_work(engine) - _in_work(old_engine)
    return max(more, 1 if was_used or (is_busy and not was_busy) else 0)


def _in_work(engine: EngineReading) -> int:
    """Requests that the engine counts; 0 where it counts none."""
    return sum(0 if isinstance(count, Unknown) else count for count in (engine.running, engine.waiting))


def _used_at(engine: EngineReading, copy: LoadedModel) -> float | None:
    return next((use.used_at for use in engine.uses if use.name == copy.name), None)


def _engine_at(snapshot: MachineSnapshot, port: int) -> EngineReading | None:
    """The engine of a lease; where its address is a URL of the file the port may be another one."""
    found = [engine for engine in snapshot.engines if engine.port == port]
    if not found and len(snapshot.engines) == 1:
        return snapshot.engines[0]
    return found[0] if found else None


def _copy_of(engine: EngineReading, lease: Lease) -> LoadedModel | None:
    """The copy that the lease is on, by its weights, else by its name."""
    if isinstance(engine.loaded, Unknown):
        return None
    for copy in engine.loaded:
        if copy.state != "stopping" and (
            (lease.digest is not None and copy.digest == lease.digest)
            or canonical_name(copy.name) == lease.model
            or (copy.names is not None and _has_name(copy.names, lease.model))
        ):
            return copy
    return None


def _has_name(names: tuple[tuple[str, ...], tuple[str, ...]], canonical: str) -> bool:
    """Among aliases and adapters."""
    return any(canonical_name(name) == canonical for part in names for name in part)


def _read_at(snapshot: MachineSnapshot, engine: EngineReading) -> float | None:
    """When the engine said this; the machine's last word where its source is not known."""
    named = snapshot.sources.get(f"{engine.kind}:{engine.port}") or snapshot.sources.get(engine.kind)
    return snapshot.last_seen if named is None else named.read_at
