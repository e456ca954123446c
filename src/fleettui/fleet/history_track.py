"""A ring of samples on a grid of time: series that are always written together, a few bytes a sample."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from fleettui.model.unknown import Maybe, Unknown

NO_SAMPLE = Unknown("no sample")
TypeCode = Literal["B", "H", "f"]
_NAN: Final = float("nan")
_NONE: Final[dict[TypeCode, int | float]] = {"B": 255, "H": 65_535, "f": _NAN}
"""What stands for no value in an array of that type."""


class Packing(NamedTuple):
    """How a series is kept: B holds 0 to 254, H 0 to 65,534, f any number."""

    type_code: TypeCode
    steps: int = 1
    """Steps of the kept number in one unit of the series, or, negative, units in one step."""

    @property
    def none(self) -> int | float:
        """What stands for no value."""
        return _NONE[self.type_code]

    @property
    def unit(self) -> float:
        """One step of the kept number, in the unit of the series."""
        return 1 / self.steps if self.steps > 0 else float(-self.steps)


class Track:
    """The newest samples of some series; one slot for each step of time."""

    __slots__ = ("_columns", "_last_slot", "_packings", "_slots", "_step_s", "last_at", "nones")

    def __init__(self, slots: int, step_s: float, packings: Sequence[Packing] = ()) -> None:
        self._slots = slots
        self._step_s = step_s
        self._last_slot = 0
        self.last_at: float | None = None
        """Epoch seconds of the newest sample."""
        self.nones: list[int | float] = []
        """No value, for every series."""
        self._packings: list[Packing] = []
        self._columns: list[array[Any]] = []
        self.add(packings)

    @property
    def size_bytes(self) -> int:
        """Bytes of all samples."""
        return sum(column.itemsize * len(column) for column in self._columns)

    def add(self, packings: Sequence[Packing]) -> int:
        """More series, without a value until now; the index of the first."""
        first = len(self._columns)
        self._packings += packings
        self.nones += [item.none for item in packings]
        self._columns += [array(item.type_code, [item.none]) * self._slots for item in packings]
        return first

    def write(self, at: float, hold_s: float, values: Sequence[int | float]) -> None:
        """Keep a packed value for every series. They stand for the time since the sample before, if that is
        `hold_s` at most; a longer time is a gap. A clock set back by more than a step begins anew."""
        slot = int(at // self._step_s)
        last_at = self.last_at
        steps = 1 if last_at is None else slot - self._last_slot
        if steps == -1:
            return
        if steps < 0 or steps >= self._slots:
            self._clear()
        elif steps > 1:
            is_held = last_at is not None and at - last_at <= hold_s
            self._fill(self._last_slot + 1, slot, values if is_held else self.nones)
        place = slot % self._slots
        for column, value in zip(self._columns, values, strict=True):
            column[place] = value
        self._last_slot, self.last_at = slot, at

    def read(self, index: int, end_slot: int, width: int, share: int, hold_s: float) -> list[Maybe[float]]:
        """`width` means of `share` slots each, the newest last; `end_slot` is the newest slot. Buckets stand
        on whole multiples of `share`: a mean does not change any more once its time is over."""
        last_at = self.last_at
        if last_at is None:
            return [NO_SAMPLE] * width
        # The sample that is due now must not look like a gap.
        is_held = end_slot > self._last_slot and end_slot * self._step_s - last_at <= hold_s
        first = end_slot // share - width + 1
        samples = self._samples(index, first * share, end_slot + 1, is_held=is_held)
        unit, none = self._packings[index].unit, self._packings[index].none
        if share == 1:
            return [item * unit if _is_value(item, none) else NO_SAMPLE for item in samples]
        has_gaps = _has_gaps(samples, none)
        means: list[Maybe[float]] = []
        for start in range(0, width * share, share):
            known = samples[start : start + share]
            if has_gaps:  # `_is_value` in line: trends are read for each row
                known = [item for item in known if item != none and item - item == 0]
            means.append(sum(known) / len(known) * unit if known else NO_SAMPLE)
        return means

    def sum_up(self, index: int, end_slot: int, count: int) -> tuple[Maybe[float], Maybe[float]]:
        """Mean and largest of the samples of the last `count` slots."""
        if self.last_at is None:
            return NO_SAMPLE, NO_SAMPLE
        none = self._packings[index].none
        samples = self._samples(index, end_slot - count + 1, end_slot + 1, is_held=False)
        known = samples
        if _has_gaps(samples, none):
            known = [item for item in samples if item != none and item - item == 0]
        if not known:
            return NO_SAMPLE, NO_SAMPLE
        unit = self._packings[index].unit
        return sum(known) / len(known) * unit, max(known) * unit

    def _samples(self, index: int, start: int, end: int, *, is_held: bool) -> list[int | float]:
        """Kept numbers of the slots `start` to `end - 1`."""
        column, none, slots = self._columns[index], self._packings[index].none, self._slots
        oldest, behind = max(start, self._last_slot - slots + 1), min(end, self._last_slot + 1)
        if oldest >= behind:
            samples: list[int | float] = [none] * min(behind - start, end - start) if behind > start else []
        else:
            place, count = oldest % slots, behind - oldest
            samples = [none] * (oldest - start)
            samples += column[place : place + count]
            if place + count > slots:
                samples += column[: place + count - slots]
        filler = column[self._last_slot % slots] if is_held else none
        return samples + [filler] * (end - start - len(samples))

    def _fill(self, start: int, end: int, values: Sequence[int | float]) -> None:
        for slot in range(start, end):
            for column, value in zip(self._columns, values, strict=True):
                column[slot % self._slots] = value

    def _clear(self) -> None:
        self._columns = [array(item.type_code, [item.none]) * self._slots for item in self._packings]


def _is_value(item: float, none: float) -> bool:
    """NaN equals nothing, itself neither."""
    return item != none and item - item == 0


def _has_gaps(samples: list[int | float], none: float) -> bool:
    """Some of them are no values: mostly not, and then none has to be looked at alone."""
    whole = sum(samples)
    return none in samples or whole - whole != 0
