"""A fleet of real sshd servers with a state folder: the service in this process, the command in others."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sshd_rig import SshdRig, SshdServer, wait_until
from test_ssh_fleet import machine
from test_ssh_fleet import until as until_fleet

from fleettui.fleet.keeper import SnapshotKeeper
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.net.connector import Connector

SRC = str(Path(__file__).resolve().parents[2] / "src")
INTERVAL_S = 0.5


def contacts(server: SshdServer) -> int:
    """Connections the server saw."""
    return server.log_text().count("Connection from ")


def logins(server: SshdServer) -> int:
    """Logins that the server let in."""
    return server.log_text().count("Accepted publickey")


def assert_no_login(server: SshdServer) -> None:
    """The server, logging at DEBUG2, saw at most key exchanges that were never finished, and no command."""
    wait_until(lambda: len(server.processes()) == 1, what="the server noticed the end")
    log = server.log_text()
    for sign in ("KEX done", "userauth", "Accepted", "Failed", "Starting session"):
        assert sign not in log, [line for line in log.splitlines() if sign in line]
    assert not server.remote_processes()


@dataclass
class TrustFleet:
    """Machine files, state and home of one operator."""

    rig: SshdRig
    folder: Path
    state: Path
    offset_s: float = 0.0
    """How far the service's clock is ahead."""
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def clock(self) -> float:
        return time.time() + self.offset_s

    def write(self, name: str, server: SshdServer, **ssh: object) -> Path:
        """A machine file as an operator would write it."""
        extra = "".join(f", {key}: '{value}'" for key, value in ssh.items())
        path = self.folder / f"{name}.yaml"
        path.write_text(
            f"name: {name}\nrole: gpu-host\nhardware: {{}}\nnetwork: {{hostname: {server.address}}}\n"
            f"models: []\nengines: []\nssh: {{user: {self.rig.user}, port: {server.port}{extra}}}\n"
        )
        return path

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(self.rig.home),
            "PYTHONPATH": SRC,
            "FLEETTUI_MACHINES": str(self.folder),
            "FLEETTUI_STATE_DIR": str(self.state),
        }

    def start_command(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "fleettui", *arguments],
            env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`fleettui …` to its end, without a terminal."""
        process = self.start_command(*arguments)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    async def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same beside a running event loop."""
        return await asyncio.to_thread(self.run, *arguments)

    def documents(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Exit code and JSON of a command."""
        done = self.run(*arguments, "--json")
        document: dict[str, Any] = json.loads(done.stdout)
        return done.returncode, document

    @asynccontextmanager
    async def service(self) -> AsyncIterator[FleetService]:
        """A running service that stores and follows, as the dashboard has it."""
        service = FleetService(
            FleetSettings(str(self.folder), INTERVAL_S, state_dir=str(self.state)),
            Connector(self.rig.settings()),
            SnapshotKeeper(str(self.state), "dashboard"),
            self.clock,
        )
        await service.start()
        try:
            yield service
        finally:
            await service.stop()


async def until(
    service: FleetService,
    condition: Callable[[MachineSnapshot], object],
    name: str = "ada",
    timeout_s: float = 20.0,
) -> MachineSnapshot:
    """The machine as soon as the condition holds."""

    def holds(fleet: FleetSnapshot) -> object:
        found = fleet.find(name)
        return found is not None and condition(found)

    return machine(await until_fleet(service, holds, timeout_s), name)


async def cycles(service: FleetService, count: int = 3) -> None:
    """Let some cycles pass, with everything asked at once in each."""
    assert service._gate is not None
    for _ in range(count):
        service.poll_now()
        seen = asyncio.Event()
        unsubscribe = service.subscribe(lambda _, seen=seen: seen.set())  # type: ignore[misc]
        service.final_snapshot()
        await asyncio.wait_for(seen.wait(), 10)
        unsubscribe()
        await asyncio.sleep(INTERVAL_S)


def is_up(machine: MachineSnapshot) -> bool:
    return machine.trust == "approved" and machine.link.state == "up" and machine.last_seen is not None


def on_terminal(
    fleet: TrustFleet, *arguments: str, answer: str, before_answer: Callable[[], None] = lambda: None
) -> tuple[str, str, int]:
    """Run a command with a terminal, answer its question; (terminal, stdout, exit code)."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fleettui", *arguments],
        env=fleet.environment, stdin=slave, stdout=subprocess.PIPE, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    said = b""
    has_answered = False
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                said += os.read(master, 4096)
            except OSError:
                break
        if not has_answered and re.search(rb"(\[y/N\]|\)|type drain): ?$|\[y/N\] $", said):
            before_answer()
            os.write(master, answer.encode() + b"\n")
            has_answered = True
        if process.poll() is not None and not select.select([master], [], [], 0)[0]:
            break
    if process.poll() is None and not has_answered:
        process.kill()  # it waits for ever for an answer
    assert process.stdout is not None
    out = process.stdout.read().decode()
    process.stdout.close()
    os.close(master)
    return said.decode().replace("\r\n", "\n"), out, process.wait(10)
