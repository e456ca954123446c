"""Many machines at once: logins are bounded, spread and not repeated; a jump host sees one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from links import open_link, refused
from links import until as until_true
from sshd_rig import SshdRig
from test_ssh_fleet import machine, running, until, write_machine_file

from fleettui.net.connector import Connector

Connect = Callable[..., Connector]
MACHINES = 200
MOST_AT_ONCE = 16 + 32
"""Turns, and places of connections that have not greeted: one process plays all machines here, which is late
when it is busy. Machines of their own greet at once, and then 16 is the most."""


class ManyMachines:
    """The server program and its answers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.host_key = ""

    async def ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        return dict(json.loads(await self.answer()))

    async def answer(self) -> str:
        assert self._process.stdout is not None
        return (await asyncio.wait_for(self._process.stdout.readline(), 20)).decode()


@pytest.fixture
async def many() -> AsyncIterator[ManyMachines]:
    program = Path(__file__).with_name("many_machines.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    machines = ManyMachines(process)
    machines.host_key = await machines.answer()
    yield machines
    if process.returncode is None:
        process.kill()
    await process.wait()


def write_fleet(folder: Path, port: int, user: str) -> None:
    folder.mkdir()
    for number in range(MACHINES):
        (folder / f"m{number}.yaml").write_text(
            f"name: m{number}\nrole: cpu-host\nhardware: {{gpu: []}}\nmodels: []\nengines: []\n"
            f"network: {{hostname: 127.78.{number // 200}.{number % 200 + 1}}}\n"
            f"ssh: {{user: {user}, port: {port}}}\n"
        )


async def test_two_hundred_machines_that_restart_together_see_no_login_storm(
    sshd_rig: SshdRig, many: ManyMachines, tmp_path: Path
) -> None:
    port = (await many.ask("up"))["port"]
    sshd_rig.known_hosts.write_text(f"[127.78.*]:{port} {many.host_key}\n")
    folder = tmp_path / "machines"
    write_fleet(folder, port, sshd_rig.user)

    def up(snapshot: object) -> int:
        return sum(found.link.state == "up" for found in snapshot.machines)  # type: ignore[attr-defined]

    async with running(sshd_rig, folder, interval_s=2.0) as service:
        await until(service, lambda s: up(s) == MACHINES, 60.0, "all up")
        first = await many.ask("report")
        assert MACHINES <= first["logins"] <= first["connections"] <= 1.25 * MACHINES
        assert first["peak_unauthenticated"] <= MOST_AT_ONCE
        await many.ask("down")
        await until(service, lambda s: up(s) == 0, 30.0, "all gone")
        await asyncio.sleep(1.0)
        await many.ask("up")
        await until(service, lambda s: up(s) == MACHINES, 60.0, "all back")
        again = await many.ask("report")
    assert again["peak_unauthenticated"] <= MOST_AT_ONCE
    # One each; a computer that is busy with other tests may let one or the other time out.
    assert MACHINES <= again["logins"] <= again["connections"] <= 1.25 * MACHINES
    assert again["most_for_one"] <= 3
    assert again["spread_s"] > 0.5, "they do not come in one moment"


async def test_two_hundred_machines_that_refuse_are_asked_once_each(
    sshd_rig: SshdRig, many: ManyMachines, tmp_path: Path
) -> None:
    port = (await many.ask("up-unwelcome"))["port"]
    sshd_rig.known_hosts.write_text(f"[127.78.*]:{port} {many.host_key}\n")
    folder = tmp_path / "machines"
    write_fleet(folder, port, sshd_rig.user)
    async with running(sshd_rig, folder, interval_s=0.5) as service:
        await until(
            service,
            lambda s: s.machines and all(found.link.stage == "authentication" for found in s.machines),
            60.0,
            "all refused",
        )
        await asyncio.sleep(2.0)
        report = await many.ask("report")
    assert (report["connections"], report["logins"], report["most_for_one"]) == (MACHINES, 0, 1)
    assert report["peak_unauthenticated"] <= MOST_AT_ONCE


async def test_twenty_machines_behind_a_bastion_with_narrow_limits(sshd_rig: SshdRig, tmp_path: Path) -> None:
    """MaxStartups 2:100:2 drops the third unauthenticated connection: it must never come."""
    bastion = sshd_rig.start(options={"MaxStartups": "2:100:2", "MaxSessions": "1"})
    server = sshd_rig.start()
    folder = tmp_path / "machines"
    names = [f"m{number}" for number in range(20)]
    sshd_rig.trust(server, f"[127.79.*]:{server.port}")
    for name in names:
        write_machine_file(folder, name, server, sshd_rig.user, 1, jump=bastion.where)
        path = folder / f"{name}.yaml"
        path.write_text(path.read_text().replace("ssh: {", f"ssh: {{host: {server.address}, ", 1))
    async with running(sshd_rig, folder, interval_s=1.0) as service:
        await until(service, lambda s: all(machine(s, name).cpu for name in names), 60.0, "all live")
        log = bastion.log_text()
        assert log.count("Connection from") == log.count("Accepted publickey") == 1
        assert "drop connection" not in log
        assert "MaxStartups" not in log
        bastion.drop_connections()
        lost = await until(
            service, lambda s: all(machine(s, name).link.state != "up" for name in names), 10.0, "all lost"
        )
        errors = [machine(lost, name).link.error or "" for name in names]
        assert all(f"through {bastion.where}" in error for error in errors), errors
        await until(service, lambda s: all(machine(s, n).link.state == "up" for n in names), 60.0, "back")
    log = bastion.log_text()
    assert log.count("Accepted publickey") == 2
    assert "drop connection" not in log


async def test_each_hop_of_a_chain_is_verified_before_the_next_is_spoken_to(
    sshd_rig: SshdRig, connect: Connect
) -> None:
    first, second, server = sshd_rig.start(is_trusted=False), sshd_rig.start(), sshd_rig.start()
    ada = sshd_rig.machine(server, jump=f"{first.where},{second.where}")
    unknown = await refused(connect(), ada)
    assert (unknown.stage, unknown.jump, unknown.offer) == ("host key", first.where, None)
    assert unknown.text.startswith(f"jump host {first.where}: unknown host key")
    assert first.fingerprint() in unknown.text
    assert "userauth" not in first.log_text()
    assert "Connection from" not in second.log_text() + server.log_text()

    sshd_rig.trust(first)
    before = second.fingerprint()
    second.write_host_keys(number=88)
    second.restart()
    changed = await refused(connect(), ada)
    assert (changed.stage, changed.jump, changed.offer) == ("host key", second.where, None)
    assert changed.text.startswith(f"jump host {second.where}: HOST KEY CHANGED")
    assert before in changed.text
    assert "userauth" not in second.log_text()
    assert "Connection from" not in server.log_text()
    assert first.log_text().count("Accepted publickey") == 1

    sshd_rig.known_hosts.write_text("")
    for trusted in (first, second, server):
        sshd_rig.trust(trusted)
    link, losses = await open_link(connect(), ada)
    first.drop_connections()
    await until_true(lambda: losses, 5)
    assert f"through {second.where}" in losses[0].text
    await link.close()
