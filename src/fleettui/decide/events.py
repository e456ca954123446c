"""The fleet's timeline: what happened between two snapshots of a machine.

The first snapshot of a machine is the base line and gives no event, and so does the first reading of an
engine. What is not known at a moment (before the first answer, while a machine is offline) is no change:
`settle` keeps what was known last, and the next answer is compared with that.
"""

from __future__ import annotations

from fleettui.decide.copy_events import copy_events
from fleettui.decide.engine_words import engine_title, engine_trouble
from fleettui.model.clock import day_and_time, duration, iso_utc
from fleettui.model.event import Event
from fleettui.model.readings import EngineReading
from fleettui.model.record import replace
from fleettui.model.unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.model.event import EventSeverity
    from fleettui.model.machine import Machine
    from fleettui.model.snapshot import DrainFlag, Health, MachineSnapshot, MaintenanceFlag

RECONNECT_S = 6.0
"""After a reconnect an engine's last failure may be that of the lost connection: it counts from then on."""

_SEVERITY: dict[Health, EventSeverity] = {
    "healthy": "good",
    "degraded": "warn",
    "unhealthy": "bad",
    "offline": "bad",
}


def events_between(
    before: MachineSnapshot | None, after: MachineSnapshot, now: float, utc_offset_s: int | None = None
) -> tuple[Event, ...]:
    """What happened from `before`, as `settle` gave it, to `after`, in the order to tell it."""
    if before is None:
        return ()
    return (
        *_file_event(before.machine, after.machine, now),
        *_flag_events(before, after, now, utc_offset_s),
        *_health_event(before, after, now),
        *_engine_events(before, after, now),
    )


def settle(before: MachineSnapshot | None, after: MachineSnapshot, now: float) -> MachineSnapshot:
    """`after` with what was known before in place of what it does not know: the `before` of next time."""
    if before is None:
        return after
    engines = _settled_engines(before, after, now)
    if _has_health(after):
        return after if engines == after.engines else replace(after, engines=engines)
    return replace(
        after,
        health=before.health,
        reasons=before.reasons,
        link=before.link,
        last_seen=after.last_seen if after.last_seen is not None else before.last_seen,
        engines=engines,
    )


def is_reconnecting(snapshot: MachineSnapshot, now: float) -> bool:
    """The connection is so young that an engine's failure may be older."""
    since = snapshot.link.since
    return snapshot.link.state == "up" and since is not None and 0 <= now - since < RECONNECT_S


def is_read(snapshot: MachineSnapshot) -> bool:
    """Health and every engine that is asked are known: the machine may be compared with an older snapshot."""
    if not _has_health(snapshot):
        return False
    if snapshot.health == "offline":
        return True
    if not snapshot.engines and snapshot.machine.engines:
        return False
    return all(engine.state != "ok" or not isinstance(engine.loaded, Unknown) for engine in snapshot.engines)


# -- health ------------------------------------------------------------------------------------------


def _has_health(snapshot: MachineSnapshot) -> bool:
    """Its health is that of an approved machine; trust has events of its own."""
    return snapshot.trust == "approved" and snapshot.health != "unknown"


def _health_event(before: MachineSnapshot, after: MachineSnapshot, now: float) -> tuple[Event, ...]:
    if not _has_health(after) or before.health == "unknown":
        return ()
    if after.health == "offline":
        return _offline_event(before, after, now)
    if before.health == after.health:
        return ()
    if before.health == "offline":
        return (_back_event(before, after, now),)
    reason = after.reasons[0] if after.reasons and after.health != "healthy" else None
    was = before.reasons[0] if before.reasons and before.health != "healthy" else None
    told = f": {reason.text}" if reason is not None else ""
    return (
        Event(
            now,
            after.name,
            "health",
            _SEVERITY[after.health],
            f"{before.health} → {after.health}{told}",
            {
                "from": before.health,
                "to": after.health,
                "code": reason.code if reason is not None else None,
                "reason": reason.text if reason is not None else None,
                "was_code": was.code if was is not None else None,
            },
            subject=f"{before.health} {after.health} {reason.code if reason is not None else ''}",
        ),
    )


