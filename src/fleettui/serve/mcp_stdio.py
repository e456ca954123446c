"""MCP for one client, line by line, beside pollers of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Protocol

from mcp.server.stdio import stdio_server

from fleettui.fleet.own_machine import OwnMachine
from fleettui.serve.door import Door
from fleettui.serve.mcp_server import make_mcp_server
from fleettui.serve.permission import own_caller
from fleettui.serve.stream_hub import StreamHub

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from fleettui.fleet.service import FleetService

LAST_ANSWERS_S = 3.0
"""Whoever asks no more may take the answers so long; one who does not read would hold the process up."""

log = logging.getLogger(__name__)


class Answers(Protocol):
    """Where lines go."""

    async def write(self, text: str) -> None:
        """One message with its newline."""

    async def flush(self) -> None:
        """After each message."""


async def answer_lines(
    service: FleetService,
    state_dir: str,
    questions: AsyncIterable[str],
    answers: Answers,
    when_ready: Callable[[], None],
    *,
    may_act: bool = False,
) -> None:
    """Poll and answer until the questions end. `may_act`: who asks may change something, too."""
    own, hub = OwnMachine(service), StreamHub(service)
    door = Door(service, state_dir, service.settings.machines_dir, own, hub)
    server = make_mcp_server(door, own_caller(may_act=may_act))
    speaking: asyncio.Task[None] | None = None
    asked_last: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    try:
        await service.start()
        when_ready()
        lines = _until_the_last(questions, asked_last)
        speaking = asyncio.create_task(_speak(server, lines, answers), name="mcp")
        await asyncio.wait([speaking, asked_last], return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait([speaking], timeout=LAST_ANSWERS_S)
        if speaking.done():
            speaking.result()
    finally:
        if speaking is not None and not speaking.done():
            speaking.cancel()
            await asyncio.wait([speaking])
            # A message on its way through the SDK meets closed streams then, which is no failure of ours.
            log.debug("ended while it spoke: %r", speaking.cancelled() or speaking.exception())
        hub.close()
        await own.close()
        await service.stop()


async def _until_the_last(
    questions: AsyncIterable[str], asked_last: asyncio.Future[None]
) -> AsyncIterator[str]:
    async for line in questions:
        yield line
    asked_last.set_result(None)


async def _speak(server: Server[Any], questions: AsyncIterable[str], answers: Answers) -> None:
    """The SDK reads lines and writes texts; its own streams would hang in a read when a signal comes."""
    lines: Any = questions
    texts: Any = answers
    async with stdio_server(lines, texts) as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())
