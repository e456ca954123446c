"""How what runs on a machine differs from what its file declares, in words."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.gpu import GpuProcess
from fleettui.model.gpu_users import other_processes, undeclared_engines
from fleettui.model.residency import unexplained_mib
from fleettui.model.sockets import FoundEngine
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.machine_view import MachineView
from fleettui.view.model_drift import Drift, DriftKind, find_drift
from fleettui.view.tables import Line, table
from fleettui.view.text import clean, wrap
from fleettui.view.units import bytes_gib, count, gib_text

_MIN_UNEXPLAINED_MIB = 1024
"""CUDA contexts and the driver's own reserve are no riddle."""
_DIGEST_SHOWN = 12
_MOST_NAMES = 3
_WORDS: dict[DriftKind, tuple[str, Tone]] = {
    "not_installed": ("declared, not installed", "warn"),
    "gone": ("loaded, not installed any more", "warn"),
    "loaded_not_declared": ("loaded, not declared", "warn"),
    "not_declared": ("installed, not declared", "dim"),
    "other_digest": ("other weights than elsewhere", "warn"),
}


def drift_lines(view: MachineView, others: Sequence[Drift]) -> list[Line]:
    """A line for each difference; one that says so where there is none. `others`: digests."""
    found = find_drift(view.snapshot)
    if not view.snapshot.engines:
        return []
    if found is None:
        return [(Cell("what is installed was not read: differences are not known", "unknown"),)]
    drifts = [*found, *others]
    if not drifts:
        declared = view.snapshot.machine.models
        text = "none: what is declared is installed, and nothing else" if declared else ""
        return [(Cell(text or "the file declares no models", "good" if declared else "dim"),)]
    return table((), [_row_of(drift) for drift in drifts])


def _row_of(drift: Drift) -> tuple[Cells, ...]:
    words, tone = _WORDS[drift.kind]
    size = "" if isinstance(drift.size_bytes, Unknown) else f"{bytes_gib(drift.size_bytes)} GiB"
    more = _digest_text(drift) if drift.kind == "other_digest" else size
    return ((Cell(clean(drift.model)),), (Cell(words, tone),), (Cell(more, "dim"),))


def _digest_text(drift: Drift) -> str:
    """`1a2b3c4d5e6f here, 365c0bd3c000 on bora, cleo and 2 more`."""
    names = [clean(name) for name in drift.machines[:_MOST_NAMES]]
    where = ", ".join(names)
    if len(drift.machines) > _MOST_NAMES:
        where += f" and {len(drift.machines) - _MOST_NAMES} more"
    here, there = clean(drift.digest[:_DIGEST_SHOWN]), clean(drift.other_digest[:_DIGEST_SHOWN])
    return f"{here} here, {there} on {where}"


def stranger_lines(view: MachineView) -> list[Line]:
    """Engines nobody declared, processes of no known engine, memory that nothing explains."""
    snapshot = view.snapshot
    lines: list[Line] = []
    found = {engine.kind for engine in snapshot.found or ()}
    for engine in snapshot.found or ():
        lines += _wrapped(view, found_text(engine), "warn")
    for kind, processes in undeclared_engines(snapshot).items():
        if kind in found:
            continue
        title = ENGINE_TITLES.get(kind, kind)
        text = f"{title} runs here, the file declares none: {_sum_text(processes)}"
        lines += _wrapped(view, text, "warn")
    others = other_processes(snapshot)
    if others:
        verb = "belongs" if len(others) == 1 else "belong"
        text = f"{count(len(others), 'process', 'processes')} on the GPU {verb} to no known engine: "
        lines += _wrapped(view, text + _sum_text(others), "plain")
    rest = unexplained_mib(snapshot)
    if not isinstance(rest, Unknown) and rest >= _MIN_UNEXPLAINED_MIB:
        lines += _wrapped(view, f"no process and no copy explains {gib_text(rest)} GiB of VRAM", "warn")
    return lines


def found_text(engine: FoundEngine) -> str:
    """What it is, where, and what to do."""
    title = ENGINE_TITLES.get(engine.kind, engine.kind)
    where = f"port {engine.port}{' of the loopback' if engine.is_loopback else ''}"
    if engine.is_polled:
        return f"{title} answers on {where}: it is asked and routed to, since the file names no engine"
    return f"{title} answers on {where}, the file does not name it: add it under engines: to have it asked"


def _sum_text(processes: Sequence[GpuProcess]) -> str:
    """`20.1 GiB of mia (pid 99), …`."""
    parts = []
    for process in processes[:_MOST_NAMES]:
        memory = (
            "memory not known"
            if isinstance(process.used_mib, Unknown)
            else f"{gib_text(process.used_mib)} GiB"
        )
        owner = "" if isinstance(process.user, Unknown) else f" of {clean(process.user)}"
        parts.append(f"{clean(process.short_name)}{owner}, pid {process.pid}, {memory}")
    more = len(processes) - _MOST_NAMES
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _wrapped(view: MachineView, text: str, tone: Tone) -> list[Line]:
    first, *rest = wrap(text, max(20, view.layout.width - 2))
    return [(Cell(first, tone),), *((Cell(f"  {line}", tone),) for line in rest)]
