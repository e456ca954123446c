"""stdout is data: the only module that writes it."""

from __future__ import annotations

import errno
import os
import sys

from fleettui.model.written import dump_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


_has_written = False


def write_lines(lines: Iterable[str]) -> None:
    """Print lines of text, flushed. Characters the terminal's encoding lacks print as `?`."""
    text = "".join(f"{line}\n" for line in lines)
    _write(text)


def write_text(text: str) -> None:
    """Print text as it is, with the terminal codes in it: for what is drawn on a terminal."""
    _write(text)


def write_document(document: Any, *, is_compact: bool = False) -> None:
    """Print one JSON document; numbers of machine files stand as the operator wrote them."""
    _write(encode_json(document, is_compact=is_compact) + "\n")


def encode_json(document: Any, *, is_compact: bool = False) -> str:
    """JSON text of a document; null is unknown, NaN never appears."""
    return dump_json(
        document,
        ensure_ascii=False,
        allow_nan=False,
        indent=None if is_compact else 2,
        separators=(",", ":") if is_compact else None,
    )


def is_terminal() -> bool:
    """True when stdout is a terminal that can be drawn on."""
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM", "") != "dumb"


def can_encode(text: str) -> bool:
    """True when stdout's encoding has these characters."""
    try:
        text.encode((sys.stdout.encoding if sys.stdout is not None else None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def terminal_size() -> tuple[int, int]:
    """Columns and lines of the terminal on stdout; 80 by 24 where they are unknown."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        return 80, 24
    return size.columns or 80, size.lines or 24


def terminal_width() -> int | None:
    """Columns of the terminal on stdout, None where there is none."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError, AttributeError):
        return None


def discard() -> None:
    """Point stdout at nothing: the reader has gone, and the exit must not fail on the last flush."""
    if sys.stdout is None:
        return
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def take_over() -> int:
    """A descriptor of stdout for a protocol alone; whatever else is printed goes to stderr from now on."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed, so nobody can be answered")
    own = os.dup(sys.stdout.fileno())  # not inherited
    try:
        os.dup2(2, sys.stdout.fileno())
    except OSError:  # stderr is closed
        discard()
    return own


def write_through(descriptor: int, text: str) -> None:
    """All of a text, as UTF-8, to a descriptor of `take_over`; takes as long as its reader does."""
    rest = memoryview(text.encode("utf-8", "replace"))
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def has_written() -> bool:
    """True once anything was printed."""
    return _has_written


def _write(text: str) -> None:
    global _has_written  # noqa: PLW0603 - there is one stdout
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed, so nothing can be printed")
    # Names of files and arguments may hold bytes that are no text; they too print as `?`.
    encoding = sys.stdout.encoding or "utf-8"
    _has_written = True
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()
