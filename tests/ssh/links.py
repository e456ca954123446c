"""What the tests of links share: a connector, a loop that answers lines, waiting for what must happen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fleettui.net.connector import Connector
from fleettui.net.errors import LinkError
from fleettui.net.key_rules import KeyRule
from fleettui.net.link import Link, LoopChannel

ECHO_LOOP = "exec /bin/sh -c 'while read -r line; do echo \"got $line\"; done'"


async def until(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Wait for a condition; fail when it does not come."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - conditions of processes and sockets send no event
            await asyncio.sleep(0.02)


class Losses(list[LinkError]):
    """An on_lost callback that remembers."""

    def __call__(self, error: LinkError) -> None:
        self.append(error)


class Lines:
    """An on_data callback that waits for what a loop says."""

    def __init__(self) -> None:
        self.data = b""
        self.ends: list[str] = []
        self.channel: LoopChannel | None = None

    async def open(self, link: Link, command: str = ECHO_LOOP) -> Lines:
        self.channel = await link.open_loop(command, self._take, self.ends.append)
        return self

    def _take(self, data: bytes) -> None:
        self.data += data

    async def ask(self, line: bytes, answer: bytes, timeout_s: float = 10.0) -> None:
        assert self.channel is not None
        self.channel.write(line)
        await until(lambda: answer in self.data, timeout_s)


async def open_link(connector: Connector, machine: object, pins: tuple[str, ...] = ()) -> tuple[Link, Losses]:
    """An open link and what it lost."""
    losses = Losses()
    link = connector.link_for(machine, rule=KeyRule(pins))  # type: ignore[arg-type]
    await link.open(losses)
    return link, losses


async def refused(connector: Connector, machine: object, pins: tuple[str, ...] = ()) -> LinkError:
    """The error of a link that must not open."""
    link = connector.link_for(machine, rule=KeyRule(pins))  # type: ignore[arg-type]
    try:
        await link.open(Losses())
    except LinkError as error:
        return error
    finally:
        await link.close()
    raise AssertionError("the link opened")
