"""The stored profile of a machine: when it was measured, what it says, what is another way now."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.profile import Profile
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.machine_view import MachineView
from fleettui.view.profile_text import summary_text
from fleettui.view.tables import Line, fields
from fleettui.view.text import clean, wrap
from fleettui.view.units import date_and_time

_LABEL_WIDTH = 10


def profile_lines(view: MachineView, profile: Profile, differences: Sequence[str]) -> list[Line]:
    """Its date, its content, and a line for each difference, or that there is none."""
    moment = profile.collected_at
    date = (
        "on an unknown day"
        if isinstance(moment, Unknown)
        else date_and_time(moment, view.layout.utc_offset_s or 0)[:-3]
    )
    rows: list[tuple[str, Cells]] = [("measured", (Cell(date),))]
    rows += _wrapped(view, "then", summary_text(profile), "plain")
    for number, text in enumerate(differences):
        rows += _wrapped(view, "" if number else "now", text, "warn")
    if not differences and (view.snapshot.gpu is not None or view.snapshot.memory is not None):
        rows.append(("now", (Cell("no difference", "good"),)))
    return fields(rows)


def _wrapped(view: MachineView, label: str, text: str, tone: Tone) -> list[tuple[str, Cells]]:
    first, *rest = wrap(clean(text), max(20, view.layout.width - _LABEL_WIDTH))
    return [(label, (Cell(first, tone),)), *(("", (Cell(line, tone),)) for line in rest)]
