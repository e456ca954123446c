"""Notice that files changed, by what stat tells."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

FileStamp = tuple[int, int, int]


FRESH_S = 0.1
"""A file is looked at once in so long: 256 machines that log in together ask for 3000 stamps."""

_recent: dict[str, tuple[float, FileStamp | None]] = {}


def stamp_of(path: str) -> FileStamp | None:
    """mtime, size and inode, at most a tenth of a second old; None: there is no such file."""
    now = time.monotonic()
    known = _recent.get(path)
    if known is not None and now - known[0] < FRESH_S:
        return known[1]
    stamp = _read_stamp(path)
    _recent[path] = (now, stamp)
    return stamp


def forget_stamps() -> None:
    """Look at every file anew."""
    _recent.clear()


def _read_stamp(path: str) -> FileStamp | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - pathlib's costs three times as much
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class Stamps:
    """The state of some files at one moment."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._stamps = {path: stamp_of(path) for path in paths}

    def have_changed(self) -> bool:
        """Any file differs from that moment."""
        return any(stamp_of(path) != stamp for path, stamp in self._stamps.items())
