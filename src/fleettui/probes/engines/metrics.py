"""Prometheus text of an engine's `/metrics`: the few series that are read, out of hundreds of lines.

Format: prometheus.io/docs/instrumenting/exposition_formats. vLLM 0.32 sends 56 KB in 629 lines; looking for
the names alone takes a tenth of reading every line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import isfinite

from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown

MAX_METRICS_BYTES = 2 << 20
"""What lies behind is not read."""
MAX_LINE_BYTES = 8 << 10
"""The longest one of vLLM 0.32 takes 1.2 KB."""
MAX_SERIES = 2000
"""Of one answer, over all names: an engine has some for each rank and model."""

_BIGGEST = 1 << 62
_LINE = re.compile(
    rb"([A-Za-z_:][A-Za-z0-9_:]*)"
    rb'(\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?'
    rb"[ \t]+([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?)"
    rb"(?:[ \t]+[-+]?[0-9.]+)?[ \t\r]*"
)
"""Name, labels, value; a time may follow."""
_LABEL = re.compile(rb'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\\n]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: a series and its value."""

    labels: Labels
    value: float
    """Finite, not below 0."""


SampleList = Sequence[Sample]
Samples = Mapping[str, SampleList]
"""By name; a name without any usable line is not there."""


def scan_metrics(body: bytes, names: tuple[str, ...]) -> Samples:
    """The samples of `names`. NaN, infinities and values below 0 are none: they say nothing of load."""
    found: dict[str, list[Sample]] = {}
    count = 0
    starts = tuple(name.encode() for name in names)
    for line in body[:MAX_METRICS_BYTES].split(b"\n"):
        if not line.startswith(starts):
            continue
        match = _LINE.fullmatch(line) if len(line) <= MAX_LINE_BYTES else None
        name = "" if match is None else match[1].decode("ascii")
        if match is None or name not in names:
            continue
        count += 1
        if count > MAX_SERIES:
            break
        value = float(match[3])
        if isfinite(value) and value >= 0:
            found.setdefault(name, []).append(Sample(_read_labels(match[2] or b""), value))
    return found


def _read_labels(text: bytes) -> Labels:
    labels = {}
    for name, value in _LABEL.findall(text):
        plain = value.decode("utf-8", "replace")
        if "\\" in plain:
            plain = _ESCAPED.sub(lambda match: "\n" if match[1] == "n" else match[1], plain)
        labels[name.decode("ascii")] = plain
    return labels


def begins_line(body: bytes, prefix: bytes) -> bool:
    """True where a line begins with `prefix`: whose metrics these are."""
    return body.startswith(prefix) or b"\n" + prefix in body


def add_up(samples: Iterable[Sample], same: Collection[str] = ()) -> float | None:
    """Sum over series. Those that differ in the labels `same` alone tell the same: the highest counts.

    None where there is no sample.
    """
    groups: dict[frozenset[tuple[str, str]], float] = {}
    for sample in samples:
        key = frozenset(item for item in sample.labels.items() if item[0] not in same)
        groups[key] = max(groups.get(key, 0.0), sample.value)
    return sum(groups.values()) if groups else None


def highest(samples: Iterable[Sample]) -> float | None:
    """The highest value; None where there is no sample."""
    return max((sample.value for sample in samples), default=None)


def first_of(
    samples: Samples, names: Sequence[str], fold: Callable[[Iterable[Sample]], float | None]
) -> float | None:
    """What `fold` makes of the first name that is there: of an old and a new name the new one counts."""
    for name in names:
        if name in samples:
            return fold(samples[name])
    return None


def as_count(value: float | None, missing: Unknown) -> Maybe[int]:
    """A whole number; `missing` for none and for anything that is no count."""
    return missing if value is None or not value.is_integer() or value >= _BIGGEST else int(value)


def as_percent(value: float | None, missing: Unknown) -> Maybe[float]:
    """0 to 100 of a share from 0 to 1; `missing` for anything else."""
    return missing if value is None or value > 1 else round(value * 100, 4)


def as_rate(value: float | None, missing: Unknown) -> Maybe[float]:
    """The value as it is."""
    return missing if value is None else value
