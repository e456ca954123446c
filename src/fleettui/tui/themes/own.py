"""Our themes. Every tone is named; tests hold each to its contrast."""

from __future__ import annotations

from typing import NamedTuple

from textual.theme import BUILTIN_THEMES, Theme

DARK = "fleettui-dark"
LIGHT = "fleettui-light"
CONTRAST = "fleettui-contrast"
COLORBLIND_DARK = "fleettui-colorblind-dark"
COLORBLIND_LIGHT = "fleettui-colorblind-light"
ANSI = "fleettui-ansi"


class _Palette(NamedTuple):
    """The colours of a theme, by what they are for."""

    ground: str
    panel: str
    """Of the footer and what lies above the ground."""
    cursor: str
    """Ground of the line under the cursor."""
    plain: str
    strong: str
    dim: str
    faint: str
    good: str
    warn: str
    bad: str
    accent: str
    primary: str
    bars: tuple[str, str, str]
    """Good, warn, bad."""
    scrollbar: tuple[str, str]
    """At rest, under the mouse."""


_DARK = _Palette(
    "#12161d", "#1c222c", "#26303f",
    "#d3dae3", "#f2f5f9", "#909bab", "#667184",
    "#86c29a", "#e2b666", "#ec7f7f", "#86b9e6", "#6fb3d2",
    ("#5f9e78", "#c99a45", "#d56464"), ("#3a4454", "#4d5766"),
)  # fmt: skip
_LIGHT = _Palette(
    "#fafbfc", "#e9ecf1", "#dde6f0",
    "#26303b", "#0b1118", "#566170", "#848e9c",
    "#1d7144", "#8a5700", "#b0282c", "#15609a", "#0f6a94",
    ("#2f8055", "#a06a10", "#cc4b4b"), ("#c3cad4", "#a8b2bf"),
)  # fmt: skip
_CONTRAST = _Palette(
    "#000000", "#000000", "#00306b",
    "#ffffff", "#ffffff", "#d6d6d6", "#a8a8a8",
    "#4dff88", "#ffd21f", "#ffada7", "#7fd4ff", "#7fd4ff",
    ("#5cff9d", "#ffc61a", "#ff4a3d"), ("#8a8a8a", "#c8c8c8"),
)  # fmt: skip
"""Text at 7 to 1 at least, on the cursor's line too. Source: WCAG 2.2, 1.4.6."""
_COLORBLIND_DARK = _Palette(
    "#10151c", "#1a212b", "#243042",
    "#d3dae3", "#f2f5f9", "#96a1b1", "#667184",
    "#5ab4f0", "#f3e36b", "#f0803c", "#c9a6f0", "#5ab4f0",
    ("#3d93d1", "#e6d24a", "#e06a1e"), ("#3a4454", "#4d5766"),
)  # fmt: skip
"""Blue, yellow, vermilion: they differ in lightness as well, and none is told from another by red and green
alone. After Okabe and Ito, Color Universal Design, 2008."""
_COLORBLIND_LIGHT = _Palette(
    "#fbfbfa", "#ecebe8", "#e0e6ee",
    "#26303b", "#0b1118", "#566170", "#848e9c",
    "#0060a8", "#806000", "#7a0f35", "#6a3f9a", "#0060a8",
    ("#2f7dbd", "#a37a00", "#951a45"), ("#c3cad4", "#a8b2bf"),
)  # fmt: skip


def _theme(name: str, palette: _Palette, *, is_dark: bool) -> Theme:
    bar_good, bar_warn, bar_bad = palette.bars
    rest, hover = palette.scrollbar
    return Theme(
        name=name,
        primary=palette.primary,
        secondary=palette.accent,
        accent=palette.accent,
        success=palette.good,
        warning=palette.warn,
        error=palette.bad,
        foreground=palette.plain,
        background=palette.ground,
        surface=palette.panel,
        panel=palette.panel,
        dark=is_dark,
        variables={
            "tone-plain": palette.plain,
            "tone-strong": palette.strong,
            "tone-dim": palette.dim,
            "tone-faint": palette.faint,
            "tone-good": palette.good,
            "tone-warn": palette.warn,
            "tone-bad": palette.bad,
            "tone-accent": palette.accent,
            "line-cursor": palette.cursor,
            "line-header": palette.ground,
            "line-footer": palette.panel,
            "bar-good": bar_good,
            "bar-warn": bar_warn,
            "bar-bad": bar_bad,
            "scrollbar": rest,
            "scrollbar-hover": hover,
            "scrollbar-active": palette.primary,
            "scrollbar-background": palette.ground,
            "scrollbar-background-hover": palette.ground,
            "scrollbar-background-active": palette.ground,
            **({} if is_dark else {"panel-lighten-1": palette.panel}),  # of toasts
        },
    )


_TERMINAL = Theme(
    name=ANSI,
    primary="ansi_blue",
    secondary="ansi_cyan",
    accent="ansi_cyan",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables={
        **BUILTIN_THEMES["ansi-dark"].variables,
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "scrollbar": "ansi_default",
        "scrollbar-hover": "ansi_default",
        "scrollbar-active": "ansi_default",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
        "border": "ansi_default",
    },
    ansi=True,
)
"""The terminal's own sixteen colours on its own ground, dark or light."""

THEMES: tuple[Theme, ...] = (
    _theme(DARK, _DARK, is_dark=True),
    _theme(LIGHT, _LIGHT, is_dark=False),
    _theme(CONTRAST, _CONTRAST, is_dark=True),
    _theme(COLORBLIND_DARK, _COLORBLIND_DARK, is_dark=True),
    _theme(COLORBLIND_LIGHT, _COLORBLIND_LIGHT, is_dark=False),
    _TERMINAL,
)
DESCRIPTIONS = {
    DARK: "dark",
    LIGHT: "light",
    CONTRAST: "high contrast",
    COLORBLIND_DARK: "dark, no red or green",
    COLORBLIND_LIGHT: "light, no red or green",
    ANSI: "your terminal's own",
}
"""What sets each of ours apart, for the menu."""
