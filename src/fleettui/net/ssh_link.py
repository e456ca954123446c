"""The link to a machine over SSH: one connection, long-lived loop channels, GETs on direct-tcpip channels."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import asyncssh

from fleettui.net.channels import finish_or_drop
from fleettui.net.errors import ENDED_WITH_LINK, HttpFailure, LinkError, SessionRefused, clean_line
from fleettui.net.jumps import Jump
from fleettui.net.lean_channels import make_lean, receive_lean
from fleettui.net.lean_packets import forget_command, send_lean
from fleettui.net.link import (
    CommandAnswer,
    DataCallback,
    EndCallback,
    LostCallback,
)
from fleettui.net.login import Login
from fleettui.net.one_command import run_one_command
from fleettui.net.tunnel import HttpStream, KeptHttp, LoopbackHttp

OpenLogin = Callable[[], Awaitable[tuple[Login, Jump | None]]]
CLOSE_S = 1.0
ENDING_S = 1.0
"""A session that was closed counts for the server until its command ended."""


class SshLoop:
    """A loop command on its channel. Serves as asyncssh's session."""

    def __init__(self, on_data: DataCallback, on_end: EndCallback) -> None:
        self._on_data = on_data
        self._on_end: EndCallback | None = on_end
        self._channel: Any = None
        self._complaint = b""
        self._outcome: str | None = None
        self.is_open = False
        self.has_ended = asyncio.Event()

    def write(self, data: bytes) -> None:
        if self.is_open:
            with suppress(OSError):
                self._channel.write(data)

    def close(self) -> None:
        self._on_end = None
        if self.is_open:
            self.is_open = False
            with suppress(OSError):
                self._channel.write_eof()
                self._channel.close()

    def connection_made(self, channel: Any) -> None:
        self._channel = channel
        self.is_open = True
        make_lean(channel)

    def session_started(self) -> None: ...

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if datatype is not None:
            self._complaint = (self._complaint + data)[-400:]
            return
        try:
            self._on_data(data)
        except Exception as error:  # noqa: BLE001 - asyncssh would drop the connection and hide the bug
            call_exception_handler(error)

    def exit_status_received(self, status: int) -> None:
        self._outcome = f"ended with exit code {status}"

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._outcome = f"was killed (SIG{clean_line(signal)})"

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._channel = None
        self.has_ended.set()
        on_end, self._on_end = self._on_end, None
        if on_end is None:
            return
        outcome = self._outcome or "ended without an exit code"
        if exc is not None:
            outcome = ENDED_WITH_LINK
        complaint = clean_line(self._complaint)
        try:
            on_end(f"{outcome}: {complaint}" if complaint else outcome)
        except Exception as error:  # noqa: BLE001 - as above
            call_exception_handler(error)

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class SshLink(LoopbackHttp):
    """A machine over SSH."""

    def __init__(
        self,
        where: str,
        open_login: OpenLogin,
        release: Callable[[Jump], None],
        session_s: float,
        own_host: str,
    ) -> None:
        self._where = where
        self._open_login = open_login
        self._release = release
        self._session_s = session_s
        self._login: Login | None = None
        self._jump: Jump | None = None
        self._on_lost: LostCallback | None = None
        self._http = KeptHttp(self._open_stream, where.rpartition(":")[0], own_host)
        self._loops: set[SshLoop] = set()
        self._is_closed = False

    @property
    def address(self) -> str | None:
        return self._login.address if self._login else None

    @property
    def server_version(self) -> str | None:
        if self._login is None:
            return None
        version = self._login.connection.get_extra_info("server_version")
        return str(version)[:100] if version else None

    @property
    def is_open(self) -> bool:
        return self._login is not None and not self._is_closed

    async def open(self, on_lost: LostCallback) -> None:
        if self._login is not None or self._is_closed:
            raise LinkError("session", f"{self._where}: this link was used before", is_retryable=False)
        login, self._jump = await self._open_login()
        self._take(login, on_lost)

    def _take(self, login: Login, on_lost: LostCallback) -> None:
        if self._is_closed:  # while the login was under way
            login.connection.abort()
            self._give_back_jump()
            raise LinkError("lost", f"{self._where}: closed here")
        self._login, self._on_lost, self._where = login, on_lost, login.where
        login.client.on_lost = self._lose
        send_lean(login.connection)
        receive_lean(login.connection)
        if login.connection.is_closed():
            self._lose(None)

    async def open_loop(self, command: str, on_data: DataCallback, on_end: EndCallback) -> SshLoop:
        """As a Link; raises SessionRefused where the server starts no command, LinkError where it is gone."""
        try:
            return await self._open_session(command, on_data, on_end)
        except SessionRefused:
            if not await self._wait_for_endings():
                raise
        return await self._open_session(command, on_data, on_end)

    async def _wait_for_endings(self) -> bool:
        """Wait for loops that were closed and have not ended yet; False: there are none."""
        ending = [item for item in self._loops if not item.is_open and not item.has_ended.is_set()]
        waiting = [asyncio.ensure_future(item.has_ended.wait()) for item in ending]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=ENDING_S)
            for task in late:
                task.cancel()
        return bool(waiting)

    async def _open_session(self, command: str, on_data: DataCallback, on_end: EndCallback) -> SshLoop:
        connection = self._connection()
        try:
            async with asyncio.timeout(self._session_s):
                channel, loop = await finish_or_drop(
                    connection.create_session(
                        lambda: SshLoop(on_data, on_end),  # type: ignore[arg-type,return-value]
                        command,
                        encoding=None,
                        request_pty=False,
                    )
                )
        except asyncssh.ChannelOpenError as error:
            raise self._explain_session(error) from None
        except TimeoutError:
            within = f"within {self._session_s:g} s"
            text = f"{self._where}: no answer to a new session {within}; is the machine overloaded?"
            raise LinkError("session", text) from None
        except (asyncssh.Error, OSError) as error:
            raise self._explain_loss(error) from None
        forget_command(channel)
        self._loops = {item for item in self._loops if not item.has_ended.is_set()}
        self._loops.add(loop)  # type: ignore[arg-type]
        return loop  # type: ignore[return-value]

    async def run_command(self, command: str) -> CommandAnswer | None:
        try:
            return await run_one_command(self._connection(), command)
        except asyncssh.ChannelOpenError as error:
            raise self._explain_session(error) from None
        except (asyncssh.Error, OSError) as error:
            raise self._explain_loss(error) from None

    async def close(self) -> None:
        self._is_closed = True
        self._on_lost = None
        self._http.close()
        for loop in self._loops:
            loop.close()
        login = self._login
        if login is not None:
            login.client.on_lost = None
            with suppress(Exception):
                login.connection.close()
                async with asyncio.timeout(CLOSE_S):
                    await login.connection.wait_closed()
            with suppress(Exception):
                login.connection.abort()
        self._give_back_jump()

    def _connection(self) -> asyncssh.SSHClientConnection:
        if self._login is None or self._is_closed or self._login.connection.is_closed():
            raise LinkError("lost", f"{self._where}: not connected")
        return self._login.connection

    def _give_back_jump(self) -> None:
        jump, self._jump = self._jump, None
        if jump is not None:
            self._release(jump)

    def _lose(self, exc: Exception | None) -> None:
        """asyncssh ended the connection: say so once."""
        self._http.close()
        through = f" (through {self._jump.where})" if self._jump is not None else ""
        self._give_back_jump()
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is None:
            return
        reason = clean_line(str(getattr(exc, "reason", None) or exc or "closed by the machine"))
        if "not responding to keepalive" in reason:
            error = LinkError(
                "silent", f"{self._where}{through}: no byte any more; is the machine frozen or cut off?"
            )
        else:
            why = "" if reason.lower() == "connection lost" else f": {reason}"
            error = LinkError("lost", f"{self._where}{through}: connection lost{why}; tried again by itself")
        try:
            on_lost(error)
        except Exception as bug:  # noqa: BLE001 - asyncssh would hide it
            call_exception_handler(bug)

    def _explain_loss(self, error: Exception) -> LinkError:
        text = f"{self._where}: no session: {clean_line(str(error))}; tried again by itself"
        return LinkError("session", text)

    def _explain_session(self, error: asyncssh.ChannelOpenError) -> LinkError:
        where, reason = self._where, clean_line(str(error.reason))
        if self._login is None or self._login.connection.is_closed():
            return LinkError(
                "lost", f"{where}: the connection ended before the session began; tried again by itself"
            )
        if error.code == asyncssh.OPEN_CONNECT_FAILED:
            advice = "MaxSessions in its sshd_config must be 2 or more"
            return SessionRefused(f"{where}: the server limits sessions ({reason}); {advice}")
        if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
            return SessionRefused(f"{where}: the server allows no session ({reason}); see its sshd_config")
        text = f"{where}: the server refused to run a command ({reason}); does the account have a shell?"
        return SessionRefused(text)

    async def _open_stream(self, factory: Callable[[], HttpStream], host: str, port: int) -> None:
        name = self._where.rpartition(":")[0]
        try:
            connection = self._connection()
            channel, _ = await finish_or_drop(connection.create_connection(factory, host, port))  # type: ignore[arg-type]
            make_lean(channel)
        except LinkError as error:
            raise HttpFailure("lost", error.text) from None
        except asyncssh.ChannelOpenError as error:
            if connection.is_closed():
                raise HttpFailure("lost", f"{name}: connection lost") from None
            if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
                text = f"{name}: SSH port forwarding is not allowed there (AllowTcpForwarding, PermitOpen)"
                raise HttpFailure("forbidden", text) from None
            if error.code == asyncssh.OPEN_CONNECT_FAILED:
                raise HttpFailure("refused", f"{name}: nothing listens on port {port}") from None
            reason = clean_line(str(error.reason))
            raise HttpFailure("forbidden", f"{name}: the server opens no tunnel ({reason})") from None
        except (asyncssh.Error, OSError) as error:
            raise HttpFailure("lost", f"{name}: {clean_line(str(error))}") from None


def call_exception_handler(error: Exception) -> None:
    """Report a bug in a callback of ours where bugs of tasks are reported."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": "error in a link's callback", "exception": error}
    )
