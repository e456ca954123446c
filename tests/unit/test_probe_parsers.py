"""Parsers of the single sources: cases that no captured answer holds."""

from __future__ import annotations

import json
import re

import pytest

from fleettui.model.unknown import Unknown
from fleettui.probes import clean, disks, memory, net, nvidia, processes, system
from fleettui.probes.engines import PROBES, REMOTE_LINES, REMOTE_PATHS, ollama
from fleettui.probes.engines.answers import (
    MAX_BODY_BYTES,
    TextAnswer,
    parse_http_date,
    parse_http_text,
    parse_time,
)
from fleettui.probes.frames import FrameReader, Section, encode_frame, request_line
from fleettui.probes.nvidia_xml import scan_log

TOKEN = "0123456789abcdef"
NOW = 1_796_047_392.0
ROW = "{}, GPU-a{}, NVIDIA X, 550.1, 100, 1, 99, 7, 41, 34.12, 350.00, 0, P8, 00000000:0{}:00.0"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain", "plain"),
        (b"\x1b[31mred\x1b[0m  and\tblue\r\n", "red and blue"),
        (b"\x1b]0;title\x07name", "name"),
        (b"\x1bP+q\x1b\\x", "x"),
        ("a\u202eb\u2066c\u200bd".encode(), "abcd"),
        (b"x\xe9", "x\ufffd"),
        ("\x00\x7f\x85x\x9b2J".encode(), "x"),
        (b"", ""),
    ],
)
def test_clean_text(raw: bytes, text: str) -> None:
    assert clean.clean_text(raw) == text


def test_long_text_is_cut() -> None:
    assert clean.clean_text("x" * 500, 10) == "x" * 9 + "…"
    assert len(clean.clean_excerpt(b"line\n" * 1000, 50)) == 50


def test_noise_is_kept_short_and_frames_pass() -> None:
    reader = FrameReader(TOKEN)
    motd = b"Welcome to \x1b[1mgpu-07\x1b[0m\r\n*** Maintenance ***\n" + b"x" * 100_000
    assert reader.receive_data(motd) == []
    frame = encode_frame(TOKEN, 4, {"stat": Section(0, b"cpu  1"), "gpu": Section(127, b"")})
    assert [item.seq for item in reader.receive_data(frame)] == [4]
    assert reader.noise.startswith("Welcome to gpu-07 / *** Maintenance *** / x")
    assert len(reader.noise) <= 400


def test_a_foreign_token_and_a_false_length_are_no_frames() -> None:
    reader = FrameReader(TOKEN, max_bytes=1000)
    assert reader.receive_data(encode_frame("f" * 16, 1, {})) == []
    assert reader.dropped == 0
    broken = encode_frame(TOKEN, 1, {"gpu": Section(0, b"x")}).replace(b"gpu 0 1\n", b"gpu 0 5000\n")
    frames = reader.receive_data(broken + encode_frame(TOKEN, 2, {}))
    assert ([item.seq for item in frames], reader.dropped) == ([2], 1)


def test_request_refuses_what_a_shell_could_read() -> None:
    with pytest.raises(ValueError, match="no section name"):
        request_line(1, ["gpu;reboot"])


def test_lost_card_in_a_row_is_a_fault() -> None:
    row = "1, [GPU is lost], [GPU is lost], 550.1" + ", [GPU is lost]" * 10
    reading = nvidia.parse_gpus(f"{ROW.format(0, 0, 1)}\n{row}".encode(), 15)
    assert [card.fault.code if card.fault else None for card in reading.cards] == [None, "lost"]
    assert not reading.cards[1].is_unified
    assert reading.cards[1].total_mib == Unknown("GPU is lost")


def test_cards_are_in_index_order() -> None:
    payload = "\n".join(ROW.format(n, n, n) for n in (2, 0, 1)).encode()
    assert [card.index for card in nvidia.parse_gpus(payload).cards] == [0, 1, 2]


def test_foreign_line_beside_good_rows_is_a_warning() -> None:
    reading = nvidia.parse_gpus(ROW.format(0, 0, 1).encode() + b"\nsome \x1b[31mnotice\n", 0)
    assert (len(reading.cards), reading.problem, reading.warnings) == (1, None, ("some notice",))


@pytest.mark.parametrize(
    ("exit_code", "code"),
    [(9, "driver_not_running"), (124, "timed_out"), (126, "cannot_run"), (127, "no_tool"), (137, "killed"),
     (75, "hung"), (76, "asleep"), (0, "unreadable"), (255, "unreadable"), (12, "library_missing")],
)  # fmt: skip
def test_exit_code_decides_where_no_text_does(exit_code: int, code: str) -> None:
    problem = nvidia.parse_gpus(b"", exit_code).problem
    assert problem is not None
    assert problem.code == code
    assert problem.text


