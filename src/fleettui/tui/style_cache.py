"""What Textual 8.2.8 keeps of widgets that are closed, and how it is kept from that."""

from __future__ import annotations

from functools import lru_cache

from textual._styles_cache import StylesCache
from textual.color import Color
from textual.style import Style


@lru_cache(256)
def _inner_outer(base_background: Color, background: Color) -> tuple[Style, Style]:
    return Style(background=base_background + background), Style(background=base_background)


def _get_inner_outer(_: StylesCache, base_background: Color, background: Color) -> tuple[Style, Style]:
    return _inner_outer(base_background, background)


def let_go_of_closed_widgets() -> None:
    """Its own function remembers each of the last 1024 widgets it was called for, with every line they
    painted: tens of MB of screens, tabs and palettes that an operator closed."""
    StylesCache.get_inner_outer = _get_inner_outer  # type: ignore[method-assign, assignment]
