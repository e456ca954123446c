"""The service follows files and decisions: one look at a time, and on after a look that failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings


def declare(folder: Path, name: str) -> None:
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\nrole: r\nhardware: {{}}\nnetwork: {{hostname: 192.0.2.7}}\nmodels: []\nengines: []\n"
        "ssh: local\n"
    )


@asynccontextmanager
async def running(tmp_path: Path, interval_s: float) -> AsyncIterator[FleetService]:
    (tmp_path / "machines").mkdir()
    settings = FleetSettings(str(tmp_path / "machines"), interval_s, state_dir=str(tmp_path / "state"))
    service = FleetService(settings, Connector(ConnectorSettings(home=str(tmp_path))))
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


async def test_a_look_that_fails_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, 0.5) as service:
        has_failed, has_come = asyncio.Event(), asyncio.Event()
        retry = service._access.retry_refused

        async def fail_once(pollers: object) -> None:
            monkeypatch.setattr(service._access, "retry_refused", retry)
            has_failed.set()
            raise RuntimeError("a defect")

        def look(fleet: FleetSnapshot) -> None:
            if fleet.find("ada") is not None:
                has_come.set()

        monkeypatch.setattr(service._access, "retry_refused", fail_once)
        service.subscribe(look)
        async with asyncio.timeout(10):
            await has_failed.wait()
            declare(tmp_path / "machines", "ada")
            await has_come.wait()
    assert "cannot be followed" in caplog.text, "it stands in the log"


async def test_a_slow_look_does_not_bring_old_files_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, 60.0) as service:
        assert service._gate is not None
        refresh = service._gate.refresh
        is_waiting, may_go = asyncio.Event(), asyncio.Event()

        async def wait_once(records: object) -> set[str]:
            monkeypatch.setattr(service._gate, "refresh", refresh)
            is_waiting.set()
            await may_go.wait()
            return set()

        monkeypatch.setattr(service._gate, "refresh", wait_once)
        async with asyncio.timeout(10):
            first = asyncio.create_task(service._follow())
            await is_waiting.wait()
            declare(tmp_path / "machines", "ada")
            second = asyncio.create_task(service._follow())
            await asyncio.wait([second], timeout=0.3)
            may_go.set()
            await asyncio.gather(first, second)
        assert [poller.record.machine.name for poller in service.pollers] == ["ada"]
