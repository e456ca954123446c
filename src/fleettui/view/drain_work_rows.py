"""Rows of the Drain screen while it is worked on: how far each copy is, and what was done."""

from __future__ import annotations

from collections.abc import Iterable

from fleettui.model.clock import duration, hh_mm_ss
from fleettui.model.drain import CLASS_WORDS, CopyProgress, DrainClass, DrainStatus, JournalEntry
from fleettui.model.unknown import Unknown
from fleettui.view.bars import bar_text
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.drain_rows import (
    DrainLayout,
    DrainRow,
    below_rows,
    copy_row_key,
    head_words,
    narrow_header,
)
from fleettui.view.drain_status import STATE_TONES, STATE_WORDS, seconds_left, state_text
from fleettui.view.drain_text import CLASS_TONES, CLASS_WIDTH, source_name
from fleettui.view.list_lines import in_signs
from fleettui.view.text import clean, fit
from fleettui.view.units import DASH

_STATE = max(map(len, STATE_WORDS.values()))
_SINCE, _LEFT, _BAR = 5, 7, 12
WORK_FIGURES = _STATE + 1 + _SINCE + 1 + _LEFT
"""Columns behind the target."""
_BAR_FROM = 112
"""Columns of the screen from which there is a bar."""
_STEP = 11
_TROUBLE = ("blocked", "failed", "reloaded", "uncovered")
"""Steps that are none of a drain that goes well; calls have a result of their own where they did not."""
_CALLS = ("load", "unload")


def progress_header(layout: DrainLayout) -> Cells:
    """Titles of the columns."""
    if layout.is_narrow:
        return narrow_header(layout)
    state = f"{fit('state', _STATE)} {'for':>{_SINCE}} {'left':>{_LEFT}}"
    return (Cell(f"  {fit('', CLASS_WIDTH)}  {head_words(layout)}{state}".rstrip(), "title"),)


def progress_wheres(statuses: Iterable[DrainStatus]) -> list[str]:
    """All targets as they stand in their column."""
    return [clean(copy.target or DASH) for status in statuses for copy in status.copies]


def progress_rows(copies: Iterable[CopyProgress], now: float, layout: DrainLayout) -> list[DrainRow]:
    """A line for each copy; below it what it waits for, and what failed."""
    rows: list[DrainRow] = []
    for copy in copies:
        rows += _progress_row(copy, now, layout)
    return rows


def _progress_row(copy: CopyProgress, now: float, layout: DrainLayout) -> list[DrainRow]:
    glyphs = layout.glyphs
    is_done = copy.state == "gone"
    tone = STATE_TONES.get(copy.state, "plain")
    sign = {"gone": glyphs.healthy, "blocked": glyphs.unhealthy, "failed": glyphs.offline}.get(
        copy.state, " "
    )
    cells: list[Cell] = [
        Cell(f"{sign} ", tone),
        Cell(fit(CLASS_WORDS[copy.drain_class], CLASS_WIDTH) + "  ", _class_tone(copy.drain_class, is_done)),
        Cell(
            fit(source_name(copy.copy), layout.name, glyphs.ellipsis) + "  ", "dim" if is_done else "strong"
        ),
    ]
    below: list[tuple[str, Tone]] = []
    if layout.is_narrow:
        where = f"→ {clean(copy.target)}  " if copy.target else ""
        below.append((f"{where}{state_text(copy, now)}", tone))
    else:
        where = fit(clean(copy.target or DASH), layout.where, glyphs.ellipsis)
        cells.append(Cell(where + "  ", "dim" if is_done else "plain"))
        cells.append(Cell(fit(STATE_WORDS[copy.state], _STATE), tone))
    if not copy.is_ended and copy.since and not layout.is_narrow:
        cells.append(Cell(f" {duration(now - copy.since):>{_SINCE}}", "dim"))
        cells += _left_cells(copy, now, layout)
    key = copy_row_key(copy.copy.key)
    if copy.text:
        below.append((waiting_text(copy), "bad" if copy.state in ("blocked", "failed") else "dim"))
    below += [(text, "warn") for text in copy.failures if text not in copy.text]
    rows = [DrainRow(key, "copy", copy.copy.machine, copy.copy.key, in_signs(tuple(cells), layout))]
    return rows + below_rows(key, copy.copy.machine, copy.copy.key, below, layout)


def waiting_text(copy: CopyProgress) -> str:
    """What it waits for, or why it ended, without the words of its state, which stand there already."""
    return clean(copy.text).removeprefix(f"{STATE_WORDS[copy.state]}: ")


def _class_tone(drain_class: DrainClass, is_done: bool) -> Tone:
    return "dim" if is_done else CLASS_TONES[drain_class]


def _left_cells(copy: CopyProgress, now: float, layout: DrainLayout) -> list[Cell]:
    """`~17 s`, with a bar where there is room; `late`: longer than expected."""
    left_s = seconds_left(copy, now)
    if left_s is None or isinstance(copy.eta_s, Unknown) or copy.eta_s <= 0:
        return []
    elapsed_s = now - copy.since
    glyphs = layout.glyphs
    words = f"~{left_s:.0f} s" if left_s > 0 else "late"
    cells = [Cell(f" {words:>{_LEFT}}", "dim" if left_s > 0 else "warn")]
    if layout.width >= _BAR_FROM:
        inner = bar_text(min(1.0, elapsed_s / copy.eta_s), _BAR, glyphs.bar_parts)
        cells += [
            Cell("  "), Cell(glyphs.bar_left, "faint"), Cell(inner, "bar_good" if left_s > 0 else "bar_warn"),
            Cell(glyphs.bar_right, "faint"),
        ]  # fmt: skip
    return cells


def journal_rows(
    entries: Iterable[JournalEntry], layout: DrainLayout, utc_offset_s: int | None = None
) -> list[DrainRow]:
    """Newest first: when, what, on which machine, how it ended, who; below it the remote call."""
    rows: list[DrainRow] = []
    for entry in reversed(list(entries)):
        key = f"entry\n{entry.machine}\n{entry.seq}\n{entry.at}\n{entry.step}\n{entry.copy}"
        is_plain = entry.result in ("", "ok")
        is_good = entry.step not in _TROUBLE and (is_plain or entry.step not in _CALLS)
        about = f"{clean(entry.copy)} → {clean(entry.target)}" if entry.target else clean(entry.copy)
        who = clean(entry.by) + (f" ({entry.pid})" if entry.pid else "")
        cells: list[Cell] = [
            Cell(f"  {hh_mm_ss(entry.at + (utc_offset_s or 0))}  ", "dim"),
            Cell(fit(clean(entry.step), _STEP) + " ", "plain" if is_good else "warn"),
        ]
        if about:
            cells.append(Cell(f"{about}  ", "strong"))
        if not is_plain:
            cells.append(Cell(f"{clean(entry.result)}  ", "plain" if is_good else "warn"))
        cells.append(Cell(who, "faint"))
        rows.append(DrainRow(key, "entry", entry.machine, None, in_signs(tuple(cells), layout)))
        if entry.call:
            rows += below_rows(key, entry.machine, None, [(entry.call, "dim")], layout)
    return rows
