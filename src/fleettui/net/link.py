"""The seam between the pollers and the wire: what every link can do, however it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fleettui.net.errors import HttpFailure, LinkError
from fleettui.net.http1 import MAX_BODY_BYTES

DataCallback = Callable[[bytes], None]
EndCallback = Callable[[str], None]
LostCallback = Callable[[LinkError], None]
Header = tuple[str, str]


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole HTTP answer."""

    status: int
    headers: tuple[Header, ...]
    """Lower-case names, in the order they came."""
    body: bytes
    received_at: float
    """Epoch seconds."""

    def header(self, name: str) -> str | None:
        """First value of a header; `name` in lower case."""
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What one command printed and how it ended."""

    exit_code: int
    """-1 when a signal ended it."""
    signal: str | None
    """`KILL`; None when it ended by itself."""
    stdout: bytes
    stderr: bytes


GetCallback = Callable[[HttpAnswer | HttpFailure], None]


class LoopChannel(Protocol):
    """A long-lived command on the machine that is fed lines and answers frames."""

    @property
    def is_open(self) -> bool:
        """False once it ended or was closed."""

    def write(self, data: bytes) -> None:
        """Send bytes to the command; without effect once it ended."""

    def close(self) -> None:
        """End the command: end of file first, which the loops obey. `on_end` is not called for it."""


class Link(Protocol):
    """A way to one machine. Opened once; after `on_lost` or `close` a new one is asked of the Connector."""

    @property
    def address(self) -> str | None:
        """`192.0.2.10:22`, what is or was talked to."""

    @property
    def server_version(self) -> str | None:
        """`SSH-2.0-…` as the machine sent it; None before the greeting and for this machine itself."""

    async def open(self, on_lost: LostCallback) -> None:
        """Connect, verify the host key, log in. Raises LinkError; `on_lost` is called once if it dies."""

    async def open_loop(self, command: str, on_data: DataCallback, on_end: EndCallback) -> LoopChannel:
        """Start a loop command. Raises LinkError(stage="session").

        `on_data` gets its standard output, `on_end` one line of why it ended (also when the link is lost).
        """

    async def run_command(self, command: str) -> CommandAnswer | None:
        """Run one command to its end, for machines whose shell knows no loops. Raises LinkError.

        None: the channel ended without an exit status, so that what came may be a part. Cancelled, it closes
        the channel; else it waits for ever.
        """

    async def get(
        self, port: int, path: str, *, headers: Sequence[Header] = (), timeout_s: float
    ) -> HttpAnswer:
        """HTTP GET on the machine's loopback, over a kept channel. Raises HttpFailure."""

    async def post(
        self,
        port: int,
        path: str,
        body: bytes,
        *,
        headers: Sequence[Header] = (),
        timeout_s: float,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> HttpAnswer:
        """HTTP POST of a JSON document, over a channel of its own; sent once. Raises HttpFailure."""

    def start_get(
        self,
        port: int,
        path: str,
        on_answer: GetCallback,
        timeout_s: float,
        headers: Sequence[Header] = (),
    ) -> bool:
        """The same without a task where a kept channel is idle; False: none is, use `get`.

        `on_answer` is called once unless the link is closed before. With failure `lost` a `get` may succeed.
        """

    def count_streams(self, port: int) -> int:
        """Channels to that port of the machine's loopback that are open, or were a moment ago: the machine
        sees them as connections of its own."""

    async def close(self) -> None:
        """End everything; bounded, never raises."""
