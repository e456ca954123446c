"""A way through the program that ProxyCommand of ssh_config names.

asyncssh has such a way too, but takes what the program writes to standard error for a part of the
connection, which breaks it, and the end of standard error for the connection's end.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fleettui.net.dialers import Dialer
from fleettui.net.errors import LinkError, clean_line
from fleettui.net.greeting import GreetingGuard

MAX_COMPLAINT = 400


class CommandWay(asyncio.SubprocessProtocol):
    """The program; serves as the transport of what speaks through its standard input and output."""

    def __init__(self, guard: GreetingGuard) -> None:
        self._guard = guard
        self._process: Any = None
        self._has_ended = False
        self.complaint = b""
        """The end of what it wrote to standard error."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._process = transport
        self._guard.connection_made(self)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._guard.data_received(data)
        else:
            self.complaint = (self.complaint + data)[-MAX_COMPLAINT:]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            # Standard error is a pipe of its own: what it says of the end may come a moment later.
            asyncio.get_running_loop().call_soon(self._end, exc)

    def _end(self, exc: Exception | None) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._guard.connection_lost(exc)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._process.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return bool(self._process.is_closing())

    def write(self, data: bytes) -> None:
        stdin = self._process.get_pipe_transport(0)
        if stdin is not None and not stdin.is_closing():
            stdin.write(data)

    def close(self) -> None:
        """End the program at once."""
        self._process.close()

    def abort(self) -> None:
        self.close()


class CommandDialer(Dialer):
    """Opens the way by starting the program."""

    _way: CommandWay | None = None

    async def _look_up(self, host: str, port: int) -> None:
        """The program looks the name up."""

    async def _open(self) -> tuple[Any, GreetingGuard]:
        guard = GreetingGuard()
        try:
            _, self._way = await asyncio.get_running_loop().subprocess_exec(
                lambda: CommandWay(guard),
                "/bin/sh",
                "-c",
                f"exec {self._hop.proxy_command}",
                start_new_session=True,
            )
        except OSError as error:
            text = f"{self._hop.where}: its ProxyCommand cannot be started: {error.strerror or error}"
            raise LinkError("connect", f"{text}; tried again by itself") from None
        self.address = f"{self._hop.where} by ProxyCommand"
        return self._way, guard

    def explain_greeting(self) -> str:
        if self.guard is not None and self.guard.head:
            return super().explain_greeting()
        said = clean_line(self._way.complaint) if self._way is not None else ""
        ended = f"ended without an SSH greeting: {said}" if said else "ended without an SSH greeting"
        return f"{self._hop.where}: its ProxyCommand {ended}; correct it in ~/.ssh/config"
