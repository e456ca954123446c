"""stderr is narration: the only module that writes it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def say(*lines: str) -> None:
    """Print lines for the person at the terminal. A closed or full stderr never breaks a command."""
    if sys.stderr is None:  # closed by the caller (`2>&-`)
        return
    encoding = sys.stderr.encoding or "utf-8"
    text = "".join(f"{line}\n" for line in lines).encode(encoding, "replace").decode(encoding)
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def say_error(command: str, text: str, *hints: str) -> None:
    """Print `fleettui COMMAND: what failed` and what to do next, each hint on a line of its own."""
    prefix = f"fleettui {command}" if command else "fleettui"
    say(f"{prefix}: {text}", *(f"  {hint}" for hint in hints))


def missing_terminal() -> str | None:
    """`stderr` or `stdin`, where that is no terminal: nobody would see what stands there, or could type."""
    streams = {"stderr": sys.stderr, "stdin": sys.stdin}
    return next((name for name, stream in streams.items() if stream is None or not stream.isatty()), None)


def is_terminal() -> bool:
    """True when stderr is a terminal that can be coloured."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "") != "dumb"


def terminal_width() -> int | None:
    """Columns of the terminal on stderr, None where there is none."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or None
    except (OSError, ValueError, AttributeError):
        return None


def can_ask() -> bool:
    """Somebody sits at a terminal who sees a question and can answer it."""
    return missing_terminal() is None


def ask(question: str) -> str:
    """Put a question on the terminal; the answer without surrounding blanks, empty at the end of input.

    Ctrl+C ends it at once, also inside asyncio: its own handler would let the reading go on till the second.
    """
    import signal

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.stderr.write(question)
        sys.stderr.flush()
        answer = sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)
    if not answer.endswith("\n"):
        say("")
    return answer.strip()


async def ask_in_loop(question: str) -> str:
    """As `ask`, while the event loop goes on: what is polled meanwhile stays fresh. Ctrl+C cancels it."""
    import asyncio

    loop = asyncio.get_running_loop()
    answered: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not answered.done():
            answered.set_result(sys.stdin.readline())

    sys.stderr.write(question)
    sys.stderr.flush()
    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, read)
    try:
        answer = await answered
    finally:
        loop.remove_reader(descriptor)
    if not answer.endswith("\n"):
        say("")
    return answer.strip()


def say_all(lines: Iterable[str]) -> None:
    """Print many lines."""
    say(*lines)
