"""One send for all packets of a turn of the event loop."""

from __future__ import annotations

import asyncio
from typing import Any


class BatchedWrites:
    """A transport that joins writes until the loop's next turn.

    asyncssh writes an empty packet before each packet, and a poll writes three at once: six system calls
    become one (0.57 -> 0.47 ms of CPU for a poll of two loops and a GET), and the machine wakes up once.
    """

    __slots__ = ("_call_soon", "_pending", "_transport", "get_extra_info")

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._pending: list[bytes] = []
        self._call_soon = asyncio.get_running_loop().call_soon
        self.get_extra_info = transport.get_extra_info

    def write(self, data: bytes) -> None:
        if not self._pending:
            self._call_soon(self._flush)
        self._pending.append(data)

    def _flush(self) -> None:
        if self._pending:
            data = b"".join(self._pending)
            self._pending.clear()
            try:
                self._transport.write(data)
            except OSError:
                return  # a closed channel of a jump host; its connection_lost tells

    def is_closing(self) -> bool:
        """Part of a transport's interface."""
        return bool(self._transport.is_closing())

    def close(self) -> None:
        """Close after what is pending went out."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._pending.clear()
        self._transport.abort()
