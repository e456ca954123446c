"""Natural order: `gpu2` before `gpu10`."""

from __future__ import annotations

_Part = tuple[int, int, str]


def natural_key(text: str) -> tuple[tuple[_Part, ...], str]:
    """Sort key in which runs of digits count as numbers and case matters only between equals."""
    parts: list[_Part] = []
    start = 0
    while start < len(text):
        is_number = _is_digit(text[start])
        end = start + 1
        while end < len(text) and _is_digit(text[end]) == is_number:
            end += 1
        run = text[start:end]
        if is_number:
            digits = run.lstrip("0")
            parts.append((0, len(digits), digits))  # longer is larger; no int() of hostile lengths
        else:
            parts.append((1, 0, run.casefold()))
        start = end
    return tuple(parts), text


def _is_digit(character: str) -> bool:
    return "0" <= character <= "9"