def _offline_event(before: MachineSnapshot, after: MachineSnapshot, now: float) -> tuple[Event, ...]:
    reason = after.reasons[0] if after.reasons else None
    text = reason.text if reason is not None else after.link.error or "does not answer"
    code = reason.code if reason is not None else None
    is_expected = after.is_out_of_service
    details = {
        "from": before.health,
        "to": "offline",
        "code": code,
        "reason": text,
        "stage": after.link.stage,
        "address": after.link.address,
        "expected": is_expected,
    }
    if before.health != "offline":
        why = "drained" if after.maintenance is None else "in maintenance"
        told = f"offline: {text}" + (f" (expected: {why})" if is_expected else "")
        severity: EventSeverity = "note" if is_expected else "bad"
        return (Event(now, after.name, "offline", severity, told, details, subject=f"{code} {text}"),)
    was = before.reasons[0] if before.reasons else None
    if was == reason or after.link.state != "failed":
        return ()
    return (
        Event(
            now,
            after.name,
            "poll_failed",
            "note",
            f"still offline, now: {text}",
            {**details, "from": "offline"},
            subject=f"{code} {text}",
        ),
    )


def _back_event(before: MachineSnapshot, after: MachineSnapshot, now: float) -> Event:
    heard = before.last_seen if before.last_seen is not None else before.link.since
    after_s = None if heard is None else max(0.0, now - heard)
    reason = after.reasons[0] if after.reasons and after.health != "healthy" else None
    text = "back" if after_s is None else f"back after {duration(after_s)}"
    text += f", {after.health}" + (f": {reason.text}" if reason is not None else "")
    was = before.reasons[0] if before.reasons else None
    return Event(
        now,
        after.name,
        "back",
        _SEVERITY[after.health],
        text,
        {
            "from": "offline",
            "to": after.health,
            "code": reason.code if reason is not None else None,
            "reason": reason.text if reason is not None else None,
            "was_code": was.code if was is not None else None,
            "after_s": None if after_s is None else round(after_s, 1),
        },
        subject=after.health,
    )


# -- engines -----------------------------------------------------------------------------------------


def _hears(snapshot: MachineSnapshot) -> bool:
    """What its engines say is of now."""
    return snapshot.trust == "approved" and snapshot.link.state == "up" and snapshot.health != "offline"


def _engine_events(before: MachineSnapshot, after: MachineSnapshot, now: float) -> tuple[Event, ...]:
    if not _hears(after):
        return ()
    old = {(engine.kind, engine.port): engine for engine in before.engines}
    found: list[Event] = []
    for engine in after.engines:
        was = old.get((engine.kind, engine.port))
        if was is None or was is engine or _is_of_old_link(engine, after, now):
            continue
        if was.is_answering != engine.is_answering:
            found.append(_engine_event(after, was, engine, now))
        found += copy_events(after.name, was, engine, now)
    return tuple(found)


def _is_of_old_link(engine: EngineReading, after: MachineSnapshot, now: float) -> bool:
    return not engine.is_answering and is_reconnecting(after, now)


def _engine_event(after: MachineSnapshot, was: EngineReading, engine: EngineReading, now: float) -> Event:
    details: dict[str, object] = {
        "engine": engine.kind,
        "port": engine.port,
        "state": engine.state,
        "was": was.state,
        "error": engine.error,
    }
    subject = f"{engine.kind}:{engine.port}"
    if engine.is_answering:
        text = f"{engine_title(engine.kind, engine.port)} answers again"
        return Event(now, after.name, "engine_up", "good", text, details, subject=subject)
    text = engine_trouble(engine)
    return Event(now, after.name, "engine_down", "bad", text, details, subject=f"{subject} {engine.state}")


def _settled_engines(
    before: MachineSnapshot, after: MachineSnapshot, now: float
) -> tuple[EngineReading, ...]:
    """Of each engine the newest reading, with the copies that were known last."""
    if _hears(after) and len(before.engines) == len(after.engines) == 1:  # nearly all machines, all the time
        old_one, new_one = before.engines[0], after.engines[0]
        is_same = (old_one.kind, old_one.port) == (new_one.kind, new_one.port)
        if is_same and new_one.state == "ok" and not isinstance(new_one.loaded, Unknown):
            return after.engines
    old = {(engine.kind, engine.port): engine for engine in before.engines}
    is_heard = _hears(after)
    settled: dict[tuple[str, int], EngineReading] = {}
    for engine in after.engines:
        key = (engine.kind, engine.port)
        was = old.get(key)
        if was is None:
            settled[key] = engine
        elif not is_heard or _is_of_old_link(engine, after, now):
            settled[key] = was
        elif isinstance(engine.loaded, Unknown) and not isinstance(was.loaded, Unknown):
            settled[key] = replace(engine, loaded=was.loaded)
        else:
            settled[key] = engine
    declared = {(endpoint.kind, endpoint.port) for endpoint in after.machine.engines}
    for key, engine in old.items():
        if key not in settled and (not declared or key in declared):
            settled[key] = engine
    return tuple(settled.values())


