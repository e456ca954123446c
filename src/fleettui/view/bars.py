"""Bars and the tones of their values."""

from __future__ import annotations

from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.glyphs import UNICODE, Glyphs

Limits = tuple[float, float]
"""(from here warn, from here bad)."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where a value turns from good to warn to bad. Settable: `thresholds:` in settings.yaml."""

    memory: Limits = (70.0, 90.0)
    """Percent."""
    utilisation: Limits = (10.0, 75.0)
    """Percent."""
    temperature: Limits = (75.0, 85.0)
    """°C."""


DEFAULT_THRESHOLDS = Thresholds()
_BAR_TONES: dict[Tone, Tone] = {"good": "bar_good", "warn": "bar_warn", "bad": "bar_bad"}


def tone_for(value: Maybe[float], limits: Limits) -> Tone:
    """`good` below the first limit, `warn` from it, `bad` from the second."""
    if isinstance(value, Unknown):
        return "unknown"
    return "good" if value < limits[0] else "warn" if value < limits[1] else "bad"


def fraction_of(used: Maybe[int], whole: Maybe[int]) -> float | None:
    """How full a bar is; None where that is not known."""
    if isinstance(used, Unknown) or isinstance(whole, Unknown) or whole <= 0:
        return None
    return used / whole


def bar_text(fraction: float, width: int, parts: tuple[str, ...] = UNICODE.bar_parts) -> str:
    """`width` columns filled from the left; a value above 0 shows at least the thinnest part."""
    steps = len(parts) - 1
    filled = round(min(1.0, max(0.0, fraction)) * width * steps)
    if fraction > 0 and filled == 0 and width > 0:
        filled = 1 if steps > 1 else 0
    full, part = divmod(filled, steps)
    text = parts[-1] * full + parts[part]
    return text + " " * (width - len(text))


def bar_cells(
    fraction: float | None,
    width: int,
    limits: Limits,
    glyphs: Glyphs = UNICODE,
    parts: tuple[str, ...] | None = None,
) -> Cells:
    """A framed bar of `width` columns in all; an unknown fraction leaves it blank. `parts`: as
    `glyphs.bar_parts`, which they replace."""
    inner = width - 2
    if inner <= 0:
        return (Cell(" " * max(0, width)),)
    if fraction is None:
        middle = Cell(" " * inner, "bar_dim")
    else:
        tone = tone_for(fraction * 100, limits)
        middle = Cell(bar_text(fraction, inner, parts or glyphs.bar_parts), _BAR_TONES.get(tone, "bar_dim"))
    return (Cell(glyphs.bar_left, "faint"), middle, Cell(glyphs.bar_right, "faint"))
