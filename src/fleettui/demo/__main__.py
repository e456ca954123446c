"""`python -m fleettui.demo`: the demo fleet's own process.

Prints one JSON line when everything listens, then takes commands on stdin, a line each, and answers each
with a JSON line. It ends on SIGTERM, SIGINT, the end of stdin, or when its parent is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fleettui.demo.control import run_command
from fleettui.demo.fleet_plan import SIDES
from fleettui.demo.server import DEFAULT_START_S, DemoServer, DemoSettings
from fleettui.demo.simulation import DEFAULT_MACHINES, DEFAULT_SEED

PARENT_CHECK_S = 1.0


def parse_arguments(arguments: list[str]) -> tuple[DemoSettings, argparse.Namespace]:
    """Settings of the fleet, and the words that concern only the process."""
    parser = argparse.ArgumentParser(
        prog="python -m fleettui.demo", description="A simulated fleet of real servers."
    )
    parser.add_argument(
        "--directory", type=Path, required=True, help="where machine files, keys and state go"
    )
    parser.add_argument("--machines", type=int, default=DEFAULT_MACHINES, help="1 to 300")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument("--speed", type=float, default=1.0, help="simulated seconds a second")
    parser.add_argument("--frozen", action="store_true", help="time stands still but for the advance command")
    parser.add_argument("--calm", action="store_true", help="no clients of its own, no machine goes away")
    parser.add_argument(
        "--at", type=float, default=DEFAULT_START_S, metavar="S", help="simulated time at the start"
    )
    parser.add_argument("--cards-each", type=int, metavar="N", help="cards of every machine that has any")
    parser.add_argument(
        "--pending", action="append", default=[], metavar="NAME", help="host key not accepted yet"
    )
    parser.add_argument(
        "--no-forwarding", action="append", default=[], metavar="NAME", help="refuse direct-tcpip"
    )
    parser.add_argument("--hold-connections", action="append", default=[], metavar="NAME",
                        help="accept connections and never answer")  # fmt: skip
    parser.add_argument("--beside", action="append", default=[], metavar="NAME=KIND",
                        help=f"one more engine on a machine: {', '.join(SIDES)}")  # fmt: skip
    parser.add_argument("--temporary", action="store_true", help="remove the directory at the end")
    parser.add_argument("--parent", type=int, metavar="PID", help="end when this process is gone")
    parsed = parser.parse_args(arguments)
    if parsed.speed <= 0:
        parser.error("--speed must be above 0; use --frozen for a fleet that stands still")
    if parsed.cards_each is not None and not 1 <= parsed.cards_each <= 16:
        parser.error("--cards-each must be 1 to 16")
    beside = [(name, kind) for name, _, kind in (text.partition("=") for text in parsed.beside)]
    if any(kind not in SIDES for _, kind in beside):
        parser.error(f"--beside wants NAME=KIND, kind one of {', '.join(SIDES)}")
    settings = DemoSettings(
        parsed.directory.absolute(),
        parsed.machines,
        parsed.seed,
        parsed.speed,
        parsed.frozen,
        parsed.calm,
        max(0.0, parsed.at),
        parsed.cards_each,
        frozenset(parsed.pending),
        frozenset(parsed.no_forwarding),
        frozenset(parsed.hold_connections),
        tuple(beside),
    )
    return settings, parsed


def print_line(value: dict[str, Any]) -> None:
    """One JSON line on stdout; a reader that is gone is no error."""
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(value), flush=True)


def read_lines(on_line: Callable[[str], object], on_end: Callable[[], object]) -> None:
    """Reads stdin in a thread: works for pipes, terminals and /dev/null alike."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        rest = b""
        while True:
            try:
                data = os.read(0, 4096)
            except OSError:
                data = b""
            try:
                if not data:
                    loop.call_soon_threadsafe(on_end)
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    loop.call_soon_threadsafe(on_line, line.decode("utf-8", "replace"))
            except RuntimeError:  # the loop is closed
                return

    threading.Thread(target=read, daemon=True, name="stdin").start()


async def watch_parent(pid: int, stop: asyncio.Event) -> None:
    """A killed parent may leave stdin open in another child; then this ends the fleet."""
    while os.getppid() == pid:  # noqa: ASYNC110 (no event tells that a parent has ended)
        await asyncio.sleep(PARENT_CHECK_S)
    stop.set()


async def serve(settings: DemoSettings, parent: int | None) -> int:
    """Runs the fleet until it is told to end."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = DemoServer(settings)
    commands: asyncio.Queue[str | None] = asyncio.Queue()
    try:
        await server.start()
        print_line(server.ready_document() | {"pid": os.getpid()})
        read_lines(commands.put_nowait, lambda: commands.put_nowait(None))
        tasks = [asyncio.create_task(_obey(server, commands, stop))]
        if parent is not None:
            tasks.append(asyncio.create_task(watch_parent(parent, stop)))
        await stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        await server.stop()
    return 0


async def _obey(server: DemoServer, commands: asyncio.Queue[str | None], stop: asyncio.Event) -> None:
    """One command after the other; None: no more come, and those before it are answered."""
    while (line := await commands.get()) is not None:
        print_line(await run_command(server, line, stop))
    stop.set()


def main(arguments: list[str]) -> int:
    """Exit code 0 after an orderly end, 2 when the fleet cannot be made."""
    settings, words = parse_arguments(arguments)
    try:
        return asyncio.run(serve(settings, words.parent))
    except (OSError, ValueError) as error:
        print(f"demo fleet: {error}", file=sys.stderr)
        return 2
    finally:
        if words.temporary:
            shutil.rmtree(settings.directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
