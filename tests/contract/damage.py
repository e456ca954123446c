"""Damaged answers: real samples with flipped bits, cuts, lines twice or swapped, CRLF, odd numbers."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st
from parser_table import EXIT_CODES, READERS, Given, Reader, samples_of

PIECES = (
    b"\xff", b"\r", b"\n", b"\0", b", ", b"[N/A]", b"[GPU is lost]", b"\x1b[2J", b"\x1b]0;x\x07", b"-",
    b"9" * 40, b"18446744073709551616", b"1e999", b"NaN", b"-1", b"0x10", b"1_0", "٣".encode(),
    "\u2028".encode(), "\u202e".encode(), b"null", b"{}", b"[", b"]", b'"', b":", b"%", b" kB",
)  # fmt: skip
"""What is put in: control codes, numbers that are none, marks of JSON, CSV and /proc."""

MOST_BYTES = 6000
"""Of a damaged sample: repeated damage must not let it grow."""


def damage(data: bytes, kind: int, at: int, size: int, piece: int) -> bytes:
    """One fault of a line, a disk, a shell or a stranger. All numbers may be anything."""
    at = at % (len(data) + 1)
    end = min(len(data), at + size % 64)
    match kind % 9:
        case 0:  # a flipped bit
            if at < len(data):
                return data[:at] + bytes([data[at] ^ 1 << size % 8]) + data[at + 1 :]
        case 1:  # cut off
            return data[:at]
        case 2:  # the beginning is missing
            return data[at:]
        case 3:  # something in between
            return data[:at] + PIECES[piece % len(PIECES)] + data[at:]
        case 4:  # something instead
            return data[:at] + PIECES[piece % len(PIECES)] + data[end:]
        case 5:  # a hole
            return data[:at] + data[end:]
        case 6:  # the line ends of Windows
            return data.replace(b"\n", b"\r\n")
        case _:
            lines = data.split(b"\n")
            one, other = at % len(lines), piece % len(lines)
            if kind % 9 == 7:  # a line twice
                lines.insert(one, lines[other])
            else:  # two lines change places
                lines[one], lines[other] = lines[other], lines[one]
            return b"\n".join(lines)
    return data


NUMBERS = st.integers(0, 1 << 16)
FAULTS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), max_size=5)


def apply_faults(data: bytes, faults: list[tuple[int, int, int, int]]) -> bytes:
    """The faults one after the other."""
    for kind, at, size, piece in faults:
        data = damage(data, kind, at, size, piece)[:MOST_BYTES]
    return data


@cache
def texts_for(reader: Reader) -> st.SearchStrategy[bytes]:
    """Damaged samples of this reader; now and then those of another, or anything."""
    own = st.builds(apply_faults, st.sampled_from(samples_of(reader)), FAULTS)
    foreign = st.builds(apply_faults, st.sampled_from(all_samples()), FAULTS)
    return st.one_of(own, own, own, foreign, st.binary(max_size=400))


@cache
def all_samples() -> tuple[bytes, ...]:
    """Every sample of every reader, once."""
    return tuple(dict.fromkeys(sample for reader in READERS for sample in samples_of(reader)))


@cache
def given_for(reader: Reader) -> st.SearchStrategy[Given]:
    """What a reader is called with."""
    texts = texts_for(reader)
    return st.builds(Given, texts, texts, texts, st.sampled_from(EXIT_CODES), st.integers(0, 1000))
