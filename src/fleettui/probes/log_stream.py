"""The bytes of a `follow` section: noise, a mark, journalctl's lines, and a frame when it has ended."""

from __future__ import annotations

import re

from fleettui.model.log import LogLine
from fleettui.probes.clean import clean_excerpt
from fleettui.probes.machine_logs import JournalReader

_START = b"\x1e\n"
_EXIT = re.compile(rb"follow (\d{1,3}) 0\n")
_NOISE_KEPT = 4096


class LogStream:
    """Incremental; never raises; holds no more than a line of the journal."""

    def __init__(self, token: str) -> None:
        self._end = b"\x1eFT " + token.encode("ascii")
        self._buffer = b""
        self._tail: bytes | None = None
        """What came after the end mark."""
        self._journal = JournalReader()
        self.has_begun = False
        """The machine took the question."""

    @property
    def exit_code(self) -> int | None:
        """journalctl's, once it has ended."""
        found = _EXIT.search(self._tail) if self._tail is not None else None
        return int(found[1]) if found else None

    @property
    def complaints(self) -> list[str]:
        """What journalctl said itself."""
        return self._journal.complaints

    @property
    def noise(self) -> str:
        """What the machine said before, where it did not begin."""
        return "" if self.has_begun else clean_excerpt(self._buffer)

    def receive_data(self, data: bytes) -> list[LogLine]:
        """Lines that are whole now."""
        if self._tail is not None:
            self._tail = (self._tail + data)[:_NOISE_KEPT]
            return []
        self._buffer += data
        if not self.has_begun:
            at = self._buffer.find(_START)
            if at < 0:
                self._buffer = self._buffer[-_NOISE_KEPT:]
                return []
            self.has_begun = True
            self._buffer = self._buffer[at + len(_START) :]
        at = self._buffer.find(self._end)
        if at >= 0:
            body, self._tail, self._buffer = self._buffer[:at], self._buffer[at:][:_NOISE_KEPT], b""
            return [*self._journal.receive_data(body), *self._journal.finish()]
        # The mark may have come in part: it begins with a byte that no line holds.
        kept = self._buffer.rfind(b"\x1e", -len(self._end) + 1) if self._buffer else -1
        body, self._buffer = (self._buffer, b"") if kept < 0 else (self._buffer[:kept], self._buffer[kept:])
        return self._journal.receive_data(body)
