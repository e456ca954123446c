"""One command on its own SSH channel, from start to end; for machines whose shell knows no loops."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import asyncssh

from fleettui.net.channels import finish_or_drop
from fleettui.net.link import CommandAnswer

MAX_OUTPUT_BYTES = 4 << 20


class OneCommand:
    """The channel of one command. Serves as asyncssh's session."""

    def __init__(self) -> None:
        self.has_ended: asyncio.Future[CommandAnswer | None] = asyncio.get_running_loop().create_future()
        self._output: dict[bool, list[bytes]] = {False: [], True: []}
        self._room = MAX_OUTPUT_BYTES
        self._exit_code: int | None = None
        self._signal: str | None = None

    def connection_made(self, channel: Any) -> None: ...

    def session_started(self) -> None: ...

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if self._room > 0:
            self._output[datatype is not None].append(data[: self._room])
            self._room -= len(data)

    def exit_status_received(self, status: int) -> None:
        self._exit_code = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._exit_code, self._signal = -1, signal[:20]

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self.has_ended.done():
            return
        if exc is not None or self._exit_code is None:
            self.has_ended.set_result(None)
            return
        stdout, stderr = b"".join(self._output[False]), b"".join(self._output[True])
        self.has_ended.set_result(CommandAnswer(self._exit_code, self._signal, stdout, stderr))

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


async def run_one_command(connection: asyncssh.SSHClientConnection, command: str) -> CommandAnswer | None:
    """Run a command to its end; None when the channel ended without an exit status: a part is no answer.

    Raises asyncssh.Error and OSError where no session is given. Cancelled, it closes the channel.
    """
    channel, session = await finish_or_drop(
        connection.create_session(
            OneCommand,  # type: ignore[arg-type]
            command,
            encoding=None,
            request_pty=False,
        )
    )
    try:
        return await session.has_ended  # type: ignore[attr-defined,no-any-return]
    finally:
        with suppress(OSError):
            channel.close()
