"""Processes on a card that no copy explains: whose they are, on the card's line and below it."""

from __future__ import annotations

from fleettui.model.gpu import GpuCard, GpuProcess
from fleettui.model.unknown import Unknown, known_or
from fleettui.view.cells import Cell, Cells, join_cells
from fleettui.view.machine_view import MachineView
from fleettui.view.process_command import short_command
from fleettui.view.text import cell_width, clean
from fleettui.view.units import count, gib_text

MOST_SHOWN = 6
"""Lines for the processes of one card; the last says how many more there are."""
_PID_WIDTH = 11


def others_on(view: MachineView, card: GpuCard) -> list[GpuProcess]:
    """Processes on the card that are no engine's of this machine, largest first."""
    return view.unexplained.get(card.index, ([], []))[1]


def runner_cells(view: MachineView, card: GpuCard) -> list[Cells]:
    """`ollama 8.8`, `python3 4.0 (jo)`: processes of this machine's engines whose copy is not proven."""
    found = view.unexplained.get(card.index, ([], []))[0]
    return [(Cell(f"{_program(item)}{_size(item)}{_odd_user(item)}", "dim"),) for item in found]


def others_cells(view: MachineView, card: GpuCard) -> Cells:
    """`mia: python3.11 17.2, jo: python 2.1`, for the card's own line."""
    return join_cells([_brief(item) for item in others_on(view, card)], ", ")


def lines_below(view: MachineView, card: GpuCard, name_width: int) -> list[Cells]:
    """A line for each process of others on the card."""
    return _lines(view, others_on(view, card), name_width)


def unplaced_lines(view: MachineView, name_width: int) -> list[Cells]:
    """The same for processes of which no card is known: that of several cards, a driver that names none."""
    if view.snapshot.gpu is None or not view.snapshot.gpu.cards:
        return []
    return _lines(view, view.unexplained.get(-1, ([], []))[1], name_width, " on an unknown GPU")


def _lines(view: MachineView, processes: list[GpuProcess], name_width: int, where: str = "") -> list[Cells]:
    glyphs = view.layout.glyphs
    shown = processes if len(processes) <= MOST_SHOWN else processes[: MOST_SHOWN - 1]
    lines: list[Cells] = []
    for number, item in enumerate(shown, 1):
        mark = glyphs.branch_last if number == len(processes) else glyphs.branch
        user = clean(str(known_or(item.user, "unknown user")))
        size = f"{gib_text(item.used_mib)} GiB"
        pad = " " * (name_width - 2 - cell_width(user))
        text = f"  {size:>9}  {f'pid {item.pid}':<{_PID_WIDTH}}{_command(item)}{where}"
        lines.append((Cell(f"{mark} ", "faint"), Cell(user + pad), Cell(text, "dim")))
    rest = processes[len(shown) :]
    if rest:
        users = sorted({clean(item.user) for item in rest if not isinstance(item.user, Unknown)})
        text = f"{count(len(rest), 'more process', 'more processes')}: {', '.join(users)}".removesuffix(": ")
        lines.append((Cell(f"{glyphs.branch_last} ", "faint"), Cell(text, "dim")))
    return lines


def _brief(process: GpuProcess) -> Cells:
    text = f"{_program(process)}{_size(process)}"
    if isinstance(process.user, Unknown):
        return (Cell(text, "dim"),)
    return (Cell(f"{clean(process.user)}: "), Cell(text, "dim"))


def _program(process: GpuProcess) -> str:
    return clean(process.short_name)


def _odd_user(process: GpuProcess) -> str:
    """An engine's own user says nothing new."""
    user = process.user
    return "" if isinstance(user, Unknown) or user in process.short_name else f" ({clean(user)})"


def _size(process: GpuProcess) -> str:
    return "" if isinstance(process.used_mib, Unknown) else f" {gib_text(process.used_mib)}"


def _command(process: GpuProcess) -> str:
    known = not isinstance(process.command, Unknown) and process.command.strip()
    return short_command(clean(str(process.command))) if known else _program(process)
