"""Machines as columns of the matrix of models: titles that one can read in the room there is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from fleettui.view.text import cell_width, clean, clip

NOTE_MIN, _NOTE_WHOLE, NOTE_COMFORT = 26, 30, 58
"""Columns of the note behind; the middle one has place for the VRAM of duplicates."""
_WHOLE, _EASY, _READABLE = 99, 6, 4
"""Columns that a title is cut to at least: not at all, so that one knows it, so that one can."""
MACHINE_MAX = 12
"""Columns of a machine at most, the gap not counted."""
_SEPARATORS = ("-", "_", ".", " ")


class MachineColumn(NamedTuple):
    """One machine of the matrix."""

    machine: str
    title: str
    """Its name, shortened to the column."""
    start: int
    width: int


def place_machines(machines: Sequence[str], x: int, room: int) -> tuple[str, tuple[MachineColumn, ...]]:
    """A column for each machine where all fit, and what their titles leave out at the front. Whole names come
    before comfort for the note, a note before whole names, names one can read before the note."""
    names = [clean(name) for name in machines]
    if not names:
        return "", ()
    prefix = common_prefix(names)
    rests = [name[len(prefix) :] for name in names]
    with_note = room - _NOTE_WHOLE - 2
    ways = [
        (before, given, space, least, gap)
        for space, least, gap in (
            (room - NOTE_COMFORT - 2, _WHOLE, 2), (room - NOTE_COMFORT - 2, _WHOLE, 1),
            (with_note, _WHOLE, 2), (with_note, _WHOLE, 1), (with_note, _EASY, 1),
            (room, _WHOLE, 2), (room, _WHOLE, 1),
            (with_note, _READABLE, 1), (room, _READABLE, 1), (with_note, 2, 1), (room, 2, 1),
        )
        for before, given in dict.fromkeys((("", tuple(names)), (prefix, tuple(rests))))
    ]  # fmt: skip
    for before, given, space, least, gap in ways:
        titles = _titles_in(given, space, least, gap)
        if titles is not None:
            return before, _columns_of(machines, titles, x, gap)
    return "", ()


def width_of_matrix(machines: Sequence[str]) -> int:
    """Columns that a matrix with whole names takes, what they have in common left out."""
    names = [clean(name) for name in machines]
    skipped = len(common_prefix(names))
    return sum(cell_width(name[skipped:]) + 1 for name in names)


def _titles_in(names: Sequence[str], space: int, least: int, gap: int) -> list[str] | None:
    """Titles for the columns of a matrix in so much space, the longest cut to no less than `least`."""
    longest = max(map(cell_width, names))
    if longest > MACHINE_MAX and least == _WHOLE:
        return None
    for width in range(min(longest, MACHINE_MAX), min(least, longest) - 1, -1):
        titles = short_names(names, width)
        if titles is None or sum(max(1, cell_width(title)) + gap for title in titles) > space:
            continue
        if width > 2 or width == longest or all(title.isdigit() for title in titles):
            return titles
    return None


def _columns_of(
    machines: Sequence[str], titles: Sequence[str], x: int, gap: int
) -> tuple[MachineColumn, ...]:
    columns = []
    for machine, title in zip(machines, titles, strict=True):
        width = max(1, cell_width(title))
        columns.append(MachineColumn(machine, title, x, width))
        x += width + gap
    return tuple(columns)


def common_prefix(names: Sequence[str]) -> str:
    """What all names begin with, to the end of a word: `pve-` of `pve-ada` and `pve-bora`, `gpu` of `gpu1`
    and `gpu2`; empty where that leaves nothing of one of them."""
    first, last = min(names, default=""), max(names, default="")
    count = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    prefix = first[:count].rstrip("0123456789")
    if not all(name[len(prefix) :].isdigit() for name in names):
        prefix = prefix[: max(map(prefix.rfind, _SEPARATORS)) + 1]
    is_worth = len(names) > 1 and len(prefix) > 1 and all(len(name) > len(prefix) for name in names)
    return prefix if is_worth else ""


def short_names(names: Collection[str], width: int) -> list[str] | None:
    """Names that fit a width and are still told apart; None where that cannot be: `gpu-07` is `g07`."""
    found = [_short_name(name, width) for name in names]
    return found if len(set(found)) == len(names) else None


def _short_name(name: str, width: int) -> str:
    """The start of a name and the number at its end, which tells machines of a rack apart."""
    if cell_width(name) <= width:
        return name
    number = name[len(name.rstrip("0123456789")) :]
    if not number or len(number) >= width:
        return clip(number or name, width, "").rstrip("-_. ") if len(number) <= width else number[-width:]
    return clip(name[: -len(number)], width - len(number), "").rstrip("-_. ") + number
