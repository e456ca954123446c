"""HTTP answers as they come over a stream: any split, any bytes."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.net.http1 import (
    AnswerReader,
    HttpClosed,
    HttpProtocolError,
    HttpTooLarge,
    encode_get,
)

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n" + b'{"models":[]}'
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'5;note=x\r\n{"mod\r\n8\r\nels":[]}\r\n0\r\nTrailer: y\r\n\r\n'
)
UNTIL_END = b'HTTP/1.0 200 OK\r\n\r\n{"models":[]}'
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN


def read(data: bytes, *, is_ended: bool = False) -> AnswerReader:
    reader = AnswerReader()
    reader.receive_data(data)
    if is_ended:
        reader.receive_end()
    return reader


@given(st.sampled_from([PLAIN, CHUNKED, UNTIL_END, CONTINUED]), st.lists(st.integers(1, 200), max_size=60))
def test_any_split_of_the_stream_gives_the_same_answer(stream: bytes, sizes: list[int]) -> None:
    reader, at = AnswerReader(), 0
    for size in [*sizes, len(stream)]:
        if part := stream[at : at + size]:
            reader.receive_data(part)
        at += size
    reader.receive_end()
    assert (reader.status, reader.body, reader.is_complete) == (200, b'{"models":[]}', True)


@given(st.binary(max_size=300), st.sampled_from([b"", PLAIN[:40], CHUNKED[:50], CHUNKED[:70]]))
def test_any_bytes_give_an_answer_or_a_named_error(noise: bytes, start: bytes) -> None:
    reader = AnswerReader()
    try:
        for data in (start, noise):
            if data:
                reader.receive_data(data)
        reader.receive_end()
    except (HttpProtocolError, HttpTooLarge):
        assert not (reader.is_complete and reader.can_reuse)


@given(
    st.binary(max_size=400),
    st.lists(st.integers(1, 60), min_size=1, max_size=20),
    st.sampled_from([200, 404, 500, 503]),
    st.booleans(),
)
def test_it_reads_what_h11_writes(body: bytes, sizes: list[int], status: int, is_chunked: bool) -> None:
    server = h11.Connection(h11.SERVER)
    server.receive_data(encode_get(11434, "/api/ps"))
    assert isinstance(server.next_event(), h11.Request)
    headers = [("Transfer-Encoding", "chunked")] if is_chunked else [("Content-Length", str(len(body)))]
    stream = server.send(h11.Response(status_code=status, headers=headers)) or b""
    at = 0
    for size in sizes:
        if part := body[at : at + size]:
            stream += server.send(h11.Data(data=part)) or b""
        at += size
    if rest := body[at:]:
        stream += server.send(h11.Data(data=rest)) or b""
    stream += server.send(h11.EndOfMessage()) or b""
    reader = read(stream)
    assert (reader.status, reader.body, reader.is_complete, reader.can_reuse) == (status, body, True, True)


@pytest.mark.parametrize(
    ("stream", "can_reuse"),
    [
        (PLAIN, True),
        (CHUNKED, True),
        (PLAIN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), False),
        (PLAIN.replace(b"1.1", b"1.0"), False),
        (PLAIN.replace(b"1.1", b"1.0").replace(b"\r\n\r\n", b"\r\nConnection: Keep-Alive\r\n\r\n"), True),
        (PLAIN + b"HTTP/1.1 200 OK\r\n", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
    ],
)
def test_a_connection_is_used_again_only_when_it_may_be(stream: bytes, can_reuse: bool) -> None:
    reader = read(stream)
    assert reader.is_complete
    assert reader.can_reuse is can_reuse


@pytest.mark.parametrize(
    "stream",
    [
        b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabX\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"x" * 70_000,
    ],
)
def test_what_is_no_answer_is_refused(stream: bytes) -> None:
    with pytest.raises(HttpProtocolError):
        read(stream)


@pytest.mark.parametrize("stream", [b"", PLAIN[:-1], CHUNKED[:-1], PLAIN[:30]])
def test_a_cut_answer_is_no_answer(stream: bytes) -> None:
    with pytest.raises(HttpClosed):
        read(stream, is_ended=True)


@pytest.mark.parametrize(
    "stream",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * ((8 << 20) + 1),
    ],
)
def test_an_answer_larger_than_8_mib_is_refused(stream: bytes) -> None:
    with pytest.raises(HttpTooLarge):
        read(stream)


@pytest.mark.parametrize("path", ["", "api/ps", "/a b", "/a\r\nX: y"])
def test_a_request_cannot_carry_a_second_line(path: str) -> None:
    with pytest.raises(ValueError, match="not a request path"):
        encode_get(11434, path)


def test_a_header_cannot_carry_a_second_line() -> None:
    with pytest.raises(ValueError, match="not a request path or header"):
        encode_get(11434, "/api/ps", [("Authorization", "Bearer x\r\nHost: y")])
