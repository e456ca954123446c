"""`ssh: local`: the same loops in a subprocess of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
from links import ECHO_LOOP, Lines, until

from fleettui.model.machine import Machine, SshSettings
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings
from fleettui.probes.frames import Frame, FrameReader, request_line
from fleettui.probes.loops import loop_command

TOKEN = "0123456789abcdef"


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:  # it ended since it was listed
        return False


def names_of_children() -> list[str]:
    names = []
    for child in children():
        try:
            names.append(child.name())
        except psutil.NoSuchProcess:
            continue
    return names


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if is_alive(child)]


async def test_loops_answer_and_end_with_the_link(tmp_path: Path) -> None:
    before = set(children())
    connector = Connector(ConnectorSettings(home=str(tmp_path)))
    link = connector.link_for(Machine("here", "gpu-host", "localhost", ssh=SshSettings(is_local=True)))
    await link.open(print)
    echo = await Lines().open(link, ECHO_LOOP)
    await echo.ask(b"\xae 1\n", b"got \xae 1\n")
    frames: list[Frame] = []
    reader = FrameReader(TOKEN)
    facts = await link.open_loop(
        loop_command("facts", TOKEN), lambda data: frames.extend(reader.receive_data(data)), print
    )
    facts.write(request_line(1, ("stat", "mem")))
    await until(lambda: frames)
    assert frames[0].sections["mem"].payload.startswith(b"MemTotal")
    started = set(children()) - before
    assert started
    assert all(os.getsid(child.pid) != os.getsid(0) for child in started)
    await link.close()
    await until(lambda: not set(children()) - before)
    assert echo.ends == []


async def test_a_hung_tool_is_killed_with_its_group(tmp_path: Path) -> None:
    before = set(children())
    link = Connector(ConnectorSettings(home=str(tmp_path))).link_for(
        Machine("here", "gpu-host", "localhost", ssh=SshSettings(is_local=True))
    )
    await link.open(print)
    await Lines().open(link, "trap '' TERM HUP; sleep 1000; :")
    await until(lambda: any("sleep" in name for name in names_of_children()))
    await link.close()
    await until(lambda: not set(children()) - before)


async def test_why_a_loop_ended_is_told(tmp_path: Path) -> None:
    link = Connector(ConnectorSettings(home=str(tmp_path))).link_for(
        Machine("here", "gpu-host", "localhost", ssh=SshSettings(is_local=True))
    )
    await link.open(print)
    ended = await Lines().open(link, "echo out; printf '\\033[31mbro\\aken\\n' >&2; exit 3")
    killed = await Lines().open(link, "kill -9 $$")
    nameless = await Lines().open(link, "kill -40 $$")
    await until(lambda: ended.ends and killed.ends and nameless.ends)
    assert nameless.ends == ["was killed (signal 40)"]
    assert ended.data == b"out\n"
    assert ended.ends == ["ended with exit code 3: broken"]
    assert killed.ends == ["was killed (SIGKILL)"]
    assert ended.channel is not None
    ended.channel.write(b"into the void\n")
    assert not ended.channel.is_open
    await link.close()
