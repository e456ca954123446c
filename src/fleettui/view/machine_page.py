"""Pages of one machine, as titled sections of lines: its hardware, its models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fleettui.model.drain import DrainStatus, SourceCopy
from fleettui.model.machine import ConfigProblem
from fleettui.model.profile import Profile
from fleettui.model.snapshot import MachineSnapshot
from fleettui.view.cells import Cell, fit_cells, width_of
from fleettui.view.gpu_condition import identity_lines
from fleettui.view.layout import Layout
from fleettui.view.machine_drain import drain_journal_lines, drain_lines, still_there_lines
from fleettui.view.machine_drift import drift_lines, stranger_lines
from fleettui.view.machine_gpus import gpu_lines, process_lines
from fleettui.view.machine_graphs import Graphs
from fleettui.view.machine_models import engine_lines, loaded_lines, model_lines
from fleettui.view.machine_state import file_lines, key_lines, source_lines, state_lines
from fleettui.view.machine_system import disk_lines, net_lines, system_lines
from fleettui.view.machine_view import MachineView
from fleettui.view.model_drift import Drift
from fleettui.view.problems import problem_line
from fleettui.view.profile_lines import profile_lines
from fleettui.view.tables import Line


class Section(NamedTuple):
    """A title with its lines; each line fits the layout's width."""

    title: str
    lines: tuple[Line, ...]
    is_right: bool = False
    """Where there are two columns it stands in the right one, so that sections never change sides."""


Entry = tuple[str, list[Line]]


def hardware_page(
    snapshot: MachineSnapshot,
    now: float,
    layout: Layout,
    problems: tuple[ConfigProblem, ...] = (),
    graphs: Graphs | None = None,
    profile: Profile | None = None,
    differences: Sequence[str] = (),
    drain: DrainStatus | None = None,
    resident: Sequence[tuple[SourceCopy, str]] = (),
) -> tuple[Section, ...]:
    """Health, then utilisation and devices, then the system. `problems`: of the whole fleet; `graphs`: None
    where no history is kept; `profile`: None where none is stored; `differences`: from it to what is
    read now; `drain`: as it is stored, of a machine that is drained; `resident`: what lies on such a machine,
    with what is missing to unload it."""
    view = _view_of(snapshot, now, layout)
    own = tuple(problem for problem in problems if problem.file == snapshot.machine.config_file)
    cards: list[Entry] = [("GPUs", gpu_lines(view))]
    machine: list[Entry] = []
    if graphs is not None:
        cards.append(("GPU history", graphs.cards))
        machine.append(("Machine history", graphs.machine))
    left: list[Entry] = [
        ("State", state_lines(view)),
        ("Drain", drain_lines(view, drain)),
        ("Still there", still_there_lines(view, resident)),
        ("Drain journal", drain_journal_lines(view, drain)),
        ("Host key", key_lines(view)),
        ("Problems in the file", [(Cell(problem_line(problem), "bad"),) for problem in own]),
        *cards,
        *(machine if view.has_no_gpu else ()),
    ]
    right: list[Entry] = [
        *(() if view.has_no_gpu else machine),
        ("System", system_lines(view)),
        ("Profile", profile_lines(view, profile, differences) if profile is not None else []),
        ("Disks", disk_lines(view)),
        ("Network", net_lines(view)),
        ("GPU identity", identity_lines(snapshot.gpu) if snapshot.gpu is not None else []),
        ("Sources", source_lines(view)),
        ("File", file_lines(view)),
    ]
    return make_sections(layout, left, right)


def models_page(
    snapshot: MachineSnapshot,
    now: float,
    layout: Layout,
    other_digests: Sequence[Drift] = (),
    planned: Sequence[Line] = (),
) -> tuple[Section, ...]:
    """What is loaded, how that differs from what is declared, who is on the GPUs. `other_digests`: models
    that are something else on other machines; `planned`: roles of the placement plan."""
    view = _view_of(snapshot, now, layout)
    left: list[Entry] = [
        ("Loaded models", loaded_lines(view)),
        ("Differences", drift_lines(view, other_digests)),
        ("Plan roles", list(planned)),
        ("Declared and installed models", model_lines(view)),
    ]
    right: list[Entry] = [
        ("GPU processes", process_lines(view)),
        ("Not managed", stranger_lines(view)),
        ("Engines", engine_lines(view)),
    ]
    return make_sections(layout, left, right)


def _view_of(snapshot: MachineSnapshot, now: float, layout: Layout) -> MachineView:
    return MachineView(snapshot, float(int(now)), layout, True)


def make_sections(layout: Layout, left: Sequence[Entry], right: Sequence[Entry]) -> tuple[Section, ...]:
    """Those that have something to say."""
    return tuple(
        Section(title, tuple(_finish(layout, lines)), is_right)
        for is_right, entries in ((False, left), (True, right))
        for title, lines in entries
        if lines
    )


def _finish(layout: Layout, lines: list[Line]) -> list[Line]:
    """No line wider than the layout, in the layout's signs."""
    finished = []
    for raw in lines:
        line = raw
        if layout.glyphs.is_ascii:
            line = tuple(Cell(layout.glyphs.plain(cell.text), cell.tone) for cell in raw)
        is_wide = width_of(line) > layout.width
        finished.append(fit_cells(line, layout.width, "left", layout.glyphs.ellipsis) if is_wide else line)
    return finished
