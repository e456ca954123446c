"""A machine's log: lines of any bytes in any split, groups, what comes first, the document."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.model.log import LogLine
from fleettui.model.unknown import Unknown
from fleettui.probes.log_stream import LogStream
from fleettui.probes.machine_logs import (
    JournalReader,
    group_of,
    is_unit,
    log_section,
    parse_dmesg,
    parse_log,
    parse_log_files,
)
from fleettui.view.cells import text_of
from fleettui.view.log_lines import log_document, log_line_cells, log_rows

TOKEN = "0123456789abcdef"
JOURNAL = (
    b"-- Logs begin at Mon 2026-01-05 --\n"
    b"2026-03-10T09:15:30+0000 ada kernel: NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n"
    b"2026-03-10T10:15:31+01:00 ada ollama[174]: \x1b[31mlevel=INFO\x1b[0m \xff\n"
    b"                                      goes on\n"
    b"2026-03-10T09:15:32+0000 ada systemd[1]: Started ollama.service - Ollama.\n"
    b"2026-03-10T09:15:33+0000 ada kernel: usb 1-1: new device\n"
)
STREAM = b"Welcome!\n\x1e\n" + JOURNAL + b"\x1eFT 0123456789abcdef 1\nfollow 127 0\n\x1f0123456789abcdef 1\n"


def test_entries() -> None:
    log = parse_log(JOURNAL + b"rc 0\n", 0)
    assert (log.state, log.complaint, log.is_cut) == ("readable", "", False)
    assert [(line.at, line.source, line.group) for line in log.lines] == [
        (1773134130, "kernel", "gpu"),
        (1773134131, "ollama", "engine"),
        (1773134131, "ollama", "engine"),
        (1773134132, "systemd", "engine"),
        (1773134133, "kernel", "kernel"),
    ]
    assert [line.text for line in log.lines[1:3]] == ["level=INFO \ufffd", "goes on"]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (b"rc 0", "readable"),
        (b"-- No entries --\nrc 1", "readable"),
        (
            b"Hint: You are currently not seeing messages from other users and the system.\nrc 0",
            "no_permission",
        ),
        (b"No journal files were opened due to insufficient permissions.\nrc 1", "no_permission"),
        (b"No journal files were found.\n-- No entries --\nrc 0", "no_journal"),
        (b"rc 127", "no_tool"),
        (b"rc 124", "failed"),
        (b"Failed to add match: Invalid argument\nrc 1", "failed"),
        (b"", "readable"),
    ],
)
def test_why_there_is_nothing(text: bytes, state: str) -> None:
    assert parse_log(text, 0).state == state


def test_a_cut_answer_says_so_and_drops_the_first_part_of_a_line() -> None:
    entry = b"2026-03-10T09:15:30+0000 ada kernel: x\n"
    payload = (entry * 30_000)[-1_000_000 + 5 :] + b"rc 0\n"
    log = parse_log(payload, 0)
    assert log.is_cut
    assert {line.text for line in log.lines} == {"x"}
    assert len(log.lines) == 999_995 // len(entry)


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_any_split_of_a_stream_gives_the_same(cuts: list[int]) -> None:
    stream = LogStream(TOKEN)
    found: list[LogLine] = []
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, end in pairwise(edges):
        found += stream.receive_data(STREAM[start:end])
    assert found == list(parse_log(JOURNAL, 0).lines)
    assert (stream.has_begun, stream.exit_code, stream.complaints) == (True, 127, [])


def test_a_stream_that_does_not_begin_keeps_an_excerpt() -> None:
    stream = LogStream(TOKEN)
    for _ in range(100):
        assert stream.receive_data(b"This account is not available.\n" * 100) == []
    assert not stream.has_begun
    assert "not available" in stream.noise
    assert len(stream.noise) <= 400


def test_a_line_without_end_is_bounded() -> None:
    reader = JournalReader()
    found = reader.receive_data(b"2026-03-10T09:15:30+0000 ada kernel: ")
    for _ in range(1000):
        found += reader.receive_data(b"x" * 10_000)
    found += reader.receive_data(b"\n2026-03-10T09:15:31+0000 ada kernel: next\n")
    assert [len(line.text) for line in found] == [1000, 4]


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_any_bytes(one: bytes, two: bytes) -> None:
    stream, reader = LogStream(TOKEN), JournalReader()
    for line in (
        *stream.receive_data(b"\x1e\n" + one),
        *stream.receive_data(two),
        *reader.receive_data(one),
        *reader.receive_data(two),
        *reader.finish(),
    ):
        assert line.text.isprintable()
        assert len(line.text) <= 1000


def test_dmesg_counts_from_the_boot() -> None:
    log = parse_dmesg(b"1000.00\n[  50.5] old\n[  990.25] NVRM: Xid (PCI:1): 31\n", 5000.0, 60.0)
    assert [(line.at, line.text, line.group) for line in log.lines] == [
        (4990.25, "NVRM: Xid (PCI:1): 31", "gpu")
    ]
    refused = parse_dmesg(b"10\ndmesg: read kernel buffer failed: Operation not permitted\n", 1.0, 1.0)
    assert (refused.state, refused.lines) == ("no_permission", ())


@pytest.mark.parametrize("uptime", [b"x", b"", b"-inf", b"inf", b"nan", b"-1e308", b"-5.0", b"1e9"])
def test_an_uptime_that_is_none_gives_lines_without_a_time(uptime: bytes) -> None:
    (line,) = parse_dmesg(uptime + b"\n[ 1.0] a\n", 5000.0, 60.0).lines
    assert isinstance(line.at, Unknown)
    assert text_of(log_line_cells(line, 0)).endswith("a")


def test_log_files() -> None:
    log, closed = parse_log_files(b"== /var/log/ollama.log\n[GIN] 200\n\n=x /var/log/messages\n")
    assert [(line.source, line.text, line.group) for line in log.lines] == [
        ("ollama.log", "[GIN] 200", "engine")
    ]
    assert closed == ("/var/log/messages",)
    assert parse_log_files(b"=x /var/log/messages\n")[0].state == "no_permission"


@pytest.mark.parametrize(
    ("source", "text", "group"),
    [
        ("kernel", "NVRM: GPU 0000:01:00.0", "gpu"),
        ("kernel", "nvidia-nvlink: Nvlink Core is being initialized", "gpu"),
        ("kernel", "amdgpu 0000:03:00.0: ring gfx timeout", "gpu"),
        ("kernel", "Out of memory: Killed process 1 (ollama)", "kernel"),
        ("nvidia-persistenced", "x", "gpu"),
        ("llama-server", "x", "engine"),
        ("vllm-main", "x", "engine"),
        ("sshd", "ollama", "other"),
    ],
)
def test_groups(source: str, text: str, group: str) -> None:
    assert group_of(source, text) == group


@pytest.mark.parametrize("name", ["ollama", "vllm@qwen-2.5.service", "a_b", "NetworkManager"])
def test_units(name: str) -> None:
    assert is_unit(name)
    assert log_section("log", 900, name) == f"log:900:{name}"


@pytest.mark.parametrize(
    "name", ["", "-u", "a b", "a:b", "a;b", "$(a)", "a\nb", "*", "ü", "a" * 101, "a/b", "\\x2d"]
)
def test_no_units(name: str) -> None:
    assert not is_unit(name)
    with pytest.raises(ValueError, match="no unit"):
        log_section("follow", 900, name)


LINES = parse_log(JOURNAL, 0).lines


def test_what_the_gpu_driver_says_comes_first() -> None:
    lines = (LINES[3], *LINES[:3], LINES[4])
    rows = [text_of(row) for row in log_rows(lines, 3600)]
    assert rows[0] == "-- GPU driver --"
    assert rows[1].startswith("2026-03-10 10:15:30  kernel          NVRM: Xid")
    assert rows[2] == "-- kernel, engines --"
    assert len(rows) == 7
    assert [text_of(row) for row in log_rows(LINES[1:], 0)] == [
        text_of(log_line_cells(line, 0)) for line in LINES[1:]
    ]


def test_an_xid_has_the_tone_of_a_fault() -> None:
    assert log_line_cells(LINES[0], 0)[-1].tone == "bad"
    assert text_of(log_line_cells(LogLine(Unknown("x"), "a.log", "t", "other"), 0)).split() == [
        "–",
        "a.log",
        "t",
    ]


def test_document() -> None:
    document = log_document("ada", LINES[:1], since_s=900, unit=None, source="journal", notes=("n",))
    assert document["schema"] == 1
    assert document["lines"] == [
        {
            "time": "2026-03-10T09:15:30Z",
            "source": "kernel",
            "group": "gpu",
            "text": "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
        }
    ]
