"""What comes next for one copy of a drain, by what the newest answers show and never by what was done before.

So whoever takes over after a crash goes on as the one before would have. Nothing is ever unloaded without a
resident copy elsewhere, unless the operator gave his word for the class of the line.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.decide.drain.sight import Sight
from fleettui.model.drain import (
    CLASS_WORDS,
    LOADING_CLASSES,
    CopyProgress,
    CopyState,
    DrainOptions,
    PlannedCopy,
)
from fleettui.model.literal import Literal
from fleettui.model.record import dataclass
from fleettui.model.snapshot import DrainState

Action = Literal[
    "wait",
    "plan",  # look for another target
    "load",
    "unload",
    "end",
]

GONE_POLLS = 2
"""In a row without the copy: one may be between two runners."""
RETRIES = 2
"""Unloads beyond the first of a copy that comes back."""
TARGETS_TRIED = 2
"""Targets that may fail before the copy is given up."""
SETTLE_S = 15.0
"""Between an unload and the list without the copy; an Ollama takes up to 5 s for the VRAM."""
REVIVED_S = 6.0
"""A copy that is listed as loaded so long after an unload was loaded or kept by a client since."""
RELOADED = "reloaded by client"
STOPPING_LIMIT_S = 600.0
"""Requests in work may hold an unload up so long; then it is reported. Nothing is killed."""
KEEP_LIMIT_S = 60.0
"""So long others are waited for where the catalog keeps more copies than there are."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do for a copy now, and how it stands meanwhile."""

    action: Action
    state: CopyState
    text: str = ""
    """What it waits for, or why it ends so: code and words."""


def next_step(
    line: PlannedCopy, progress: CopyProgress, sight: Sight, options: DrainOptions, now: float
) -> NextStep:
    """What comes next for a copy that nobody works on this moment."""
    state = progress.state
    if sight.presence == "unknown":
        return NextStep("wait", state, progress.text)
    if sight.presence == "gone":
        return _after_it_is_gone(progress, sight)
    if state in ("skipped", "blocked", "failed"):
        return NextStep("wait", state, progress.text)
    if line.drain_class == "unmanaged":
        return NextStep("end", "blocked", f"unmanaged: {line.text or 'nobody can unload it from here'}")
    if state == "gone" and progress.unloads > RETRIES:
        return NextStep("end", "blocked", RELOADED)
    if state == "unloading":
        held = _held_up(progress, sight, now)
        if held is not None:
            return held
    if sight.cover is not None and not (sight.keep_text and _loads_one_more(line, progress)):
        return _release(line, progress, sight, options, now)
    if line.is_lost and line.drain_class in options.forced:
        return _release(line, progress, sight, options, now)
    return _bring_elsewhere(line, progress, sight, options)


def _loads_one_more(line: PlannedCopy, progress: CopyProgress) -> bool:
    """The catalog keeps more copies than there would be left: another one is loaded first."""
    is_planned = line.drain_class in LOADING_CLASSES and line.target is not None
    return is_planned and not progress.is_moved and len(progress.failures) < TARGETS_TRIED


def _after_it_is_gone(progress: CopyProgress, sight: Sight) -> NextStep:
    if progress.state == "gone" or sight.absent_polls < GONE_POLLS:
        return NextStep("wait", progress.state, progress.text)
    where = "" if sight.cover is None else f"served by {sight.cover.machine}"
    if progress.unloads:
        return NextStep("end", "gone", where)
    ended = "ended by itself before it was unloaded"
    return NextStep("end", "gone", f"{ended}; {where}" if where else f"{ended}; no other copy is resident")


