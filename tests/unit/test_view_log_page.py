"""A machine's log as rows."""

from __future__ import annotations

import pytest

from builders import NOW
from fleettui.model.log import LogLine
from fleettui.model.unknown import Unknown
from fleettui.view.cells import text_of, width_of
from fleettui.view.detail import detail_room
from fleettui.view.glyphs import ASCII, UNICODE, Glyphs
from fleettui.view.log_page import log_detail, log_layout, log_rows_by_group, log_rows_by_time

XID = LogLine(NOW, "kernel", "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.", "gpu")
KERNEL = LogLine(NOW - 5, "kernel", "eth0: link up", "kernel")
ENGINE = LogLine(NOW - 3, "ollama", "level=INFO loaded", "engine")
FILE = LogLine(Unknown("files have no time"), "vllm.log", "ready", "engine")
LINES = (KERNEL, ENGINE, XID)


def test_the_gpu_driver_first() -> None:
    layout = log_layout(80, LINES, 0, UNICODE)
    assert [text_of(row.cells).rstrip() for row in log_rows_by_group(LINES, layout)] == [
        " GPU driver " + "─" * 67,
        " 14:03:12  kernel  NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
        " kernel, engines " + "─" * 62,
        " 14:03:07  kernel  eth0: link up",
        " 14:03:09  ollama  level=INFO loaded",
    ]
    assert [row.line for row in log_rows_by_group((KERNEL, ENGINE), layout)] == [KERNEL, ENGINE]
    assert [row.line for row in log_rows_by_group((XID,), layout)] == [XID]


def test_keys_differ_and_rows_are_made_when_looked_at() -> None:
    layout = log_layout(80, LINES, 0, UNICODE)
    rows = [*log_rows_by_time(LINES, layout), *log_rows_by_time(LINES, layout, 3)]
    assert len({row.key for row in rows}) == 6
    assert all(row._cells is None for row in rows)
    grouped = log_rows_by_group(LINES, layout)
    assert len({row.key for row in grouped}) == len(grouped)


def test_tones_and_unknown_times() -> None:
    layout = log_layout(80, (FILE, XID), 3600, UNICODE)
    file, xid = log_rows_by_time((FILE, XID), layout)
    assert text_of(file.cells).startswith(" –         vllm.log  ready")
    assert text_of(xid.cells).startswith(" 15:03:12  kernel    NVRM")
    assert xid.cells[-1].tone == "bad"
    assert xid.text.startswith("kernel NVRM"), "what is looked through"


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_no_line_is_wider_than_asked(width: int, glyphs: Glyphs) -> None:
    long = LogLine(NOW, "a-unit-of-a-very-long-name@with-instance", "wörd " * 200, "other")
    lines = (*LINES, long)
    layout = log_layout(width, lines, 0, glyphs)
    for row in log_rows_by_group(lines, layout):
        assert width_of(row.cells) <= max(width, 24)
    for height in (12, 24, 60):
        room = detail_room(height)
        detail = log_detail(long, layout, room)
        assert room.least <= len(detail) - room.has_rule <= room.most
        assert all(width_of(cells) <= width + 1 for cells in detail)
        words = sum(text_of(cells).count("wörd") for cells in detail)
        assert words == 200 or text_of(detail[-1]).endswith(glyphs.ellipsis), "what is missing is told"


def test_all_of_a_line() -> None:
    layout = log_layout(80, LINES, 0, UNICODE)
    rule, head, text, empty = log_detail(XID, layout, detail_room(24))
    assert text_of(rule) == "─" * 81
    assert text_of(head).rstrip() == " 2026-11-30 14:03:12  kernel"
    assert text_of(text).strip() == XID.text
    assert empty == ()
