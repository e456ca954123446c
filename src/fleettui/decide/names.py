"""Names of models: one form to compare them, and the nearest known ones to an unknown name."""

from __future__ import annotations

from collections.abc import Iterable

from fleettui.model.names import canonical_name, family_of, is_same_model, is_served_as

__all__ = ["canonical_name", "family_of", "is_same_model", "is_served_as", "nearest_names"]


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Up to `count` known names most like `name`, best first: same family first, then by likeness.

    Only ever a hint: nothing is routed by likeness.
    """
    import difflib

    wanted = canonical_name(name)
    family = family_of(name)
    base = family.rsplit("/", 1)[-1]
    spelled: dict[str, str] = {}
    for item in known:
        spelled.setdefault(canonical_name(item), item)
    scored = []
    for other, candidate in spelled.items():
        likeness = difflib.SequenceMatcher(None, wanted, other).ratio()
        if family_of(candidate).rsplit("/", 1)[-1] == base:
            likeness += 1.5 if other.startswith(wanted) else 1
        if likeness >= 0.5:
            scored.append((-likeness, candidate))
    return [candidate for _, candidate in sorted(scored)[:count]]
