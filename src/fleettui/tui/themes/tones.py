"""The colours of our tones under a theme that does not name them: its own, moved until they can be read."""

from __future__ import annotations

from collections.abc import Mapping

from textual.color import Color, ColorParseError

from fleettui.tui.themes.contrast import BAR_RATIO, TEXT_RATIO, contrast, readable

_DIM, _FAINT = 0.3, 0.55
"""Shares of the ground."""
_PLAIN_RATIO, _STRONG_RATIO, _FAINT_RATIO = 6.0, 8.0, 2.0
"""Beside dim text, which has the least that text may have."""
_GROUND_RATIO = 1.3
"""Most contrast of the lines of cursor and footer with the ground: tones must be read on each."""
_HUES_APART = 20 / 360
_APART = 60.0
"""Distance in RGB from which an accent is not taken for a warning."""


def tone_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """CSS variables of all tones, made from Textual's of the theme."""
    ground = _color(variables, "background")
    text = _color(variables, "foreground")
    if ground is None or text is None:
        return _terminal_tones(variables)
    primary = _color(variables, "primary") or text
    good, warn, bad = (_color(variables, name) or text for name in ("success", "warning", "error"))
    warn = _yellower(warn, bad)
    cursor, footer = _near(ground, primary), _near(ground, _color(variables, "panel") or ground, 1.0)
    grounds = (ground, cursor, footer)
    accents = [_color(variables, name) for name in ("accent", "primary", "secondary")]
    apart = [
        color
        for color in accents
        if color is not None and all(_distance(color, other) >= _APART for other in (good, warn, bad))
    ]
    found = {
        "tone-plain": readable(text, grounds, _PLAIN_RATIO),
        "tone-strong": readable(text, grounds, _STRONG_RATIO),
        "tone-dim": readable(text.blend(ground, _DIM, alpha=1.0), grounds, TEXT_RATIO),
        "tone-faint": readable(text.blend(ground, _FAINT, alpha=1.0), grounds, _FAINT_RATIO),
        "tone-good": readable(good, grounds, TEXT_RATIO),
        "tone-warn": readable(warn, grounds, TEXT_RATIO),
        "tone-bad": readable(bad, grounds, TEXT_RATIO),
        "tone-accent": readable(apart[0] if apart else text, grounds, TEXT_RATIO),
        "line-cursor": cursor,
        "line-header": ground,
        "line-footer": footer,
        "bar-good": readable(good, grounds, BAR_RATIO),
        "bar-warn": readable(warn, grounds, BAR_RATIO),
        "bar-bad": readable(bad, grounds, BAR_RATIO),
    }
    return {name: color.hex for name, color in found.items()}


def _yellower(warn: Color, bad: Color) -> Color:
    """A warning whose orange is next to the red of an error, moved towards yellow."""
    hue, saturation, lightness = warn.hsl
    turn = (hue - bad.hsl.h + 0.5) % 1.0 - 0.5
    if abs(turn) >= _HUES_APART:
        return warn
    return Color.from_hsl((bad.hsl.h + 2 * _HUES_APART) % 1.0, saturation, lightness)


def _near(ground: Color, color: Color, share: float = 0.3) -> Color:
    """The ground with that share of a colour, less where text could not be read on both."""
    mixed = ground.blend(color, share, alpha=1.0)
    while share > 0.05 and contrast(mixed, ground) > _GROUND_RATIO:
        share -= 0.02
        mixed = ground.blend(color, share, alpha=1.0)
    return mixed


def _terminal_tones(variables: Mapping[str, str]) -> dict[str, str]:
    """The terminal's colours are what they are; dim tones are dimmed by an attribute."""
    good, warn, bad = (variables[name] for name in ("success", "warning", "error"))
    text, ground = variables["foreground"], variables["background"]
    return {
        **dict.fromkeys(("tone-plain", "tone-strong", "tone-dim", "tone-faint"), text),
        "tone-good": good,
        "tone-warn": warn,
        "tone-bad": bad,
        "tone-accent": variables["accent"] if variables["accent"] != good else variables["secondary"],
        "line-cursor": ground,
        "line-header": ground,
        "line-footer": ground,
        "bar-good": good,
        "bar-warn": warn,
        "bar-bad": bad,
    }


def _color(variables: Mapping[str, str], name: str) -> Color | None:
    """A colour in full; None where the theme leaves it to the terminal, or mixes it when it paints."""
    try:
        color = Color.parse(variables[name])
    except (ColorParseError, KeyError):
        return None
    return None if color.ansi is not None or color.a < 1 else color


def _distance(one: Color, other: Color) -> float:
    return float(sum((a - b) ** 2 for a, b in zip(one.rgb, other.rgb, strict=True)) ** 0.5)
