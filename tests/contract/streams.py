"""Streams in any pieces: frames of a loop and answers of an engine come out the same, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from damage import FAULTS, apply_faults
from hypothesis import strategies as st

from fleettui.net.http1 import AnswerReader, HttpProtocolError, HttpTooLarge
from fleettui.probes.frames import Frame, FrameReader, Section, encode_frame

TOKEN = "0123456789abcdef"
MAX_FRAME = 3000
MAX_BODY = 2000

SECTIONS = st.dictionaries(
    st.sampled_from(["stat", "gpu", "apps", "mem", "get"]),
    st.builds(
        Section,
        st.integers(0, 255),
        st.binary(max_size=200) | st.just(b"\x1eFT " + TOKEN.encode() + b" 1\n"),
    ),
    max_size=4,
)
CUTS = st.lists(st.integers(0, 4000), max_size=12)


def split(stream: bytes, cuts: list[int]) -> list[bytes]:
    """The stream in pieces, empty ones among them."""
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    return [stream[start:stop] for start, stop in pairwise(edges)]


def read_frames(pieces: list[bytes]) -> tuple[list[Frame], str, int]:
    """Frames, noise and the number of broken ones."""
    reader = FrameReader(TOKEN, max_bytes=MAX_FRAME)
    frames = [frame for piece in pieces for frame in reader.receive_data(piece)]
    assert reader.held_bytes <= 2 * MAX_FRAME + 4096
    return frames, reader.noise, reader.dropped


def check_frames(inputs: object) -> None:
    """Any split gives the same frames; noise is clean."""
    stream, cuts = inputs  # type: ignore[misc]
    whole = read_frames([stream])
    assert read_frames(split(stream, cuts)) == whole
    assert whole[1].isprintable()


FRAME_STREAMS = st.builds(
    lambda parts, faults: apply_faults(
        b"".join(noise + encode_frame(TOKEN, seq, sections) for seq, (noise, sections) in enumerate(parts)),
        faults,
    ),
    st.lists(st.tuples(st.binary(max_size=40), SECTIONS), max_size=5),
    FAULTS,
)


def read_answer(pieces: list[bytes]) -> tuple[object, ...]:
    """What a reader makes of an answer in pieces: its parts, or that it is none."""
    reader = AnswerReader(max_body_bytes=MAX_BODY)
    try:
        for piece in pieces:
            reader.receive_data(piece)
            assert len(reader.body) <= MAX_BODY
        reader.receive_end()
    except HttpProtocolError:
        return ("no answer",)
    except HttpTooLarge:
        return ("too large",)
    return reader.status, reader.headers, reader.body


def check_answer(inputs: object) -> None:
    """Any split gives the same answer, or the same refusal."""
    stream, cuts = inputs  # type: ignore[misc]
    assert read_answer(split(stream, cuts)) == read_answer([stream])


ANSWERS = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"models":[]}',
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'4\r\n{"mo\r\n9;x=1\r\ndels":[]}\r\n0\r\nTrailer: 1\r\n\r\n',
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 503 Busy\r\nDate: x\r\n\r\nserver busy",
    b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
)
ANSWER_STREAMS = st.builds(apply_faults, st.sampled_from(ANSWERS), FAULTS) | st.binary(max_size=300)

STREAMS: dict[str, tuple[st.SearchStrategy[object], Callable[[object], None]]] = {
    "frames.FrameReader": (st.tuples(FRAME_STREAMS, CUTS), check_frames),
    "http1.AnswerReader": (st.tuples(ANSWER_STREAMS, CUTS), check_answer),
}
