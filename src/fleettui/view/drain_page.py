"""What stands around the list of the Drain screen: title, options, notes, what is known of a line."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.clock import day_and_time, duration
from fleettui.model.drain import (
    LOADING_CLASSES,
    WORKING,
    CopyProgress,
    Drain,
    DrainOptions,
    DrainPlan,
    DrainStatus,
    PlannedCopy,
)
from fleettui.model.snapshot import DrainState
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone, fit_cells, width_of
from fleettui.view.drain_status import DRAIN_TONES, seconds_left
from fleettui.view.drain_text import (
    copy_name,
    evicted_text,
    excluded_text,
    line_sentences,
    refused_text,
    rejected_text,
    seconds_text,
    staying_lines,
    whole_gib,
)
from fleettui.view.drain_work_rows import waiting_text
from fleettui.view.glyphs import Glyphs
from fleettui.view.route_page import Chip
from fleettui.view.route_words import eviction_texts
from fleettui.view.text import clean
from fleettui.view.units import count

STALE_BEAT_S = 60.0
"""A worker that gave no sign of life for longer may be replaced."""
_SILENT_S = 20.0
_WORDS_FROM = 100
"""Columns of the screen from which the title says all words."""
_NAMED = 3


def drain_title(names: Sequence[str], middle: Cells, right: Cells, width: int, glyphs: Glyphs) -> Cells:
    """`Drain  ada  ` and what is to be said of it."""
    told = ", ".join(map(clean, names[:_NAMED])) + (
        f" and {len(names) - _NAMED} more" if names[_NAMED:] else ""
    )
    cells = (Cell(" Drain  ", "strong"), Cell(told, "accent"), Cell("   "), *middle)
    if right:
        right = (Cell("  "), *right)
    room = max(0, width - width_of(right) - 1)
    return (*fit_cells(cells, room, "left", glyphs.ellipsis), *right)


def preview_words(plans: Sequence[DrainPlan], glyphs: Glyphs) -> Cells:
    """`5 copies · 66 GiB to load · ~50 s · bora (1), cleo (1)`."""
    copies = sum(len(plan.copies) for plan in plans)
    if not plans or (not copies and any(plan.problem for plan in plans)):
        return ()
    if not copies:
        return (Cell("nothing is loaded: drained at once", "good"),)
    parts = [count(copies, "copy", "copies")]
    load_bytes = sum(plan.load_bytes for plan in plans)
    if load_bytes:
        parts += [f"{whole_gib(load_bytes)} to load", _longest(plans)]
    if any(plan.targets for plan in plans):
        parts.append(_targets(plans))
    elif not load_bytes:
        parts.append("nothing to load")
    return (Cell(f" {glyphs.dot} ".join(parts)),)


def _longest(plans: Sequence[DrainPlan]) -> str:
    """Machines are worked on side by side."""
    known = [plan.seconds for plan in plans if not isinstance(plan.seconds, Unknown)]
    if len(known) < len(plans):
        return next(seconds_text(plan.seconds) for plan in plans if isinstance(plan.seconds, Unknown))
    return seconds_text(max(known))


def _targets(plans: Sequence[DrainPlan]) -> str:
    counts: dict[str, int] = {}
    for plan in plans:
        for name, number in plan.targets.items():
            counts[name] = counts.get(name, 0) + number
    return "to " + ", ".join(f"{clean(name)} ({number})" for name, number in sorted(counts.items()))


def age_words(plans: Sequence[DrainPlan], now: float, width: int) -> str:
    """`data 1.2 s old`."""
    taken = [plan.taken_at for plan in plans if plan.taken_at]
    if not taken:
        return ""
    return f"{'data ' if width >= _WORDS_FROM else ''}{max(0.0, now - min(taken)):.1f} s old"


def preview_notes(plans: Sequence[DrainPlan]) -> list[tuple[str, Tone]]:
    """What the operator has to know before any line."""
    notes: list[tuple[str, Tone]] = []
    for plan in plans:
        if plan.problem:
            text = f"{clean(plan.machine)}: nobody knows what is loaded there: {clean(plan.problem)}"
            notes.append((text, "bad"))
    lost = [copy_name(line) for plan in plans for line in plan.copies if line.is_lost]
    if lost:
        words = "copy ends" if len(lost) == 1 else "copies end"
        notes.append((f"{len(lost)} {words} with no resident copy anywhere: {', '.join(lost)}", "bad"))
    evicted = dict.fromkeys(name for plan in plans for name in plan.evicted_last)
    if evicted:
        notes.append((evicted_text(evicted), "warn"))
    mine = {plan.machine for plan in plans}  # that they are no targets goes without saying
    excluded = {item.machine: item for plan in plans for item in plan.excluded if item.machine not in mine}
    if excluded:
        notes.append((f"excluded: {excluded_text(excluded.values())}", "dim"))
    if not all(plan.is_exact for plan in plans):
        notes.append(("the best way found in bounded time; not every one was tried", "dim"))
    return notes


def preview_heading(plan: DrainPlan) -> str:
    """Of one of several machines: `ada: 3 copies, 44 GiB to load, ~30 s`."""
    parts = [count(len(plan.copies), "copy", "copies")] if plan.copies else ["nothing is loaded"]
    if plan.load_bytes:
        parts += [f"{whole_gib(plan.load_bytes)} to load", seconds_text(plan.seconds)]
    return f"{clean(plan.machine)}: {', '.join(parts)}"


def option_chips(options: DrainOptions) -> tuple[Chip, ...]:
    """What may be switched before the start."""
    return (
        Chip("toggle_degraded", "accept degraded", "degraded", options.accept_degraded),
        Chip("toggle_fetch", "allow pull", "pull", options.allow_pull),
        Chip("toggle_same_context", "same context", "context", options.keeps_context),
    )


def missing_words(plans: Sequence[DrainPlan], options: DrainOptions) -> str:
    """Why it cannot be started yet; empty: it can."""
    problems = [plan for plan in plans if plan.problem]
    if problems:
        told = "; ".join(f"{clean(plan.machine)}: {clean(plan.problem)}" for plan in problems)
        return f"nobody knows what is loaded there: {told}"
    refused = [line for plan in plans for line in plan.refused(options)]
    return f"your word is missing: {refused_text(refused)}" if refused else ""


def consequence(plans: Sequence[DrainPlan], options: DrainOptions) -> tuple[str, Tone]:
    """What the start does, in a sentence; bad where a model is resident nowhere afterwards."""
    lines = [line for plan in plans for line in plan.copies]
    stay = [line for plan in plans for line in staying_lines(plan, options)]
    done = [line for line in lines if line not in stay]
    lost = [line for line in done if line.is_lost]
    moved = [line for line in done if line.drain_class in LOADING_CLASSES]
    covered = [line for line in done if line.drain_class == "covered"]
    verb = "takes" if len(plans) == 1 else "take"
    parts = [f"{verb} no requests from now on"]
    if moved:
        evicted = [
            clean(item.model) for line in moved if line.target is not None for item in line.target.evicts
        ]
        cost = f", which evicts {', '.join(evicted)}" if evicted else ""
        parts.append(f"{count(len(moved), 'copy', 'copies')} moved{cost}")
    if covered:
        parts.append(f"{len(covered)} unloaded, served elsewhere already")
    if lost:
        parts.append(f"{_names(lost)} resident NOWHERE")
    if stay:
        parts.append(f"{_names(stay)} {'stays and blocks' if len(stay) == 1 else 'stay and block'} the drain")
    if not lines:
        parts.append("nothing is loaded")
    return "; ".join(parts), "bad" if lost else "warn" if stay else "dim"


def _names(lines: Sequence[PlannedCopy]) -> str:
    told = ", ".join(copy_name(line) for line in lines[:_NAMED])
    return told + (f" and {len(lines) - _NAMED} more" if lines[_NAMED:] else "")


def is_losing(plans: Sequence[DrainPlan], options: DrainOptions) -> bool:
    """A model is resident nowhere afterwards."""
    return any(line.is_lost and not options.skips_copy(line.copy) for plan in plans for line in plan.copies)


def line_about(line: PlannedCopy, options: DrainOptions) -> tuple[str, str]:
    """(what the line is about, all that is known of it)."""
    words: list[str] = []
    if options.skips_copy(line.copy):
        words.append("stays where it is by your word, which keeps the machine from being drained")
    words += line_sentences(line)
    target = line.target
    if target is not None and line.drain_class in LOADING_CLASSES:
        if target.need is not None:
            figures = f": {clean(target.need.text)}" if target.need.text else ""
            words.append(f"needs {target.need.mib / 1024:.1f} GiB ({clean(target.need.basis)}{figures})")
        if target.evicts:
            words.append(f"evicts {', '.join(eviction_texts(target))}")
        if target.eta_text:
            words.append(f"{seconds_text(target.eta_s)}: {clean(target.eta_text)}")
    if line.rejected and target is not None:
        words.append(f"not on {rejected_text(line.rejected)}")
    return copy_name(line), "; ".join(words) or "nothing more is known of it"


# While it is worked on


def drain_words(status: DrainStatus, glyphs: Glyphs) -> Cells:
    """`running · 2 of 5 copies gone`."""
    drain = status.drain
    parts = [Cell(drain.state, state_tone(drain.state))]
    if status.copies:
        gone = sum(copy.state == "gone" for copy in status.copies)
        parts.append(Cell(f" {glyphs.dot} {gone} of {count(len(status.copies), 'copy', 'copies')} gone"))
    return tuple(parts)


def flag_words(drain: Drain, now: float, utc_offset_s: int | None) -> str:
    """`"PSU swap" mia@jump since 12:03, until 14:00`."""
    text = f'"{clean(drain.reason)}" {clean(drain.by)} since {day_and_time(drain.since, now, utc_offset_s)}'
    if drain.until is None:
        return text
    verb = "overdue since" if now >= drain.until else "until"
    return f"{text}, {verb} {day_and_time(drain.until, now, utc_offset_s)}"


def time_words(status: DrainStatus, now: float) -> str:
    """`34s so far, ~17 s left`: of the copies in work, where that is known."""
    drain = status.drain
    if drain.state not in WORKING:
        return ""
    text = f"{duration(now - drain.since)} so far"
    left = max([seconds_left(copy, now) or 0.0 for copy in status.copies], default=0.0)
    return f"{text}, ~{left:.0f} s left" if left > 0 else text


def work_notes(status: DrainStatus, now: float, pid: int, keys: dict[str, str]) -> list[tuple[str, Tone]]:
    """What holds now, what is missing, who works on it, and what the operator may do."""
    drain = status.drain
    notes: list[tuple[str, Tone]] = []
    if drain.text and drain.state != "drained":
        notes.append((clean(drain.text), DRAIN_TONES.get(drain.state, "dim")))
    worker = worker_words(status, now, pid, keys)
    if worker is not None:
        notes.append(worker)
    step = next_words(drain, status.copies, keys)
    if step is not None:
        notes.append(step)
    return notes


def worker_words(status: DrainStatus, now: float, pid: int, keys: dict[str, str]) -> tuple[str, Tone] | None:
    """Who works on it; None once nobody has to."""
    lock = status.lock
    if lock is None:
        if status.drain.state not in WORKING:
            return None
        return f"nobody works on it now; {keys['drain_take_over']} takes it over", "warn"
    silent_s = now - lock.beat_at
    who = "this dashboard works on it" if lock.pid == pid else f"{clean(lock.holder)} works on it"
    if lock.pid == pid:
        return who, "dim"
    who += f" (process {lock.pid})"
    if silent_s >= STALE_BEAT_S:
        told = f"{clean(lock.holder)} (process {lock.pid}) gave no sign of life for {duration(silent_s)}"
        return f"{told}; {keys['drain_take_over']} takes it over", "warn"
    if silent_s >= _SILENT_S:
        who += f", last sign of life {duration(silent_s)} ago"
    return who, "dim"


def next_words(drain: Drain, copies: Sequence[CopyProgress], keys: dict[str, str]) -> tuple[str, Tone] | None:
    """What the operator may do now; None while it runs."""
    name = clean(drain.machine)
    back = f"{keys['undrain']} puts it back into service"
    if drain.state == "drained":
        return f"{name} is empty: safe to reboot. When it is up again, {back}", "good"
    if drain.state in ("blocked", "failed"):
        return f"once that is settled {keys['drain_start']} goes on from here; {back}", "dim"
    if drain.state == "cancelled":
        if any(copy.state in ("loading", "verifying") for copy in copies):
            return f"the load under way still finishes; {keys['drain_abort']} aborts it now", "dim"
        return f"it takes no requests all the same: {back}; {keys['drain_start']} goes on", "dim"
    return None


def status_heading(status: DrainStatus) -> str:
    """Of one of several machines: `ada: running, 2 of 5 copies gone`."""
    drain, copies = status.drain, status.copies
    text = f"{clean(drain.machine)}: {drain.state}"
    if copies:
        gone = sum(copy.state == "gone" for copy in copies)
        text += f", {gone} of {count(len(copies), 'copy', 'copies')} gone"
    return text


def state_tone(state: DrainState) -> Tone:
    """Of the word for a drain's state."""
    return DRAIN_TONES.get(state, "accent")


def progress_about(copy: CopyProgress) -> tuple[str, str]:
    """(the copy, all that is known of it)."""
    words = [waiting_text(copy)] if copy.text else []
    if copy.target and copy.target not in copy.text:
        words.append(f"on {clean(copy.target)}")
    if copy.unloads > 1:
        words.append(f"asked {count(copy.unloads, 'time')} to unload")
    words += [clean(text) for text in copy.failures if text not in copy.text]
    return clean(copy.copy.name), "; ".join(words)
