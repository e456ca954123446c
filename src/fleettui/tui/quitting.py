"""SIGQUIT while we have the terminal: it is given back first, whatever hangs; a core is dumped as ever."""

from __future__ import annotations

import os
import select
import signal
import termios
from contextlib import suppress
from typing import Any

_ROOM_MS = 100
_GIVE_BACK = (
    b"\x18\x1b[0m"  # ends a sequence that was cut
    b"\x1b[?2026l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l\x1b[?2048l\x1b[?1004l"
    b"\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h"
)
"""Frame, mouse, paste, sizes, focus, wrapping, keys, screen, cursor: what Textual 8.2.8 sets, undone."""


class QuitSignal:
    """The handler. Python's own for SIGQUIT is none: the process would die with the screen taken."""

    def __init__(self, fd: int, modes: list[Any] | None) -> None:
        self._fd = fd
        self._modes = modes
        self._before: Any = None

    def watch(self) -> None:
        """From now on; only where a signal would end us."""
        with suppress(ValueError):  # not the main thread
            if signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL:
                self._before = signal.signal(signal.SIGQUIT, self._quit)

    def leave(self) -> None:
        """The terminal is given back."""
        if self._before is not None and signal.getsignal(signal.SIGQUIT) == self._quit:
            signal.signal(signal.SIGQUIT, self._before)
        self._before = None

    def _quit(self, number: int, frame: object) -> None:
        with suppress(OSError):  # it may be gone
            poll = select.poll()
            poll.register(self._fd, select.POLLOUT)
            if poll.poll(_ROOM_MS):  # else it stands still, and we would with it
                os.write(self._fd, _GIVE_BACK)
        if self._modes is not None:
            with suppress(OSError, termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, self._modes)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGQUIT)