# -- flags and the file ------------------------------------------------------------------------------


def _flag_events(
    before: MachineSnapshot, after: MachineSnapshot, now: float, utc_offset_s: int | None
) -> list[Event]:
    found = []
    if before.maintenance != after.maintenance:
        found.append(_maintenance_event(after.name, before.maintenance, after.maintenance, now, utc_offset_s))
    if before.drain is not after.drain and _told(before.drain) != _told(after.drain):
        found.append(_drain_event(after.name, before.drain, after.drain, now, utc_offset_s))
    return found


def _maintenance_event(
    machine: str,
    was: MaintenanceFlag | None,
    flag: MaintenanceFlag | None,
    now: float,
    utc_offset_s: int | None,
) -> Event:
    if flag is None:
        return Event(now, machine, "maintenance", "good", "maintenance off", {"change": "off"}, subject="off")
    change = "on" if was is None else "changed"
    text = f"maintenance {change}" + (f': "{flag.reason}"' if flag.reason else "")
    if flag.until is not None:
        text += f", until {day_and_time(flag.until, now, utc_offset_s)}"
    until = None if flag.until is None else iso_utc(flag.until)
    details = {"change": change, "reason": flag.reason, "since": iso_utc(flag.since), "until": until}
    subject = f"{change} {flag.by} {flag.reason} {flag.until}"
    at = min(flag.since, now) if was is None else now
    return Event(at, machine, "maintenance", "note", text, details, flag.by or None, subject)


_DRAIN_SEVERITY: dict[str, EventSeverity] = {"blocked": "bad", "failed": "bad", "drained": "good"}


def _told(flag: DrainFlag | None) -> object:
    """What of a drain is news: not how far its work is, which has a screen of its own."""
    if flag is None:
        return None
    text = flag.text if flag.state in _DRAIN_SEVERITY else ""
    return flag.id, flag.state, flag.reason, flag.until, text


def _drain_event(
    machine: str, was: DrainFlag | None, flag: DrainFlag | None, now: float, utc_offset_s: int | None
) -> Event:
    if flag is None:
        text = "drain ended" + (f", it was {was.state}" if was is not None else "")
        details: dict[str, object] = {"change": "off", "was": None, "reason": None}
        if was is not None:
            details |= {"was": was.state, "reason": was.reason}
        return Event(now, machine, "drain", "good", text, details, subject="off")
    why = flag.text if flag.state in _DRAIN_SEVERITY else ""
    reason = f'"{flag.reason}"' if flag.reason else ""
    told = f"{why} ({reason})" if why and reason else why or reason
    word = "drained" if flag.is_drained else f"drain {flag.state}"
    text = word + (f": {told}" if told else "")
    until = None if flag.until is None else iso_utc(flag.until)
    if flag.until is not None and (was is None or was.until != flag.until):
        text += f", until {day_and_time(flag.until, now, utc_offset_s)}"
    details = {
        "change": flag.state,
        "was": None if was is None else was.state,
        "reason": flag.reason,
        "since": iso_utc(flag.since),
        "until": until,
        "text": flag.text or None,
    }
    severity = _DRAIN_SEVERITY.get(flag.state, "note")
    subject = f"{flag.state} {flag.since} {flag.text} {flag.until}"
    return Event(now, machine, "drain", severity, text, details, flag.changed_by or flag.by or None, subject)


def _file_event(before: Machine, after: Machine, now: float) -> tuple[Event, ...]:
    """The operator edited the machine's file."""
    if before is after or before.document == after.document:
        return ()
    keys = sorted(
        key
        for key in before.document.keys() | after.document.keys()
        if before.document.get(key) != after.document.get(key)
    )
    text = f"machine file edited: {', '.join(keys)}"
    details = {"change": "edited", "file": after.config_file, "keys": keys}
    return (Event(now, after.name, "file", "note", text, details, subject=f"edited {after.config_file}"),)
