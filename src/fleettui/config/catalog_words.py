"""What is said alike of both files of the catalog: mistyped keys, unknown words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel

LIKENESS = 0.7
"""From which on an unknown key is a mistyped known one (`vram`, `engine`, `name`), and no note."""

Path = tuple[str | int, ...]


def mistyped_in(entry: dict[str, Any], part: type[BaseModel], where: Path) -> Iterator[tuple[Path, str]]:
    """Unknown keys are notes of the operator's own, but for those that look like a known one left out."""
    missing = [key for key in part.model_fields if key not in entry]
    for key in entry:
        near = None if key in part.model_fields else find_nearest(key.replace("-", "_"), missing, LIKENESS)
        if near is not None:
            yield (*where, key), f"is no key that is read; write {near} if that is meant, else another word"


def unknown_engine(name: str, known: Sequence[str], section: str = "engines") -> str:
    """What is wrong with the name of an engine, and what to write."""
    near = find_nearest(name, known, 0.6)
    do = f"write {near}" if near else f"write one of {', '.join(dict.fromkeys(known))}"
    return f"names the engine {name[:60]!r}, which is not known; {do}, or add it under {section}"


def find_nearest(word: str, known: Sequence[str], likeness: float) -> str | None:
    """The known word that is most like this one; None where none is like it enough."""
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), known, 1, likeness)
    return near[0] if near else None
