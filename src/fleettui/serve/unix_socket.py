"""A Unix socket that only the user of the server can connect to. Standard library only."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from pathlib import Path

from fleettui.serve.listening import BACKLOG, ListenError

MAX_PATH_BYTES = 107
"""sun_path of Linux, without its last byte."""
KNOCK_S = 2.0


class OwnSocket:
    """A listening socket and its file, which goes with it."""

    def __init__(self, path: str) -> None:
        """Raises ListenError. What is there is only replaced where it is a socket that nobody answers at."""
        self.path = os.path.abspath(path)  # noqa: PTH100 - no symlink is followed by that
        if not hasattr(socket, "SO_PEERCRED"):
            raise ListenError("--socket: this system does not tell who connects", "use --token-file")
        if len(os.fsencode(self.path)) > MAX_PATH_BYTES:
            raise ListenError(f"--socket {self.path}: the path has more than {MAX_PATH_BYTES} bytes")
        folder = Path(self.path).parent
        _check_folder(folder)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two that start at once must not both find it stale
            self._remove_stale()
            self.listener = self._listen()
            self._mark = _mark(self.path)
        except OSError as error:
            raise ListenError(f"--socket {self.path}: {error.strerror or error}") from None
        finally:
            os.close(lock)

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            before = os.umask(0o177)  # from its first moment nobody else's
            try:
                listener.bind(self.path)
            finally:
                os.umask(before)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
        listener.setblocking(False)
        return listener

    def _remove_stale(self) -> None:
        """Raises ListenError where something else is there, or somebody answers."""
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise ListenError(
                f"--socket {self.path}: there is something else, which is left as it is",
                "choose another path",
            )
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
            knock.settimeout(KNOCK_S)
            try:
                knock.connect(self.path)
            except ConnectionRefusedError:
                os.unlink(self.path)  # noqa: PTH108 - as the calls around it
                return
            except OSError:  # its queue is full: somebody is there
                pass
        raise ListenError(
            f"--socket {self.path}: another server answers there", "end it first, or choose another path"
        )

    def close(self) -> None:
        """Take the file away, unless it is another one by now; more than once is fine."""
        self.listener.close()
        try:
            if _mark(self.path) == self._mark:
                os.unlink(self.path)  # noqa: PTH108
        except OSError:
            pass


def _mark(path: str) -> tuple[int, int, int]:
    """Of one file: numbers of inodes are used again at once."""
    found = os.lstat(path)
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _check_folder(folder: Path) -> None:
    """Raises ListenError where others could put another socket into its place: by writing into the folder, or
    by renaming one above it."""
    try:
        real = folder.resolve(strict=True)
    except OSError as error:
        raise ListenError(
            f"--socket: its folder {folder}: {error.strerror or error}", f"make it: mkdir -m 700 {folder}"
        ) from None
    for place in (real, *real.parents):
        found = place.stat()
        is_others = found.st_uid not in (0, os.geteuid())
        is_open = bool(found.st_mode & 0o022) and (place == real or not found.st_mode & stat.S_ISVTX)
        if is_others or is_open:
            raise ListenError(
                f"--socket: others may write into {place}, and could put a socket of their own there",
                "choose a folder of your own: mkdir -m 700 DIR; --socket DIR/fleettui.sock",
            )
