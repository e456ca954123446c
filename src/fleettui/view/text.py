"""Width of text in terminal columns; cutting and padding. Wide, zero-width and hostile text too."""

from __future__ import annotations

from functools import lru_cache


def cell_width(text: str) -> int:
    """Columns that a terminal needs for the text."""
    return len(text) if text.isascii() else _wide_width(text)


@lru_cache(maxsize=4096)
def _wide_width(text: str) -> int:
    return sum(map(_character_width, text))


@lru_cache(maxsize=1024)
def _character_width(character: str) -> int:
    """0 for marks that join the character before, 2 for East Asian wide and full-width ones, else 1."""
    import unicodedata

    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def clip(text: str, width: int, ellipsis: str = "…") -> str:
    """At most `width` columns, the cut marked by an ellipsis."""
    if cell_width(text) <= width:
        return text
    room = width - cell_width(ellipsis)
    if room <= 0:
        return ellipsis[: max(0, width)]
    return _take(text, room) + ellipsis


def _take(text: str, width: int) -> str:
    """The longest start of exactly `width` columns; a blank stands in for half of a wide character."""
    if text.isascii():
        return text[:width]
    used, end = 0, 0
    for character in text:
        step = _character_width(character)
        if used + step > width:
            break
        used += step
        end += 1
    return text[:end] + " " * (width - used)


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """Exactly `width` columns, left-aligned."""
    text = clip(text, width, ellipsis)
    return text + " " * (width - cell_width(text))


def clean(text: str) -> str:
    """One line of printable text: whatever came from elsewhere cannot move the cursor or the columns."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns, broken at blanks, in the middle of a word only where it must be."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        rest = word
        joined = f"{line} {rest}" if line else rest
        if cell_width(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        while cell_width(rest) > width > 1:
            start = _take(rest, width).rstrip()
            lines.append(start)
            rest = rest[len(start) :]
        line = rest
    if line or not lines:
        lines.append(line)
    return lines
