"""The SSH side of the demo fleet: real logins, loops that answer in frames, forwarding to the engine only."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from fleettui.demo.launcher import DemoFleet
from fleettui.probes.frames import Frame, FrameReader, request_line
from fleettui.probes.loops import LoopKind, loop_command

TOKEN = "0123456789abcdef"
LIMIT_S = 10.0


def machine_of(fleet: DemoFleet, name: str) -> dict[str, Any]:
    return next(machine for machine in fleet.machines if machine["name"] == name)


async def log_in(fleet: DemoFleet, name: str, **options: Any) -> asyncssh.SSHClientConnection:
    machine = machine_of(fleet, name)
    chosen: dict[str, Any] = {
        "username": machine["user"],
        "client_keys": [str(fleet.directory / "client_key")],
        "known_hosts": str(fleet.directory / "known_hosts"),
        "config": None,
        "agent_path": None,
    }
    return await asyncssh.connect("127.0.0.1", machine["ssh_port"], **(chosen | options))


class Loop:
    """A loop channel as the client uses it."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes]):
        self._process = process
        self._reader = FrameReader(TOKEN)
        self._seq = 0

    @classmethod
    async def open(cls, connection: asyncssh.SSHClientConnection, kind: LoopKind) -> Loop:
        return cls(await connection.create_process(loop_command(kind, TOKEN), encoding=None))

    def send(self, *sections: str) -> None:
        self._seq += 1
        self._process.stdin.write(request_line(self._seq, sections))

    async def receive(self) -> Frame:
        async with asyncio.timeout(LIMIT_S):
            while True:
                data = await self._process.stdout.read(65536)
                assert data, "the channel ended"
                frames = self._reader.receive_data(data)
                if frames:
                    assert frames[0].seq == self._seq
                    return frames[0]

    async def ask(self, *sections: str) -> Frame:
        self.send(*sections)
        return await self.receive()


async def test_facts_in_frames(fleet: DemoFleet) -> None:
    async with await log_in(fleet, "ada") as connection:
        loop = await Loop.open(connection, "facts")
        frame = await loop.ask("stat", "load", "uptime", "mem", "net")
        assert list(frame.sections) == ["stat", "load", "uptime", "mem", "net"]
        assert frame.sections["stat"].payload.startswith(b"cpu  ")
        assert frame.sections["mem"].payload.startswith(b"MemTotal:")
        later = await loop.ask("stat", "disks", "uname", "os", "cpu", "nonsense")
        assert later.sections["nonsense"].exit_code == 64
        assert later.sections["uname"].payload == b"Linux 6.8.0-87-generic x86_64"
        assert later.sections["disks"].payload.startswith(b"Filesystem")


async def test_gpu_processes_join_the_engines_models(fleet: DemoFleet) -> None:
    async with await log_in(fleet, "ada") as connection:
        loop = await Loop.open(connection, "gpu")
        frame = await loop.ask("gpu", "apps", "ps", "gpu:index:bogus")
        rows = frame.sections["apps"].payload.decode().splitlines()
        owners = frame.sections["ps"].payload.decode()
        assert {row.split(", ")[1] for row in rows} == {line.split()[0] for line in owners.splitlines()}
        assert "/blobs/sha256-" in owners
        # the later section of the same name wins, as in a dictionary
        assert frame.sections["gpu"].exit_code == 2
        assert b'Field "bogus" is not a valid field to query.' in frame.sections["gpu"].payload


async def test_engine_by_the_machines_own_curl(fleet: DemoFleet) -> None:
    port = machine_of(fleet, "ada")["engine_port"]
    async with await log_in(fleet, "ada") as connection:
        loop = await Loop.open(connection, "engine")
        frame = await loop.ask(f"get:{port}/api/version")
        assert frame.sections["get"].payload.startswith(b"HTTP/1.1 200 OK\r\n")
        assert frame.sections["get"].payload.endswith(b'{"version":"0.33.0"}')
        assert (await loop.ask("get:1/api/version")).sections["get"].exit_code == 7


async def test_any_other_command_is_not_found(fleet: DemoFleet) -> None:
    async with await log_in(fleet, "ada") as connection:
        for command in ("nvidia-smi", None):
            result = await connection.run(command)
            assert result.exit_status == 127
            assert "simulated machine" in str(result.stderr)


async def test_loop_ends_with_its_input(fleet: DemoFleet) -> None:
    async with await log_in(fleet, "ada") as connection:
        process = await connection.create_process(loop_command("facts", TOKEN), encoding=None)
        process.stdin.write_eof()
        async with asyncio.timeout(LIMIT_S):
            assert (await process.wait()).exit_status == 0


async def test_wrong_key_and_wrong_user_are_refused(fleet: DemoFleet, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(stranger))
    with pytest.raises(asyncssh.PermissionDenied):
        await log_in(fleet, "ada", client_keys=[str(stranger)])
    with pytest.raises(asyncssh.PermissionDenied):
        await log_in(fleet, "ada", username="root")


async def test_host_key_is_the_one_in_the_ready_line(fleet: DemoFleet) -> None:
    async with await log_in(fleet, "spark") as connection:
        key = connection.get_server_host_key()
        assert key is not None
        digest = base64.b64encode(hashlib.sha256(key.public_data).digest()).rstrip(b"=").decode()
    assert machine_of(fleet, "spark")["host_key"] == f"SHA256:{digest}"


async def test_forwarding_reaches_the_engine_only(fleet: DemoFleet) -> None:
    engine = machine_of(fleet, "ada")["engine_port"]
    async with await log_in(fleet, "ada") as connection:
        reader, writer = await connection.open_connection("127.0.0.1", engine)
        for _ in range(2):
            writer.write(b"GET /api/ps HTTP/1.1\r\nHost: ada\r\n\r\n")
            async with asyncio.timeout(LIMIT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
                assert (await reader.readexactly(length)).startswith(b'{"models":')
        for host, port in (("127.0.0.1", machine_of(fleet, "bora")["engine_port"]), ("192.0.2.1", engine)):
            with pytest.raises(asyncssh.ChannelOpenError) as refusal:
                await connection.open_connection(host, port)
            assert refusal.value.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED


async def test_forwarding_can_be_refused(fleet: DemoFleet) -> None:
    async with await log_in(fleet, "dora") as connection:
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_connection("127.0.0.1", machine_of(fleet, "dora")["engine_port"])


async def test_machine_goes_away_and_returns_on_the_same_ports(fleet: DemoFleet) -> None:
    connection = await log_in(fleet, "bora")
    assert (await fleet.command_async("stop bora"))["presence"] == "away"
    async with asyncio.timeout(LIMIT_S):
        await connection.wait_closed()
    for port in ("ssh_port", "engine_port"):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", machine_of(fleet, "bora")[port])
    assert (await fleet.command_async("start bora"))["presence"] == "up"
    async with await log_in(fleet, "bora") as again:
        loop = await Loop.open(again, "facts")
        assert (await loop.ask("load")).sections["load"].exit_code == 0


async def test_machine_can_fall_silent(fleet: DemoFleet) -> None:
    async with await log_in(fleet, "enno") as connection:
        loop = await Loop.open(connection, "facts")
        await loop.ask("load")
        assert (await fleet.command_async("hold enno"))["presence"] == "silent"
        loop.send("load")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.receive(), 0.3)
        # the port accepts, and says nothing
        reader, writer = await asyncio.open_connection("127.0.0.1", machine_of(fleet, "enno")["ssh_port"])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.2)
        writer.close()
        assert (await fleet.command_async("release enno"))["presence"] == "up"
        frame = await loop.receive()
        assert "load" in frame.sections
