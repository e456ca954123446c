"""A pseudo terminal with somebody at it: runs a command there, reads the screen, presses keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO

from cli_runner import SRC

PATIENCE_S = 60.0
_PIECE = re.compile(r"\x1b\[([<>?=]?)([0-9;]*)[ $]*([@-~])|\x1b[^\[]|[\x00-\x1f]|[^\x00-\x1f]+")


class Screen:
    """What the terminal shows, as far as our frames need it: text, places, steps to the right."""

    def __init__(self, width: int, height: int) -> None:
        self.rows = [[" "] * width for _ in range(height)]
        self._x = self._y = 0
        self._rest = ""

    def feed(self, text: str) -> None:
        text = self._rest + text
        start = text.rfind("\x1b")
        is_cut = start >= 0 and not re.match(r"\x1b(\[[<>?=]?[0-9;]*[ $]*[@-~]|[^\[])", text[start:])
        self._rest = text[start:] if is_cut else ""
        for match in _PIECE.finditer(text[:start] if is_cut else text):
            private, numbers, final = match[1], match[2], match[3]
            if final == "H" and not private:
                y, _, x = numbers.partition(";")
                self._y, self._x = int(y or 1) - 1, int(x or 1) - 1
            elif final == "C":
                self._x += int(numbers or 1)
            elif final is None and match[0][0] >= " ":
                for character in match[0]:
                    if self._y < len(self.rows) and self._x < len(self.rows[0]):
                        self.rows[self._y][self._x] = character
                    self._x += 1

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.rows]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Terminal:
    """`with Terminal(…) as terminal:`; the command's stdout is a pipe, as inside `$(…)`."""

    def __init__(
        self,
        *arguments: str,
        environment: dict[str, str],
        size: tuple[int, int] = (80, 24),
        stdin: int | None = None,
        stderr: int | None = None,
        is_controlling: bool = True,
        command: list[str] | None = None,
        stdout: int | IO[bytes] | None = subprocess.PIPE,
    ) -> None:
        """`stdin`, `stderr`: in place of the terminal; `stdout` None: the terminal."""
        self.screen = Screen(*size)
        self.written = b""
        self._master, self._slave = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(self._slave)
        slave = self._slave

        def take_terminal() -> None:
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        preparation: Callable[[], None] | None = take_terminal if is_controlling else None
        self.process = subprocess.Popen(
            command or [sys.executable, "-m", "fleettui", *arguments],
            env={**os.environ, **environment, "PYTHONPATH": SRC, "TERM": "xterm-256color"},
            stdin=slave if stdin is None else stdin,
            stdout=slave if stdout is None else stdout,
            stderr=slave if stderr is None else stderr,
            start_new_session=True,
            preexec_fn=preparation,  # noqa: PLW1509 - one ioctl, no lock
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self._slave)
        os.close(self._master)

    def resize(self, width: int, height: int) -> None:
        """The operator drags the window; who holds the terminal is signalled."""
        self.screen = Screen(width, height)
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read(self, wait_s: float = 0.05) -> bool:
        """Take what was written; False when there was nothing."""
        if not select.select([self._master], [], [], wait_s)[0]:
            return False
        data = os.read(self._master, 1 << 16)
        self.written += data
        self.screen.feed(data.decode("utf-8", "replace"))
        return True

    def wait_for(self, holds: Callable[[str], bool] | str) -> str:
        """The screen's text once it has that text, or once that holds."""
        test = holds if callable(holds) else lambda text: holds in text
        deadline = time.monotonic() + PATIENCE_S
        while not test(self.screen.text):
            assert time.monotonic() < deadline, f"did not come:\n{self.screen.text}"
            if not self.read() and self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode}:\n{self.written[-2000:]!r}")
        return self.screen.text

    def press(self, keys: str | bytes) -> None:
        os.write(self._master, keys if isinstance(keys, bytes) else keys.encode())

    def end(self) -> tuple[int, bytes]:
        """Exit code and stdout once it has ended; the terminal is as it was."""
        deadline = time.monotonic() + PATIENCE_S
        while self.read() or self.process.poll() is None:
            assert time.monotonic() < deadline, f"does not end:\n{self.screen.text}"
        stdout = b"" if self.process.stdout is None else self.process.stdout.read()
        assert termios.tcgetattr(self._slave) == self.before
        return self.process.returncode, stdout


def fleettui_in_path(folder: Path) -> str:
    """A PATH in which `fleettui` is this checkout."""
    folder.mkdir(exist_ok=True)
    tool = folder / "fleettui"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m fleettui "$@"\n')
    tool.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
