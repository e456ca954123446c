"""How far a drain is, as text: a line for each copy with what it waits for, and what happened."""

from __future__ import annotations

from fleettui.model.clock import day_and_time, duration, hh_mm_ss
from fleettui.model.drain import (
    CLASS_WORDS,
    WORKING,
    CopyProgress,
    CopyState,
    Drain,
    DrainStatus,
    JournalEntry,
)
from fleettui.model.snapshot import DrainState
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.drain_text import CLASS_TONES, CLASS_WIDTH, NAME_MAX, source_name
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.placement_text import cut_lines, page_width, wrapped_lines
from fleettui.view.text import cell_width, clean, clip, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STATE_WORDS: dict[CopyState, str] = {
    "pending": "pending",
    "waiting_target": "waits for its target",
    "loading": "loading",
    "verifying": "verifying",
    "switched": "served there now",
    "waiting_idle": "waits until idle",
    "unloading": "unloading",
    "gone": "gone",
    "covered": "served there already",
    "skipped": "left where it is",
    "blocked": "blocked",
    "failed": "failed",
}
STATE_TONES: dict[CopyState, Tone] = {
    "loading": "accent",
    "verifying": "accent",
    "unloading": "accent",
    "gone": "good",
    "skipped": "warn",
    "blocked": "bad",
    "failed": "bad",
}
DRAIN_TONES: dict[DrainState, Tone] = {
    "drained": "good",
    "blocked": "bad",
    "failed": "bad",
    "cancelled": "warn",
}
_STATE_WIDTH = max(map(len, STATE_WORDS.values()))
FRESH_S = 15.0
"""So long what was seen of a machine is taken for what it is."""
_GAP = "  "
_LEAST_DETAIL = 24
_INDENT = 4


def status_lines(
    status: DrainStatus,
    now: float,
    width: int | None = None,
    glyphs: Glyphs = UNICODE,
    utc_offset_s: int | None = None,
) -> list[Cells]:
    """One drain: what it is, who works on it, how far each copy is."""
    total = page_width(width)
    drain = status.drain
    lines = wrapped_lines(drain_line(drain, now, utc_offset_s), total, "strong")
    if drain.text:
        lines += wrapped_lines(clean(drain.text), total, DRAIN_TONES.get(drain.state, "dim"), " ")
    about = work_text(status, now, utc_offset_s)
    if about:
        lines += wrapped_lines(about, total, "dim", " ")
    lines += copy_lines(status.copies, now, total)
    step = next_text(drain)
    if drain.state == "drained" and not status.is_seen and now - drain.changed_at > FRESH_S:
        step = unseen_text(drain, now, utc_offset_s)
    if step:
        lines += wrapped_lines(step, total, "dim", " ")
    return cut_lines(lines, total, glyphs)


def drain_line(drain: Drain, now: float, utc_offset_s: int | None = None) -> str:
    """`ada: draining (running) "PSU swap" by mia since 12:03, until 14:00`."""
    word = "drained" if drain.state == "drained" else f"draining ({drain.state})"
    reason = f' "{clean(drain.reason)}"' if drain.reason else ""
    text = f"{clean(drain.machine)}: {word}{reason} by {clean(drain.by)}"
    text += f" since {day_and_time(drain.since, now, utc_offset_s)}"
    if drain.until is None:
        return text
    verb = "overdue since" if now >= drain.until else "until"
    return f"{text}, {verb} {day_and_time(drain.until, now, utc_offset_s)}"


def work_text(status: DrainStatus, now: float, utc_offset_s: int | None = None) -> str:
    """`2 of 5 copies done; mia@jump works on it (process 4242)`."""
    drain, parts = status.drain, []
    if status.copies:
        ended = sum(copy.state == "gone" for copy in status.copies)
        parts.append(f"{ended} of {len(status.copies)} copies gone")
    lock = status.lock
    if lock is not None:
        silent_s = now - lock.beat_at
        heard = f", last heard of {duration(silent_s)} ago" if silent_s > 30 else ""
        parts.append(f"{clean(lock.holder)} works on it (process {lock.pid}{heard})")
    elif drain.state in WORKING:
        parts.append(
            "nobody works on it now; a dashboard goes on with it, or: "
            f"fleettui drain status {clean(drain.machine)} --follow"
        )
    if drain.changed_by and drain.changed_by != drain.by:
        when = day_and_time(drain.changed_at, now, utc_offset_s)
        parts.append(f"changed by {clean(drain.changed_by)} at {when}")
    return "; ".join(parts)


def next_text(drain: Drain) -> str:
    """What the operator may do now."""
    name = clean(drain.machine)
    if drain.state == "drained":
        return f"safe to reboot; when it is back: fleettui undrain {name}"
    if drain.state in ("blocked", "failed"):
        return f"once that is settled: fleettui drain start {name}; to give it up: fleettui undrain {name}"
    if drain.state == "cancelled":
        return f"it takes no requests until: fleettui undrain {name}"
    return ""


def unseen_text(drain: Drain, now: float, utc_offset_s: int | None = None) -> str:
    """Nobody watches the machine, and its clients may have filled it again."""
    when = day_and_time(drain.changed_at, now, utc_offset_s)
    return (
        f"it was empty at {when}, nobody has looked since; before the reboot: "
        f"fleettui drain status {clean(drain.machine)} --follow"
    )


