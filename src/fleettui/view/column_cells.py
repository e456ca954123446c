"""Cells of the columns that speak of the machine itself."""

from __future__ import annotations

from fleettui.model.gpu import GpuCard
from fleettui.model.snapshot import Health, Reason, Severity
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.bars import tone_for
from fleettui.view.cells import NOTHING, Cell, Cells, Tone, fit_cells, join_cells, width_of
from fleettui.view.figures import DISK_FULL_PERCENT, fullest_disk_percent, net_rates
from fleettui.view.flags import fitting_flags
from fleettui.view.gpu_cells import UNKNOWN
from fleettui.view.machine_view import MachineView
from fleettui.view.text import cell_width, clean
from fleettui.view.units import DASH, kib_gib, percent
from fleettui.view.units import age as age_text

HEALTH_TONES: dict[Health, Tone] = {
    "healthy": "good",
    "degraded": "warn",
    "unhealthy": "bad",
    "offline": "bad",
    "unknown": "dim",
}
SEVERITY_TONES: dict[Severity, Tone] = {
    "offline": "bad",
    "unhealthy": "bad",
    "degraded": "warn",
    "note": "dim",
}


def machine_name(view: MachineView, width: int) -> Cells:
    glyphs = view.layout.glyphs
    mark = glyphs.expanded if view.is_expanded else glyphs.collapsed
    tone: Tone = "dim" if view.is_stale else "strong"
    return (Cell(f" {mark} ", "faint"), Cell(clean(view.snapshot.name), tone))


def health(view: MachineView, width: int) -> Cells:
    """Sign and word; a flag behind them marks maintenance and drain. Offline there is expected."""
    snapshot, glyphs = view.snapshot, view.layout.glyphs
    tone, word, sign = HEALTH_TONES[snapshot.health], snapshot.health, glyphs.of_health(snapshot.health)
    words: str = word
    if snapshot.trust != "approved":
        words = snapshot.trust.replace("_", " ")
        tone = "bad" if snapshot.trust == "key_changed" else "warn" if snapshot.trust == "pending" else "dim"
    elif word == "offline" and snapshot.is_out_of_service:
        tone = "dim"
    is_flagged = snapshot.maintenance is not None or snapshot.drain is not None
    if width < 8:
        return (Cell(sign, tone),)
    cells = (Cell(f"{sign} {words}", tone),)
    if not is_flagged:
        return cells
    flags = (snapshot.maintenance, snapshot.drain)
    is_overdue = any(flag is not None and flag.is_overdue(view.now) for flag in flags)
    return (*cells, Cell(f" {glyphs.flag}", "warn" if is_overdue else "accent"))


def cpu(view: MachineView, width: int) -> Cells:
    reading = view.snapshot.cpu
    if reading is None or isinstance(reading.busy_percent, Unknown):
        return UNKNOWN
    return (Cell(percent(reading.busy_percent, width), "dim" if view.is_stale else "plain"),)


def ram(view: MachineView, width: int) -> Cells:
    memory = view.snapshot.memory
    if memory is None or isinstance(memory.total_kib, Unknown):
        return UNKNOWN
    text = f"{kib_gib(memory.used_kib)}/{kib_gib(memory.total_kib)}"
    if view.is_stale or isinstance(memory.used_kib, Unknown):
        return (Cell(text, "dim"),)
    if memory.is_available_low:  # no alarm without a second sign; a reason tells when there is one
        return (Cell(text),)
    tone = tone_for(memory.used_kib * 100 / max(1, memory.total_kib), view.layout.thresholds.memory)
    return (Cell(text, "plain" if tone == "good" else tone),)


def disk(view: MachineView, width: int) -> Cells:
    full = fullest_disk_percent(view.snapshot)
    if isinstance(full, Unknown):
        return UNKNOWN
    return (Cell(percent(full, width), "warn" if full > DISK_FULL_PERCENT else "dim"),)


def net(view: MachineView, width: int) -> Cells:
    received, sent = net_rates(view.snapshot)
    if isinstance(received, Unknown) and isinstance(sent, Unknown):
        return UNKNOWN
    glyphs = view.layout.glyphs
    return (Cell(f"{glyphs.down}{_megabytes(received)} {glyphs.up}{_megabytes(sent)}", "dim"),)


def _megabytes(value: Maybe[float]) -> str:
    if isinstance(value, Unknown):
        return DASH
    return f"{value / 1e6:.1f}" if value < 99.95e6 else f"{value / 1e6:.0f}"


def age(view: MachineView, width: int) -> Cells:
    """`now` while the machine keeps its pace: a line whose values stay is not painted again for its age."""
    seconds = view.age_s
    if seconds is None:
        return UNKNOWN
    if view.is_answering and seconds <= view.layout.fresh_s:
        return (Cell("now", "dim"),)
    return (Cell(age_text(seconds), "warn" if view.is_answering else "dim"),)


def note(view: MachineView, width: int) -> Cells:
    """Flags, then the most severe reason and how many more there are."""
    parts = [_flags(view, width)]
    reasons = view.snapshot.reasons
    if reasons and not view.is_expanded and not (is_severe(reasons[0]) and is_note_short(view, width)):
        first = Cell(clean(reasons[0].text), SEVERITY_TONES[reasons[0].severity])
        more = _more_text(view)
        room = max(0, _note_room(view, width))
        shown: Cells = (first,)
        if width_of(shown) > room:
            shown = fit_cells(shown, room, "left", view.layout.glyphs.ellipsis)
        parts.append((*shown, Cell(more, "dim")) if more else shown)
    return join_cells(parts, "  ")


def is_severe(reason: Reason) -> bool:
    """True for a reason that must be read whole: where the note is too short it has its own line."""
    return reason.severity in {"unhealthy", "degraded"}


def is_note_short(view: MachineView, width: int) -> bool:
    """True when the most severe reason does not fit a note of `width` columns."""
    return cell_width(clean(view.snapshot.reasons[0].text)) > _note_room(view, width)


def _note_room(view: MachineView, width: int) -> int:
    """Columns of a note left for the first reason."""
    flags = _flags(view, width)
    return width - width_of(flags) - (2 if flags else 0) - len(_more_text(view))


def _flags(view: MachineView, width: int) -> Cells:
    return fitting_flags(view.snapshot, view.now, view.layout.glyphs, width)[0]


def _more_text(view: MachineView) -> str:
    """` (+2)` for reasons after the first."""
    count = len(view.snapshot.reasons)
    return f" (+{count - 1})" if count > 1 else ""


def blank_gpu(view: MachineView, card: GpuCard, width: int) -> Cells:
    """A column that says nothing of a single GPU."""
    return NOTHING
