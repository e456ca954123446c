"""After machines went and came back nothing of old connections is kept; after the end nothing at all."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Callable
from pathlib import Path

import asyncssh
import pytest

from fleettui.demo.launcher import DemoFleet
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings

LIMIT_S = 30.0


def connections() -> list[asyncssh.SSHClientConnection]:
    gc.collect()
    return [item for item in gc.get_objects() if isinstance(item, asyncssh.SSHClientConnection)]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count


async def until(service: FleetService, condition: Callable[[FleetSnapshot], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition(service.snapshot):  # noqa: ASYNC110 - no event tells of a whole fleet
            await asyncio.sleep(0.1)


def states(snapshot: FleetSnapshot) -> dict[str, str]:
    return {machine.name: machine.link.state for machine in snapshot.machines}


async def test_connections_that_ended_are_let_go(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with DemoFleet(2, is_calm=True) as demo:
        files = open_files()
        settings = FleetSettings(str(demo.machines_dir), 1.0, state_dir=str(tmp_path / "state"))
        environment = {"HOME": str(tmp_path)}
        service = FleetService(
            settings, Connector(ConnectorSettings.from_environment(environment, silence_s=6.0))
        )
        with caplog.at_level(logging.WARNING):
            await service.start()
            for _ in range(2):
                await until(service, lambda s: states(s) == {"ada": "up", "bora": "up"})
                await demo.command_async("stop ada")
                await until(service, lambda s: states(s)["ada"] == "failed")
                await demo.command_async("start ada")
            await until(service, lambda s: states(s) == {"ada": "up", "bora": "up"})
            found = connections()
            assert len(found) == 2
            assert not any(item.is_closed() for item in found)
            del found
            await service.stop()
        assert connections() == []
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert open_files() <= files
    assert [record.getMessage() for record in caplog.records] == []
