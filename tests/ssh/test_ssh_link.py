"""Links over real OpenSSH: loops, loss, silence, sessions, what stays behind."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from links import ECHO_LOOP, Lines, open_link, refused, until
from sshd_rig import SshdRig, wait_until

from fleettui.net.connector import Connector
from fleettui.net.errors import LinkError
from fleettui.probes.frames import Frame, FrameReader, request_line
from fleettui.probes.loops import loop_command

Connect = Callable[..., Connector]
TOKEN = "0123456789abcdef"


async def test_a_loop_answers_line_by_line(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    assert link.address == server.where
    assert (link.server_version or "").startswith("SSH-2.0-OpenSSH")
    lines = await Lines().open(link)
    await lines.ask(b"1\n", b"got 1\n")
    await lines.ask(b"2\n", b"got 1\ngot 2\n")
    assert len(server.remote_processes()) == 1
    assert lines.channel is not None
    lines.channel.close()
    assert not lines.channel.is_open
    await until(lambda: not server.remote_processes())
    await link.close()
    assert (lines.ends, losses) == ([], [])


async def test_the_real_loops_answer_frames(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    frames: list[Frame] = []
    reader = FrameReader(TOKEN)
    facts = await link.open_loop(
        loop_command("facts", TOKEN), lambda data: frames.extend(reader.receive_data(data)), print
    )
    facts.write(request_line(1, ("stat", "load", "mem")))
    await until(lambda: frames)
    assert frames[0].sections["stat"].payload.startswith(b"cpu ")
    assert frames[0].sections["mem"].payload.startswith(b"MemTotal")
    await link.close()
    await until(lambda: not server.remote_processes())


@pytest.mark.parametrize(
    ("shell", "command"),
    [
        ("fish", "fish -c"),
        ("tcsh", "tcsh -c"),
        ("zsh", "zsh -c"),
        ("dash", "dash -c"),
        ("busybox", "busybox sh -c"),
    ],
)
async def test_every_login_shell_starts_the_loops(
    sshd_rig: SshdRig, connect: Connect, shell: str, command: str
) -> None:
    # sshd runs `<login shell> -c <command>`; a forced command does the same without an account per shell.
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: apt-get install {shell}")
    server = sshd_rig.start(options={"ForceCommand": f'{command} "$SSH_ORIGINAL_COMMAND"'})
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    frames: list[Frame] = []
    reader = FrameReader(TOKEN)
    ends: list[str] = []
    for kind, sections in (("facts", ("load",)), ("gpu", ("gpu",))):
        loop = await link.open_loop(
            loop_command(kind, TOKEN),  # type: ignore[arg-type]
            lambda data: frames.extend(reader.receive_data(data)),
            ends.append,
        )
        loop.write(request_line(1, sections))
    await until(lambda: len(frames) == 2 or ends)
    assert ends == []
    await link.close()
    await until(lambda: not server.remote_processes())


async def test_why_a_loop_ended_is_told_once(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    missing = await Lines().open(link, "no-such-tool")
    killed = await Lines().open(link, "kill -9 $$")
    restricted = await Lines().open(link, "echo This account is restricted.; exit 1")
    await until(lambda: missing.ends and killed.ends and restricted.ends)
    assert missing.ends[0].startswith("ended with exit code 127: ")
    assert "not found" in missing.ends[0]
    assert killed.ends == ["was killed (SIGKILL)"]
    assert restricted.ends == ["ended with exit code 1"]
    assert restricted.data == b"This account is restricted.\n"
    assert losses == []
    await link.close()


async def test_bytes_pass_unchanged_and_a_bug_of_ours_keeps_the_connection(
    sshd_rig: SshdRig, connect: Connect
) -> None:
    server = sshd_rig.start()
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    bugs: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: bugs.append(context))

    def fail(data: bytes) -> None:
        raise RuntimeError(data.hex())

    await link.open_loop("printf '\\256\\344'", fail, print)
    lines = await Lines().open(link)
    await lines.ask(b"\xae\xe4\n", b"got \xae\xe4\n")
    await until(lambda: bugs)
    assert str(bugs[0]["exception"]) == "aee4"
    assert losses == []
    await link.close()


async def test_bytes_that_are_no_text_on_standard_error_harm_nothing(
    sshd_rig: SshdRig, connect: Connect
) -> None:
    server = sshd_rig.start()
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    ended = await Lines().open(link, "printf '\\344\\033[31mno\\256\\n' >&2; exit 3")
    await until(lambda: ended.ends)
    assert ended.ends == ["ended with exit code 3: \N{REPLACEMENT CHARACTER}no\N{REPLACEMENT CHARACTER}"]
    lines = await Lines().open(link)
    await lines.ask(b"1\n", b"got 1\n")
    assert losses == []
    await link.close()


async def test_a_session_that_still_ends_is_waited_for(sshd_rig: SshdRig, connect: Connect) -> None:
    """MaxSessions counts a closed loop until its shell is gone."""
    server = sshd_rig.start(options={"MaxSessions": "1"})
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    for number in range(4):
        lines = await Lines().open(link, "while read -r line; do echo got $line; done; sleep 0.2")
        await lines.ask(b"%d\n" % number, b"got %d\n" % number)
        assert lines.channel is not None
        lines.channel.close()
    assert losses == []
    assert server.log_text().count("Connection from") == 1
    await link.close()


async def test_a_killed_sshd_is_lost_at_once(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    connector = connect()
    link, losses = await open_link(connector, sshd_rig.machine(server))
    lines = await Lines().open(link)
    server.kill()
    await until(lambda: losses, 2)
    assert losses[0].stage == "lost"
    assert losses[0].text.startswith(f"{server.where}: connection lost")
    assert lines.ends == ["ended with the connection"]
    with pytest.raises(LinkError):
        await Lines().open(link)
    await link.close()
    assert len(losses) == 1
    assert (await refused(connector, sshd_rig.machine(server))).stage == "connect"
    server.start()
    again, _ = await open_link(connector, sshd_rig.machine(server))
    await again.close()


async def test_a_frozen_sshd_is_silent_in_time(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    link, losses = await open_link(connect(silence_s=2.0), sshd_rig.machine(server))
    lines = await Lines().open(link)
    await lines.ask(b"1\n", b"got 1\n")
    began = time.monotonic()
    server.freeze()
    await until(lambda: losses)
    took_s = time.monotonic() - began
    server.thaw()
    assert losses[0].stage == "silent"
    assert 1.5 < took_s < 4
    await link.close()


async def test_closing_a_link_to_a_frozen_machine_does_not_hang(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    await Lines().open(link)
    server.freeze()
    async with asyncio.timeout(3):
        await link.close()
    server.thaw()
    await until(lambda: not server.remote_processes())
    assert losses == []


async def test_an_idle_link_stays_up(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    link, losses = await open_link(connect(silence_s=0.4), sshd_rig.machine(server))
    await asyncio.sleep(1.2)
    lines = await Lines().open(link)
    await lines.ask(b"1\n", b"got 1\n")
    assert losses == []
    await link.close()


async def test_a_session_limit_is_named(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(options={"MaxSessions": "1"})
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    first = await Lines().open(link)
    with pytest.raises(LinkError) as caught:
        await Lines().open(link)
    assert caught.value.stage == "session"
    assert "MaxSessions" in caught.value.text
    await first.ask(b"1\n", b"got 1\n")
    assert losses == []
    await link.close()


async def test_a_banner_that_is_not_utf8_is_no_obstacle(sshd_rig: SshdRig, connect: Connect) -> None:
    banner = sshd_rig.folder / "banner"
    banner.write_bytes(b"Wartung \xe9\x1b[31m\n")
    server = sshd_rig.start(options={"Banner": str(banner)})
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    lines = await Lines().open(link)
    await lines.ask(b"1\n", b"got 1\n")
    assert lines.data == b"got 1\n"
    await link.close()


async def test_rc_file_noise_comes_before_the_loop(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    (server.folder / "home" / ".bashrc").write_text("echo Welcome to gpu-07\n")
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    lines = await Lines().open(link)
    await lines.ask(b"1\n", b"got 1\n")
    assert lines.data in (b"got 1\n", b"Welcome to gpu-07\ngot 1\n")
    await link.close()


CLIENT = """
import asyncio, json, sys
from fleettui.model.machine import Machine, SshSettings
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings

