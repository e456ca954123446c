"""What the dashboard remembers between runs: for each screen a small dict of JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Part = Mapping[str, Any]
"""Read with `text_in` and its like: it may come from another version, or from another hand."""


class Memory:
    """Parts by name: `app`, or that of a screen. Knows which ones changed since they were stored."""

    def __init__(self, parts: Mapping[str, Part] | None = None) -> None:
        self._parts: dict[str, dict[str, Any]] = {name: dict(part) for name, part in (parts or {}).items()}
        self._changed: set[str] = set()

    def part(self, name: str) -> Part:
        """What is remembered of a screen; empty when nothing is."""
        return self._parts.get(name, {})

    def note(self, name: str, **values: Any) -> None:
        """Remember these values of a screen; JSON's own types only, lists for sequences."""
        part = self._parts.get(name, {})
        if any(key not in part or part[key] != value for key, value in values.items()):
            self._parts[name] = part | values
            self._changed.add(name)

    def take_changes(self) -> dict[str, Part]:
        """Whole parts that changed since the last call, to be stored."""
        changes: dict[str, Part] = {name: dict(self._parts[name]) for name in sorted(self._changed)}
        self._changed.clear()
        return changes

    def give_back(self, changes: Mapping[str, Part]) -> None:
        """They could not be stored: they are still to be."""
        self._changed.update(changes)


def text_in(part: Part, key: str, default: str = "") -> str:
    """A text, the default where there is none."""
    value = part.get(key)
    return value if isinstance(value, str) else default


def flag_in(part: Part, key: str, default: bool | None = False) -> bool | None:
    """True or false, the default where there is neither."""
    value = part.get(key)
    return value if isinstance(value, bool) else default


def texts_in(part: Part, key: str) -> list[str]:
    """The texts of a list."""
    value = part.get(key)
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def flags_in(part: Part, key: str) -> dict[str, bool]:
    """True or false by name."""
    value = part.get(key)
    found = value.items() if isinstance(value, dict) else ()
    return {name: flag for name, flag in found if isinstance(name, str) and isinstance(flag, bool)}
