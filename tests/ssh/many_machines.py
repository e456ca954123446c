"""A program of its own: one SSH server that stands for hundreds of machines, each on an address of 127.78.*.

It speaks on stdin and stdout, a line each: `down` drops every connection and listens no more, `up` listens
again, `report` prints counts as JSON. Light: no process is started for a session, answers are fixed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial
from typing import Any

import asyncssh

from fleettui.probes.frames import Section, encode_frame, parse_request
from fleettui.probes.loops import parse_loop_command

FACTS = {
    "stat": b"cpu  1000 0 500 90000 100 0 10 0 0 0\n",
    "load": b"0.10 0.20 0.30 1/100 4242\n",
    "uptime": b"1000.00 9000.00\n",
    "mem": b"MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\n",
}


class Counts:
    """What a login guard or an operator would count."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.connections = self.logins = self.open_unauthenticated = self.peak_unauthenticated = 0
        self.by_machine: dict[str, int] = {}
        self.begins: list[float] = []


COUNTS = Counts()


class Login(asyncssh.SSHServer):
    def __init__(self, is_welcome: bool) -> None:
        self.is_welcome = is_welcome
        self.is_authenticated = False
        self.connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn
        OPEN.add(conn)
        address = conn.get_extra_info("sockname")[0]
        COUNTS.connections += 1
        COUNTS.begins.append(time.monotonic())
        COUNTS.by_machine[address] = COUNTS.by_machine.get(address, 0) + 1
        COUNTS.open_unauthenticated += 1
        COUNTS.peak_unauthenticated = max(COUNTS.peak_unauthenticated, COUNTS.open_unauthenticated)

    def _settle(self) -> None:
        if not self.is_authenticated:
            self.is_authenticated = True
            COUNTS.open_unauthenticated -= 1

    def connection_lost(self, exc: Exception | None) -> None:
        OPEN.discard(self.connection)
        self._settle()

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return self.is_welcome

    def auth_completed(self) -> None:
        COUNTS.logins += 1
        self._settle()

    def session_requested(self) -> Session:
        return Session()


class Session(asyncssh.SSHServerSession[bytes]):
    def connection_made(self, chan: Any) -> None:
        self.channel = chan
        self.token = ""
        self.buffer = b""

    def exec_requested(self, command: str) -> bool:
        loop = parse_loop_command(command)
        self.token = loop[1] if loop else ""
        return loop is not None

    def data_received(self, data: bytes, datatype: Any) -> None:
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            if request := parse_request(line):
                answers = {name.partition(":")[0]: Section(0, FACTS.get(name, b"")) for name in request[1]}
                self.channel.write(encode_frame(self.token, request[0], answers))

    def eof_received(self) -> bool:
        self.channel.exit(0)
        return False


OPEN: set[Any] = set()


async def main() -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    print(key.export_public_key().decode().strip(), flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    port, acceptor, is_welcome = 0, None, True
    while line := (await lines.readline()).decode().strip():
        if line in ("up", "up-unwelcome"):
            is_welcome = line == "up"
            COUNTS.clear()
            acceptor = await asyncssh.listen(
                "0.0.0.0",
                port,
                backlog=512,
                server_factory=partial(Login, is_welcome),
                server_host_keys=[key],
                encoding=None,
                line_editor=False,
                gss_host=None,
                encryption_algs=["aes128-gcm@openssh.com"],
            )
            port = acceptor.get_port()
            print(json.dumps({"port": port}), flush=True)
        elif line == "down":
            if acceptor is not None:
                acceptor.close()
            for connection in list(OPEN):
                connection.abort()
            print("{}", flush=True)
        else:
            counts = {
                name: getattr(COUNTS, name) for name in ("connections", "logins", "peak_unauthenticated")
            }
            counts["most_for_one"] = max(COUNTS.by_machine.values(), default=0)
            first = min(COUNTS.begins, default=0.0)
            counts["spread_s"] = max(COUNTS.begins, default=0.0) - first
            print(json.dumps(counts), flush=True)


asyncio.run(main())
