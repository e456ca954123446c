"""Filters of routing that look at the machine itself: trust, flags, data, the caller's selectors."""

from __future__ import annotations

from fleettui.model.flag_words import drain_words, maintenance_words
from fleettui.model.route import Rejection, RouteQuery
from fleettui.model.snapshot import MachineSnapshot

FRESH_INTERVALS = 2
NO_DATA_CODES = frozenset({"not_approved", "key_changed", "offline", "timeout", "stale"})


def age_limit_s(query: RouteQuery, interval_s: float) -> float:
    """Age from which data is stale: `--max-age`, else two intervals of the writer."""
    return query.max_age_s if query.max_age_s is not None else FRESH_INTERVALS * interval_s


def data_age_s(snapshot: MachineSnapshot, now: float) -> float | None:
    """Age of what routing needs: of the freshest engine, else of the machine; None when never read."""
    newest = None
    for engine in snapshot.engines:
        status = snapshot.sources.get(engine.kind)
        if status is None or len(snapshot.engines) > 1:
            status = snapshot.sources.get(f"{engine.kind}:{engine.port}", status)
        if status is not None and status.read_at is not None and (newest is None or status.read_at > newest):
            newest = status.read_at
    if newest is None:
        return snapshot.age_s(now)
    return now - newest if now > newest else 0.0


def trust_rejection(snapshot: MachineSnapshot) -> Rejection | None:
    """Machines nobody approved are never contacted, so never chosen."""
    if snapshot.trust == "approved":
        return None
    if snapshot.trust == "key_changed":
        return Rejection("key_changed", "key_changed: waits for re-approval")
    state = "pending, host key not approved yet" if snapshot.trust == "pending" else "host key rejected"
    return Rejection("not_approved", f"not_approved: {state}")


def data_rejection(
    snapshot: MachineSnapshot, query: RouteQuery, age_s: float | None, now: float, limit_s: float
) -> Rejection | None:
    """No data, or data too old to decide on."""
    link = snapshot.link
    if link.state == "failed" or snapshot.health == "offline":
        text = "offline"
        if link.error:
            text += f": {link.error}"
        elif link.stage:
            text += f": {link.stage} failed"
        heard_s = snapshot.age_s(now)
        if heard_s is not None:
            text += f", last heard {heard_s:.0f} s ago"
        return Rejection("offline", text)
    if age_s is None:
        waited = f" within {query.deadline_s:g} s" if query.deadline_s is not None else " yet"
        stage = f", at {link.stage}" if link.stage else ""
        return Rejection("timeout", f"timeout: no answer{waited}{stage}")
    if age_s > limit_s:
        return Rejection("stale", f"stale {age_s:.0f} s > {limit_s:g} s")
    return None


def flag_rejections(snapshot: MachineSnapshot, now: float) -> list[Rejection]:
    """Maintenance and drain; both may be on."""
    found = []
    flag = snapshot.maintenance
    if flag is not None:
        found.append(Rejection("maintenance", maintenance_words(flag, now)))
    drain = snapshot.drain
    if drain is not None:
        found.append(Rejection("drained" if drain.is_drained else "draining", drain_words(drain, now)))
    return found


def selector_rejections(snapshot: MachineSnapshot, query: RouteQuery) -> list[Rejection]:
    """`--exclude` and `--tag`; all tags must match."""
    found = []
    machine = snapshot.machine
    if machine.name in query.exclude:
        found.append(Rejection("excluded", f"excluded (--exclude {machine.name})"))
    missing = [tag for tag in query.tags if tag not in machine.tags]
    if missing:
        plural = "tags" if len(missing) > 1 else "tag"
        found.append(Rejection("selector", f"selector: without {plural} {', '.join(missing)}"))
    return found
