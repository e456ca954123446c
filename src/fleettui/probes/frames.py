"""Frames: how a loop on a machine answers, read incrementally (bytes in, frames out, no IO).

The client writes one request line, `<seq> <section> <section>…\\n`; the machine answers with one frame:

    \\x1eFT <token> <seq>\\n
    <name> <exit> <length>\\n<length bytes>      for each section
    \\x1f<token> <seq>\\n

The token is 16 lower-case hex characters that the client chose for the channel, so that neither rc files
nor text of other people can pass for a frame. Everything outside a frame is noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from fleettui.model.record import dataclass
from fleettui.probes.clean import clean_excerpt

MAX_FRAME_BYTES = 4 << 20
_MAX_LINE = 96
"""Longest header line inside a frame; a longer one is no frame of ours."""
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
    def is_inside(self) -> bool:
        """True while a frame has begun and not ended."""
        return self._buffer.startswith(self._start)

    def receive_data(self, data: bytes) -> list[Frame]:
        """The frames that `data` completes, in order."""
        buffer = self._buffer + data if self._buffer else bytes(data)
        frames: list[Frame] = []
        while True:
            at = buffer.find(self._start)
            if at < 0:
                self._buffer = self._keep_tail(buffer)
                return frames
            if at:
                self._keep_noise(buffer[:at])
                buffer = buffer[at:]
            size, frame = self._parse(buffer)
            if size == 0:
                self._buffer = buffer
                return frames
            if frame is None:
                self.dropped += 1
            else:
                frames.append(frame)
            buffer = buffer[size:]

    def _parse(self, buffer: bytes) -> tuple[int, Frame | None]:
        """Size and frame at the start of `buffer`; size 0: not complete yet; no frame: broken, skip size."""
        skip = len(self._start)
        end = buffer.find(b"\n", skip, skip + _MAX_LINE)
        if end < 0:
            return (skip, None) if len(buffer) - skip >= _MAX_LINE else (0, None)
        line, at = buffer[skip:end], end + 1
        seq = _number(line)
        if seq is None:
            return skip, None
        sections: dict[str, Section] = {}
        tail = self._end + line
        find = buffer.find
        while True:
            end = find(b"\n", at, at + _MAX_LINE)
            if end < 0:
                return (skip, None) if len(buffer) - at >= _MAX_LINE else (0, None)
            line = buffer[at:end]
            if line[:1] == b"\x1f":
                return (end + 1, Frame(seq, sections)) if line == tail else (skip, None)
            parts = line.split(b" ")
            name = _section_name(parts[0])
            if name is None or len(parts) != 3:
                return skip, None
            exit_code, length = _number(parts[1]), _number(parts[2])
            if exit_code is None or length is None:
                return skip, None
            at = end + 1 + length
            if at > self._max_bytes:
                return skip, None
            if at > len(buffer):
                return 0, None
            sections[name] = Section(exit_code, buffer[end + 1 : at])

    def _keep_tail(self, buffer: bytes) -> bytes:
        """The part of `buffer` that may be the beginning of a start mark; the rest is noise."""
        mark = buffer.rfind(b"\x1e", max(0, len(buffer) - len(self._start) + 1))
        if mark >= 0 and self._start.startswith(buffer[mark:]):
            self._keep_noise(buffer[:mark])
            return buffer[mark:]
        self._keep_noise(buffer)
        return b""

    def _keep_noise(self, noise: bytes) -> None:
        room = _NOISE_KEPT - len(self._noise)
        if room > 0:
            self._noise += noise[:room]


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() and len(text) <= 12 else None


@lru_cache(maxsize=256)
def _section_name(raw: bytes) -> str | None:
    return raw.decode("ascii") if is_section(raw) else None


_SECTION_BYTES = b"abcdefghijklmnopqrstuvwxyz0123456789_:/.-"


def is_section(name: bytes) -> bool:
    """True for a section name: `[a-z0-9_:/.-]+`."""
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
    words = [name.encode("ascii", "replace") for name in sections]
    for word in words:
        if not is_section(word):
            raise ValueError(f"no section name: {word!r}")
    return b"%d %s\n" % (seq, b" ".join(words))


def parse_request(line: bytes) -> tuple[int, tuple[str, ...]] | None:
    """Sequence number and sections of a request line; None when it is none."""
    words = line.strip(b"\r\n").split(b" ")
    seq = _number(words[0])
    names = [word for word in words[1:] if word]
    if seq is None or not all(is_section(name) for name in names):
        return None
    return seq, tuple(name.decode("ascii") for name in names)
