"""Lines of a protocol over stdin and stdout, each moved by a thread of its own.

A read that blocks, and a reader at the other end who takes nothing, hold up neither the event loop nor the
end of the process.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import CommandError
from fleettui.fleet.pace import be_quick

MAX_LINE_BYTES = 1 << 20
"""A longer message is no question; whoever sends it is not heard any more."""
_WAITING = 64
"""Lines that are read ahead."""


class InputLines:
    """`async for line in lines:` until the end of input. Raises CommandError where stdin is closed."""

    def __init__(self) -> None:
        if sys.stdin is None:
            raise CommandError(
                "stdin is closed, so nobody can ask", "start it from an MCP client: docs/mcp.md"
            )
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(_WAITING)
        self._descriptor = _take_over_stdin()
        threading.Thread(target=self._read, name="input", daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            self._room.release()
            be_quick(self._loop)
            yield line

    def end(self) -> None:
        """As if the input had ended."""
        self._lines.put_nowait(None)

    def _read(self) -> None:
        rest = bytearray()
        with suppress(OSError):
            while data := os.read(self._descriptor, 1 << 16):
                rest += data
                *lines, last = rest.split(b"\n") if b"\n" in data else [rest]
                for line in lines:
                    self._hand(line.decode("utf-8", "replace"))
                rest = bytearray(last)
                if len(rest) > MAX_LINE_BYTES:
                    diagnostics.say_error(
                        "mcp", f"a message is longer than {MAX_LINE_BYTES >> 20} MiB", "ended"
                    )
                    break
            else:
                if rest:
                    self._hand(rest.decode("utf-8", "replace"))
        self._hand(None)

    def _hand(self, line: str | None) -> None:
        if line is not None:
            self._room.acquire()
        with suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)


def _take_over_stdin() -> int:
    """A descriptor of stdin that no child gets; they read nothing."""
    own = os.dup(sys.stdin.fileno())  # not inherited
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    return own


class OutputLines:
    """`await lines.write(text)`: done when the other end has taken it. Of stdout nothing else remains."""

    def __init__(self, when_broken: Callable[[], None]) -> None:
        """`when_broken`: called once when nobody reads any more."""
        self._loop = asyncio.get_running_loop()
        self._when_broken = when_broken
        self._is_broken = False
        self._texts: queue.SimpleQueue[tuple[str, asyncio.Future[None]]] = queue.SimpleQueue()
        self._descriptor = output.take_over()
        threading.Thread(target=self._write, name="output", daemon=True).start()

    async def write(self, text: str) -> None:
        """Nothing happens where nobody reads any more."""
        if not self._is_broken:
            done: asyncio.Future[None] = self._loop.create_future()
            self._texts.put((text, done))
            await done

    async def flush(self) -> None:
        """Each text is written through."""

    def _write(self) -> None:
        while True:
            text, done = self._texts.get()
            try:
                output.write_through(self._descriptor, text)
                is_written = True
            except OSError:
                is_written = False
            with suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(self._note, done, is_written)

    def _note(self, done: asyncio.Future[None], is_written: bool) -> None:
        if not done.done():
            done.set_result(None)
        if not is_written and not self._is_broken:
            self._is_broken = True
            self._when_broken()
