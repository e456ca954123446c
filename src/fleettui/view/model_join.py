"""Which mentions of models are the same model: names joined by digest where it is known, else by name.

Tags that share their digests are one model under several names. A tag whose digest differs between machines
stays one line that says so, except where another name tells the two apart: with `x:latest` on two machines,
once the same as `x:8b` and once as `x:70b`, each belongs to the line of that name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fleettui.model.order import natural_key
from fleettui.view.model_holdings import Entry, MachineEntries
from fleettui.view.text import clean

DIGEST_SHOWN = 12
_LATEST = ":latest"


class ModelTitle(NamedTuple):
    """How a line is called."""

    name: str
    aliases: tuple[str, ...]
    """Other names of the same digest, in natural order."""


class Join(NamedTuple):
    """The line of every name and digest of the fleet."""

    titles: Mapping[str, ModelTitle]
    """By key of the line."""
    line_of: Mapping[tuple[str, str | None], str]
    """(key of a name, its digest) -> key of the line."""
    usual: Mapping[str, str | None]
    """Names with several digests: the one that most machines have; None where none leads."""

    def group(self, part: MachineEntries) -> dict[str, list[Entry]]:
        """The entries of one machine by line. What has no digest goes with the same name there."""
        local = {entry.key: entry.digest for entry in part.entries if entry.digest is not None}
        groups: dict[str, list[Entry]] = {}
        for entry in part.entries:
            digest = entry.digest if entry.digest is not None else local.get(entry.key)
            groups.setdefault(self.line_of[entry.key, digest], []).append(entry)
        return groups

    def drift_of(self, entries: Iterable[Entry]) -> str:
        """How the digests of one model on one machine differ from those of others with the same tag."""
        digests: dict[str, set[str]] = {}
        for entry in entries:
            if entry.digest is not None and entry.key in self.usual:
                digests.setdefault(entry.key, set()).add(entry.digest)
        for key, found in digests.items():
            if len(found) > 1:
                return "the loaded copy has another digest than the installed model"
            (digest,) = found
            usual = self.usual[key]
            if digest != usual:
                return f"same tag, other digest {clean(digest[:DIGEST_SHOWN])}"
        return ""


def join_models(parts: Sequence[MachineEntries]) -> Join:
    """Compare all names and digests of the fleet."""
    digests: dict[str, dict[str, int]] = {}
    spelled: dict[str, str] = {}
    declared: dict[str, str] = {}
    alike = Counter(part.structure for part in parts)
    for structure, machines in alike.items():
        for key, digest in structure:
            counts = digests.setdefault(key, {})
            if digest is not None:
                counts[digest] = counts.get(digest, 0) + machines
    for part in parts:
        for entry in part.entries:
            if entry.key not in spelled:
                (declared if entry.what is None else spelled).setdefault(entry.key, entry.name)
    keys_of: dict[frozenset[str], list[str]] = {}
    for key, counts in digests.items():
        if counts:
            keys_of.setdefault(frozenset(counts), []).append(key)
    titles: dict[str, ModelTitle] = {}
    line_of: dict[tuple[str, str | None], str] = {}
    names = {**declared, **spelled}
    group_line: dict[frozenset[str], str] = {}
    for group, keys in keys_of.items():
        first, *others = sorted(keys, key=_title_order)
        group_line[group] = first
        titles[first] = _title(first, others, names)
    for key, counts in digests.items():
        if not counts:
            titles[key] = _title(key, [], names)
            line_of[key, None] = key
            continue
        own = group_line[frozenset(counts)]
        line_of[key, None] = own
        for digest in counts:
            line_of[key, digest] = group_line.get(frozenset({digest}), own)
    usual = {key: _usual(counts) for key, counts in digests.items() if len(counts) > 1}
    return Join(titles, line_of, usual)


def _title(first: str, others: list[str], names: Mapping[str, str]) -> ModelTitle:
    aliases = sorted((shown_name(names[key]) for key in others), key=natural_key)
    return ModelTitle(shown_name(names[first]), tuple(aliases))


def shown_name(name: str) -> str:
    """`x:latest` is `x` to an engine too."""
    text = clean(name.strip())
    return text[: -len(_LATEST)] if text.lower().endswith(_LATEST) else text


def _title_order(key: str) -> tuple[bool, int, object]:
    """A name with a tag says more than one without; then the shortest."""
    return ":" not in key.rpartition("/")[2], len(key), natural_key(key)


def _usual(counts: Mapping[str, int]) -> str | None:
    (first, most), (_, second) = Counter(counts).most_common(2)
    return first if most > second else None
