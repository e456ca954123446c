"""Contrast of two colours by WCAG 2, and colours moved until they can be read."""

from __future__ import annotations

from collections.abc import Sequence

from textual.color import Color

TEXT_RATIO = 4.5
"""Least contrast of text. Source: WCAG 2.2, 1.4.3."""
BAR_RATIO = 3.0
"""Least contrast of what is drawn. Source: WCAG 2.2, 1.4.11."""
_STEP = 0.02
_MIDDLE = 0.18
"""Luminance of a ground that black and white stand out from alike."""


def luminance(color: Color) -> float:
    """Relative luminance, 0 to 1."""
    parts = [part / 255 for part in color.rgb]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Color, other: Color) -> float:
    """1 for the same colour, 21 for black on white."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def readable(color: Color, grounds: Sequence[Color], ratio: float) -> Color:
    """The colour, made lighter or darker, in its hue, as far as it takes to stand out from each ground."""
    step = _STEP if luminance(grounds[0]) < _MIDDLE else -_STEP
    hue, saturation, lightness = color.hsl
    moved = color
    while 0 < lightness < 1 and min(contrast(moved, ground) for ground in grounds) < ratio:
        lightness = min(1.0, max(0.0, lightness + step))
        moved = Color.from_hsl(hue, saturation, lightness)
    return moved
