"""What `machines doctor` shows while it runs: each machine with the checks it has passed."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.doctor import Checkup, Verdict
from fleettui.view.cells import Cell, Cells, fit_cells
from fleettui.view.doctor_report import TONES, sign_of
from fleettui.view.glyphs import Glyphs
from fleettui.view.text import cell_width, clean, fit
from fleettui.view.units import count

_NAME_MAX = 24
_WORDS: dict[Verdict, str] = {"pass": "fine", "warn": "warning", "fail": "failed"}
_SPINS = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")


def progress_lines(
    checkups: Sequence[Checkup], width: int, height: int, step: int, glyphs: Glyphs
) -> list[Cells]:
    """At most `height` lines of less than `width` columns. `step` counts the drawings.

    Machines that are done give way to the others where not all of them fit.
    """
    width = max(width - 1, 20)  # the last column stays free: some terminals wrap there
    done = [checkup for checkup in checkups if checkup.is_done]
    running = [checkup for checkup in checkups if not checkup.is_done]
    room = max(height - 2, 1)
    shown = list(checkups) if len(checkups) <= room else running
    hidden = max(0, len(shown) - room)
    if hidden:
        shown = shown[: room - 1]
        hidden = len(running) - len(shown)
    name_width = min(max((cell_width(clean(checkup.name)) for checkup in checkups), default=0), _NAME_MAX)
    lines = [_machine_line(checkup, name_width, width, step, glyphs) for checkup in shown]
    if hidden:
        lines.append((Cell(glyphs.plain(f"  … and {hidden} more"), "dim"),))
    return [*lines, _summary_line(checkups, len(done), width, glyphs)]


def _machine_line(checkup: Checkup, name_width: int, width: int, step: int, glyphs: Glyphs) -> Cells:
    spin = _SPINS[glyphs.is_ascii]
    at = len(checkup.results)
    name = fit(clean(checkup.name), name_width, glyphs.ellipsis)
    cells = [Cell(f"{name}  ", "strong")]
    cells += [Cell(sign_of(result.state, glyphs), TONES[result.state]) for result in checkup.results]
    if checkup.is_done:
        told = Cell(f"  {_WORDS[checkup.verdict]}", TONES[checkup.verdict])
    else:
        cells.append(Cell(spin[step % len(spin)], "accent"))
        cells.append(Cell(("." if glyphs.is_ascii else "·") * (len(checkup.planned) - at - 1), "faint"))
        told = Cell(f"  {clean(checkup.planned[at])}", "dim")
    return fit_cells((*cells, told), width, "left", glyphs.ellipsis)


def _summary_line(checkups: Sequence[Checkup], done: int, width: int, glyphs: Glyphs) -> Cells:
    verdicts = [checkup.verdict for checkup in checkups if checkup.is_done]
    cells = [Cell(f"checked {done} of {count(len(checkups), 'machine')}", "title")]
    for verdict, word in _WORDS.items():
        number = verdicts.count(verdict)
        if number:
            text = count(number, word) if verdict == "warn" else f"{number} {word}"
            cells += [Cell(f" {glyphs.dot} ", "faint"), Cell(text, TONES[verdict])]
    return fit_cells(cells, width, "left", glyphs.ellipsis)