@pytest.mark.parametrize(
    ("a", "b", "is_same"),
    [
        ("0000:0b:00.0", "00000000:0B:00.0", True),
        ("0B:00.0", "00000000:0B:00.0", True),
        ("0000:0b:00.1", "00000000:0B:00.0", False),
        ("0001:0b:00.0", "00000000:0B:00.0", False),
        ("", "", False),
        ("[N/A]", "[N/A]", False),
    ],
)
def test_same_bus_id(a: str, b: str, is_same: bool) -> None:
    assert nvidia.same_bus_id(a, b) is is_same


def test_xml_with_entities_is_refused() -> None:
    bomb = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><nvidia_smi_log>&a;</nvidia_smi_log>'
    assert scan_log(bomb) is None
    hidden = bomb.decode().encode("utf-16")
    assert scan_log(hidden) is None


def test_gpu_section_names_what_is_left() -> None:
    assert nvidia.gpu_section() == "gpu"
    section = nvidia.gpu_section(["fan.speed"])
    assert section.startswith("gpu:memory.used:")
    assert "fan.speed" not in section
    assert section.endswith(":pci.bus_id")
    assert tuple(section.split(":")[1:]) == nvidia.query_fields(["fan.speed"])


def test_process_list_that_is_none() -> None:
    assert isinstance(processes.parse_apps(b"", 127), Unknown)
    assert isinstance(processes.parse_apps(b"No devices were found", 6), Unknown)
    assert processes.parse_apps(b"", 0) == processes.ProcessesReading(())


DF = b"""Filesystem 1024-blocks Used Available Capacity Mounted on
udev 12000 0 12000 0% /dev
tmpfs 2400 1 2399 1% /run
/dev/nvme0n1p2 1000000 900000 100000 90% /
/dev/nvme0n1p2 1000000 900000 100000 90% /var/lib/docker/btrfs
/dev/loop3 128 128 0 100% /snap/core/1
overlay 1000000 900000 100000 90% /var/lib/docker/overlay2/x/merged
rpool/data 5000 10 4990 1% /tank with blank
nas:/export 9999 1 9998 1% /mnt/nas
//nas/share 9999 1 9998 1% /mnt/smb
/dev/sdb1 - - - - /mnt/broken
/dev/sdc1 0 0 0 - /mnt/empty
"""


def test_disks() -> None:
    reading = disks.parse_disks(DF, 1)
    assert not isinstance(reading, Unknown)
    assert [(item.mount, item.device, item.free_kib) for item in reading.disks] == [
        ("/", "/dev/nvme0n1p2", 100000),
        ("/tank with blank", "rpool/data", 4990),
    ]
    assert isinstance(disks.parse_disks(b"", 127), Unknown)
    assert isinstance(disks.parse_disks(b"", 124), Unknown)


def test_network_rates() -> None:
    line = b"  eth0: %d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n    lo: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
    first, counters = net.parse_net(line % (1000, 500), 10.0, None)
    assert [item.name for item in first.interfaces] == ["eth0"]
    assert isinstance(first.interfaces[0].rx_bytes_s, Unknown)
    second, counters = net.parse_net(line % (3000, 700), 12.0, counters)
    assert (second.interfaces[0].rx_bytes_s, second.interfaces[0].tx_bytes_s) == (1000.0, 100.0)
    third, _ = net.parse_net(line % (3000, 700), 12.0, counters)
    assert isinstance(third.interfaces[0].rx_bytes_s, Unknown)


def test_memory_without_available_is_not_guessed() -> None:
    reading = memory.parse_memory(b"MemTotal: 100 kB\nMemFree: 50 kB\nCached: 10 kB\n")
    assert reading.total_kib == 100
    assert isinstance(reading.available_kib, Unknown)
    assert isinstance(reading.used_kib, Unknown)


def test_system() -> None:
    cpuinfo = b"processor\t: 0\nmodel name\t: AMD EPYC 9654\nprocessor\t: 1\nmodel name\t: AMD EPYC 9654\n"
    reading = system.parse_system(b"Linux 6.1.0-18 x86_64", b'PRETTY_NAME="Debian GNU/Linux 12"\n', cpuinfo)
    assert (reading.os, reading.kernel, reading.arch) == ("Debian GNU/Linux 12", "6.1.0-18", "x86_64")
    assert (reading.cpu_model, reading.cores) == ("AMD EPYC 9654", 2)
    darwin = system.parse_system(b"Darwin 23.1.0 arm64", b"", b"")
    assert (darwin.os, darwin.kernel) == ("Darwin", "Darwin 23.1.0")
    assert isinstance(darwin.cores, Unknown)


def ps_body(expires_at: str) -> bytes:
    model = {"name": "m:1", "size": 10, "size_vram": 10, "expires_at": expires_at}
    return json.dumps({"models": [model]}).encode()


