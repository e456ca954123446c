"""Health of a machine with its reasons, most severe first, in the operator's words.

Times in a text are absolute (`since 13:58`, of another day with its date), never ages: a reason changes only
when its matter changes.
They are local where the caller gives `utc_offset_s`, else they say UTC.
"""

from __future__ import annotations

from fleettui.decide.copy_notes import copy_notes
from fleettui.decide.engine_reasons import copy_reasons, engine_reasons
from fleettui.decide.gpu_reasons import gpu_reasons
from fleettui.decide.host_reasons import HOST_SOURCES, host_reasons, host_source_reasons
from fleettui.decide.profile_reasons import profile_reasons
from fleettui.decide.trust_reasons import trust_reason
from fleettui.model.clock import day_and_time
from fleettui.model.flag_words import drain_words, maintenance_words
from fleettui.model.profile import Profile
from fleettui.model.snapshot import Health, LinkStage, MachineSnapshot, Reason, Severity

SILENCE_INTERVALS = 3
SILENCE_MIN_S = 6.0
_ORDER: dict[Severity, int] = {"offline": 0, "unhealthy": 1, "degraded": 2, "note": 3}
_NEXT_STEP: dict[LinkStage, str] = {
    "settings": "correct `ssh:` in the machine file or ~/.ssh/config",
    "authentication": "check user and key; tried again once file or agent changed, or on your request",
}


def judge_health(
    snapshot: MachineSnapshot,
    now: float,
    interval_s: float,
    utc_offset_s: int | None = None,
    profile: Profile | None = None,
) -> tuple[Health, tuple[Reason, ...]]:
    """Health by the rules of docs/health.md; a late GPU or engine source alone is never offline. `profile`:
    what the machine was made of when that was measured last."""
    if snapshot.trust != "approved":
        reason = trust_reason(snapshot, now)
        return ("offline" if reason.severity == "offline" else "unknown"), (reason,)
    gone = offline_reason(snapshot, now, interval_s, utc_offset_s)
    if gone is not None:
        return "offline", (gone, *_expected(snapshot, now, utc_offset_s))
    if snapshot.last_seen is None and not _has_failed_source(snapshot):
        return "unknown", ()
    reasons = [
        *gpu_reasons(snapshot, now, utc_offset_s),
        *profile_reasons(snapshot, profile),
        *engine_reasons(snapshot, now, utc_offset_s),
        *host_source_reasons(snapshot, now, utc_offset_s),
        *host_reasons(snapshot),
        *copy_reasons(snapshot, now, utc_offset_s),
        *copy_notes(snapshot),
    ]
    reasons.sort(key=lambda reason: _ORDER[reason.severity])
    worst = reasons[0].severity if reasons else "note"
    return ("healthy" if worst == "note" else worst), tuple(reasons)


def _expected(snapshot: MachineSnapshot, now: float, utc_offset_s: int | None) -> tuple[Reason, ...]:
    """Offline in maintenance or drained: still offline, but nobody need be alarmed."""
    maintenance, drain = snapshot.maintenance, snapshot.drain
    words = [] if maintenance is None else [maintenance_words(maintenance, now, utc_offset_s)]
    if drain is not None and drain.is_drained:
        words.append(drain_words(drain, now, utc_offset_s))
    return (Reason("note", "expected", f"expected: {'; '.join(words)}"),) if words else ()


def silence_limit_s(interval_s: float) -> float:
    """Seconds without a byte of the fact channel after which a machine is offline."""
    return max(SILENCE_INTERVALS * interval_s, SILENCE_MIN_S)


def offline_reason(
    snapshot: MachineSnapshot, now: float, interval_s: float, utc_offset_s: int | None = None
) -> Reason | None:
    """Why the machine is offline, None when it is not (or was never asked)."""
    link = snapshot.link
    has_failed = link.state == "failed" or (link.state == "connecting" and link.error is not None)
    if has_failed:
        stage = link.stage or "connect"
        text = link.error or f"{stage} failed"
        step = _NEXT_STEP.get(stage)
        if step is not None and step not in text:
            text = f"{text}; {step}"
        return Reason("offline", "ssh_" + stage.replace(" ", "_"), text)
    asked_at = _asked_in_vain_since(snapshot)
    if link.state != "up" or asked_at is None:
        return None
    known = [moment for moment in (snapshot.last_seen, link.since) if moment is not None]
    heard = max(known, default=asked_at)
    limit_s = silence_limit_s(interval_s)
    # Before the question there was nothing to hear, after a pause or a sleep of this computer for hours.
    if now - heard <= limit_s or now - asked_at <= limit_s - interval_s:
        return None
    since = day_and_time(heard, now, utc_offset_s)
    text = f"no byte on the SSH connection since {since}: machine frozen, or network gone"
    return Reason("offline", "ssh_silent", text)


def _asked_in_vain_since(snapshot: MachineSnapshot) -> float | None:
    """When the oldest unanswered question to the machine itself was asked."""
    statuses = (snapshot.sources.get(name) for name in HOST_SOURCES)
    return min(
        (status.since for status in statuses if status and status.state == "late" and status.since),
        default=None,
    )


def _has_failed_source(snapshot: MachineSnapshot) -> bool:
    """SSH works and a source said why it cannot be read: that is known of a machine that never answered."""
    statuses = (snapshot.sources.get(name) for name in (*HOST_SOURCES, "gpu"))
    return any(status is not None and status.state == "error" for status in statuses)
