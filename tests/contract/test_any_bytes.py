"""Any bytes: no parser raises, and no number comes out that did not go in; any split: the same frames."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleettui.model.unknown import Unknown
from fleettui.probes import clean, cpu, disks, memory, net, nvidia, nvidia_lists, processes, system
from fleettui.probes.engines import ollama
from fleettui.probes.engines.answers import parse_http_date, parse_http_text, parse_time
from fleettui.probes.engines.ollama_host import parse_listen_targets, parse_ollama_host
from fleettui.probes.frames import Frame, FrameReader, Section, encode_frame, parse_request, request_line
from fleettui.probes.loops import parse_loop_command

SAMPLES = Path(__file__).parent.parent / "fixtures" / "samples"
TOKEN = "0123456789abcdef"
MAIN = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def corpus(*folders: str) -> list[bytes]:
    paths = (path for folder in folders for path in sorted((SAMPLES / folder).iterdir()))
    return [path.read_bytes() for path in paths]


@st.composite
def damaged(draw: st.DrawFn, samples: list[bytes]) -> bytes:
    """A real answer with bytes cut out, put in, or repeated."""
    data = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        pieces = st.binary(max_size=12) | st.sampled_from(
            [b"\xff", b"\r", b"\n", b", ", b"[N/A]", b"\x1b[2J", b"-", b"9" * 40]
        )
        data = data[:start] + draw(pieces) + data[end:]
    return data


TEXTS = st.binary(max_size=600) | damaged(corpus("nvidia-smi", "linux", "ollama", "ssh"))
CODES = st.sampled_from([0, 1, 2, 4, 6, 9, 12, 14, 15, 18, 75, 76, 124, 126, 127, 137, 143, 255])
STATUSES = st.sampled_from([200, 204, 301, 400, 401, 403, 404, 500, 502, 503])


def values(thing: Any) -> Iterator[Any]:
    """All strings and numbers in a reading."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        if not isinstance(thing, Unknown):
            for field in dataclasses.fields(thing):
                yield from values(getattr(thing, field.name))
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield from values(key)
            yield from values(value)
    elif isinstance(thing, tuple | list):
        for item in thing:
            yield from values(item)
    else:
        yield thing


def check_clean(thing: Any) -> None:
    """No control code, no endless text, no NaN."""
    for value in values(thing):
        if isinstance(value, str):
            assert value.isprintable(), repr(value)
            assert len(value) <= 520
        elif isinstance(value, float):
            assert math.isfinite(value)


def check_numbers(thing: Any, payload: bytes) -> None:
    """Each whole number stands in the input as it is."""
    text = payload.decode("utf-8", "replace")
    for value in values(thing):
        if isinstance(value, int) and not isinstance(value, bool):
            assert str(value) in text
        elif isinstance(value, float):
            assert str(int(value)) in text


@MAIN
@given(TEXTS, CODES)
def test_cards(payload: bytes, exit_code: int) -> None:
    reading = nvidia.parse_gpus(payload, exit_code)
    check_clean(reading)
    check_numbers(reading.cards, payload)
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
    check_numbers(counts, first)
    rates, counters = net.parse_net(first, 1.0, None)
    later, _ = net.parse_net(second, 3.0, counters)
    check_clean((rates, later))
    for interface in later.interfaces:
        assert isinstance(interface.rx_bytes_s, Unknown) or interface.rx_bytes_s >= 0
    found = disks.parse_disks(first)
    check_clean(found)
    if not isinstance(found, Unknown):
        check_numbers([(disk.total_kib, disk.used_kib, disk.free_kib) for disk in found.disks], first)
    check_clean(system.parse_system(first, second, first))


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
@given(STATUSES, HEADERS, BODIES, st.floats(0, 2e9))
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


PLAIN: list[Callable[[bytes], object]] = [
    nvidia_lists.parse_gpu_list,
    nvidia_lists.parse_gpu_xml,
    nvidia_lists.parse_version,
    nvidia.parse_runtime_status,
    nvidia.parse_hung,
    lambda data: nvidia.parse_rows(data, ("index", "name")),
    lambda data: nvidia.same_bus_id(data.decode("latin-1"), "0:0:0.0"),
    lambda data: parse_ollama_host(data.decode("utf-8", "replace")),
    parse_listen_targets,
    lambda data: parse_time(data.decode("latin-1")),
    lambda data: parse_http_date(data.decode("latin-1")),
    clean.clean_text,
    clean.clean_excerpt,
    lambda data: parse_loop_command(data.decode("latin-1")) and None,
]


@pytest.mark.parametrize("parse", PLAIN)
@MAIN
@given(data=TEXTS)
def test_other_parsers(parse: Callable[[bytes], object], data: bytes) -> None:
    check_clean(parse(data))


@MAIN
@given(TEXTS)
def test_http_text(data: bytes) -> None:
    parse_http_text(data, 0.0)
    parse_request(data)


SECTIONS = st.dictionaries(
    st.sampled_from(["stat", "gpu", "apps", "mem", "get"]),
    st.builds(
        Section, st.integers(0, 255), st.binary(max_size=200) | st.just(b"\x1eFT " + TOKEN.encode() + b" 1\n")
    ),
    max_size=4,
)
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
