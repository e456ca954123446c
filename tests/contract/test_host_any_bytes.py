"""Any bytes to what a machine says of itself: no exception, no number that the input does not hold, no end."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleettui.decide.host_reasons import host_reasons
from fleettui.fleet.facts_record import FactsRecord
from fleettui.model.machine import Machine
from fleettui.model.readings import DisksReading
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.probes import cgroups, clock, cpuinfo, disks, lsblk, memory, memory_details, net, system
from fleettui.probes.frames import Frame, Section
from fleettui.view.host_document import host_document, memory_document

SAMPLES = Path(__file__).parent.parent / "fixtures" / "samples" / "linux"
CORPUS = [path.read_bytes() for path in sorted(SAMPLES.iterdir())] + [
    b"Limit: 96636764160 32212254720 /a b\nLimit: 5 6 /user.slice\n",
    b"cache 10485760 /\ncpu 250000 100000 /a\n",
    b"boot 0-1\nonline 0-3,8\nallowed 0\ncontainer docker\ncgroup 0::/kubepods\n",
    b"some avg10=1.50 avg60=0 avg300=0 total=1\nfull avg10=0.25 avg60=0\n",
    b"Filename Type Size Used Priority\n/dev/zram0 partition 8388604 12 100\n",
    b"sys sda 1953525168 1 Disk\nmpath dm-0 sda sdb\n",
    b"Filesystem 1024-blocks Used Available Capacity Mounted on\nrpool/a 10 4 6 40% /a b\nrpool/b 8 2 6 20% /b\n",
    b"device eno1\nbridge br0\n",
    b"  eth0:1: 5 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n",
    b"1796025645.25\n",
]
MAIN = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A real answer with bytes cut out, put in, or repeated."""
    data = draw(st.sampled_from(CORPUS))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        pieces = st.binary(max_size=12) | st.sampled_from(
            [
                b"\xff",
                b"\r",
                b"\n",
                b" ",
                b":",
                b"-",
                b"null",
                b"true",
                b"\x1b[2J",
                b"9" * 40,
                b"0",
                "٣".encode(),
            ]
        )
        data = data[:start] + draw(pieces) + data[end:]
    return data


TEXTS = st.binary(max_size=400) | damaged()
CODES = st.sampled_from([0, 1, 64, 75, 124, 126, 127, 137, 255])


