"""History: what was measured comes back at its time, gaps stay gaps, and the memory is bounded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, make_card, make_fleet, make_snapshot
from fleettui.fleet.bus import SnapshotBus
from fleettui.fleet.history import MAX_GPUS, MAX_SLOTS, FleetHistory, Series, gpu_key, keep_history
from fleettui.fleet.history_track import Packing, Track
from fleettui.model.gpu import GpuCard, GpuFault
from fleettui.model.readings import (
    CpuReading,
    DisksReading,
    DiskUse,
    MemoryReading,
    NetInterface,
    NetReading,
)
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot, SourceStatus
from fleettui.model.unknown import Maybe, Unknown

START = NOW - NOW % 2
HOUR_S = 3600.0


def at(snapshot: MachineSnapshot, when: float) -> MachineSnapshot:
    """The same readings, read at another time."""
    status = SourceStatus("ok", read_at=when, since=START)
    return replace(snapshot, sources=dict.fromkeys(snapshot.sources, status))


def fleet_at(when: float, *machines: MachineSnapshot, is_read: bool = True) -> FleetSnapshot:
    read = (at(machine, when) for machine in machines) if is_read else machines
    return make_fleet(*read, taken_at=when)


def busy(percent: float, name: str = "ada") -> MachineSnapshot:
    return make_snapshot(name, cpu=CpuReading(percent))


def plain(values: Iterable[Maybe[float]]) -> list[float | None]:
    return [None if isinstance(value, Unknown) else value for value in values]


def test_samples_come_back_newest_last() -> None:
    history = FleetHistory(60, 2.0)
    for number, percent in enumerate((10.0, 20.0, 30.5)):
        history.record(fleet_at(START + 2 * number, busy(percent)))
    assert plain(history.read("ada", "cpu", 5, 10)) == [None, None, 10.0, 20.0, 30.5]


def test_a_short_peak_counts_in_the_sum_of_a_span() -> None:
    history = FleetHistory(60, 2.0)
    nothing = history.sum_up("ada", "cpu", HOUR_S)
    for number in range(1800):
        history.record(fleet_at(START + 2 * number, busy(100.0 if number == 900 else 10.0)))
    mean, peak = plain(history.sum_up("ada", "cpu", HOUR_S))
    assert (peak, mean) == (100.0, pytest.approx(10.05))
    assert max(value for value in plain(history.read("ada", "cpu", 60, HOUR_S)) if value is not None) < 14
    assert plain(history.sum_up("ada", "cpu", 600)) == [10.0, 10.0]  # the peak was before
    assert (
        plain((*nothing, *history.sum_up("ada", "vram", 60), *history.sum_up("bob", "cpu", 60))) == [None] * 6
    )
    assert history.span_s == HOUR_S


def test_every_series_in_its_unit() -> None:
    history = FleetHistory(60, 2.0)
    card = make_card(0, free_gib=12.0, utilisation_percent=97, temperature_c=79, power_w=212.4)
    machine = make_snapshot(
        cards=[card],
        cpu=CpuReading(12.4),
        memory=MemoryReading(1000, 400),
        net=NetReading(
            (NetInterface("eno1", 400_000.0, 1_100_000.0), NetInterface("br0", 9.0, 9.0, is_counted=False))
        ),
    )
    history.record(fleet_at(START, machine))
    found = {name: plain(history.read("ada", name, 1, 2))[0] for name in ("cpu", "ram", "rx", "tx", "disk")}  # type: ignore[arg-type]
    assert found == pytest.approx(
        {"cpu": 12.4, "ram": 600, "rx": 400_000, "tx": 1_100_000, "disk": 24.0}, rel=0.01
    )
    key = gpu_key(card)
    series: tuple[Series, ...] = ("utilisation", "vram", "temperature", "power")
    assert [plain(history.read("ada", name, 1, 2, gpu=key))[0] for name in series] == pytest.approx(
        [97, 12 * 1024, 79, 212.4]
    )


def test_unknown_is_a_gap_and_a_real_zero_is_not() -> None:
    history = FleetHistory(60, 2.0)
    for number, value in enumerate((0, Unknown("[N/A]"), 0)):
        cards = [make_card(0, utilisation_percent=value)]
        history.record(fleet_at(START + 2 * number, make_snapshot(cards=cards)))
    key = gpu_key(make_card(0))
    assert plain(history.read("ada", "utilisation", 3, 6, gpu=key)) == [0.0, None, 0.0]
    assert plain(history.read("ada", "power", 3, 6, gpu=key)) == [31.0] * 3


@pytest.mark.parametrize(
    "card",
    [
        make_card(0, utilisation_percent=300, temperature_c=-4, power_w=9999.0, used_mib=99_999_999),
        make_card(0, utilisation_percent=93, fault=GpuFault("x", "reset", "needs a reset"),
                  suspect=("power_w",), temperature_c=Unknown("?"), used_mib=Unknown("?")),
    ],
    ids=["out of range", "faulty"],
)  # fmt: skip
def test_what_does_not_fit_or_is_no_load_is_no_number(card: GpuCard) -> None:
    history = FleetHistory(60, 2.0)
    history.record(fleet_at(START, make_snapshot(cards=[card])))
    for name in ("utilisation", "vram", "temperature", "power"):
        assert plain(history.read("ada", name, 1, 2, gpu=gpu_key(card))) == [None]  # type: ignore[arg-type]


def test_whatever_a_machine_claims_the_others_are_kept() -> None:
    history = FleetHistory(60, 2.0)
    liar = make_snapshot(
        "aaa",
        cpu=CpuReading(float("nan")),
        memory=MemoryReading(10**400, 0),
        net=NetReading((NetInterface("eno1", 1e300, float("inf")),)),
        disks=DisksReading((DiskUse("/", "/dev/sda1", 1, 10**9, 1 - 10**9),)),
        cards=[make_card(0, utilisation_percent=10**400, used_mib=10**400, temperature_c=-(10**400))],
    )
    history.record(fleet_at(START, liar, busy(10)))
    names: tuple[Series, ...] = ("cpu", "ram", "rx", "tx", "disk")
    assert [plain(history.read("aaa", name, 1, 2)) for name in names] == [[None]] * 5
    assert plain(history.read("ada", "cpu", 1, 2)) == [10]


def test_a_missing_answer_is_bridged_an_outage_is_a_gap_and_survives_the_reconnect() -> None:
    history = FleetHistory(60, 2.0)
    history.record(fleet_at(START, busy(10)))
    history.record(fleet_at(START + 4, busy(20)))  # one poll was missed
    history.record(fleet_at(START + 12, busy(30)))  # gone for 8 s
    assert plain(history.read("ada", "cpu", 7, 14)) == [10, 20, 20, None, None, None, 30]


def test_a_slower_pace_leaves_no_holes_and_a_faster_one_keeps_the_last() -> None:
    history = FleetHistory(60, 2.0)
    for number in range(3):
        fleet = fleet_at(START + 10 * number, busy(10 * number))
        history.record(replace(fleet, interval_s=10.0))
    assert plain(history.read("ada", "cpu", 11, 22)) == [0, 10, 10, 10, 10, 10, 20, 20, 20, 20, 20]
    for number in range(1, 5):
        fleet = fleet_at(START + 20 + number / 2, busy(40 + number))
        history.record(replace(fleet, interval_s=0.5))
    assert plain(history.read("ada", "cpu", 2, 4)) == [43, 44]


def test_silence_shows_at_the_right_edge_after_a_missed_poll() -> None:
    history = FleetHistory(60, 2.0)
    machine = at(busy(10), START)
    history.record(fleet_at(START, machine, is_read=False))
    history.record(fleet_at(START + 3, machine, is_read=False))
    assert plain(history.read("ada", "cpu", 2, 4)) == [10, 10], "the next answer is only due"
    history.record(fleet_at(START + 20, machine, is_read=False))
    assert plain(history.read("ada", "cpu", 2, 4)) == [None, None]
    assert plain(history.read("ada", "cpu", 11, 22))[0] == 10


def test_old_cards_of_a_failing_tool_are_no_samples() -> None:
    history = FleetHistory(60, 2.0)
    machine = make_snapshot(cards=[make_card(0, utilisation_percent=50)])
    history.record(fleet_at(START, machine))
    assert machine.gpu is not None
    stale = replace(machine, gpu=replace(machine.gpu, is_stale=True))
    for number in range(1, 6):
        history.record(fleet_at(START + 2 * number, stale))
    assert plain(history.read("ada", "utilisation", 6, 12, gpu=gpu_key(make_card(0)))) == [50] + [None] * 5


def test_a_longer_look_is_made_of_means_that_stand_still() -> None:
    history = FleetHistory(60, 2.0)
    begin = START - START % 20
    before: list[float | None] = []
    for number in range(40):
        history.record(fleet_at(begin + 2 * number, busy(number)))
        values = plain(history.read("ada", "cpu", 4, 80))
        if number % 10 == 9:
            assert values[-1] == pytest.approx(number - 4.5)
            assert values[:-1] == before[1:] or number == 9
            before = values
    assert before == pytest.approx([4.5, 14.5, 24.5, 34.5])


def test_a_machine_that_comes_back_soon_goes_on_one_that_stays_away_is_forgotten() -> None:
    history = FleetHistory(60, 2.0)
    history.record(fleet_at(START, busy(10), busy(1, "bora")))
    history.record(fleet_at(START + 2, busy(1, "bora")))
    history.record(fleet_at(START + 4, busy(30), busy(1, "bora")))
    assert plain(history.read("ada", "cpu", 3, 6)) == [10, 30, 30]
    for number in range(3, 100):
        history.record(fleet_at(START + 2 * number, busy(1, "bora")))
    assert history.size_bytes == pytest.approx(_bytes_of(machines=1, gpus=2))
    assert plain(history.read("ada", "cpu", 200, 400)) == [None] * 200


def test_cards_are_followed_by_uuid_and_by_number_without_one() -> None:
    history = FleetHistory(60, 2.0)
    first, second = make_card(0, utilisation_percent=11), make_card(1, utilisation_percent=22)
    history.record(fleet_at(START, make_snapshot(cards=[first, second])))
    swapped = [replace(second, index=0), replace(first, index=1)]
    history.record(fleet_at(START + 2, make_snapshot(cards=swapped)))
    assert plain(history.read("ada", "utilisation", 2, 4, gpu=gpu_key(first))) == [11, 11]
    bare = [make_card(index, uuid=Unknown("[N/A]"), utilisation_percent=30 + index) for index in (1, 0)]
    history.record(fleet_at(START + 4, make_snapshot(cards=bare)))
    history.record(fleet_at(START + 6, make_snapshot(cards=bare[::-1])))
    assert plain(history.read("ada", "utilisation", 2, 4, gpu="#0")) == [30, 30]
    assert plain(history.read("ada", "utilisation", 2, 4, gpu="#1")) == [31, 31]


def test_uuids_without_end_take_no_memory_without_end() -> None:
    history = FleetHistory(60, 2.0)
    for number in range(3 * MAX_GPUS):
        card = make_card(0, uuid=f"GPU-{number}")
        history.record(fleet_at(START + 2 * number, make_snapshot(cards=[card])))
        assert history.size_bytes <= _bytes_of(machines=1, gpus=MAX_GPUS)
    many = [make_card(index, uuid=f"GPU-x{index}") for index in range(2 * MAX_GPUS)]
    history.record(fleet_at(START + 1000, make_snapshot(cards=many)))
    assert history.size_bytes <= _bytes_of(machines=1, gpus=MAX_GPUS)


def test_what_is_not_there_is_unknown() -> None:
    history = FleetHistory(60, 2.0)
    history.record(fleet_at(START, busy(10)))
    assert plain(history.read("nobody", "cpu", 2, 4)) == [None, None]
    assert plain(history.read("ada", "utilisation", 2, 4)) == [None, None], "a series of a card, no card"
    assert plain(history.read("ada", "cpu", 2, 4, gpu=gpu_key(make_card(0)))) == [None, None]
    assert plain(history.read("ada", "utilisation", 2, 4, gpu="GPU-none")) == [None, None]
    assert history.read("ada", "cpu", 0, 60) == []


def test_the_mean_over_the_cards_of_a_machine_is_a_series_of_its_own() -> None:
    history = FleetHistory(60, 2.0)
    lost = make_card(2, utilisation_percent=90, fault=GpuFault("x", "lost", "fell off the bus"))
    rounds: list[tuple[Maybe[int], int]] = [(10, 20), (0, 100), (Unknown("[N/A]"), 80)]
    for number, values in enumerate(rounds):
        cards = [make_card(index, utilisation_percent=value) for index, value in enumerate(values)]
        machines = make_snapshot(cards=[*cards, lost]), make_snapshot("bora", gpus=0)
        history.record(fleet_at(START + 2 * number, *machines))
    assert plain(history.read("ada", "gpus", 3, 6)) == [15, 50, 80]
    assert plain(history.read("ada", "gpus", 3, 6, gpu=gpu_key(make_card(0)))) == [None] * 3
    assert plain(history.read("bora", "gpus", 2, 4)) == [None] * 2


def _bytes_of(machines: int, gpus: int, slots: int = 1800) -> int:
    return slots * (machines * (17 if gpus else 16) + gpus * 6)


def test_300_machines_with_8_gpus_stay_within_36_mb() -> None:
    one = FleetHistory(60, 2.0)
    cards = [make_card(index, uuid=f"GPU-{index}") for index in range(8)]
    one.record(fleet_at(START, make_snapshot(cards=cards)))
    assert one.size_bytes == _bytes_of(machines=1, gpus=8)
    assert one.size_bytes * 300 <= 36_000_000


@pytest.mark.parametrize(
    ("minutes", "interval_s"), [(60, 0.5), (1440, 2.0), (1, 2.0), (1, 60.0), (60, 3600.0)]
)
def test_a_long_history_or_a_fast_pace_has_fewer_samples_to_the_minute(
    minutes: float, interval_s: float
) -> None:
    history = FleetHistory(minutes, interval_s)
    history.record(fleet_at(START, make_snapshot(gpus=0)))
    assert history.size_bytes <= _bytes_of(machines=1, gpus=0, slots=MAX_SLOTS)
    assert plain(history.read("ada", "cpu", 1, 60)) == [12.4]


def test_a_clock_set_back_or_far_ahead_begins_anew() -> None:
    history = FleetHistory(1, 2.0)
    for when in (START, START + 2, START - 500, START - 498, START + 9000):
        history.record(fleet_at(when, busy(when - START if 0 <= when - START < 100 else 50)))
    assert plain(history.read("ada", "cpu", 40, 80)) == [None] * 39 + [50]


def test_the_bus_feeds_it_and_nobody_else_pays() -> None:
    bus = SnapshotBus(make_fleet())
    assert keep_history(bus, None, 2.0) is None
    history = keep_history(bus, 60, 2.0)
    assert history is not None
    bus.publish(fleet_at(START, busy(10)))
    assert plain(history.read("ada", "cpu", 1, 2)) == [10]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.none() | st.integers(0, 254)), min_size=1, max_size=60),
    st.integers(1, 40), st.integers(1, 5),
)  # fmt: skip
def test_a_track_is_what_a_table_of_its_slots_would_be(
    samples: list[tuple[int, int | None]], width: int, share: int
) -> None:
    slots, hold_s = 20, 5.0
    track = Track(slots, 2.0, [Packing("B")])
    table: dict[int, int | None] = {}
    when, last = START, START
    for wait, value in samples:
        when += wait
        slot, before = int(when // 2), int(last // 2)
        for missed in range(before + 1, slot):
            table[missed] = value if when - last <= hold_s else None
        table[slot] = value
        track.write(when, hold_s, [255 if value is None else value])
        last = when
    end = int(when // 2)
    table = {slot: value for slot, value in table.items() if slot > end - slots}
    wanted = []
    for bucket in range(end // share - width + 1, end // share + 1):
        known = [
            v for slot in range(bucket * share, (bucket + 1) * share) if (v := table.get(slot)) is not None
        ]
        wanted.append(sum(known) / len(known) if known else None)
    assert plain(track.read(0, end, width, share, hold_s)) == pytest.approx(wanted)
    for moved in (-30, -3, 3, 30):
        assert len(track.read(0, end + moved, width, share, hold_s)) == width
