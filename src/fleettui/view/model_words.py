"""What the Models screen says in words: states, notes, the summary, the signs."""

from __future__ import annotations

from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.cells import Cell, Cells, Tone, join_cells, width_of
from fleettui.view.glyphs import Glyphs
from fleettui.view.model_holdings import LOADED_STATES, Holding, HoldingState
from fleettui.view.model_join import shown_name
from fleettui.view.model_matrix import ModelFigures, ModelLine
from fleettui.view.text import clean
from fleettui.view.units import age, bytes_gib, count, percent_prose, remaining

_TONES: dict[HoldingState, Tone] = {
    "on_gpu": "good",
    "partly": "warn",
    "in_ram": "plain",
    "loaded": "plain",
    "loading": "accent",
    "stopping": "warn",
    "sleeping": "dim",
    "installed": "dim",
    "missing": "warn",
    "unread": "unknown",
    "cloud": "dim",
}
BRIEF_WORDS: dict[HoldingState, str] = {
    "missing": "not installed",
    "unread": "not known",
    "cloud": "runs elsewhere",
}
"""Where the others have no room."""
STATE_WORDS: dict[HoldingState, str] = {
    "on_gpu": "loaded",
    "partly": "loaded",
    "in_ram": "loaded",
    "loaded": "loaded",
    "loading": "loading",
    "stopping": "stopping",
    "sleeping": "sleeping",
    "installed": "installed",
    "missing": "declared, not installed",
    "unread": "declared; not known if installed",
    "cloud": "runs elsewhere (cloud)",
}


def sign_of(state: HoldingState, glyphs: Glyphs, *, is_live: bool = True) -> Cell:
    """One column that says where a machine stands with a model. What is old is dim, and a copy of then has a
    sign of its own: a colour never stands alone."""
    signs: dict[HoldingState, str] = {
        "on_gpu": glyphs.healthy,
        "partly": glyphs.degraded,
        "in_ram": glyphs.hollow,
        "loaded": glyphs.healthy,
        "loading": glyphs.healthy,
        "stopping": glyphs.healthy,
        "sleeping": glyphs.hollow,
        "installed": glyphs.dot,
        "missing": glyphs.offline,
        "unread": glyphs.unknown,
        "cloud": "c",
    }
    if is_live:
        return Cell(signs[state], _TONES[state])
    return Cell(glyphs.old if state in LOADED_STATES else signs[state], "dim")


def vram_cell(vram_bytes: Maybe[int], *, is_least: bool = False) -> Cell:
    """`39.6 GiB`; `39.6+ GiB` where there is more that nobody told."""
    if isinstance(vram_bytes, Unknown):
        return Cell(bytes_gib(vram_bytes), "unknown")
    return Cell(f"{bytes_gib(vram_bytes)}{'+' if is_least else ''} GiB")


def gpu_share_cell(percent: Maybe[int]) -> Cell:
    """`100 %`, `83 %`, `CPU`: what lies on a GPU."""
    if isinstance(percent, Unknown):
        return Cell(percent_prose(percent), "unknown")
    if percent <= 0:
        return Cell("CPU", "dim")
    return Cell(percent_prose(percent), "plain" if percent >= 100 else "warn")


def expiry_cells(figures: ModelFigures, now: float, width: int) -> Cells:
    """`4m ada`: when the first copy expires, and where that fits on which machine; else why none does."""
    if figures.expires_at is None:
        tone: Tone = "warn" if figures.unexpiring == "stopping" else "dim"
        return (Cell(figures.unexpiring, tone),) if figures.copies else ()
    text = remaining(figures.expires_at - now)
    cells: Cells = (Cell(text),)
    if width > 12:
        cells += (Cell(f" {clean(figures.expires_on)}", "dim"),)
    return cells


def spare_text(figures: ModelFigures) -> str:
    """`2 copies, 39.6 GiB more than one needs`. A fact: the operator may want both."""
    copies = count(figures.spare_copies + 1, "copy", "copies")
    if isinstance(figures.spare_bytes, Unknown) or not figures.spare_bytes:
        return copies
    least = "at least " if figures.has_unknown_vram else ""
    return f"{copies}, {least}{bytes_gib(figures.spare_bytes)} GiB more than one needs"


def brief_spare_text(figures: ModelFigures) -> str:
    """The same beside the number of copies: `39.6 GiB more than one needs`; empty where it is nothing, or not
    known."""
    return spare_text(figures).partition(", ")[2]


def note_parts(line: ModelLine) -> list[Cell]:
    """What is worth a look, most urgent first."""
    figures = line.figures
    parts: list[Cell] = []
    if figures.missing:
        names = [holding.machine for holding in line.holdings if holding.state == "missing"]
        parts.append(Cell(f"not installed on {_some(names)}", "warn"))
    if figures.drifting:
        parts.append(Cell(f"another digest on {_some(_drifting(line))}", "warn"))
    if figures.spare_copies and brief_spare_text(figures):
        parts.append(Cell(brief_spare_text(figures)))
    if figures.old_copies:
        parts.append(Cell(f"{count(figures.old_copies, 'copy', 'copies')} on machines not heard now", "dim"))
    if any(holding.state == "cloud" for holding in line.holdings):
        parts.append(Cell("runs elsewhere (cloud)", "dim"))
    if line.title.aliases:
        parts.append(Cell(f"also {', '.join(line.title.aliases)}", "dim"))
    return parts


def note_cells(parts: list[Cell], width: int, glyphs: Glyphs) -> Cells:
    """The parts that fit whole, the first one in any case; an ellipsis where more is to say."""
    for kept in range(len(parts), 0, -1):
        cells = join_cells([(part,) for part in parts[:kept]], "; ")
        if kept < len(parts):
            cells += (Cell(f" {glyphs.ellipsis}", "faint"),)
        if width_of(cells) <= width:
            return cells
    return tuple(parts[:1])


def _drifting(line: ModelLine) -> list[str]:
    return [holding.machine for holding in line.holdings if holding.drift]


def _some(names: list[str]) -> str:
    """Up to two names, then a count."""
    shown = ", ".join(clean(name) for name in names[:2])
    return shown if len(names) <= 2 else f"{shown} and {len(names) - 2} more"


def holding_note(holding: Holding, line: ModelLine, now: float) -> str:
    """What else is to say of one machine's part: declared, its name there, digest, age."""
    parts = []
    if holding.is_declared and holding.state not in {"missing", "unread"}:
        parts.append("declared")
    if holding.is_loaded and holding.installed_bytes is None:
        parts.append("not installed any more")
    shown = map(shown_name, holding.names)
    others = [name for name in shown if name.lower() != line.name.lower()]
    if others:
        parts.append(f"as {', '.join(others)}")
    if holding.drift:
        parts.append(holding.drift)
    if not holding.is_live and holding.state != "unread":
        ago = "" if holding.last_seen is None else f" {age(max(0.0, now - holding.last_seen))} ago"
        parts.append(f"as last heard{ago}")
    return " · ".join(parts)