def _held_up(progress: CopyProgress, sight: Sight, now: float) -> NextStep | None:
    """While an unload that was asked for has not taken effect; None: ask once more."""
    waited_s = now - progress.since
    if sight.work:
        if waited_s > STOPPING_LIMIT_S:
            text = (
                f"stopping: requests have been in work there for {waited_s:.0f} s ({', '.join(sight.work)})"
            )
            return NextStep("end", "blocked", text)
        return NextStep("wait", "unloading", f"requests in work there end first: {', '.join(sight.work)}")
    if waited_s < (SETTLE_S if sight.is_stopping else REVIVED_S):
        return NextStep("wait", "unloading", progress.text)
    if progress.unloads <= RETRIES:
        return None
    if sight.is_stopping:
        text = f"stopping: still listed after {progress.unloads} unloads, its engine hangs; nothing is killed"
        return NextStep("end", "blocked", text)
    return NextStep("end", "blocked", RELOADED)  # between two polls


def _release(
    line: PlannedCopy, progress: CopyProgress, sight: Sight, options: DrainOptions, now: float
) -> NextStep:
    """It may go: once the catalog allows it, and nobody is at work there."""
    state: CopyState = "switched" if progress.is_moved else "covered"
    waited_s = now - progress.since if progress.state in (state, "waiting_idle") else 0.0
    if sight.keep_text:
        limit_s = options.idle_wait_s and max(options.idle_wait_s, KEEP_LIMIT_S)
        if limit_s and waited_s > limit_s:
            return NextStep("end", "blocked", f"keep: {sight.keep_text}")
        return NextStep("wait", state, f"waits: {sight.keep_text}")
    waited_s = now - progress.since if progress.state == "waiting_idle" else 0.0
    is_patient = sight.kills_work or not options.idle_wait_s
    if sight.work and (is_patient or waited_s < options.idle_wait_s):
        return NextStep("wait", "waiting_idle", ", ".join(sight.work))
    if sight.refusal:
        where = "" if sight.cover is None else f"{sight.cover.machine} serves it, but it stays loaded: "
        return NextStep("end", "blocked", f"{where}{sight.refusal}")
    if sight.cover is not None and sight.loads_text:
        return NextStep(
            "wait", "waiting_idle" if progress.state == "waiting_idle" else state, sight.loads_text
        )
    return NextStep("unload", "unloading")


def _bring_elsewhere(
    line: PlannedCopy, progress: CopyProgress, sight: Sight, options: DrainOptions
) -> NextStep:
    """Nobody serves it instead yet."""
    if len(progress.failures) >= TARGETS_TRIED:
        return NextStep("end", "failed", "; ".join(progress.failures))
    if line.is_lost:
        why = line.text or "no machine takes it"
        if progress.failures:
            return NextStep("end", "failed", "; ".join([*progress.failures, f"and no other target: {why}"]))
        return NextStep("end", "blocked", f"{CLASS_WORDS[line.drain_class].lower()}: {why}")
    if line.drain_class == "degraded" and not options.accept_degraded:
        return NextStep("end", "blocked", f"degraded: {line.text}; only with --accept-degraded")
    if line.drain_class == "pull" and not options.allow_pull:
        return NextStep("end", "blocked", f"pull: {line.text}; only with --allow-pull")
    if sight.coming_text:
        return NextStep("wait", "pending", sight.coming_text)
    if line.drain_class == "covered" or line.target is None or sight.target_problem:
        return NextStep("plan", "pending", sight.target_problem)
    if sight.is_target_busy:
        return NextStep("wait", "waiting_target", sight.is_target_busy)
    return NextStep("load", "loading")


def end_of_drain(copies: Sequence[CopyProgress], empty_polls: int) -> tuple[DrainState, str] | None:
    """How the drain of a machine ends, with the condition that is missing; None: it goes on."""
    if not all(copy.is_ended for copy in copies):
        return None
    failed = [_told(copy) for copy in copies if copy.state == "failed"]
    held = [_told(copy) for copy in copies if copy.state in ("blocked", "skipped")]
    if failed:
        return "failed", "; ".join([*failed, *held])
    if held:
        return "blocked", "; ".join(held)
    return ("drained", "") if empty_polls >= GONE_POLLS else None


def _told(copy: CopyProgress) -> str:
    text = copy.text or ("skipped by the operator" if copy.state == "skipped" else copy.state)
    return f"{copy.copy.name}: {text}"
