"""Pictures of the Machine screen's own tabs: an hour of history, differences."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from tui_fleet import GIB, NOW, SOURCES, Clock, FakeService, card, engine, fleet, machine, memory, model

from fleettui.fleet.history import FleetHistory
from fleettui.model.gpu import GpuProcess, GpuReading, ProcessesReading
from fleettui.model.readings import CpuReading, InstalledModel, NetInterface, NetReading
from fleettui.model.snapshot import MachineSnapshot, SourceStatus
from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.themes import DARK, LIGHT
from fleettui.tui.widgets.footer import Footer

CARDS = (
    card(0, "NVIDIA GeForce RTX 4090", 24564, 23450, 97),
    card(1, "NVIDIA GeForce RTX 4090", 24564, 8740, 30),
)


def hour_of(item: MachineSnapshot) -> FleetHistory:
    """Waves, three minutes without an answer, a model that goes."""
    history = FleetHistory(60, 2.0)
    for at in range(-3600, 1, 2):
        if -1500 < at < -1320:
            continue
        wave = 50 + 50 * math.sin(at / 400)
        cards = tuple(
            replace(
                each,
                utilisation_percent=int(wave if each.index else 100 - wave),
                used_mib=22000 if at < -900 or each.index == 0 else 8740,
                temperature_c=int(40 + wave / 3),
                power_w=60 + 3 * wave,
            )
            for each in CARDS
        )
        read = replace(
            item,
            gpu=GpuReading(cards),
            cpu=CpuReading(5 + wave / 4),
            memory=memory(20 + wave / 5, 128),
            net=NetReading((NetInterface("eno1", 2e5 * wave, 5e4 * wave),)),
            sources={name: SourceStatus("ok", NOW + at, NOW - 7200) for name in SOURCES},
        )
        history.record(replace(fleet((read,)), taken_at=NOW + at))
    return history


def with_differences() -> MachineSnapshot:
    """Declared and not installed, loaded and not declared, two processes of others."""
    ada = machine("ada", *CARDS, models=(model("llama3.1:8b", 9.4), model("phi3:mini", 2.4, 0.83, None)))
    here = engine(*ada.loaded, installed=("llama3.1:8b", "phi3:mini", "gemma3:27b"))
    first, second = (str(each.uuid) for each in CARDS)
    runner = "/usr/bin/ollama runner --model /var/lib/ollama/blobs/sha256-365c0bd3c000 --port 41234"
    processes = (
        GpuProcess(first, 4242, "/usr/bin/ollama", 11264, "ollama", runner),
        GpuProcess(second, 7711, "VLLM::EngineCore", 8200, "mia", "VLLM::EngineCore"),
        GpuProcess(first, 9120, "/usr/bin/python3.11", 4120, "jo", "python3 train.py --lr 3e-4"),
    )
    return replace(
        ada,
        machine=replace(ada.machine, models=("llama3.1:8b", "qwen2.5:32b")),
        engines=(_with_digest(here, "1a2b3c4d5e6f"),),
        processes=ProcessesReading(processes),
    )


def _with_digest(reading, digest):  # type: ignore[no-untyped-def]
    models = tuple(replace(item, digest=digest * 5, size_bytes=5 * GIB) for item in reading.installed)
    return replace(reading, installed=models)


def elsewhere(name: str) -> MachineSnapshot:
    item = machine(name)
    installed = (InstalledModel("llama3.1:8b", "ollama", "365c0bd3c000" * 5, 5 * GIB),)
    return replace(item, engines=(replace(item.engines[0], installed=installed),))


async def settle(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, FleetApp)
    await pilot.pause()
    app.painter.paint_now()
    await pilot.pause()


@pytest.mark.parametrize(
    ("tab", "size", "theme"),
    [("hardware", (160, 45), DARK), ("hardware", (80, 24), DARK), ("models", (120, 40), LIGHT)],
)
def test_tabs(snap_compare, tab: str, size: tuple[int, int], theme: str) -> None:  # type: ignore[no-untyped-def]
    ada = with_differences()
    service = FakeService(fleet((ada, elsewhere("bora"), elsewhere("cleo"))))
    service.history = hour_of(ada)

    async def open_tab(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, FleetApp)
        await settle(pilot)
        pilot.app.open_machine("ada", tab)
        await settle(pilot)
        pilot.app.screen.query_one(Footer).visible = False  # its keys are everybody's
        await settle(pilot)

    assert snap_compare(
        FleetApp(service, Look(theme=theme), Clock()), terminal_size=size, run_before=open_tab
    )
