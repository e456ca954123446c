"""The service follows files and decisions: one look at a time, and on after a look that failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fleettui.fleet.keeper import SnapshotKeeper
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings
from fleettui.store.catalog import load_catalog
from fleettui.store.database import Store


def declare(folder: Path, name: str) -> None:
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\nrole: r\nhardware: {{}}\nnetwork: {{hostname: 192.0.2.7}}\nmodels: []\nengines: []\n"
        "ssh: local\n"
    )


@asynccontextmanager
async def running(
    tmp_path: Path, interval_s: float, keeper: SnapshotKeeper | None = None
) -> AsyncIterator[FleetService]:
    (tmp_path / "machines").mkdir()
    (tmp_path / "catalog").mkdir()
    settings = FleetSettings(
        str(tmp_path / "machines"),
        interval_s,
        state_dir=str(tmp_path / "state"),
        catalog_dir=str(tmp_path / "catalog"),
    )
    service = FleetService(settings, Connector(ConnectorSettings(home=str(tmp_path))), keeper)
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


async def test_the_catalog_is_followed_and_stored(tmp_path: Path) -> None:
    path = tmp_path / "catalog" / "models.yaml"

    def stored_ids() -> list[str]:
        store = Store.open_readonly(str(tmp_path / "state"))
        if store is None:
            return []
        with store:
            return [model.id for model in load_catalog(store, str(tmp_path / "machines")).models]

    async with running(tmp_path, 0.5, SnapshotKeeper(str(tmp_path / "state"), "test")) as service:
        news = asyncio.Event()
        service.subscribe(lambda fleet: news.set())

        async def until(holds: Callable[[FleetSnapshot], bool]) -> FleetSnapshot:
            async with asyncio.timeout(10):
                while not holds(service.snapshot):
                    news.clear()
                    await news.wait()
            return service.snapshot

        path.write_text("models: {one: {}}\n")
        fleet = await until(lambda fleet: bool(fleet.catalog.models))
        assert (fleet.catalog.models[0].id, fleet.problems) == ("one", ())
        path.write_text("models: {one: {vram_gb: much}}\n")
        broken = await until(lambda fleet: bool(fleet.problems))
        assert broken.catalog is fleet.catalog, "the last good version stays"
        assert [(item.file, item.key) for item in broken.problems] == [(str(path), "models.one.vram_gb")]
        declare(tmp_path / "machines", "ada")
        later = await until(lambda fleet: fleet.find("ada") is not None)
        assert later.problems is broken.problems, "the same object while nothing of them changed"
        path.write_text("models: {two: {}}\n")
        await until(lambda fleet: not fleet.problems and fleet.catalog.models[0].id == "two")
        await until(lambda fleet: stored_ids() == ["two"])
