"""A TCP proxy in this process that stands for the network between here and a machine, with its faults."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field

CHUNK = 4096


@dataclass(eq=False)
class Pair:
    """One connection through the proxy."""

    near: asyncio.StreamWriter
    far: asyncio.StreamWriter
    is_dark: bool = False
    """Bytes vanish and nobody is told, as with a forgetful NAT."""
    budget: int | None = None
    """Bytes that still reach the client before both ends are reset."""

    def reset(self) -> None:
        """RST on both sides, as when a machine loses power and comes back."""
        for writer in (self.near, self.far):
            sock = writer.get_extra_info("socket")
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


@dataclass
class TcpProxy:
    """Forwards `address:port` to `target`; faults are switched on and off while connections run."""

    target: tuple[str, int]
    address: str = "127.0.0.1"
    port: int = 0
    rate: float = 0.0
    """Bytes a second each way; 0: no limit."""
    delay_s: float = 0.0
    """Each way."""
    is_dark: bool = False
    """New connections are accepted and swallowed too."""
    accepted: int = 0
    pairs: set[Pair] = field(default_factory=set)
    _flow: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _serving: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> TcpProxy:
        """Listen; on the same port when started again."""
        self._flow.set()
        self._server = await asyncio.start_server(self._serve, self.address, self.port)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def stop(self) -> None:
        """Listen no more and reset everything."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._flow.set()
        self.reset()
        if self._serving:
            await asyncio.wait(self._serving, timeout=5)

    def freeze(self) -> None:
        """Nothing is forwarded; connections stay."""
        self._flow.clear()

    def thaw(self) -> None:
        """What waited is forwarded, nothing was lost."""
        self._flow.set()

    def forget(self) -> None:
        """The connections of now are half-open from now on; new ones work."""
        for pair in self.pairs:
            pair.is_dark = True

    def cut_after(self, count: int) -> None:
        """Reset the connections of now after so many more bytes for the client."""
        for pair in self.pairs:
            pair.budget = count

    def reset(self) -> None:
        """Reset the connections of now."""
        for pair in tuple(self.pairs):
            pair.reset()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        try:
            far_reader, far_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        pair = Pair(writer, far_writer, is_dark=self.is_dark)
        self.pairs.add(pair)
        try:
            await asyncio.gather(
                self._pump(reader, far_writer, pair, is_to_client=False),
                self._pump(far_reader, writer, pair, is_to_client=True),
            )
        finally:
            self.pairs.discard(pair)
            for end in (writer, far_writer):
                end.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pair: Pair, *, is_to_client: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                if self.delay_s or self.rate:
                    await asyncio.sleep(self.delay_s + (len(data) / self.rate if self.rate else 0.0))
                await self._flow.wait()
                if pair.is_dark:
                    continue
                if is_to_client and pair.budget is not None:
                    data = data[: pair.budget]
                    pair.budget -= len(data)
                writer.write(data)
                await writer.drain()
                if pair.budget == 0:
                    pair.reset()
        if not pair.is_dark:
            writer.close()
