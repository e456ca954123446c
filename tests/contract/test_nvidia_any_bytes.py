"""NVIDIA's parsers on any bytes: nothing raises, no number is invented, nothing grows."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import FAULTS, apply_faults
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from readings import check_clean, values

from fleettui.fleet.gpu_record import GpuRecord
from fleettui.model.unknown import Unknown
from fleettui.probes import nvidia, processes
from fleettui.probes.frames import Frame, Section
from fleettui.probes.loops_gpu import CHANGING_FIELDS, CONDITION_FIELDS, FAST_FIELDS, QUERY_FIELDS
from fleettui.probes.nvidia_condition import parse_condition
from fleettui.probes.nvidia_lists import read_instances
from fleettui.probes.nvidia_rows import plan_for
from fleettui.probes.nvidia_xid import parse_xids

SAMPLES = Path(__file__).parent.parent / "fixtures" / "samples" / "nvidia-smi"
MAIN = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ROW = (
    b"40000, 41000, 97, 61, 412.31, [N/A], 3, GPU-0000003f-0000-4000-8000-000000000003, "
    b"NVIDIA H100 80GB HBM3, 570.195.03, 81559, 700.00, P0, None, Disabled, 00000000:03:00.0\n"
)
CONDITION = (
    b"3, GPU-a, Enabled, P0, 97, 16, 16, 5, 5, 0, 7, [N/A], 0x0000000000000024, ATS, 9.0, 00000000:03:00.0\n"
)
XID = b"5000.25\n[  512.204417] NVRM: Xid (PCI:0000:3b:00): 79, pid=2104, GPU has fallen off the bus.\n"
FILES = [path.read_bytes() for path in sorted(SAMPLES.iterdir())]
TEXTS = st.binary(max_size=500) | st.builds(
    apply_faults, st.sampled_from([*FILES, ROW, ROW * 3, CONDITION, XID]), FAULTS
)
CODES = st.sampled_from([0, 1, 2, 6, 9, 14, 15, 18, 64, 75, 76, 77, 124, 127, 137, 255])


def check_exact(thing: object, payload: bytes) -> None:
    """Each number of a reading stands in the input, digit for digit."""
    text = payload.decode("utf-8", "replace")
    for value in values(thing):
        if isinstance(value, bool):
            continue
        if isinstance(value, int):
            assert str(value) in text
        elif isinstance(value, float):
            spellings = {f"{value:.{digits}f}" for digits in range(7)} | {repr(value)}
            spellings |= {spelling.replace(".", ",") for spelling in spellings}
            assert any(spelling.rstrip("0").rstrip(".,") in text for spelling in spellings)


@MAIN
@given(TEXTS, CODES, st.sampled_from([FAST_FIELDS, QUERY_FIELDS, FAST_FIELDS[1:], ("index",), ()]))
def test_rows(payload: bytes, exit_code: int, fields: tuple[str, ...]) -> None:
    reading = nvidia.parse_gpus(payload, exit_code, fields)
    check_clean(reading)
    check_exact(reading.cards, payload)
    assert set(reading.unsupported_fields) <= set(fields)
    assert len({card.index for card in reading.cards}) == len(reading.cards)
    assert nvidia.parse_gpus(payload, exit_code, fields) == reading


TOKENS = st.sampled_from([
    "0", "7", "97", "999", "1000", "100000", "[N/A]", "[Not Supported]", "[GPU is lost]", "ERR!", "", "34,12",
    "34.12", "-3", "1e9", "NaN", "inf", "٣", "１２", "1_0", " 5", "5 ", "+5", "0x10", "9" * 15, "9" * 16,
    ".", "5.",
    "GPU-a", "Reset", "None", "Enabled", "\x1b[31m5", "00000000:03:00.0", "\r",
])  # fmt: skip


@MAIN
@given(st.lists(TOKENS, min_size=len(FAST_FIELDS) - 1, max_size=len(FAST_FIELDS) + 1))
def test_the_two_ways_of_reading_a_row_agree(texts: list[str]) -> None:
    """The fast way, cut behind what changes, and the way for any other order of fields."""
    fast = nvidia.parse_gpus(", ".join(texts).encode(), 0, FAST_FIELDS)
    other = (*FAST_FIELDS[6:], *CHANGING_FIELDS)
    assert not plan_for(other).is_fast
    slow = nvidia.parse_gpus(", ".join([*texts[6:], *texts[:6]]).encode(), 0, other)
    if len(texts) == len(FAST_FIELDS) and "\r" not in (texts[-1], texts[5]):
        assert fast.cards == slow.cards
    check_exact(fast.cards, ", ".join(texts).encode())


@MAIN
@given(TEXTS, CODES)
def test_condition(payload: bytes, exit_code: int) -> None:
    answer = parse_condition(payload, exit_code, CONDITION_FIELDS)
    check_clean(answer)
    check_exact(answer.cards, payload)
    assert answer.cards or answer.refused in CONDITION_FIELDS or answer.error


@MAIN
@given(TEXTS, TEXTS)
def test_instances(listed: bytes, xml: bytes) -> None:
    found = read_instances(listed, xml)
    check_clean(found)
    check_exact(list(found.values()), listed + xml)


@MAIN
@given(TEXTS, CODES)
def test_xids(payload: bytes, exit_code: int) -> None:
    answer = parse_xids(payload, exit_code)
    check_clean(answer)
    if not isinstance(answer, Unknown):
        for event in answer[1]:
            assert str(event.code) in payload.decode("utf-8", "replace")


SECTIONS = st.dictionaries(
    st.sampled_from(["gpu", "condition", "apps", "ps", "list", "xml", "xid", "version", "took"]),
    st.builds(Section, CODES, TEXTS),
    max_size=9,
)


@MAIN
@given(st.lists(SECTIONS, max_size=5), st.booleans())
def test_a_record_takes_any_answers(frames: list[dict[str, Section]], is_expected: bool) -> None:
    record = GpuRecord()
    for seq, sections in enumerate(frames):
        record.take(Frame(seq, sections), 1000.0 + seq, is_gpu_expected=is_expected)
        check_clean(record.reading)
        check_clean(record.with_memory(None))
        assert record.refused_fields <= set(FAST_FIELDS) - {"index"}
        assert "index" not in record.condition.refused_fields


HUGE: list[tuple[str, bytes]] = [
    ("one endless line", b"9" * 4_000_000),
    ("one endless row", ROW.replace(b"NVIDIA", b"x" * 3_000_000)),
    ("commas", b", " * 2_000_000),
    ("rows", ROW * 20_000),
    ("different rows", b"".join(ROW.replace(b", 3, GPU", b", %d, GPU" % n) for n in range(20_000))),
    ("lines", b"x\n" * 600_000),
    ("faults", b"Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.\n" * 40_000),
    ("devices", b"<nvidia_smi_log>\n<gpu id=\"a\">\n" + b"<mig_device>\n<index>1</index>\n" * 60_000
     + b"</nvidia_smi_log>"),
    ("list", b"GPU 0: A (UUID: GPU-a)\n" + b"  MIG 1g Device 0: (UUID: MIG-a)\n" * 90_000),
    ("xids", XID[8:] * 40_000),
    ("processes", b"GPU-a, 1, x, 5\n" * 100_000),
]  # fmt: skip
PARSERS: list[Callable[[bytes], object]] = [
    lambda data: nvidia.parse_gpus(data, 0, FAST_FIELDS),
    lambda data: nvidia.parse_gpus(data, 0, QUERY_FIELDS),
    lambda data: parse_condition(data, 0, CONDITION_FIELDS),
    lambda data: read_instances(data, data),
    lambda data: parse_xids(b"1.5\n" + data),
    processes.parse_apps,
]


@pytest.mark.parametrize("payload", [payload for _, payload in HUGE], ids=[name for name, _ in HUGE])
def test_what_stays_of_a_huge_answer_is_small(payload: bytes) -> None:
    kept = []
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept += [parse(payload) for parse in PARSERS]
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 4 << 20, "the reading and what the parsers remember"
    check_clean(kept)
