"""HTTP by the machine's own curl or wget: where SSH forwards nothing and the engine is bound to loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fleettui.fleet.loop_feed import LoopFeed
from fleettui.net.errors import HttpFailure, LinkError
from fleettui.net.link import HttpAnswer, Link
from fleettui.probes.frames import Frame, Section

CURL_REFUSED = 7
CURL_TIMEOUT = 28
NO_TOOL = 127


class RemoteHttp:
    """A third loop on the connection, opened on first use; one request at a time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._feed = LoopFeed("engine", self._take, self._ended)
        self._turn = asyncio.Lock()
        self._waiting: asyncio.Future[Section] | None = None

    async def get(self, link: Link, port: int, path: str) -> HttpAnswer:
        """Fetch a path of an engine on the machine's loopback. Raises HttpFailure."""
        async with self._turn:
            section = await self._ask(link, f"get:{port}{path}")
        if section.exit_code != 0 and not section.payload:
            raise _failure(section.exit_code, port)
        return read_printed_answer(section.payload, self._clock())

    def close(self) -> None:
        """End the loop; whoever waits is told so."""
        self._feed.close()
        self._ended("the connection ended")

    async def _ask(self, link: Link, section: str) -> Section:
        try:
            if not self._feed.is_open:
                await self._feed.open(link)
        except LinkError as error:
            raise HttpFailure("forbidden", error.text) from None
        self._waiting = asyncio.get_running_loop().create_future()
        if not self._feed.ask((section,)):
            raise HttpFailure("timeout", "the machine has not answered the last question yet")
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def _take(self, frame: Frame) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(frame.sections.get("get", Section(NO_TOOL, b"")))

    def _ended(self, text: str) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(HttpFailure("lost", text))


def read_printed_answer(printed: bytes, received_at: float) -> HttpAnswer:
    """The answer as `curl -i` prints it: framing headers no longer apply, the body is the rest.

    Raises HttpFailure when it has no status line.
    """
    head, _, body = printed.replace(b"\r\n", b"\n", 64).partition(b"\n\n")
    lines = head.decode("latin-1").split("\n")
    words = lines[0].split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
        raise HttpFailure("protocol", "the answer is no HTTP")
    headers = tuple(
        (name.strip().lower(), value.strip())
        for name, _, value in (line.partition(":") for line in lines[1:])
    )
    return HttpAnswer(int(words[1]), headers, body, received_at)


def _failure(exit_code: int, port: int) -> HttpFailure:
    if exit_code == CURL_REFUSED:
        return HttpFailure("refused", f"nothing listens on port {port} of the machine")
    if exit_code in (CURL_TIMEOUT, 124, 137):
        return HttpFailure("timeout", f"port {port} of the machine accepts connections and does not answer")
    if exit_code == NO_TOOL:
        return HttpFailure(
            "forbidden",
            "SSH forwarding is refused there, the port is closed from here, and the machine has neither "
            "curl nor wget; allow forwarding (AllowTcpForwarding, PermitOpen) or open the port",
        )
    return HttpFailure("lost", f"the machine's own curl or wget failed with code {exit_code}")
