"""Models and engines of one machine: loaded, declared, installed."""

from __future__ import annotations

from fleettui.model.contexts import engine_of, longest_context
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.names import is_served_as
from fleettui.model.readings import EngineReading
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.cells import Cell, Cells, Tone, dimmed
from fleettui.view.copies import copy_parts, ordered_copies, share_cell
from fleettui.view.copy_work import work_cell
from fleettui.view.machine_view import MachineView
from fleettui.view.tables import Line, table
from fleettui.view.text import clean
from fleettui.view.units import bytes_gib


def loaded_lines(view: MachineView) -> list[Line]:
    """Each copy, largest first; one line that says so where there is none, or nobody knows."""
    snapshot = view.snapshot
    if not snapshot.loaded:
        return [_nothing_loaded(view)]
    rows = []
    for copy in ordered_copies(snapshot.loaded):
        cards = sorted({share.gpu_index for share in view.shares if share.copy is copy})
        where = f"GPU {', '.join(map(str, cards))}" if cards else ""
        longest = longest_context(engine_of(snapshot, copy), copy)
        size, share, expiry, *rest = copy_parts(copy, view.now, longest)
        is_slow = share_cell(copy) is not None and not view.has_no_gpu
        rows.append(
            (
                (Cell(clean(copy.name)),),
                (Cell(size),),
                (Cell(share, "warn" if is_slow else "dim"),),
                (Cell(expiry, "warn" if copy.state == "stopping" else "plain"),),
                (Cell(where, "dim"),),
                (work_cell(snapshot, copy, view.now),),
                *((Cell(text, "dim"),) for text in rest),
            )
        )
    lines = table((), rows, frozenset({1, 2}), view.layout.width)
    return [dimmed(line) for line in lines] if view.is_engine_stale else lines


def _nothing_loaded(view: MachineView) -> Line:
    engines = view.snapshot.engines
    if any(not isinstance(engine.loaded, Unknown) for engine in engines):
        return (Cell("nothing is loaded", "dim"),)
    return (
        Cell("not known: no engine answered" if engines else "not known: no engine was asked", "unknown"),
    )


def model_lines(view: MachineView) -> list[Line]:
    """Declared models with their state, then installed ones that nobody declared."""
    snapshot = view.snapshot
    declared = snapshot.machine.models
    is_read = any(not isinstance(engine.installed, Unknown) for engine in snapshot.engines)
    rows: list[tuple[Cells, ...]] = []
    for name in declared:
        size = next((m.size_bytes for m in snapshot.installed if is_served_as(m.engine, m.name, name)), None)
        is_loaded = any(
            is_served_as(c.engine, c.name, name) for c in snapshot.loaded if c.state != "stopping"
        )
        state = (
            Cell("loaded", "good")
            if is_loaded
            else Cell("installed", "plain")
            if size is not None
            else Cell("not installed", "warn")
            if is_read
            else Cell("not known", "unknown")
        )
        rows.append(((Cell(clean(name)),), (Cell("declared", "dim"),), (state,), (Cell(_size(size), "dim"),)))
    for model in snapshot.installed:
        if any(is_served_as(model.engine, model.name, name) for name in declared):
            continue
        is_loaded = any(copy.name == model.name and copy.engine == model.engine for copy in snapshot.loaded)
        state = Cell("loaded", "good") if is_loaded else Cell("installed", "plain")
        if model.remote_host is not None:
            state = Cell(f"runs on {clean(model.remote_host)}", "dim")
        rows.append(
            (
                (Cell(clean(model.name)),),
                (Cell("", "dim"),),
                (state,),
                (Cell(_size(model.size_bytes), "dim"),),
            )
        )
    return table((), rows)


def _size(count: Maybe[int] | None) -> str:
    return "" if count is None or isinstance(count, Unknown) else f"{bytes_gib(count)} GiB"


def engine_lines(view: MachineView) -> list[Line]:
    rows = []
    for engine in view.snapshot.engines:
        version = "" if isinstance(engine.version, Unknown) else clean(engine.version)
        tone: Tone = "good" if engine.state == "ok" else "warn"
        path = {
            "tunnel": "through SSH",
            "direct": "asked directly",
            "remote": "asked by its own curl or wget",
        }
        rows.append(
            (
                (Cell(ENGINE_TITLES.get(engine.kind, engine.kind)),),
                (Cell(version),),
                (Cell(f"port {engine.port}", "dim"),),
                (Cell(engine.state.replace("_", " "), tone),),
                (
                    Cell(clean(engine.error), "warn") if engine.error else Cell(path[engine.path], "dim"),
                    *_load_cells(engine),
                ),
            )
        )
    return table((), rows)


def _load_cells(engine: EngineReading) -> Cells:
    """` · 3 running, 1 waiting, KV 31 %`, that it sleeps, or why it does not tell; nothing of Ollama."""
    if engine.is_sleeping is True:
        return (Cell(" · asleep", "dim"),)
    if isinstance(engine.running, Unknown):
        is_told = "metrics" in engine.running.reason and engine.is_answering
        return (Cell(f" · {clean(engine.running.reason)}", "unknown"),) if is_told else ()
    words = [f"{engine.running} running"]
    if not isinstance(engine.waiting, Unknown) and engine.waiting:
        words.append(f"{engine.waiting} waiting")
    if not isinstance(engine.kv_percent, Unknown):
        words.append(f"KV {engine.kv_percent:.0f} %")
    return (Cell(f" · {', '.join(words)}", "accent" if engine.running else "dim"),)
