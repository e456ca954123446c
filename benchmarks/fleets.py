"""Fleets that benchmarks poll, each in processes of its own, and the client processes that poll them."""

from __future__ import annotations

import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

from fleettui.demo.launcher import DemoFleet
from measure import clean_environment, machine_busy_s

HERE = Path(__file__).resolve().parent
FLEETTUI = (sys.executable, "-m", "fleettui")


@dataclass(frozen=True, slots=True)
class Fleet:
    """Machines to poll."""

    machines_dir: str
    server_pids: tuple[int, ...]
    """Their cost is never counted as the client's."""


@contextmanager
def demo_fleet(machines: int, cards: int | None = None) -> Iterator[Fleet]:
    """The simulated fleet: an SSH server and an Ollama stand-in for each machine."""
    arguments = () if cards is None else ("--cards-each", str(cards))
    with DemoFleet(machines=machines, arguments=arguments) as demo:
        yield Fleet(str(demo.machines_dir), (demo.pid,))


@contextmanager
def light_fleet(machines: int, cards: int = 8) -> Iterator[Fleet]:
    """Machines that cost next to nothing on the server side."""
    with tempfile.TemporaryDirectory(prefix="fleettui-bench-") as folder:
        command = [sys.executable, str(HERE / "light_server.py"), folder]
        server = subprocess.Popen(
            [*command, "--machines", str(machines), "--cards", str(cards)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert server.stdout
        try:
            place = json.loads(server.stdout.readline())
            yield Fleet(place["machines_dir"], (server.pid,))
        finally:
            if server.stdin:
                server.stdin.close()
            try:
                server.wait(timeout=5)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            server.stdout.close()


@contextmanager
def temporary_state() -> Iterator[str]:
    """An empty home with a state folder; what a client process stores goes there."""
    with tempfile.TemporaryDirectory(prefix="fleettui-bench-") as folder:
        yield folder


def folder_options(fleet: Fleet, home: str) -> list[str]:
    """Command-line options that point fleettui at a fleet."""
    return ["--machines", fleet.machines_dir, "--state-dir", f"{home}/state"]


class Screen:
    """A process on a pseudo terminal of its own, read as fast as it writes."""

    def __init__(self, command: Sequence[str], home: str, columns: int, rows: int) -> None:
        self._main, child = pty.openpty()
        ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            command,
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
            env=clean_environment(HOME=home),
        )
        os.close(child)
        self.bytes_read = 0
        self.tail = b""
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def _drain(self) -> None:
        while True:
            try:
                data = os.read(self._main, 1 << 16)
            except OSError:
                return
            if not data:
                return
            self.bytes_read += len(data)
            self.tail = (self.tail + data)[-4096:]

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._main, keys)

    def close(self) -> None:
        """End the process by its own pid and wait for it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join(timeout=2)
        os.close(self._main)


def wait_until_quiet(limit_cores: float = 0.15, patience_s: float = 20.0) -> float:
    """Wait until the machine does little else; returns the last reading, cores."""
    deadline = time.monotonic() + patience_s
    while True:
        busy, started = machine_busy_s(), time.perf_counter()
        time.sleep(0.7)
        cores = (machine_busy_s() - busy) / (time.perf_counter() - started)
        if cores <= limit_cores or time.monotonic() > deadline:
            return cores
