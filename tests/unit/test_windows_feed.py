"""Windows: while a command did not tell its end, no second nvidia-smi is started, also on the next link."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from fleettui.fleet.windows_feed import WindowsGpuFeed
from fleettui.net.errors import LinkError
from fleettui.net.link import CommandAnswer, Link
from fleettui.probes.frames import Frame
from fleettui.probes.windows import TASK_LIST


class CommandLink:
    """A link on which each command ends when the test says so."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.ends: asyncio.Future[CommandAnswer | None] = asyncio.get_running_loop().create_future()

    async def run_command(self, command: str) -> CommandAnswer | None:
        self.commands.append(command)
        if command == TASK_LIST:
            return CommandAnswer(0, None, b"nvidia-smi.exe   4242 Console\r\n", b"")
        return await self.ends


@pytest.mark.parametrize("how", ["closed while it is waited for", "no exit status", "lost"])
@pytest.mark.parametrize("limit_s", [0.01, 60.0])
async def test_a_command_cut_off_by_a_lost_link_may_still_run(how: str, limit_s: float) -> None:
    frames: asyncio.Queue[Frame] = asyncio.Queue()
    feed = WindowsGpuFeed(frames.put_nowait, limit_s)
    first = CommandLink()
    await feed.open(cast(Link, first))
    feed.ask(("gpu",))
    if limit_s < 1:
        assert (await frames.get()).sections["gpu"].exit_code == 124
    else:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert len(first.commands) == 1
    if how == "no exit status":
        first.ends.set_result(None)
    elif how == "lost":
        first.ends.set_exception(LinkError("lost", "the connection broke"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert bool(feed.asked) == (how == "closed while it is waited for")
    feed.close()
    await asyncio.sleep(0)

    second = CommandLink()
    await feed.open(cast(Link, second))
    assert feed.ask(("gpu",))
    frame = await asyncio.wait_for(frames.get(), 5.0)
    assert frame.sections["gpu"].exit_code == 75, "hangs"
    assert second.commands == [TASK_LIST]
    feed.close()
