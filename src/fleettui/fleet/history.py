"""The last hour of every machine and GPU, in memory, for graphs: fed by the bus, bounded in size.

At 2 s and 60 minutes a GPU takes 11 KB and a machine 29 KB: 300 machines with 8 GPUs each 35 MB, and no more
however long it runs. Only front ends that draw graphs ask for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

from fleettui.fleet.bus import SnapshotBus
from fleettui.fleet.history_track import NO_SAMPLE, Packing, Track
from fleettui.model.gpu import GpuCard
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import card_memory
from fleettui.view.figures import fullest_disk_percent, net_rates

MachineSeries = Literal["cpu", "ram", "rx", "tx", "disk"]
"""Percent, KiB used, bytes a second received and sent, percent of the fullest disk."""
MeanSeries = Literal["gpus"]
"""Percent: mean utilisation over the cards of a machine."""
GpuSeries = Literal["utilisation", "vram", "temperature", "power"]
"""Percent, MiB used, °C, watts."""
Series = MachineSeries | MeanSeries | GpuSeries

DEFAULT_MINUTES = 60.0
MAX_SLOTS = 3600
"""Samples of a series at most: a longer history, or a pace below a second, has fewer to the minute."""
HELD_INTERVALS = 2.5
"""One answer may be missing before the line has a gap."""
GRACE_S = 120.0
"""A machine that is taken out and comes back by then (another address, a decision about its key) goes on."""
MAX_GPUS = 64
"""Of one machine; more UUIDs than that are no cards."""

_MACHINE_PACKINGS = (Packing("H", 10), Packing("f"), Packing("f"), Packing("f"), Packing("H", 10))
_GPU_PACKINGS = (Packing("B"), Packing("H", -8), Packing("B"), Packing("H", 10))
"""VRAM in steps of 8 MiB up to 512 GiB, power in 0.1 W up to 6.5 kW."""
_MEAN_PACKINGS = (Packing("B"),)
"""In front of the cards: read at the same time, and drawn for every machine in sight."""
_NO_TENTHS = 65_535
_NAN = float("nan")
_MOST = 1e18
"""Machines may claim anything; this fits every array of floats."""
_GPU_SERIES: tuple[GpuSeries, ...] = get_args(GpuSeries)
_INDEX: dict[str, int] = {
    name: index for names in (get_args(MachineSeries), _GPU_SERIES) for index, name in enumerate(names)
}


def gpu_key(card: GpuCard) -> str:
    """What a card's history is kept by: its UUID, its number where it has none."""
    return f"#{card.index}" if isinstance(card.uuid, Unknown) else card.uuid


def _tenths(percent: Maybe[float]) -> int:
    """A percentage as it is kept; what is none is no value."""
    return _NO_TENTHS if isinstance(percent, Unknown) or not 0 <= percent <= 100 else int(percent * 10 + 0.5)


def keep_history(bus: SnapshotBus, minutes: float | None, interval_s: float) -> FleetHistory | None:
    """A history that hears the bus; None where no front end wants one."""
    if minutes is None:
        return None
    history = FleetHistory(minutes, interval_s)
    bus.subscribe(history.record)
    return history


