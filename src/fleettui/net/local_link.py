"""`ssh: local`: this machine, asked by the same loop commands in a subprocess."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress

from fleettui.net.errors import HttpFailure, LinkError, clean_line
from fleettui.net.link import (
    CommandAnswer,
    DataCallback,
    EndCallback,
    LostCallback,
)
from fleettui.net.tunnel import HttpStream, KeptHttp, LoopbackHttp

END_S = 1.0
"""Time a loop gets to end at end of file, before its process group is killed."""


class LocalLoop(asyncio.SubprocessProtocol):
    """A loop command as a child process that leads its own session."""

    def __init__(self, on_data: DataCallback, on_end: EndCallback) -> None:
        self._on_data = on_data
        self._on_end: EndCallback | None = on_end
        self._transport: asyncio.SubprocessTransport | None = None
        self._complaint = b""
        self.is_open = False
        self.has_ended = asyncio.Event()

    def write(self, data: bytes) -> None:
        if self.is_open and self._transport is not None:
            stdin = self._transport.get_pipe_transport(0)
            if stdin is not None:
                stdin.write(data)  # type: ignore[attr-defined]

    def close(self) -> None:
        self._on_end = None
        transport = self._transport
        if transport is None or not self.is_open:
            return
        self.is_open = False
        stdin = transport.get_pipe_transport(0)
        if stdin is not None:
            stdin.close()
        asyncio.get_running_loop().call_later(END_S, self.kill)

    def kill(self) -> None:
        """Kill the whole group: a hung tool ignores the end of its input."""
        if self._transport is not None and not self.has_ended.is_set():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self.is_open = True

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != 1:
            self._complaint = (self._complaint + data)[-400:]
        elif self._on_end is not None:
            self._on_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self.is_open = False

    def process_exited(self) -> None:
        # A background child may hold our pipes: the loop is over all the same.
        self.is_open = False
        self.has_ended.set()
        transport = self._transport
        asyncio.get_running_loop().call_soon(self._tell_end)
        if transport is not None:
            asyncio.get_running_loop().call_later(END_S, transport.close)

    def _tell_end(self) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is None or self._transport is None:
            return
        code = self._transport.get_returncode() or 0
        outcome = f"ended with exit code {code}" if code >= 0 else f"was killed ({_signal_name(-code)})"
        complaint = clean_line(self._complaint)
        on_end(f"{outcome}: {complaint}" if complaint else outcome)


def _signal_name(number: int) -> str:
    """`SIGKILL`; real-time signals but two have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class LocalLink(LoopbackHttp):
    """This machine."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loops: list[LocalLoop] = []
        self._http = KeptHttp(self._open_stream, name)
        self.server_version: str | None = None
        self.address: str | None = "local"

    async def open(self, on_lost: LostCallback) -> None:
        """Nothing to connect; `on_lost` is never called."""

    async def open_loop(self, command: str, on_data: DataCallback, on_end: EndCallback) -> LocalLoop:
        loop = asyncio.get_running_loop()
        try:
            _, channel = await loop.subprocess_exec(
                lambda: LocalLoop(on_data, on_end), "/bin/sh", "-c", command, start_new_session=True
            )
        except OSError as error:
            raise LinkError("session", f"{self._name}: cannot start /bin/sh: {error.strerror}") from None
        self._loops = [item for item in self._loops if not item.has_ended.is_set()]
        self._loops.append(channel)
        return channel

    async def run_command(self, command: str) -> CommandAnswer | None:
        shell = os.environ.get("SHELL") or "/bin/sh"
        try:
            process = await asyncio.create_subprocess_exec(
                shell, "-c", command, start_new_session=True, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise LinkError("session", f"{self._name}: cannot start {shell}: {error.strerror}") from None
        try:
            stdout, stderr = await process.communicate()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        code = process.returncode or 0
        ended_by = _signal_name(-code).removeprefix("SIG") if code < 0 else None
        return CommandAnswer(-1 if code < 0 else code, ended_by, stdout, stderr)

    async def close(self) -> None:
        self._http.close()
        loops, self._loops = self._loops, []
        for channel in loops:
            channel.close()
        waiting = [asyncio.ensure_future(channel.has_ended.wait()) for channel in loops]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=END_S)
            for task in late:
                task.cancel()
        for channel in loops:
            channel.kill()

    async def _open_stream(self, factory: Callable[[], HttpStream], host: str, port: int) -> None:
        try:
            await asyncio.get_running_loop().create_connection(factory, host, port)
        except ConnectionRefusedError:
            raise HttpFailure("refused", f"{self._name}: nothing listens on port {port}") from None
        except OSError as error:
            # No IPv6 on this machine is no reason other than that of IPv4.
            is_refused = ":" in host
            text = f"{self._name}: port {port}: {error.strerror or error}"
            raise HttpFailure("refused" if is_refused else "lost", text) from None
