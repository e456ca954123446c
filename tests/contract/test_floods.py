"""Megabytes of nonsense: what is kept stays within the stated limits, and the next answer is still read."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator

import pytest

from fleettui.net.http1 import (
    MAX_BODY_BYTES,
    MAX_HEAD_BYTES,
    AnswerReader,
    HttpProtocolError,
    HttpTooLarge,
)
from fleettui.probes.frames import MAX_FRAME_BYTES, Frame, FrameReader, Section, encode_frame

TOKEN = "0123456789abcdef"
MARK = b"\x1eFT " + TOKEN.encode() + b" "
FLOOD_BYTES = 50 << 20
PIECE = 64 << 10


def in_pieces(beginning: bytes, repeated: bytes, total: int = FLOOD_BYTES) -> Iterator[bytes]:
    """`beginning`, then `repeated` until so many bytes came."""
    piece = repeated * (PIECE // len(repeated))
    yield beginning
    for _ in range(total // len(piece)):
        yield piece


FRAME_FLOODS = {
    "one line": (b"", b"x"),
    "lines": (b"", b"Welcome to ada\r\n"),
    "half a mark": (b"", MARK[:-1]),
    "marks": (b"", MARK),
    "record separators": (b"", b"\x1e"),
    "a mark and one line": (MARK, b"9"),
    "a frame's head and one line": (MARK + b"1\n", b"x"),
    "an endless payload": (MARK + b"1\ngpu 0 %d\n" % (MAX_FRAME_BYTES - 200), b"x"),
    "a payload over the limit": (MARK + b"1\ngpu 0 999999999999\n", b"x"),
    "empty sections": (MARK + b"1\n", b"gpu 0 0\n"),
    "small sections": (MARK + b"1\n", b"gpu 0 1\nx"),
    "frames that never end": (b"", MARK + b"1\ngpu 0 3\nabc"),
}


@pytest.mark.parametrize("name", FRAME_FLOODS)
def test_frames(name: str) -> None:
    beginning, repeated = FRAME_FLOODS[name]
    reader = FrameReader(TOKEN)
    most = 0
    # Where each 40 bytes are a new frame a tenth of it takes long enough.
    total = FLOOD_BYTES // 10 if name == "frames that never end" else FLOOD_BYTES
    for piece in in_pieces(beginning, repeated, total):
        assert reader.receive_data(piece) == []
        most = max(most, reader.held_bytes)
    assert most <= MAX_FRAME_BYTES + PIECE + 4096
    assert len(reader.noise) <= 400
    if name != "an endless payload":  # that one takes what comes for its payload
        good = encode_frame(TOKEN, 9, {"stat": Section(0, b"cpu 1")})
        # What was begun may still be a frame; a second one ends the doubt.
        frames = reader.receive_data(b"\n" * 100 + good) + reader.receive_data(good)
        assert Frame(9, {"stat": Section(0, b"cpu 1")}) in frames


def many_names() -> Iterator[bytes]:
    """Sections with ever new names."""
    letters = itertools.product(b"abcdefghij", repeat=6)
    return iter(bytes(word) + b" 0 0\n" for word in letters)


def test_a_frame_of_countless_names_is_none() -> None:
    reader = FrameReader(TOKEN)
    stream = MARK + b"1\n" + b"".join(itertools.islice(many_names(), 20_000))
    tracemalloc.start()
    try:
        for start in range(0, len(stream), PIECE):
            assert reader.receive_data(stream[start : start + PIECE]) == []
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
    assert reader.dropped == 1


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ANSWER_FLOODS: dict[str, tuple[bytes, bytes]] = {
    "one line": (b"", b"x"),
    "headers": (OK, b"X-Y: z\r\n"),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body without a length": (OK + b"\r\n", b"x"),
    "a body that is too long": (OK + b"Content-Length: 99999999\r\n\r\n", b"x"),
    "one chunk": (CHUNKED + b"ffffff0\r\n", b"x"),
    "chunks of one byte": (CHUNKED, b"1\r\nx\r\n"),
    "a chunk's size": (CHUNKED, b"0"),
    "a chunk's extension": (CHUNKED + b"1;", b"x"),
    "a trailer": (CHUNKED + b"0\r\n", b"X-Y: z\r\n"),
}


@pytest.mark.parametrize("name", ANSWER_FLOODS)
def test_answers(name: str) -> None:
    reader = AnswerReader()
    most = 0

    def feed() -> None:
        nonlocal most
        for piece in in_pieces(*ANSWER_FLOODS[name]):
            reader.receive_data(piece)
            most = max(most, reader.held_bytes)

    with pytest.raises((HttpProtocolError, HttpTooLarge)):
        feed()
    assert most <= MAX_BODY_BYTES + MAX_HEAD_BYTES + PIECE


@pytest.mark.parametrize("end", [b"Content-Length: 2\r\n\r\n{}", b"Connection: close\r\n\r\n"])
def test_more_than_was_asked_for_is_not_kept(end: bytes) -> None:
    reader = AnswerReader(max_body_bytes=1 << 20)
    reader.receive_data(OK + end)
    with_length = reader.is_complete
    try:
        for piece in in_pieces(b"", b"x"):
            reader.receive_data(piece)
            assert reader.held_bytes <= (1 << 20) + PIECE
    except HttpTooLarge:
        assert not with_length
    else:
        assert with_length
        assert not reader.can_reuse
        assert reader.body == b"{}"


def test_a_body_of_single_bytes_costs_no_more_than_another() -> None:
    """Of the objects that a body is kept in, not only of its bytes."""
    size = 1 << 18
    reader = AnswerReader()
    tracemalloc.start()
    try:
        reader.receive_data(OK + b"\r\n")
        for _ in range(size):
            reader.receive_data(b"x")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reader.held_bytes == size
    assert peak < 4 * size
