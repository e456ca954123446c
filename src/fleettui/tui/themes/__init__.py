"""Themes: ours, Textual's own, and the colour of every tone under any of them."""

from __future__ import annotations

from textual.theme import BUILTIN_THEMES, Theme

from fleettui.tui.themes.own import ANSI, DARK, DESCRIPTIONS, LIGHT, THEMES
from fleettui.tui.themes.tones import tone_variables

__all__ = ["ANSI", "DARK", "LIGHT", "THEMES", "describe_theme", "theme_names", "tone_variables"]


def theme_names() -> tuple[str, ...]:
    """Every theme that can be worn: ours first, then Textual's in alphabetical order."""
    ours = [theme.name for theme in THEMES]
    return (*ours, *sorted(name for name in BUILTIN_THEMES if name not in ours))


def describe_theme(name: str) -> str:
    """What sets a theme apart, in a few words."""
    if name in DESCRIPTIONS:
        return DESCRIPTIONS[name]
    theme: Theme | None = BUILTIN_THEMES.get(name)
    if theme is None:
        return ""
    kind = "dark" if theme.dark else "light"
    return f"your terminal's own, {kind}" if theme.ansi else kind
