"""The running core keeps samples of real machines where a front end wants them, and only there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fleettui.demo.launcher import DemoFleet
from fleettui.fleet.history import gpu_key
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.unknown import Unknown
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings


def service_of(fleet: DemoFleet, history_minutes: float | None) -> FleetService:
    settings = FleetSettings(
        str(fleet.machines_dir), 0.5, only=("ada", "app-host"), history_minutes=history_minutes,
        state_dir=fleet.environment["FLEETTUI_STATE_DIR"],
    )  # fmt: skip
    return FleetService(settings, Connector(ConnectorSettings.from_environment()))


async def meet(is_met: Callable[[], bool], limit_s: float = 20.0) -> None:
    async with asyncio.timeout(limit_s):
        while not is_met():  # noqa: ASYNC110 - of many things
            await asyncio.sleep(0.05)


def test_samples_of_cards_and_machines_arrive(fleet: DemoFleet) -> None:
    async def run() -> None:
        service = service_of(fleet, 1.0)
        history = service.history
        assert history is not None
        await service.start()
        try:

            def known(machine: str, series: str, gpu: str | None = None) -> list[float]:
                values = history.read(machine, series, 20, 10, gpu=gpu)  # type: ignore[arg-type]
                return [value for value in values if not isinstance(value, Unknown)]

            await meet(lambda: len(known("ada", "cpu")) >= 3 and len(known("app-host", "ram")) >= 3)
            ada = service.snapshot.find("ada")
            assert ada is not None
            assert ada.gpu is not None
            for card in ada.gpu.cards:
                key = gpu_key(card)
                await meet(lambda key=key: len(known("ada", "vram", key)) >= 3)  # type: ignore[misc]
                assert all(0 < value <= 24 * 1024 for value in known("ada", "vram", key))
                assert all(0 <= value <= 100 for value in known("ada", "utilisation", key))
                assert all(20 <= value <= 100 for value in known("ada", "temperature", key))
            assert all(value > 1 << 20 for value in known("ada", "ram"))
            assert known("app-host", "disk")
        finally:
            await service.stop()

    asyncio.run(run())


def test_nobody_else_keeps_any(fleet: DemoFleet) -> None:
    async def run() -> None:
        assert service_of(fleet, None).history is None

    asyncio.run(run())
