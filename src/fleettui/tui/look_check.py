"""Names in the operator's look that do not exist: told before the screen is taken."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from textual.theme import BUILTIN_THEMES

from fleettui.tui.port import Look
from fleettui.tui.themes import THEMES
from fleettui.view.columns import COLUMNS


def look_problems(look: Look) -> Iterator[str]:
    """One sentence for each name of a theme or column that does not exist."""
    themes = {*BUILTIN_THEMES, *(theme.name for theme in THEMES)}
    if look.theme is not None and look.theme not in themes:
        yield f"theme: there is no theme {look.theme!r}; {_offer(look.theme, themes)}"
    columns = [column.key for column in COLUMNS]
    for key in look.columns or ():
        if key not in columns:
            yield f"columns: there is no column {key!r}; {_offer(key, columns)}"


def _offer(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known))
    return f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
