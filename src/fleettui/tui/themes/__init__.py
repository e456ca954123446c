"""Our two themes, and the colour of every tone under any theme."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme

DARK = "fleettui-dark"
LIGHT = "fleettui-light"

THEMES: tuple[Theme, ...] = (
    Theme(
        name=DARK,
        primary="#6fb3d2",
        secondary="#8aa4c8",
        accent="#8ab8e6",
        success="#86c29a",
        warning="#e2b666",
        error="#ec7f7f",
        foreground="#d3dae3",
        background="#12161d",
        surface="#171c25",
        panel="#1c222c",
        dark=True,
        variables={
            "tone-plain": "#d3dae3",
            "tone-strong": "#f2f5f9",
            "tone-dim": "#909bab",
            "tone-faint": "#667184",
            "tone-good": "#86c29a",
            "tone-warn": "#e2b666",
            "tone-bad": "#ec7f7f",
            "tone-accent": "#86b9e6",
            "line-cursor": "#26303f",
            "line-header": "#12161d",
            "bar-good": "#5f9e78",
            "bar-warn": "#c99a45",
            "bar-bad": "#d56464",
            "scrollbar": "#3a4454",
            "scrollbar-hover": "#4d5766",
            "scrollbar-active": "#6fb3d2",
            "scrollbar-background": "#12161d",
            "scrollbar-background-hover": "#12161d",
            "scrollbar-background-active": "#12161d",
        },
    ),
    Theme(
        name=LIGHT,
        primary="#0f6a94",
        secondary="#4a6a94",
        accent="#15609a",
        success="#1d7144",
        warning="#8a5700",
        error="#b0282c",
        foreground="#26303b",
        background="#fafbfc",
        surface="#f1f3f6",
        panel="#e9ecf1",
        dark=False,
        variables={
            "tone-plain": "#26303b",
            "tone-strong": "#0b1118",
            "tone-dim": "#566170",
            "tone-faint": "#848e9c",
            "tone-good": "#1d7144",
            "tone-warn": "#8a5700",
            "tone-bad": "#b0282c",
            "tone-accent": "#15609a",
            "line-cursor": "#dde6f0",
            "line-header": "#fafbfc",
            "bar-good": "#2f8055",
            "bar-warn": "#a06a10",
            "bar-bad": "#cc4b4b",
            "scrollbar": "#c3cad4",
            "scrollbar-hover": "#a8b2bf",
            "scrollbar-active": "#0f6a94",
            "scrollbar-background": "#fafbfc",
            "scrollbar-background-hover": "#fafbfc",
            "scrollbar-background-active": "#fafbfc",
        },
    ),
)


def tone_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The CSS variables of our tones for a theme that does not name them.

    `text-*` colours are Textual's, made to be read on the theme's background."""
    return {
        "tone-plain": variables["foreground"],
        "tone-strong": variables["foreground"],
        "tone-dim": variables["text-muted"],
        "tone-faint": variables["text-disabled"],
        "tone-good": variables["text-success"],
        "tone-warn": variables["text-warning"],
        "tone-bad": variables["text-error"],
        "tone-accent": variables["text-accent"],
        "line-cursor": variables["block-cursor-blurred-background"],
        "line-header": variables["background"],
        "bar-good": variables["success"],
        "bar-warn": variables["warning"],
        "bar-bad": variables["error"],
    }
