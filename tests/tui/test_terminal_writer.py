"""The writer's thread: whoever hands text over never waits, and the terminal is given back in any case."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import threading
import time
import tty
from collections.abc import Iterator

import pytest

from fleettui.tui.terminal_writer import TerminalWriter

LIMIT_S = 20.0
FAR_TOO_MUCH = "x" * 1_000_000
RESTORE = "\x1b[?1049l"


class Terminal:
    """Both ends, and what the writer said."""

    def __init__(self) -> None:
        self.main, self.end = pty.openpty()
        tty.setraw(self.end)
        self.frames = 0
        self.lost = threading.Event()
        self.writer = TerminalWriter(self.end, self._note_frame, self.lost.set)
        self.writer.start()

    def _note_frame(self) -> None:
        self.frames += 1

    def read_until(self, text: bytes) -> bytes:
        read, deadline = b"", time.monotonic() + LIMIT_S
        while text not in read:
            assert time.monotonic() < deadline, read[-200:]
            if select.select([self.main], [], [], 0.1)[0]:
                read += os.read(self.main, 1 << 16)
        return read


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    for fd in (terminal.main, terminal.end):
        try:
            os.close(fd)
        except OSError:
            continue


def wait_for(condition: object) -> None:
    """Until the callable is true."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_says_when_a_frame_is_written_and_how_long_it_took(terminal: Terminal) -> None:
    writer = terminal.writer
    writer.write_frame("one")
    wait_for(lambda: not writer.is_behind)
    assert terminal.frames == 1
    assert writer.frame_s < LIMIT_S
    assert terminal.read_until(b"one") == b"one"
    assert writer.bytes_written == 3


def test_handing_over_never_waits_and_all_comes_in_order(terminal: Terminal) -> None:
    writer = terminal.writer
    writer.write_frame(FAR_TOO_MUCH)
    for number in range(1000):  # more than any queue of Textual's takes
        writer.write(f"<{number}>")
    assert writer.is_behind
    read = terminal.read_until(b"<999>")
    assert read == (FAR_TOO_MUCH + "".join(f"<{number}>" for number in range(1000))).encode()
    wait_for(lambda: not writer.is_behind)


def test_a_terminal_made_non_blocking_by_somebody_else_is_not_lost(terminal: Terminal) -> None:
    """ssh does that to the standard streams that it shares with us."""
    os.set_blocking(terminal.end, False)
    terminal.writer.write_frame(FAR_TOO_MUCH)
    assert len(terminal.read_until(b"xxx")) > 0
    wait_for(lambda: not terminal.writer.is_behind or terminal.read_until(b"x") is None)
    assert not terminal.lost.is_set()
    assert terminal.frames == 1


def test_the_end_of_a_terminal_is_noticed_when_nothing_is_written(terminal: Terminal) -> None:
    os.close(terminal.main)
    assert terminal.lost.wait(LIMIT_S)
    terminal.writer.write_frame("nobody reads this")
    wait_for(lambda: not terminal.writer.is_behind)


def test_stopping_writes_what_is_queued(terminal: Terminal) -> None:
    terminal.writer.write_frame("frame")
    terminal.writer.write(RESTORE)
    terminal.writer.stop()
    assert not terminal.writer.is_alive()
    assert terminal.read_until(b"l") == b"frame\x1b[?1049l"


async def test_waiting_for_a_terminal_that_stands_still_holds_nothing_up(terminal: Terminal) -> None:
    writer, beats = terminal.writer, 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    writer.write_frame(FAR_TOO_MUCH)
    beating = asyncio.create_task(beat())
    await writer.settle()
    beating.cancel()
    assert beats >= 10, "the loop went on"
    assert not writer.is_behind, "the frame was given up"
    writer.write(RESTORE)
    writer.stop()
    assert len(terminal.read_until(RESTORE.encode())) < len(FAR_TOO_MUCH)


def test_a_terminal_that_stands_still_is_given_back_all_the_same(terminal: Terminal) -> None:
    terminal.writer.write_frame(FAR_TOO_MUCH)
    terminal.writer.write(RESTORE)
    began = time.monotonic()
    terminal.writer.stop()
    assert time.monotonic() - began < LIMIT_S
    assert not terminal.writer.is_alive()
    read = terminal.read_until(RESTORE.encode())
    assert len(read) < len(FAR_TOO_MUCH), "the rest of the frame was given up"
