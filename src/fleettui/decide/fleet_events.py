"""Events beside the snapshots of single machines: files, decisions about host keys, repetitions, gaps."""

from __future__ import annotations

from fleettui.model.clock import day_and_time, iso_utc
from fleettui.model.event import Event
from fleettui.model.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleettui.model.event import EventKind, EventSeverity
    from fleettui.model.machine import ConfigProblem, Machine
    from fleettui.model.trust import TrustDecision

    Decisions = Mapping[tuple[str, str], TrustDecision]
    """By name and address."""

REPEAT_WINDOW_S = 600.0
"""The same thing again within it is a repetition, counted with the first."""
REPEAT_SPAN_S = 3600.0
"""So long after the first it is told anew."""
REPEATED: frozenset[EventKind] = frozenset(
    {"health", "offline", "poll_failed", "back", "engine_down", "engine_up", "file", "trust", "action"}
)
"""Kinds that a flapping machine, or a script, repeats without end. Each load and unload counts by itself."""
_ORDER: tuple[EventSeverity, ...] = ("good", "note", "warn", "bad")


def join_repetition(earlier: Event | None, event: Event) -> Event | None:
    """`earlier` with `event` counted in; None where that is no repetition of it."""
    if earlier is None or event.kind not in REPEATED:
        return None
    if (earlier.machine, earlier.kind, earlier.subject) != (event.machine, event.kind, event.subject):
        return None
    if not 0 <= event.at - earlier.ended_at <= REPEAT_WINDOW_S or event.at - earlier.at > REPEAT_SPAN_S:
        return None
    return replace(earlier, count=earlier.count + 1, last_at=event.at)


def join_unseen(
    machine: str, events: Sequence[Event], since: float, now: float, utc_offset_s: int | None = None
) -> Event:
    """What is different on a machine since anybody last looked, as one event: when it happened nobody saw."""
    severity = max((event.severity for event in events), key=_ORDER.index)
    text = f"not watched since {day_and_time(since, now, utc_offset_s)}; meanwhile: "
    text += "; ".join(event.text for event in events)
    details = {"since": iso_utc(since), "events": [{"kind": event.kind, **event.details} for event in events]}
    return Event(now, machine, "unseen", severity, text, details, subject=str(int(since)))


def added_event(machine: Machine, now: float) -> Event:
    """A new machine file."""
    details = {"change": "added", "file": machine.config_file}
    text = f"machine file added: {machine.config_file}"
    return Event(now, machine.name, "file", "note", text, details, subject=f"added {machine.config_file}")


def removed_event(machine: Machine, now: float) -> Event:
    """A machine file that is gone; nothing more is asked of the machine."""
    details = {"change": "removed", "file": machine.config_file}
    text = f"machine file removed: {machine.config_file}"
    return Event(now, machine.name, "file", "note", text, details, subject=f"removed {machine.config_file}")


def problem_events(
    before: Iterable[ConfigProblem],
    after: Iterable[ConfigProblem],
    machine_of_file: Mapping[str, str],
    now: float,
) -> list[Event]:
    """Files that broke, broke in another way, or are whole again. `machine_of_file`: names by path."""
    old, new = _by_file(before), _by_file(after)
    found = []
    for file, problems in new.items():
        if problems == old.get(file):
            continue
        first = problems[0]
        place = file if first.line is None else f"{file}:{first.line}"
        key = f" {first.key}:" if first.key else ""
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        text = f"{_kind_of(first)} broken: {place}:{key} {first.message}{more}"
        details = {"change": "broken", "file": file, "line": first.line, "key": first.key}
        subject = f"broken {file} {first.message}"
        name = machine_of_file.get(file, "")
        found.append(Event(now, name, "file", "bad", text, details, subject=subject))
    for file, problems in old.items():
        if file not in new:
            details = {"change": "mended", "file": file}
            text = f"{_kind_of(problems[0])} without faults now: {file}"
            name = machine_of_file.get(file, "")
            found.append(Event(now, name, "file", "good", text, details, subject=f"mended {file}"))
    return found


def _kind_of(problem: ConfigProblem) -> str:
    return "catalog" if problem.is_of_catalog else "machine file"


def _by_file(problems: Iterable[ConfigProblem]) -> dict[str, list[ConfigProblem]]:
    found: dict[str, list[ConfigProblem]] = {}
    for problem in problems:
        found.setdefault(problem.file, []).append(problem)
    return found


def trust_events(before: Decisions, after: Decisions, now: float) -> list[Event]:
    """Decisions about host keys and keys that wait for one, dated as the decision is."""
    found = []
    for key, decision in after.items():
        was = before.get(key)
        if decision is was:
            continue
        if decision.kind != "pending" and (was is None or _essence(was) != _essence(decision)):
            found.append(_decision_event(decision, now))
        offer = decision.offer
        known = was.offer if was is not None else None
        if offer is not None and (known is None or known.fingerprint != offer.fingerprint):
            found.append(_offer_event(decision, now))
    return found


def decisions_of(time_s: float, decisions: Decisions) -> dict[tuple[str, str], TrustDecision]:
    """What of the decisions was there at that time already."""
    kept = {}
    for key, decision in decisions.items():
        if decision.kind != "pending" and decision.decided_at is not None and decision.decided_at > time_s:
            continue
        offer = decision.offer
        if offer is not None and offer.at > time_s:
            decision = replace(decision, offer=None)  # noqa: PLW2901 - the entry of that time
        kept[key] = decision
    return kept


def _essence(decision: TrustDecision) -> tuple[object, ...]:
    return decision.kind, decision.fingerprint, decision.decided_at


def _decision_event(decision: TrustDecision, now: float) -> Event:
    word = {"pinned": "approved", "rejected": "rejected"}.get(decision.kind, "removed")
    key = f"host key {decision.key_type} {decision.fingerprint} " if decision.fingerprint else "machine "
    text = "machine removed, approval forgotten" if word == "removed" else f"{key}{word}"
    details = {
        "change": word,
        "address": decision.address,
        "key_type": decision.key_type or None,
        "fingerprint": decision.fingerprint or None,
        "how": decision.how or None,
    }
    severity: EventSeverity = "good" if word == "approved" else "note"
    at = now if decision.decided_at is None else decision.decided_at
    subject = f"{word} {decision.address} {decision.fingerprint}"
    return Event(at, decision.name, "trust", severity, text, details, decision.decided_by or None, subject)


def _offer_event(decision: TrustDecision, now: float) -> Event:
    offer = decision.offer
    assert offer is not None  # noqa: S101 - the caller looked
    is_changed = bool(offer.expected)
    text = f"host key {offer.key_type} {offer.fingerprint} ({offer.code}) waits for approval"
    if is_changed:
        text = (
            f"host key changed: approved {', '.join(offer.expected)}, now {offer.key_type} "
            f"{offer.fingerprint} ({offer.code}); nothing is asked"
        )
    change = "key_changed" if is_changed else "pending"
    details = {
        "change": change,
        "address": decision.address,
        "key_type": offer.key_type,
        "fingerprint": offer.fingerprint,
        "code": offer.code,
        "expected": list(offer.expected),
    }
    at = min(now, offer.at)
    subject = f"{change} {decision.address} {offer.fingerprint}"
    return Event(at, decision.name, "trust", "bad" if is_changed else "warn", text, details, None, subject)
