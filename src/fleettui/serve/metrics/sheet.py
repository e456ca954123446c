"""Metrics, their labels, and the sheet that samples are collected on before they are written.

Prometheus's own library builds an object and escapes every label for each sample: half a second of CPU for
300 machines of 8 GPUs at each scrape. Here the labels of a card are escaped once for all its samples; a test
compares the answer with that of the library.
"""

from __future__ import annotations

from functools import lru_cache
from math import isfinite

from fleettui.model.literal import Literal
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text

Kind = Literal["gauge", "counter", "info", "summary"]

LABEL_CHARS = 128
"""Machines may tell any text; a label value is one printable line of that length at most."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: the same for all machines and for the page that lists it."""

    name: str
    """As samples have it: a counter ends in `_total`, an info in `_info`."""
    kind: Kind
    labels: tuple[str, ...]
    unit: str
    """Base unit, which the name ends with; empty: a bare number."""
    text: str
    """One sentence."""

    @property
    def family(self) -> str:
        """The name without what its kind adds to it."""
        return self.name.removesuffix("_total").removesuffix("_info")


def gauge(name: str, labels: tuple[str, ...], text: str, unit: str = "") -> Metric:
    """A number that goes up and down."""
    return Metric(name, "gauge", labels, unit, text)


def counter(name: str, labels: tuple[str, ...], text: str, unit: str = "") -> Metric:
    """A number that only grows, until what counts starts anew."""
    return Metric(name, "counter", labels, unit, text)


def info(name: str, labels: tuple[str, ...], text: str) -> Metric:
    """Always 1: what matters are its labels."""
    return Metric(name, "info", labels, "", text)


def summary(name: str, labels: tuple[str, ...], text: str, unit: str = "") -> Metric:
    """`_sum` and `_count`, of which a mean over any time can be made."""
    return Metric(name, "summary", labels, unit, text)


@lru_cache(maxsize=16_384)
def label(name: str, value: str) -> str:
    """`name="value"`, escaped and of bounded length."""
    text = clean_text(value, LABEL_CHARS).replace("\\", r"\\").replace('"', r"\"")
    return f'{name}="{text}"'


def word_label(name: str, value: Maybe[str] | None) -> str:
    """The same of a text that may be unknown: an empty label is none to Prometheus."""
    return label(name, value) if isinstance(value, str) else f'{name}=""'


class Sheet:
    """Samples by metric and labels. The first one of equal labels counts: Prometheus refuses two."""

    def __init__(self, metrics: tuple[Metric, ...]) -> None:
        self.samples: dict[str, dict[str, int | float]] = {metric.name: {} for metric in metrics}
        """Name of the metric -> labels as they are written -> value."""
        self.sums: dict[str, dict[str, tuple[float, int]]] = {
            metric.name: {} for metric in metrics if metric.kind == "summary"
        }
        """The same of summaries: sum and count."""

    def add(self, metric: Metric, labels: str, value: Maybe[float] | bool | None) -> None:
        """One sample; an unknown value is none."""
        if value is None or isinstance(value, Unknown) or not isfinite(value):
            return
        self.samples[metric.name].setdefault(labels, int(value) if isinstance(value, bool) else value)

    def add_bytes(self, metric: Metric, labels: str, value: Maybe[int] | None, unit: int) -> None:
        """One sample of a size that was read in units of so many bytes."""
        if value is not None and not isinstance(value, Unknown):
            self.add(metric, labels, value * unit)

    def add_percent(self, metric: Metric, labels: str, percent: Maybe[float] | None) -> None:
        """One sample of a share, 0 to 1."""
        if percent is not None and not isinstance(percent, Unknown):
            self.add(metric, labels, percent / 100)

    def add_info(self, metric: Metric, labels: str) -> None:
        """Labels that say something."""
        self.samples[metric.name].setdefault(labels, 1)

    def add_state(self, metric: Metric, labels: str, name: str, states: tuple[str, ...], state: str) -> None:
        """One sample for each state there may be: 1 for the present one."""
        rows = self.samples[metric.name]
        for one in states:
            rows.setdefault(f'{labels},{name}="{one}"', int(one == state))

    def add_sum(self, metric: Metric, labels: str, total: float, count: int) -> None:
        """What a summary has counted so far."""
        self.sums[metric.name].setdefault(labels, (total, count))


def write_text(sheet: Sheet, metrics: tuple[Metric, ...]) -> str:
    """The text format 0.0.4 of Prometheus."""
    lines: list[str] = []
    for metric in metrics:
        kind = "gauge" if metric.kind == "info" else metric.kind
        lines += (f"# HELP {metric.name} {metric.text}", f"# TYPE {metric.name} {kind}")
        _write_samples(lines, sheet, metric)
    lines.append("")
    return "\n".join(lines)


def write_openmetrics(sheet: Sheet, metrics: tuple[Metric, ...]) -> str:
    """OpenMetrics 1.0, without the line that ends it."""
    lines: list[str] = []
    for metric in metrics:
        lines += (f"# HELP {metric.family} {metric.text}", f"# TYPE {metric.family} {metric.kind}")
        if metric.unit:
            lines.append(f"# UNIT {metric.family} {metric.unit}")
        _write_samples(lines, sheet, metric)
    lines.append("")
    return "\n".join(lines)


def _write_samples(lines: list[str], sheet: Sheet, metric: Metric) -> None:
    name = metric.name
    if metric.kind == "summary":
        for labels, (total, count) in sheet.sums[name].items():
            lines += (f"{name}_sum{{{labels}}} {total!r}", f"{name}_count{{{labels}}} {count}")
    elif metric.labels:
        lines += [f"{name}{{{labels}}} {value!r}" for labels, value in sheet.samples[name].items()]
    else:
        lines += [f"{name} {value!r}" for value in sheet.samples[name].values()]