def copy_lines(copies: Sequence[CopyProgress], now: float, total: int) -> list[Cells]:
    """Class, model, where to, state since when, and what it waits for."""
    if not copies:
        return []
    names = [source_name(copy.copy) for copy in copies]
    wheres = ["" if copy.target is None else f"-> {clean(copy.target)}" for copy in copies]
    name_width = min(NAME_MAX, max(map(cell_width, names)))
    where_width = min(20, max(map(cell_width, wheres)))
    head_width = 1 + CLASS_WIDTH + len(_GAP) + name_width + len(_GAP) + where_width + len(_GAP)
    is_beside = total - head_width >= _LEAST_DETAIL
    lines: list[Cells] = []
    for copy, name, where in zip(copies, names, wheres, strict=True):
        head: Cells = (
            Cell(f" {CLASS_WORDS[copy.drain_class]:<{CLASS_WIDTH}}{_GAP}", CLASS_TONES[copy.drain_class]),
            Cell(_padded(name, name_width) + _GAP, "strong"),
            Cell(_padded(where, where_width) + _GAP if where_width else ""),
        )
        tone = STATE_TONES.get(copy.state, "plain")
        start = head_width if is_beside else _INDENT
        texts = [(part, tone) for part in wrap(state_text(copy, now), total - start)]
        failures = () if copy.state == "failed" else dict.fromkeys(copy.failures)
        told = [copy.text, *(text for text in failures if text not in copy.text)]
        dim: Tone = "dim"
        texts += [(part, dim) for text in told if text for part in wrap(clean(text), total - start)]
        if not is_beside:
            lines.append(head)
        for number, (text, shade) in enumerate(texts):
            cell = Cell(text, shade)
            lines.append((*head, cell) if is_beside and number == 0 else (Cell(" " * start), cell))
    return lines


def state_text(copy: CopyProgress, now: float) -> str:
    """`loading 12s, ~17 s left`, `gone`."""
    word = STATE_WORDS[copy.state]
    if copy.is_ended or not copy.since:
        return word
    text = f"{word} {duration(now - copy.since)}"
    left = seconds_left(copy, now)
    if left is None:
        return text
    return (
        f"{text}, ~{left:.0f} s left" if left > 0 else f"{text}, longer than the {copy.eta_s:.0f} s expected"
    )


def seconds_left(copy: CopyProgress, now: float) -> float | None:
    """Of a load, 0 or less where it takes longer than expected; how long clients go on nobody knows."""
    if copy.state != "loading" or not copy.since or isinstance(copy.eta_s, Unknown):
        return None
    return copy.since + copy.eta_s - now


def progress_text(machine: str, copy: CopyProgress) -> str:
    """A line of a log: `ada  llama3.1:70b: loading on bora (~29 s)`."""
    name = source_name(copy.copy)
    word = STATE_WORDS[copy.state]
    if copy.target is not None and copy.state in (
        "loading",
        "verifying",
        "switched",
        "covered",
        "waiting_target",
    ):
        word = f"{word.replace(' there', '')} on {clean(copy.target)}"
    if copy.state == "loading" and not isinstance(copy.eta_s, Unknown):
        word += f" (~{copy.eta_s:.0f} s)"
    text = f"{clean(machine)}  {name}: {word}"
    return f"{text}: {clean(copy.text)}" if copy.text else text


def journal_lines(
    entries: Iterable[JournalEntry], width: int | None = None, glyphs: Glyphs = UNICODE, utc_offset_s: int = 0
) -> list[Cells]:
    """`14:03:12 load llama3.1:70b -> bora ok`, with the remote call below it."""
    total = page_width(width)
    lines: list[Cells] = []
    for entry in entries:
        copy = f" {clean(entry.copy)}" if entry.copy else ""
        target = f" -> {clean(entry.target)}" if entry.target else ""
        result = f": {clean(entry.result)}" if entry.result and entry.result != "ok" else ""
        text = f"{hh_mm_ss(entry.at + utc_offset_s)} {clean(entry.step)}{copy}{target}{result}"
        lines += wrapped_lines(text, total, "plain" if result == "" else "warn", " ")
        if entry.call:
            lines += wrapped_lines(clean(entry.call), total, "dim", " " * 10)
    return cut_lines(lines, total, glyphs)


def ended_text(drain: Drain) -> str:
    """The one line on stdout at the end: `ada: drained`, `ada: blocked: vllm …`."""
    return clean(f"{drain.machine}: {drain.state}" + (f": {drain.text}" if drain.text else ""))


def moved_text(copies: Iterable[CopyProgress]) -> str:
    """What stays moved when a drain ends early: `moved: llama3.1:70b to bora; still here: qwen3:32b`."""
    moved, here = [], []
    for copy in copies:
        name = source_name(copy.copy)
        if copy.state == "gone":
            moved.append(f"{name} to {clean(copy.target)}" if copy.target else f"{name} unloaded")
        elif copy.is_moved and copy.target:
            here.append(f"{name} (on {clean(copy.target)} too)")
        else:
            here.append(name)
    parts = [f"moved: {', '.join(moved)}" if moved else "nothing was moved"]
    if here:
        parts.append(f"still here: {', '.join(here)}")
    return "; ".join(parts)


def _padded(text: str, width: int) -> str:
    text = clip(text, width)
    return text + " " * (width - cell_width(text))
