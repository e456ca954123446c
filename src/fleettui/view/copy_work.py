"""Whether a copy works, or how long it is idle, in a few words."""

from __future__ import annotations

from fleettui.model.busy import find_busy_signs, idle_s
from fleettui.model.clock import duration_words
from fleettui.model.contexts import engine_of
from fleettui.model.readings import LoadedModel
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell


def work_cell(snapshot: MachineSnapshot, copy: LoadedModel, now: float) -> Cell:
    """`at work: 2 running`, `idle 12 min`; empty where nothing is known."""
    engine = engine_of(snapshot, copy)
    if engine is None or copy.state != "loaded":
        return Cell("", "dim")
    signs = find_busy_signs(snapshot, engine, copy, now)
    if signs:
        return Cell(f"at work: {', '.join(sign.text for sign in signs)}", "accent")
    unused_s = idle_s(snapshot, engine, copy, now)
    return Cell("" if isinstance(unused_s, Unknown) else f"idle {duration_words(unused_s)}", "dim")