class FleetHistory:
    """Samples of all machines."""

    def __init__(self, minutes: float = DEFAULT_MINUTES, interval_s: float = 2.0) -> None:
        self.step_s = max(interval_s, minutes * 60 / MAX_SLOTS)
        """Seconds of one slot: the interval polled at in the beginning. The last sample of a slot counts."""
        self._slots = max(2, int(minutes * 60 / self.step_s + 0.5))
        self._machines: dict[str, _MachineHistory] = {}
        self._hold_s = self.step_s * HELD_INTERVALS
        self._now = 0.0

    @property
    def size_bytes(self) -> int:
        """Bytes of all samples."""
        return sum(machine.size_bytes for machine in self._machines.values())

    @property
    def span_s(self) -> float:
        """Seconds that are kept."""
        return self._slots * self.step_s

    def record(self, fleet: FleetSnapshot) -> None:
        """Keep what is new in a snapshot; a subscriber of the bus."""
        self._now = fleet.taken_at
        self._hold_s = max(self.step_s, fleet.interval_s) * HELD_INTERVALS
        machines = self._machines
        for snapshot in fleet.machines:
            name = snapshot.machine.name
            history = machines.get(name)
            if history is None:
                history = machines[name] = _MachineHistory(self._new_track)
            if history.last is not snapshot:
                history.take(snapshot, self._hold_s)
        if len(machines) > len(fleet.machines):
            self._forget_gone(fleet)

    def read(
        self, machine: str, series: Series, width: int, seconds: float, *, gpu: str | None = None
    ) -> list[Maybe[float]]:
        """`width` values, the newest last, that reach back `seconds` at least; Unknown where there was none.

        Each is the mean of a whole number of samples. `gpu`: the `gpu_key` of a card, for a series of one.
        """
        found = self._find(machine, series, gpu)
        if found is None or width <= 0:
            return [NO_SAMPLE] * max(0, width)
        track, index = found
        share = max(1, math.ceil(seconds / self.step_s / width))
        end_slot = int(self._now // self.step_s)
        return track.read(index, end_slot, width, share, self._hold_s)

    def sum_up(
        self, machine: str, series: Series, seconds: float, *, gpu: str | None = None
    ) -> tuple[Maybe[float], Maybe[float]]:
        """Mean and largest sample of the last `seconds`; a short peak counts that no mean shows."""
        found = self._find(machine, series, gpu)
        if found is None:
            return NO_SAMPLE, NO_SAMPLE
        track, index = found
        return track.sum_up(index, int(self._now // self.step_s), max(1, int(seconds / self.step_s + 0.5)))

    def _find(self, machine: str, series: Series, gpu: str | None) -> tuple[Track, int] | None:
        """Where a series is kept; None where it is not."""
        history = self._machines.get(machine)
        if series == "gpus":
            return (history.cards, 0) if history is not None and history.gpus and gpu is None else None
        first = None if history is None else 0 if gpu is None else history.gpus.get(gpu)
        if history is None or first is None or (gpu is None) == (series in _GPU_SERIES):
            return None
        return history.facts if gpu is None else history.cards, first + _INDEX[series]

    def _new_track(self) -> Track:
        return Track(self._slots, self.step_s)

    def _forget_gone(self, fleet: FleetSnapshot) -> None:
        here = {snapshot.machine.name for snapshot in fleet.machines}
        for name in [name for name in self._machines if name not in here]:
            history = self._machines[name]
            if history.last is not None:
                history.last, history.gone_at = None, self._now
            elif not 0 <= self._now - history.gone_at <= GRACE_S:
                del self._machines[name]


class _MachineHistory:
    """Samples of one machine and its cards."""

    __slots__ = (
        "_disk", "_facts_at", "_firsts", "_gpu_at", "_new_track", "_uuids", "cards", "facts", "gone_at",
        "gpus", "last",
    )  # fmt: skip

    def __init__(self, new_track: Callable[[], Track]) -> None:
        self._new_track = new_track
        self.facts = new_track()
        self.facts.add(_MACHINE_PACKINGS)
        self.cards = new_track()
        """All cards side by side: they are read at the same time."""
        self.gpus: dict[str, int] = {}
        """Key of a card -> index of its first series."""
        self._uuids: list[Maybe[str]] = []
        """Of the cards that `_firsts` belongs to."""
        self._firsts: list[int] = []
        self.last: MachineSnapshot | None = None
        """The snapshot that was looked at last; None while the machine is gone."""
        self.gone_at = 0.0
        self._facts_at: float | None = None
        self._gpu_at: float | None = None
        self._disk: tuple[object, int] = (None, _NO_TENTHS)

    @property
    def size_bytes(self) -> int:
        return self.facts.size_bytes + self.cards.size_bytes

    def take(self, snapshot: MachineSnapshot, hold_s: float) -> None:
        """Keep what was read since the last snapshot; the time of a reading is that of its source."""
        self.last = snapshot
        sources = snapshot.sources
        status = sources.get("cpu")
        if status is not None and status.read_at is not None and status.read_at != self._facts_at:
            self._facts_at = status.read_at
            self.facts.write(status.read_at, hold_s, self._facts_of(snapshot))
        status = sources.get("gpu")
        gpu = snapshot.gpu
        if status is not None and status.read_at is not None and status.read_at != self._gpu_at:
            self._gpu_at = status.read_at
            if gpu is not None and not gpu.is_stale and gpu.cards:
                values = self._cards_of(snapshot, gpu.cards)
                self.cards.write(status.read_at, hold_s, values)

    def _facts_of(self, snapshot: MachineSnapshot) -> tuple[int | float, ...]:
        cpu, memory = snapshot.cpu, snapshot.memory
        if self._disk[0] is not snapshot.disks:  # read once a minute, kept with each sample
            full = fullest_disk_percent(snapshot)
            self._disk = (snapshot.disks, _tenths(full))
        received, sent = net_rates(snapshot)
        busy = NO_SAMPLE if cpu is None else cpu.busy_percent
        used = NO_SAMPLE if memory is None else memory.used_kib
        return (
            _tenths(busy),
            used if not isinstance(used, Unknown) and used < _MOST else _NAN,
            received if not isinstance(received, Unknown) and received < _MOST else _NAN,
            sent if not isinstance(sent, Unknown) and sent < _MOST else _NAN,
            self._disk[1],
        )

    def _cards_of(self, snapshot: MachineSnapshot, cards: tuple[GpuCard, ...]) -> list[int | float]:
        """Packed values of every card that was ever seen; what does not fit is no value. In line, without a
        call for each: a poll of 8 cards has 32 values."""
        uuids = [card.uuid for card in cards]
        if uuids != self._uuids:
            self._firsts = self._find_places(cards[:MAX_GPUS])
            has_all = not any(isinstance(uuid, Unknown) for uuid in uuids)
            self._uuids = uuids if has_all else []  # cards without one are told apart by number, each time
        values = self.cards.nones.copy()
        summed, count = 0.0, 0
        for card, first in zip(cards, self._firsts, strict=False):
            value = card.utilisation_percent
            if not isinstance(value, Unknown) and 0 <= value < 255 and card.fault is None:
                values[first] = value  # what a faulty card reports is no load
                summed += value
                count += 1
            value = card_memory(snapshot, card).used_mib if card.is_unified else card.used_mib
            if not isinstance(value, Unknown) and 0 <= value < 65_534 * 8:
                values[first + 1] = (value + 4) // 8
            value = card.temperature_c
            if not isinstance(value, Unknown) and 0 <= value < 255:
                values[first + 2] = value
            watts = card.power_w
            if not isinstance(watts, Unknown) and 0 <= watts < 6553 and "power_w" not in card.suspect:
                values[first + 3] = int(watts * 10 + 0.5)
        if count:
            values[0] = int(summed / count + 0.5)
        return values

    def _find_places(self, cards: tuple[GpuCard, ...]) -> list[int]:
        """Index of the first series of each card."""
        keys = [gpu_key(card) for card in cards]
        if len(self.gpus.keys() | set(keys)) > MAX_GPUS:  # no machine changes that many: begin anew
            self.gpus.clear()
            self.cards = self._new_track()
        if keys and not self.gpus:
            self.cards.add(_MEAN_PACKINGS)
        for key in keys:
            if key not in self.gpus:
                self.gpus[key] = self.cards.add(_GPU_PACKINGS)
        return [self.gpus[key] for key in keys]
