"""Starts the demo fleet in a process of its own and stops it again. Standard library only."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

START_LIMIT_S = 30.0
COMMAND_LIMIT_S = 20.0
STOP_LIMIT_S = 5.0
Result = TypeVar("Result")


class DemoError(Exception):
    """The demo fleet did not start, or does not answer; the text says what it said itself."""


class DemoFleet:
    """A running demo fleet: `with DemoFleet(8) as fleet:` or `async with`."""

    def __init__(
        self,
        machines: int = 8,
        seed: int = 7,
        *,
        is_frozen: bool = False,
        is_calm: bool = False,
        speed: float = 1.0,
        arguments: Sequence[str] = (),
        directory: Path | None = None,
    ):
        self._arguments = ["--machines", str(machines), "--seed", str(seed), "--speed", str(speed)]
        self._arguments += ["--frozen"] * is_frozen + ["--calm"] * is_calm + list(arguments)
        self._given_directory = directory
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._lock = threading.Lock()
        self.directory = Path()
        self.ready: dict[str, Any] = {}
        """The ready line: machines with ports, paths, environment."""

    @property
    def machines_dir(self) -> Path:
        return Path(self.ready["machines_dir"])

    @property
    def state_dir(self) -> Path:
        return Path(self.ready["state_dir"])

    @property
    def environment(self) -> dict[str, str]:
        """What a program exports to use this fleet."""
        return dict(self.ready["environment"])

    @property
    def machines(self) -> list[dict[str, Any]]:
        """name, user, ssh_port, engine_port and host_key of each machine."""
        return list(self.ready["machines"])

    @property
    def pid(self) -> int:
        if self._process is None:
            raise DemoError("the demo fleet is not running")
        return self._process.pid

    def start(self) -> DemoFleet:
        """Starts the process and waits until every port listens. DemoError when that fails."""
        self.directory = self._given_directory or Path(tempfile.mkdtemp(prefix="fleettui-demo-"))
        errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (closed below)
        command = [sys.executable, "-m", "fleettui.demo", "--directory", str(self.directory)]
        command += ["--parent", str(os.getpid()), *self._arguments]
        command += ["--temporary"] * (self._given_directory is None)
        # A session of its own: Ctrl-C in the terminal is for the dashboard, the fleet ends by its stdin.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            start_new_session=True, env=_environment(),
        )  # fmt: skip
        threading.Thread(target=self._read_lines, daemon=True, name="demo fleet").start()
        try:
            self.ready = self._next_line(START_LIMIT_S)
        except DemoError as error:
            self.stop()
            errors.seek(0)
            said = errors.read().strip().splitlines()
            raise DemoError(f"the demo fleet did not start: {said[-1] if said else error}") from None
        except BaseException:
            self.stop()
            raise
        finally:
            errors.close()
        return self

    def _read_lines(self) -> None:
        process = self._process
        if process is not None and process.stdout is not None:
            for line in process.stdout:
                self._lines.put(line)
        self._lines.put(None)

    def _next_line(self, limit_s: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=limit_s)
        except queue.Empty:
            raise DemoError(f"no word from it within {limit_s:g} s") from None
        if line is None:
            self._lines.put(None)
            raise DemoError("its process has ended")
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise DemoError(f"it said {line[:80]!r}")
        return answer

    def command(self, line: str) -> dict[str, Any]:
        """Sends one command (`stop ada`, `advance 30`, …) and gives its answer. DemoError when it refuses."""
        with self._lock:
            if self._process is None or self._process.stdin is None:
                raise DemoError("the demo fleet is not running")
            try:
                self._process.stdin.write(line.replace("\n", " ") + "\n")
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError):
                raise DemoError("the demo fleet's process has ended") from None
            answer = self._next_line(COMMAND_LIMIT_S)
        if not answer.get("ok"):
            raise DemoError(f"demo fleet, {line!r}: {answer.get('error')}")
        return answer

    def wait(self) -> None:
        """Waits until the process ends by itself."""
        if self._process is not None:
            self._process.wait()

    def stop(self) -> None:
        """Ends the process, by its own id, and removes the folder it was given for itself."""
        process, self._process = self._process, None
        if process is not None:
            _end_process(process)
        if self._given_directory is None and self.directory != Path():
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = Path()

    async def start_async(self) -> DemoFleet:
        """`start`, beside a running event loop."""
        return await _in_thread(self.start)

    async def command_async(self, line: str) -> dict[str, Any]:
        """`command`, beside a running event loop."""
        return await _in_thread(self.command, line)

    async def stop_async(self) -> None:
        """`stop`, beside a running event loop."""
        await _in_thread(self.stop)

    async def __aenter__(self) -> DemoFleet:
        return await self.start_async()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop_async()

    def __enter__(self) -> DemoFleet:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


async def _in_thread(call: Callable[..., Result], *arguments: Any) -> Result:
    """asyncio comes with its first use: whoever starts a fleet without it does not pay for it."""
    import asyncio

    return await asyncio.to_thread(call, *arguments)


def _end_process(process: subprocess.Popen[str]) -> None:
    """End of stdin asks it to end; then SIGTERM, then SIGKILL."""
    with contextlib.suppress(OSError, ValueError):
        if process.stdin is not None:
            process.stdin.close()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            process.send_signal(number)
        try:
            process.wait(STOP_LIMIT_S)
            return
        except subprocess.TimeoutExpired:
            continue


def _environment() -> dict[str, str]:
    """Ours, with the folder that this package was imported from."""
    package_root = str(Path(__file__).resolve().parents[2])
    paths = [package_root, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
    }
