"""Notice that files changed, by what stat tells."""

from __future__ import annotations

import os
from collections.abc import Iterable

FileStamp = tuple[int, int, int]


def stamp_of(path: str) -> FileStamp | None:
    """mtime, size and inode; None: there is no such file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a few for each login
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
