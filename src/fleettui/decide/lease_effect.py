"""Which leases are over because a poll shows what their askers set going.

A cold one when the model is resident. A resident one when the engine has a request or a connection more, or
the copy was used since: one lease for each that is seen, the oldest first, so that twenty askers are not
forgotten for the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.busy import count_others
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
    ports = [(name, port) for name, port, _ in groups]
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
            since, old = resident[0].taken_at, None if before is None else before.find(name)
            seen = _count_requests(
                old, snapshot, engine, copy, since, is_alone=ports.count((name, port)) == 1
            )
            shown += [lease.id for lease in resident[:seen]]
    return tuple(shown)


def _count_requests(
    old: MachineSnapshot | None,
    snapshot: MachineSnapshot,
    engine: EngineReading,
    copy: LoadedModel,
    since: float,
    *,
    is_alone: bool,
) -> int:
    """Requests that began since the last look, at the least; a busy card alone is no sign of anybody's.

    `is_alone`: no other model of that engine was leased, so that a connection to it is for this one.
    """
    old_engine = None if old is None else _engine_at(old, engine.port)
    used_at = _used_at(engine, copy)
    was_used = used_at is not None and used_at > since
    if old is None or old_engine is None:
        return 1 if was_used else 0
    if was_used and used_at == _used_at(old_engine, copy):
        was_used = False  # ended a lease of the last look
    more = _in_work(engine) - _in_work(old_engine)
    sockets = snapshot.sources.get("sockets")
    if is_alone and sockets is not None and sockets.read_at is not None and sockets.read_at > since:
        now, then = (count_others(one, engine, one.last_seen or 0.0) for one in (snapshot, old))
        if not isinstance(now, Unknown) and not isinstance(then, Unknown):
            more = max(more, now - then)
    return max(more, 1 if was_used else 0)


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
