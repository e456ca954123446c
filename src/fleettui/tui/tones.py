"""The tones of `view.cells` as component classes of Textual, so that every theme can colour them."""

from __future__ import annotations

from typing import get_args

from fleettui.view.cells import Tone

CURSOR_CLASS = "line--cursor"
HEADER_CLASS = "line--header"

_CLASSES: dict[str, str] = {tone: "tone--" + tone.replace("_", "-") for tone in get_args(Tone)}
TONE_CLASSES: set[str] = {*_CLASSES.values(), CURSOR_CLASS, HEADER_CLASS}

TONES_CSS = """
    & > .tone--plain { color: $tone-plain; }
    & > .tone--strong { color: $tone-strong; text-style: bold; }
    & > .tone--dim { color: $tone-dim; }
    & > .tone--faint { color: $tone-faint; }
    & > .tone--good { color: $tone-good; }
    & > .tone--warn { color: $tone-warn; }
    & > .tone--bad { color: $tone-bad; }
    & > .tone--accent { color: $tone-accent; }
    & > .tone--title { color: $tone-dim; }
    & > .tone--key { color: $tone-accent; text-style: bold; }
    & > .tone--match { color: $tone-warn; text-style: bold underline; }
    & > .tone--unknown { color: $tone-dim; }
    & > .tone--bar-good { color: $bar-good; }
    & > .tone--bar-warn { color: $bar-warn; }
    & > .tone--bar-bad { color: $bar-bad; }
    & > .tone--bar-dim { color: $tone-faint; }
    & > .line--cursor { background: $line-cursor; }
    & > .line--header { background: $line-header; }
    &:ansi > .tone--dim { text-style: dim; }
    &:ansi > .tone--faint { text-style: dim; }
    &:ansi > .tone--title { text-style: dim; }
    &:ansi > .tone--bar-dim { text-style: dim; }
    &:nocolor > .tone--bad { text-style: bold; }
    &:ansi > .tone--bad { text-style: bold; }
    &:ansi > .line--cursor { text-style: reverse; background: $background; }
"""
"""Goes inside the rule of the app, which has these classes for all widgets that paint cells."""


def class_of(tone: str) -> str:
    """Component class of a tone; one we do not know is painted plain."""
    return _CLASSES.get(tone, _CLASSES["plain"])
