"""All about the line under the cursor of a list, below the list."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.glyphs import Glyphs
from fleettui.view.text import clip, wrap

LOW, HIGH = 18, 34
"""Lines of the screen below which nothing is to spare, and from which there is plenty."""


class DetailRoom(NamedTuple):
    """Lines for it: always the least, so that the list does not jump, more for a long text."""

    least: int
    most: int
    has_facts: bool
    """False: nothing but the text."""
    has_rule: bool


def detail_room(height: int) -> DetailRoom:
    """The room on a screen of so many lines."""
    least = 2 if height < LOW else 3 if height < HIGH else 5
    return DetailRoom(least, max(least, height // 4), height >= LOW, height >= LOW)


def detail_lines(
    facts: Cells | None, text: str, tone: Tone, width: int, room: DetailRoom, glyphs: Glyphs
) -> tuple[Cells, ...]:
    """The facts on a line of their own, below the text, wrapped; cut where even so there is no room."""
    texts = wrap(text, max(1, width - 2))
    most = room.most - (facts is not None)
    if len(texts) > most:
        texts = [*texts[: most - 1], clip(" ".join(texts[most - 1 :]), width - 2, glyphs.ellipsis)]
    lines: list[Cells] = [] if facts is None else [facts]
    lines += [(Cell(f" {part}", tone),) for part in texts]
    lines += [()] * (room.least - len(lines))
    return (*_rule(width, room, glyphs), *lines)


def _rule(width: int, room: DetailRoom, glyphs: Glyphs) -> tuple[Cells, ...]:
    """What sets it apart from the list, over the scrollbar's column too; nothing on a low screen."""
    return ((Cell(glyphs.rule * (width + 1), "faint"),),) if room.has_rule else ()
