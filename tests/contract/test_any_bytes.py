"""Any bytes: no parser raises, and no number comes out that did not go in; any split: the same frames."""

from __future__ import annotations

import json
from typing import Any

import pytest
from damage import FAULTS, all_samples, apply_faults, given_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parser_table import NOT_HERE, READERS, STATUSES, Given, Reader, public_readers, samples_of
from readings import check_clean, check_numbers, check_reader, numbers_in, weight
from streams import SECTIONS, STREAMS, TOKEN

from fleettui.model.unknown import Unknown
from fleettui.probes import cpu, memory, net, nvidia, processes
from fleettui.probes.engines import ollama
from fleettui.probes.frames import Frame, FrameReader, Section, encode_frame, parse_request, request_line

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For each of the readers: `make fuzz` tries a thousand times as many."""
MAIN = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

TEXTS = st.binary(max_size=600) | st.builds(apply_faults, st.sampled_from(all_samples()), FAULTS)
CODES = st.sampled_from([0, 1, 2, 4, 6, 9, 12, 14, 15, 18, 75, 76, 124, 126, 127, 137, 143, 255])


def test_every_reader_of_probes_is_in_the_table() -> None:
    named = {reader.name for reader in READERS}
    assert len(named) == len(READERS)
    assert public_readers() - named - set(NOT_HERE) == set(), "add it to parser_table.py"


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_samples_are_read_and_hold_numbers(reader: Reader) -> None:
    """The undamaged samples pass too; so the checks are no accident of rubbish in, nothing out."""
    for sample in samples_of(reader):
        check_reader(reader, Given(sample, sample, sample))


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_any_bytes(reader: Reader) -> None:
    @FEW
    @given(given_for(reader))
    def check(inputs: Given) -> None:
        check_reader(reader, inputs)

    check()


@pytest.mark.parametrize("name", STREAMS)
def test_any_stream_in_any_pieces(name: str) -> None:
    strategy, check = STREAMS[name]
    MAIN(given(strategy)(check))()


@pytest.mark.parametrize("reader", [r for r in READERS if not r.is_raw], ids=lambda reader: reader.name)
def test_a_reading_is_no_larger_than_what_it_was_read_from(reader: Reader) -> None:
    for sample in samples_of(reader):
        flood = (sample + b"\n") * (400_000 // (len(sample) + 1) + 1)
        assert weight(reader.read(Given(flood, flood, flood))) <= 6 * len(flood)


def test_a_number_out_of_nowhere_is_found() -> None:
    """The check itself can fail."""
    assert numbers_in("a 12, 34.5 0x1f 2e3 7,25") >= {12.0, 34.5, 31.0, 2000.0, 7.25}
    with pytest.raises(AssertionError, match="not in the input"):
        check_numbers([13], "12 MiB")
    check_numbers([12], "12582912 bytes", (lambda n: n // (1 << 20),))
    with pytest.raises(AssertionError):
        check_clean("a\x1b[2J")


@MAIN
@given(TEXTS, CODES)
def test_cards(payload: bytes, exit_code: int) -> None:
    reading = nvidia.parse_gpus(payload, exit_code)
    check_clean(reading)
    check_numbers(reading.cards, payload.decode("utf-8", "replace"))
    assert reading.cards or reading.problem or reading.faults or reading.unsupported_fields
    for card in reading.cards:
        assert b"%d" % card.index in payload
    check_clean(nvidia.with_unified_memory(reading, memory.parse_memory(payload), None))


@MAIN
@given(st.lists(st.sampled_from([
    "0", "7", "97", "[N/A]", "[Not Supported]", "ERR!", "", "34,12", "34.12", "-3", "1e9", "NaN", "٣",
    "１２", "1_0",
    "GPU-a", "NVIDIA X", "[GPU is lost]", "[Unknown Error]", "9" * 30, "0x10", "\x1b[31m5",
]), min_size=13, max_size=15))  # fmt: skip
def test_columns_never_shift(fields: list[str]) -> None:
    payload = ", ".join(["0", *fields]).encode()
    reading = nvidia.parse_gpus(payload)
    check_clean(reading)
    if len(fields) != 13:
        assert reading.cards == ()
        return
    card = reading.cards[0]
    for text, value in zip(fields[3:], [
        card.total_mib, card.used_mib, card.free_mib, card.utilisation_percent, card.temperature_c,
        card.power_w, card.power_limit_w, card.fan_percent,
    ], strict=False):  # fmt: skip
        if isinstance(value, Unknown):
            assert not (text.isdigit() and text.isascii() and len(text) < 16)
        else:
            assert text.replace(",", ".") in (str(value), f"{value:.0f}", f"{value:.2f}")


@MAIN
@given(TEXTS, CODES)
def test_processes(payload: bytes, exit_code: int) -> None:
    reading = processes.parse_apps(payload, exit_code)
    check_clean(reading)
    if not isinstance(reading, Unknown):
        for item in reading.processes:
            assert str(item.pid).encode() in payload
        check_clean(processes.with_owners(reading, processes.parse_owners(payload)))


ROW = "0, GPU-a, NVIDIA X, 550.1, 100, 1, 99, 7, 41, 34,12, 350,00, 0, P8, 00000000:01:00.0"


def test_decimal_comma_is_the_same_number() -> None:
    card = nvidia.parse_gpus(ROW.encode()).cards[0]
    assert (card.power_w, card.power_limit_w, card.fan_percent, card.pstate) == (34.12, 350.0, 0, "P8")


@MAIN
@given(TEXTS, TEXTS)
def test_facts(first: bytes, second: bytes) -> None:
    reading, times = cpu.parse_cpu(first, second, first, None)
    again, _ = cpu.parse_cpu(second, first, second, times)
    for item in (reading, again):
        check_clean(item)
        assert isinstance(item.busy_percent, Unknown) or 0 <= item.busy_percent <= 100
    check_clean(memory.parse_memory(first))
    counts = memory.parse_memory(first)
    check_numbers(counts, first.decode("utf-8", "replace"), (lambda n: n // 1024,))
    rates, counters = net.parse_net(first, 1.0, None)
    later, _ = net.parse_net(second, 3.0, counters)
    check_clean((rates, later))
    for interface in later.interfaces:
        assert isinstance(interface.rx_bytes_s, Unknown) or interface.rx_bytes_s >= 0


def json_like() -> st.SearchStrategy[Any]:
    leaves = (
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
        | st.sampled_from(["2318-11-24T02:50:18.929807807+08:00", "2026-01-01T00:00:00Z"])
        | st.just("0001-01-01T00:00:00Z")
    )  # fmt: skip
    keys = st.sampled_from([
        "models", "name", "model", "size", "size_vram", "digest", "details", "expires_at", "context_length",
        "version", "error", "model_info", "general.architecture", "x.context_length", "remote_host", "family",
    ]) | st.text(max_size=5)  # fmt: skip
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
        max_leaves=25,
    )


BODIES = TEXTS | json_like().map(lambda value: json.dumps(value).encode())
HEADERS = st.sampled_from([
    (), (("date", "Tue, 10 Mar 2026 09:15:30 GMT"),),
    (("date", "nonsense"), ("server", "\x1b]0;x\x07nginx/1")),
    (("content-type", "text/html"),),
])  # fmt: skip


@MAIN
@given(st.sampled_from(STATUSES), HEADERS, BODIES, st.floats(0, 2e9))
def test_ollama(status: int, headers: tuple[tuple[str, str], ...], body: bytes, received_at: float) -> None:
    ps = ollama.parse_ps(status, headers, body, received_at)
    tags = ollama.parse_tags(status, headers, body)
    version = ollama.parse_version(status, headers, body)
    check_clean((ps, tags, version, ollama.parse_show(status, headers, body)))
    if not isinstance(ps.loaded, Unknown):
        for copy in ps.loaded:
            assert isinstance(copy.size_bytes, Unknown) or copy.size_bytes >= 0
            check_clean(copy.gpu_percent)
    reading = ollama.combine(1, ps, tags, version)
    check_clean(reading)
    assert (reading.state == "ok") == (ps.state == "ok")


NOISE = st.binary(max_size=60) | st.sampled_from(
    [b"\x1e", b"\x1eFT 0123", b"Welcome\r\n", b"\x1f" + TOKEN.encode()]
)


@MAIN
@given(st.lists(st.tuples(NOISE, SECTIONS), max_size=5), NOISE, st.data())
def test_any_split_gives_the_same_frames(
    parts: list[tuple[bytes, dict[str, Section]]], end: bytes, data: st.DataObject
) -> None:
    stream = (
        b"".join(noise + encode_frame(TOKEN, seq, sections) for seq, (noise, sections) in enumerate(parts))
        + end
    )
    whole = FrameReader(TOKEN)
    expected = whole.receive_data(stream)
    assert expected == [Frame(seq, sections) for seq, (_, sections) in enumerate(parts)]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    reader = FrameReader(TOKEN)
    frames = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        frames += reader.receive_data(stream[start:stop])
    assert frames == expected
    assert (reader.noise, reader.dropped) == (whole.noise, whole.dropped)


@MAIN
@given(st.binary(max_size=300), st.binary(max_size=300), SECTIONS, st.lists(st.integers(0, 900), max_size=8))
def test_damaged_stream_split_anywhere(
    before: bytes, inside: bytes, sections: dict[str, Section], cuts: list[int]
) -> None:
    frame = encode_frame(TOKEN, 7, sections)
    middle = len(frame) // 2
    stream = before + frame[:middle] + inside + frame[middle:] + encode_frame(TOKEN, 8, {})
    whole = FrameReader(TOKEN, max_bytes=2000)
    expected = whole.receive_data(stream)
    reader = FrameReader(TOKEN, max_bytes=2000)
    edges = sorted(min(cut, len(stream)) for cut in cuts)
    frames = []
    for start, stop in zip([0, *edges], [*edges, len(stream)], strict=True):
        frames += reader.receive_data(stream[start:stop])
    assert frames == expected
    check_clean(reader.noise)


@MAIN
@given(SECTIONS, st.integers(1, 400))
def test_truncated_frame_is_nothing(sections: dict[str, Section], cut: int) -> None:
    frame = encode_frame(TOKEN, 3, sections)
    reader = FrameReader(TOKEN)
    assert [item for item in reader.receive_data(frame[:-cut]) if item.seq == 3] == []


@MAIN
@given(st.integers(0, 10**9), st.lists(st.text("abcz09_:/.-", min_size=1, max_size=20), max_size=6))
def test_requests_round_trip(seq: int, names: list[str]) -> None:
    assert parse_request(request_line(seq, names)) == (seq, tuple(names))
