"""Names of models: one form to compare them, and the nearest known ones to an unknown name."""

from __future__ import annotations

from collections.abc import Iterable

from fleettui.model.names import canonical_name, family_of, is_same_model, is_served_as

__all__ = ["canonical_name", "family_of", "is_same_model", "is_served_as", "nearest_names"]

_LEAST = 0.5
"""Likeness from which on it is computed exactly; names that are less like come behind all others."""


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The `count` known names most like `name`, best first: same family first, then by likeness.

    Only ever a hint: nothing is routed by likeness.
    """
    from difflib import SequenceMatcher

    wanted = canonical_name(name)
    family = family_of(name)
    base = family.rsplit("/", 1)[-1]
    spelled: dict[str, str] = {}
    for item in known:
        spelled.setdefault(canonical_name(item), item)
    scored = []
    compared = SequenceMatcher(b=wanted)
    for other, candidate in spelled.items():
        compared.set_seq1(other)
        is_relative = other.rpartition(":")[0].rsplit("/", 1)[-1] == base
        likeness = compared.real_quick_ratio()
        if is_relative or likeness >= _LEAST:
            likeness = compared.quick_ratio()
        if is_relative or likeness >= _LEAST:
            likeness = compared.ratio()
        if is_relative:
            likeness += 1.5 if other.startswith(wanted) else 1
        elif likeness < _LEAST:
            likeness -= 1.0
        scored.append((-likeness, candidate))
    return [candidate for _, candidate in sorted(scored)[:count]]
