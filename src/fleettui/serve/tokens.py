"""Bearer tokens in files that only their owner may read. What stands in one appears nowhere else: not in the
command line, a log line, an error or the timeline."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fleettui.model.record import dataclass

MIN_LENGTH = 32
"""Characters. `make_token_file` writes 43, of 256 bits: nobody finds one by trying."""
MIN_DIFFERENT = 10
"""Different characters; fewer were typed by a person."""
MAX_BYTES = 4096
LOOK_AGAIN_S = 1.0
"""A file that was changed, or taken away, counts that late."""
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=")
"""RFC 6750, 2.1."""

log = logging.getLogger(__name__)


class TokenError(Exception):
    """A file cannot be used. `hints`: what to do next. The text never has anything of the file's content."""

    def __init__(self, text: str, *hints: str) -> None:
        super().__init__(text)
        self.text = text
        self.hints = hints


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file and what its token allows."""

    path: str
    may_act: bool
    """False: whoever has it may only read."""

    @property
    def name(self) -> str:
        """How its bearer is called in the timeline: the file's name without its ending."""
        return Path(self.path).stem


def load_token(path: str) -> str:
    """The token of a file. Raises TokenError where others may read it, and where it is no token."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise TokenError(
            f"token file {path}: {error.strerror or error}", f"make one: fleettui serve --make-token {path}"
        ) from None
    try:
        status = os.fstat(fd)
        _check_file(path, status)
        content = os.read(fd, MAX_BYTES + 1)
    except OSError as error:
        raise TokenError(f"token file {path}: {error.strerror or error}") from None
    finally:
        os.close(fd)
    return _check_token(path, content)


def _check_file(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise TokenError(f"token file {path} is no regular file")
    if status.st_uid not in (0, os.geteuid()):
        raise TokenError(
            f"token file {path} belongs to uid {status.st_uid}, who could change it",
            f"chown it to the user that the server runs as, uid {os.geteuid()}",
        )
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        raise TokenError(
            f"token file {path} has mode {mode:04o}: others than its owner may use it",
            f"chmod 600 {path}",
            "if somebody may have read it by now, make another one: fleettui serve --make-token FILE",
        )


def _check_token(path: str, content: bytes) -> str:
    again = f"make another one: rm {path}; fleettui serve --make-token {path}"
    token = content.decode("latin-1").removesuffix("\n").removesuffix("\r")
    if not token.strip():
        raise TokenError(f"token file {path} is empty", again)
    if len(content) > MAX_BYTES or not _LETTERS.issuperset(token):
        raise TokenError(
            f"token file {path} has more than one line with one token of letters, digits and -._~+/=", again
        )
    if len(token) < MIN_LENGTH or len(set(token)) < MIN_DIFFERENT:
        raise TokenError(
            f"token file {path} has a token that can be guessed: at least {MIN_LENGTH} characters, "
            f"{MIN_DIFFERENT} different ones, are wanted",
            again,
        )
    return token


def make_token_file(path: str) -> None:
    """Write a new token into a new file of mode 0600. Raises TokenError."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise TokenError(
            f"{path} is there already, and is not written over",
            "for another token: take it away first; whoever uses the old one is refused then",
        ) from None
    except OSError as error:
        raise TokenError(f"{path} cannot be written: {error.strerror or error}") from None
    try:
        os.fchmod(fd, 0o600)  # whatever the umask, and inherited ACLs
        os.write(fd, f"{secrets.token_urlsafe(32)}\n".encode())
    except OSError as error:
        raise TokenError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        os.close(fd)


class TokenBook:
    """The tokens of a running server, followed: a file that is replaced or taken away counts at once."""

    def __init__(self, files: Sequence[TokenFile], clock: Callable[[], float] = time.monotonic) -> None:
        """Raises TokenError where a file cannot be used."""
        self._clock = clock
        self._files = tuple(files)
        self._marks: dict[TokenFile, object] = {file: _mark(file.path) for file in files}
        self._digests = {file: _digest(load_token(file.path)) for file in files}
        self._looked_at = clock()
        if len(set(self._digests.values())) < len(self._digests):
            raise TokenError("two token files have the same token: nobody could tell who asks")

    def __bool__(self) -> bool:
        return bool(self._files)

    @property
    def may_act(self) -> bool:
        """There is a file whose token allows it."""
        return any(file.may_act for file in self._files)

    def find(self, token: str) -> TokenFile | None:
        """Whose token it is; takes as long for a wrong one as for a right one."""
        self._follow()
        given, found = _digest(token), None
        for file, digest in self._digests.items():
            if hmac.compare_digest(given, digest):
                found = file
        return found

    def _follow(self) -> None:
        now = self._clock()
        if now - self._looked_at < LOOK_AGAIN_S:
            return
        self._looked_at = now
        for file in self._files:
            mark = _mark(file.path)
            if mark == self._marks[file]:
                continue
            self._marks[file] = mark
            self._digests.pop(file, None)
            try:
                self._digests[file] = _digest(load_token(file.path))
            except TokenError as error:
                log.warning("%s; it counts no more", error.text)


def _mark(path: str) -> object:
    """Another one when the file is, or who may read it."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a microsecond, on every request with a token
    except OSError as error:
        return error.errno
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("latin-1", "replace")).digest()
