"""A machine that is drained, on its page: how far it is, what still runs there, what was done."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.clock import hh_mm_ss
from fleettui.model.drain import DrainStatus, SourceCopy
from fleettui.model.flag_words import drain_words
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.drain_status import DRAIN_TONES, STATE_TONES, state_text
from fleettui.view.drain_text import source_name
from fleettui.view.machine_view import MachineView
from fleettui.view.tables import Line, table
from fleettui.view.text import clean, wrap
from fleettui.view.units import bytes_gib, count

STEPS_SHOWN = 6
"""The last ones; the Drain screen has all."""
_INDENT = 2


def drain_lines(view: MachineView, status: DrainStatus | None) -> list[Line]:
    """The flag in a sentence, what comes next, a line for each copy. `status`: None while nobody read it."""
    flag, layout = view.snapshot.drain, view.layout
    if flag is None:
        return []
    words = drain_words(flag, view.now, layout.utc_offset_s)
    tone = DRAIN_TONES.get(flag.state, "accent")
    lines = _wrapped(words, tone, layout.width)
    if flag.is_drained:
        lines += _wrapped(
            "safe to reboot; it takes no requests until it is put back into service", "good", layout.width
        )
    if status is None:
        return lines
    lock = status.lock
    if lock is not None:
        lines += _wrapped(f"{clean(lock.holder)} works on it (process {lock.pid})", "dim", layout.width)
    rows = []
    for copy in status.copies:
        name = source_name(copy.copy)
        where = f"→ {clean(copy.target)}" if copy.target else ""
        text = f"  {clean(copy.text)}" if copy.text else ""
        state: Cells = (
            Cell(state_text(copy, view.now), STATE_TONES.get(copy.state, "plain")),
            Cell(text, "dim"),
        )
        rows.append(((Cell(name, "strong"),), (Cell(where),), state))
    return [*lines, *table((), rows)]


def _wrapped(text: str, tone: Tone, width: int) -> list[Line]:
    parts = wrap(clean(text), max(20, width - _INDENT))
    return [(Cell(" " * (_INDENT if number else 0) + part, tone),) for number, part in enumerate(parts)]


def still_there_lines(view: MachineView, resident: Sequence[tuple[SourceCopy, str]]) -> list[Line]:
    """What keeps a machine that is drained from being empty. `resident`: each copy on it, with what is
    missing to unload it."""
    snapshot = view.snapshot
    if snapshot.drain is None:
        return []
    rows: list[tuple[Cells, ...]] = []
    for engine in snapshot.engines:
        if engine.state not in ("ok", "down") or (
            engine.state == "ok" and isinstance(engine.loaded, Unknown)
        ):
            name = (Cell(f"{engine.kind} :{engine.port}", "strong"),)
            rows.append((name, (), (Cell("what is loaded there is not known", "warn"),)))
    for copy, missing in resident:
        name = (Cell(source_name(copy), "strong"),)
        size = (Cell(f"{bytes_gib(copy.vram_bytes)} GiB"),)
        rows.append((name, size, (Cell(clean(missing), "warn"),)))
    if rows:
        return table((), rows, frozenset({1}))
    return [(Cell("nothing: no copy is loaded, no other process is on a GPU", "good"),)]


def drain_journal_lines(view: MachineView, status: DrainStatus | None) -> list[Line]:
    """The last steps, newest first."""
    if view.snapshot.drain is None or status is None or not status.journal:
        return []
    offset = view.layout.utc_offset_s or 0
    lines: list[Line] = []
    for entry in reversed(status.journal[-STEPS_SHOWN:]):
        about = f" {clean(entry.copy)}" if entry.copy else ""
        target = f" → {clean(entry.target)}" if entry.target else ""
        result = f"  {clean(entry.result)}" if entry.result not in ("", "ok") else ""
        lines.append(
            (
                Cell(f"{hh_mm_ss(entry.at + offset)}  ", "dim"),
                Cell(clean(entry.step)),
                Cell(about, "strong"),
                Cell(target),
                Cell(f"{result}  {clean(entry.by)}", "dim"),
            )
        )
    rest = len(status.journal) - STEPS_SHOWN
    if rest > 0:
        lines.append((Cell(f"and {count(rest, 'step')} before", "dim"),))
    return lines