DATE = (("date", "Mon, 30 Nov 2026 14:03:12 GMT"),)


@pytest.mark.parametrize("clock_error_s", [-90000.0, -60.0, -2.0, 0.0, 3.0, 600.0])
def test_a_wrong_operator_clock_makes_nothing_stop(clock_error_s: float) -> None:
    answer = ollama.parse_ps(200, DATE, ps_body("2026-11-30T15:07:12+01:00"), NOW + clock_error_s)
    assert not isinstance(answer.loaded, Unknown)
    copy = answer.loaded[0]
    assert copy.state == "loaded"
    assert isinstance(copy.expires_at, float)
    assert abs((copy.expires_at - (NOW + clock_error_s)) - 240) <= 5


def test_an_unchanged_answer_gives_the_same_copies() -> None:
    body = ps_body("2026-11-30T14:07:12Z")
    first = ollama.parse_ps(200, DATE, body, NOW)
    later = ollama.parse_ps(200, DATE, bytes(bytearray(body)), NOW + 2)
    assert first.loaded is later.loaded


def test_slow_parts_stay_and_failures_say_why() -> None:
    tags = TextAnswer(200, (), b'{"models":[{"name":"a:1","size":5,"digest":"d"}]}', NOW)
    ps = TextAnswer(200, DATE, ps_body("2026-11-30T14:07:12Z"), NOW)
    reading = ollama.read_answers(11434, {ollama.PS: ps, ollama.TAGS: tags})
    again = ollama.read_answers(11434, {ollama.PS: ps}, reading)
    assert again == reading
    failed = ollama.read_failure(11434, "Ollama is not running (connection refused)", reading)
    assert (failed.state, failed.error) == ("down", "Ollama is not running (connection refused)")
    assert isinstance(failed.loaded, Unknown)
    assert failed.installed == reading.installed
    no_tags = TextAnswer(500, (), b'{"error":"unqualified name: "}', NOW)
    broken = ollama.read_answers(11434, {ollama.TAGS: no_tags}, reading)
    assert (broken.state, broken.error) == ("ok", "installed models: HTTP 500: unqualified name")
    assert broken.loaded == reading.loaded
    recovered = ollama.read_answers(11434, {ollama.PS: ps}, failed)
    assert (recovered.state, recovered.error) == ("ok", None)


def test_endless_and_broken_bodies() -> None:
    too_large = ollama.parse_ps(200, (), b"[" * (MAX_BODY_BYTES + 1), NOW)
    assert too_large.error == "answer larger than 8 MiB, not read"
    deep = ollama.parse_ps(200, (), b"[" * 100_000, NOW)
    assert deep.state == "not_an_engine"
    gateway = ollama.parse_ps(502, (("server", "nginx/1.2"),), b"<html><title>502 Bad Gateway</title>", NOW)
    assert (gateway.state, gateway.error) == ("down", "HTTP 502 from nginx: 502 Bad Gateway")


def test_five_hundred_installed_models() -> None:
    models = [{"name": f"m{n}:latest", "size": n + 1, "digest": f"{n:064x}"} for n in range(500)]
    answer = ollama.parse_tags(200, (), json.dumps({"models": models}).encode())
    assert not isinstance(answer.installed, Unknown)
    assert len(answer.installed) == 500


def test_times() -> None:
    assert parse_time("2026-11-30T14:03:12Z") == NOW
    assert parse_time("2026-11-30T22:03:12.1234567+08:00") == NOW + 0.123456
    assert parse_http_date("Mon, 30 Nov 2026 14:03:12 GMT") == NOW
    for text in ("", "2026-11-30", "2026-11-30T14:03:12", "0001-01-01T00:00:00Z", "2026-13-30T14:03:12Z"):
        assert parse_time(text) is None
    assert parse_http_date("Monday, 30-Nov-26 14:03:12 GMT") is None


def test_http_text_of_curl() -> None:
    answer = parse_http_text(b"HTTP/1.1 200 OK\r\nDate: x\r\n\r\n{}", NOW)
    assert answer is not None
    assert (answer.status, answer.headers, answer.body) == (200, (("date", "x"),), b"{}")
    assert parse_http_text(b"curl: (7) Failed", NOW) is None


def test_only_harmless_paths_are_registered() -> None:
    assert PROBES["ollama"].vital_paths == ("/api/ps",)
    assert set(REMOTE_PATHS) == {
        "/api/ps", "/api/tags", "/api/version", "/running", "/v1/models", "/health", "/props", "/metrics",
        "/slots", "/load", "/is_sleeping", "/version", "/api/v0/models", "/api/v1/models",
    }  # fmt: skip
    for starts in REMOTE_LINES.values():  # they stand unquoted in a command
        assert all(re.fullmatch("[a-z_:]+", start) for start in starts)