def values(thing: Any) -> Iterator[Any]:
    """All strings and numbers in a reading."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        if not isinstance(thing, Unknown):
            for field in dataclasses.fields(thing):
                yield from values(getattr(thing, field.name))
    elif isinstance(thing, tuple | list | frozenset):
        for item in thing:
            yield from values(item)
    else:
        yield thing


def check_clean(thing: Any) -> None:
    for value in values(thing):
        if isinstance(value, str):
            assert value.isprintable(), repr(value)
            assert len(value) <= 520
        elif isinstance(value, float):
            assert math.isfinite(value)


def numbers_in(*payloads: bytes) -> set[int]:
    """Every run of digits, and its parts: a cut may fall anywhere."""
    return {int(run) for payload in payloads for run in re.findall(rb"\d+", payload) if len(run) < 40}


@MAIN
@given(TEXTS, TEXTS)
def test_memory(payload: bytes, other: bytes) -> None:
    details = memory_details.parse_memory_details(payload, other, payload, other)
    reading = memory.parse_memory(other, details)
    check_clean((details, reading))
    told = numbers_in(other)
    for value in (reading.total_kib, reading.available_kib, reading.swap_total_kib, reading.swap_free_kib):
        assert isinstance(value, Unknown) or value in told
    for limit in reading.limits:
        assert limit.limit_kib in {number // 1024 for number in told}
        assert limit.used_kib in {number // 1024 for number in told}
        assert isinstance(reading.total_kib, Unknown) or limit.limit_kib < reading.total_kib
    free, more, usable = reading.free_kib, reading.up_to_kib, reading.usable_kib
    if not isinstance(free, Unknown):
        assert free >= 0
        assert isinstance(more, Unknown) or more > free
        assert isinstance(reading.available_kib, Unknown) or free <= reading.available_kib
        assert (
            not reading.limit
            or isinstance(usable, Unknown)
            or free <= max(item.limit_kib for item in reading.limits)
        )
    if not isinstance(reading.used_kib, Unknown) and not isinstance(reading.total_kib, Unknown):
        assert 0 <= reading.used_kib <= reading.total_kib
    for share in (details.stalled_some_percent, details.stalled_full_percent):
        assert isinstance(share, Unknown) or 0 <= share <= 100
    json.dumps(memory_document(reading))


@MAIN
@given(TEXTS, CODES)
def test_disks(payload: bytes, exit_code: int) -> None:
    found = disks.parse_disks(payload, exit_code)
    check_clean(found)
    if isinstance(found, DisksReading):
        told = sum(numbers_in(payload))
        for disk in found.disks:
            assert disk.total_kib > 0
            assert min(disk.used_kib, disk.free_kib) >= 0
            assert disk.used_kib <= told


@MAIN
@given(TEXTS, CODES)
def test_blocks(payload: bytes, exit_code: int) -> None:
    found = lsblk.parse_blocks(payload, exit_code)
    check_clean(found)
    if not isinstance(found, Unknown):
        told = numbers_in(payload)
        assert len({disk.name for disk in found}) == len(found)
        for disk in found:
            assert disk.size_bytes in told or disk.size_bytes // 512 in told


ROW = st.fixed_dictionaries(
    {},
    optional={
        key: st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=8)
        | st.lists(st.integers(), max_size=2)
        for key in ("name", "type", "size", "rota", "model", "tran", "mountpoint", "mountpoints", "children")
    },
)


@MAIN
@given(
    st.recursive(
        ROW,
        lambda inner: st.fixed_dictionaries(
            {"name": st.text(max_size=3), "children": st.lists(inner, max_size=3)}
        ),
        max_leaves=8,
    )
)
def test_blocks_of_any_shape(row: dict[str, Any]) -> None:
    check_clean(lsblk.parse_blocks(json.dumps({"blockdevices": [row, row]}).encode()))


@MAIN
@given(TEXTS, TEXTS, TEXTS)
def test_system(first: bytes, second: bytes, third: bytes) -> None:
    reading = system.parse_system(first, second, third, first)
    check_clean(reading)
    check_clean((system.parse_runtime(first), system.read_system_name(second), net.parse_uncounted(third)))
    model, cores = cpuinfo.parse_cpuinfo(second)
    check_clean((model, cores))
    assert isinstance(cores, Unknown) or cores <= max(second.count(b"processor"), *numbers_in(second), 0)
    limit = cgroups.parse_core_limit(first)
    assert limit is None or limit >= 0
    json.dumps(host_document(reading))


@MAIN
@given(TEXTS, st.floats(0, 4e9), st.floats(0, 100))
def test_clock(payload: bytes, asked_at: float, took_s: float) -> None:
    skew_s = clock.find_skew_s(payload, asked_at, asked_at + took_s)
    if not isinstance(skew_s, Unknown):
        found = clock.parse_epoch(payload)
        assert found is not None
        assert abs(skew_s) <= abs(found[0] - asked_at) + 1.1


@MAIN
@given(TEXTS, TEXTS)
def test_rates(first: bytes, second: bytes) -> None:
    _, counters = net.parse_net(first, 1.0, None)
    reading, _ = net.parse_net(second, 3.0, counters, net.parse_uncounted(first))
    most = max(numbers_in(second), default=0)
    for item in reading.interfaces:
        for rate in (item.rx_bytes_s, item.tx_bytes_s):
            assert isinstance(rate, Unknown) or 0 <= rate <= most / 2


NAMES = (
    "stat", "load", "uptime", "mem", "net", "disks", "uname", "os", "cpu", "host", "cgroup", "arc", "psi", "swaps",
    "links", "blocks", "runtime", "clock", "ollama", "other",
)  # fmt: skip
SECTIONS = st.dictionaries(st.sampled_from(NAMES), st.builds(Section, CODES, TEXTS), max_size=12)


@MAIN
@given(st.lists(SECTIONS, max_size=4))
def test_any_frames(frames: list[dict[str, Section]]) -> None:
    record = FactsRecord()
    for seq, sections in enumerate(frames):
        record.ask(tuple(sections), float(seq))
        record.take(Frame(seq, sections), seq + 0.5)
    check_clean((record.cpu, record.memory, record.disks, record.net, record.system))
    snapshot = MachineSnapshot(
        Machine("ada", "gpu-host", "ada.lan"), memory=record.memory, disks=record.disks, system=record.system
    )
    check_clean(host_reasons(snapshot))


ENDLESS: list[Callable[[bytes], object]] = [
    memory.parse_memory,
    lambda data: memory_details.parse_memory_details(data, data, data, data),
    lambda data: cgroups.parse_memory_limits(data, None),
    cgroups.parse_core_limit,
    disks.parse_disks,
    lsblk.parse_blocks,
    lambda data: system.parse_system(data, data, data, data),
    system.parse_runtime,
    cpuinfo.parse_cpuinfo,
    clock.parse_epoch,
    net.parse_uncounted,
    lambda data: net.parse_net(data, 1.0, None),
]


@pytest.mark.parametrize("parse", ENDLESS)
@pytest.mark.parametrize(
    "piece",
    [
        b" ",
        b"a",
        b"9",
        b"a ",
        b"1 ",
        b"\n",
        b":",
        b'NAME="sda" ',
        b"sys a 1 1 ",
        b"/dev/x 1 1 1 ",
        b"0-1,",
        b"\x1b[",
    ],
)
@pytest.mark.timeout(20)
def test_endless_lines_end(parse: Callable[[bytes], object], piece: bytes) -> None:
    """A quarter of the largest frame in one line; quadratic work would take minutes."""
    check_clean(parse(piece * ((1 << 20) // len(piece))))
    check_clean(parse(b'{"blockdevices": [' + piece * 1000))
