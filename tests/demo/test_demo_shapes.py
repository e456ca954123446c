"""What models are made of is asked once for each digest, through SSH or straight, and kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fleettui.demo.launcher import DemoFleet
from fleettui.demo.models import CATALOG, tensors
from fleettui.fleet import model_shapes
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.unknown import Unknown
from fleettui.net.connector import Connector
from fleettui.net.link import HttpAnswer
from fleettui.net.settings import ConnectorSettings
from fleettui.store.database import Store
from fleettui.store.model_shapes import load_shapes


def service_of(fleet: DemoFleet, state: Path, *names: str, asks: bool = True) -> FleetService:
    settings = FleetSettings(str(fleet.machines_dir), 0.5, only=names, state_dir=str(state), asks_shapes=asks)
    return FleetService(settings, Connector(ConnectorSettings.from_environment()))


def digests_in(service: FleetService) -> set[str]:
    """Of every machine's models on disk; empty until each has told."""
    found: set[str] = set()
    for machine in service.snapshot.machines:
        if not machine.engines or isinstance(machine.engines[0].installed, Unknown):
            return set()
        found |= {
            model.digest
            for model in machine.engines[0].installed
            if not isinstance(model.digest, Unknown) and model.remote_host is None
        }
    return found


def are_contexts_told(service: FleetService) -> bool:
    """Every resident copy has the longest context of its model."""
    copies = [
        copy for machine in service.snapshot.machines for copy in machine.loaded if copy.engine == "ollama"
    ]
    return bool(copies) and all(
        copy.traits is not None and copy.traits.max_context == CATALOG[copy.name].context_length
        for copy in copies
    )


def test_shapes_are_asked_once_and_kept(fleet: DemoFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_shapes, "LOOK_S", 0.1)
    monkeypatch.setattr(model_shapes, "PAUSE_S", 0.0)
    state = Path(fleet.environment["FLEETTUI_STATE_DIR"])
    asked: list[tuple[str, str]] = []

    async def run(*names: str) -> set[str]:
        service = service_of(fleet, state, *names)
        shapes = service.shapes
        assert shapes is not None
        post = shapes._post

        async def count(place: model_shapes.ShapePlace) -> HttpAnswer:
            asked.append((place.machine, place.model))
            return await post(place)

        shapes._post = count  # type: ignore[method-assign]
        await service.start()
        try:
            async with asyncio.timeout(30):
                while not (wanted := digests_in(service)) or not wanted <= set(shapes.book.shapes):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)  # of many things
                while not are_contexts_told(service):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)  # of many copies
        finally:
            await service.stop()
        assert shapes.failures == {}
        return wanted

    wanted = asyncio.run(run("ada", "dora"))
    first = list(asked)
    assert len({model for _, model in first}) == len(first)
    assert all("cloud" not in model for _, model in first)
    assert {machine for machine, _ in first} == {"ada", "dora"}, "dora forbids forwarding: asked straight"
    assert asyncio.run(run("ada")) <= wanted
    assert asked == first, "another run reads what is kept"
    with Store.open(str(state)) as store:
        kept = load_shapes(store, wanted)
    assert set(kept) == wanted
    big = kept[CATALOG["llama3.1:70b"].digest]
    assert (big.architecture, big.layers, big.attention.kv_heads) == ("llama", 80, (8,))
    assert not isinstance(big.tensors, Unknown)
    assert big.tensors.total_bytes == sum(item.size_bytes for item in tensors(CATALOG["llama3.1:70b"]))