async def main():
    given = json.loads(sys.argv[1])
    connector = Connector(ConnectorSettings(**given["settings"]))
    machine = Machine("ada", "gpu-host", given["host"], ssh=SshSettings(port=given["port"]))
    link = connector.link_for(machine)
    await link.open(print)
    for command, line in given["loops"]:
        channel = await link.open_loop(command, lambda data: print("data", flush=True), print)
        channel.write(line.encode())
    print("open", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize("gpu", ["ok", "hang"])
def test_after_a_killed_client_nothing_of_ours_runs_on_the_machine(sshd_rig: SshdRig, gpu: str) -> None:
    server = sshd_rig.start(gpu=gpu)
    loops = [
        (ECHO_LOOP, "1\n"),
        (loop_command("facts", TOKEN), request_line(1, ("load",)).decode()),
        (loop_command("gpu", TOKEN), request_line(1, ("gpu", "apps")).decode()),
    ]
    given = {
        "settings": asdict(sshd_rig.settings()),
        "host": server.address,
        "port": server.port,
        "loops": loops,
    }
    source = str(Path(__file__).parents[2] / "src")
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, json.dumps(given)],
        env={**os.environ, "PYTHONPATH": f"{source}:{os.environ.get('PYTHONPATH', '')}"},
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    try:
        assert client.stdout is not None
        assert b"open\n" in iter(client.stdout.readline, b"")
        if gpu == "hang":
            wait_until(
                lambda: any("sleep" in line[0] for line in server.remote_commands() if line), what="hung tool"
            )
        wait_until(lambda: len(server.remote_processes()) >= 3, what="the loops started")
    finally:
        client.send_signal(signal.SIGKILL)
        client.wait(10)
    wait_until(lambda: not server.remote_processes(), 10, "nothing left on the machine")


async def test_many_machines_open_together(sshd_rig: SshdRig, connect: Connect) -> None:
    servers = [sshd_rig.start() for _ in range(6)]
    connector = connect(max_logins=2)
    links = [connector.link_for(sshd_rig.machine(server)) for server in servers]
    servers[0].freeze()
    opening = [asyncio.ensure_future(link.open(print)) for link in links]
    await asyncio.wait_for(asyncio.gather(*opening[1:]), 5)
    assert not opening[0].done()
    servers[0].thaw()
    await opening[0]
    await asyncio.gather(*(link.close() for link in links))
