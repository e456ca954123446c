"""Frames: how a loop on a machine answers, read incrementally (bytes in, frames out, no IO).

The client writes one request line, `<seq> <section> <section>…\\n`; the machine answers with one frame:

    \\x1eFT <token> <seq>\\n
    <name> <exit> <length>\\n<length bytes>      for each section
    \\x1f<token> <seq>\\n

The token is 16 lower-case hex characters that the client chose for the channel, so that neither rc files
nor text of other people can pass for a frame. Everything outside a frame is noise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from fleettui.model.record import dataclass
from fleettui.probes.clean import clean_excerpt

MAX_FRAME_BYTES = 4 << 20
_MAX_LINE = 96
"""Longest header line inside a frame; a longer one is no frame of ours."""
_MAX_SECTIONS = 64
"""No question has as many; without a limit a stream of empty ones would be read again with each packet."""
_NOISE_KEPT = 2048


@dataclass(frozen=True, slots=True)
class Section:
    """What one tool on the machine answered."""

    exit_code: int
    """The tool's exit code; 0 for what the shell reads itself. 75: an earlier call still hangs."""
    payload: bytes


@dataclass(frozen=True, slots=True)
class Frame:
    """One complete answer."""

    seq: int
    sections: dict[str, Section]


class FrameReader:
    """Turns the bytes of one channel into frames. Never raises; broken frames are dropped and counted."""

    __slots__ = ("_buffer", "_end", "_max_bytes", "_noise", "_start", "dropped")

    def __init__(self, token: str, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._start = b"\x1eFT " + token.encode("ascii", "replace") + b" "
        self._end = b"\x1f" + token.encode("ascii", "replace") + b" "
        self._max_bytes = max_bytes
        self._buffer = b""
        self._noise = b""
        self.dropped = 0
        """Frames that began and were no frames."""

    @property
    def noise(self) -> str:
        """Excerpt of what came outside of frames (banner, rc files), cleaned, at most 400 characters."""
        return clean_excerpt(self._noise)

    @property
    def held_bytes(self) -> int:
        """What is kept of what came: part of one frame, and an excerpt of the noise."""
        return len(self._buffer) + len(self._noise)

    def receive_data(self, data: bytes) -> list[Frame]:
        """The frames that `data` completes, in order."""
        buffer = self._buffer + data if self._buffer else bytes(data)
        frames: list[Frame] = []
        done = 0
        while True:
            at = buffer.find(self._start, done)
            if at < 0:
                self._buffer = self._keep_tail(buffer[done:] if done else buffer)
                return frames
            if at > done:
                self._keep_noise(buffer, done, at)
            end, frame = self._parse(buffer, at)
            if end == at:
                self._buffer = buffer[at:] if at else buffer
                return frames
            if frame is None:
                self.dropped += 1
            else:
                frames.append(frame)
            done = end

    def _parse(self, buffer: bytes, start: int) -> tuple[int, Frame | None]:
        """Where the frame that begins at `start` ends, and the frame.

        `start` itself: not complete yet; no frame: it is none of ours, its mark is passed over.
        """
        skip = start + len(self._start)
        end = buffer.find(b"\n", skip, skip + _MAX_LINE)
        if end < 0:
            return (skip, None) if len(buffer) - skip >= _MAX_LINE else (start, None)
        line, at = buffer[skip:end], end + 1
        seq = _number(line)
        if seq is None:
            return skip, None
        sections: dict[str, Section] = {}
        tail = self._end + line + b"\n"
        read_head, size, last = _SECTION_HEAD.match, len(buffer), start + self._max_bytes
        for _ in range(_MAX_SECTIONS):
            head = read_head(buffer, at)
            if head is None:
                if buffer.startswith(tail, at):
                    return at + len(tail), Frame(seq, sections)
                return (start, None) if self._may_go_on(buffer, at, tail) else (skip, None)
            name, exit_code, length = head.groups()
            begin = head.end()
            at = begin + int(length)
            if at > last:
                return skip, None
            if at > size:
                return start, None
            sections[_section_name(name)] = Section(int(exit_code), buffer[begin:at])
        return skip, None

    @staticmethod
    def _may_go_on(buffer: bytes, at: int, tail: bytes) -> bool:
        """What stands at `at` may still become a section's head or the frame's last line."""
        rest = buffer[at : at + _MAX_LINE]
        if rest[:1] == b"\x1f":
            return tail.startswith(rest)
        return len(rest) < _MAX_LINE and b"\n" not in rest

    def _keep_tail(self, buffer: bytes) -> bytes:
        """The part of `buffer` that may be the beginning of a start mark; the rest is noise."""
        mark = buffer.rfind(b"\x1e", max(0, len(buffer) - len(self._start) + 1))
        if mark >= 0 and self._start.startswith(buffer[mark:]):
            self._keep_noise(buffer, 0, mark)
            return buffer[mark:]
        self._keep_noise(buffer, 0, len(buffer))
        return b""

    def _keep_noise(self, buffer: bytes, start: int, end: int) -> None:
        room = _NOISE_KEPT - len(self._noise)
        if room > 0:
            self._noise += buffer[start : min(end, start + room)]


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() and len(text) <= 12 else None


@lru_cache(maxsize=256)
def _section_name(raw: bytes) -> str:
    return raw.decode("ascii")


_SECTION_HEAD = re.compile(rb"([a-z0-9_:/.-]{1,68}) ([0-9]{1,12}) ([0-9]{1,12})\n")
_SECTION_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:/.@-"


def is_section(name: bytes) -> bool:
    """True for a section to ask for, arguments included: `[A-Za-z0-9_:/.@-]+`, one word to any shell."""
    return bool(name) and not name.translate(None, _SECTION_BYTES)


def encode_frame(token: str, seq: int, sections: Mapping[str, Section]) -> bytes:
    """The bytes of a frame, as the loops print it. For the demo fleet and tests."""
    parts = [b"\x1eFT %s %d\n" % (token.encode("ascii"), seq)]
    for name, section in sections.items():
        head = b"%s %d %d\n" % (name.encode("ascii"), section.exit_code, len(section.payload))
        parts.append(head + section.payload)
    parts.append(b"\x1f%s %d\n" % (token.encode("ascii"), seq))
    return b"".join(parts)


def request_line(seq: int, sections: Sequence[str]) -> bytes:
    """The line that asks a loop for `sections`. ValueError for a name that is no section name."""
    return b"%d %s\n" % (seq, _words_of(tuple(sections)))


@lru_cache(maxsize=256)
def _words_of(sections: tuple[str, ...]) -> bytes:
    words = [name.encode("ascii", "replace") for name in sections]
    for word in words:
        if not is_section(word):
            raise ValueError(f"no section name: {word!r}")
    return b" ".join(words)


def parse_request(line: bytes) -> tuple[int, tuple[str, ...]] | None:
    """Sequence number and sections of a request line; None when it is none."""
    words = line.strip(b"\r\n").split(b" ")
    seq = _number(words[0])
    names = [word for word in words[1:] if word]
    if seq is None or not all(is_section(name) for name in names):
        return None
    return seq, tuple(name.decode("ascii") for name in names)
