"""Pictures of the Events screen and of the Raw tab that is looked through."""

from __future__ import annotations

from textual.pilot import Pilot
from tui_fleet import NOW, Clock, FakeService

from fleettui.model.event import Event
from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.themes import DARK, LIGHT

DAY = 86_400.0
HAPPENED = (
    Event(NOW - DAY, "pve52", "trust", "good", "host key ED25519 approved", {}, "mia@jump"),
    Event(NOW - 9000, "ada", "loaded", "note", "llama3.1:70b loaded (39.6 GiB)", {"model": "llama3.1:70b"}),
    Event(NOW - 7200, "cleo", "maintenance", "note", 'maintenance on: "fan swap"', {}, "mia@jump"),
    Event(
        NOW - 6000, "bora", "health", "warn", "healthy → degraded: GPU 1 is declared and not there",
        {"from": "healthy", "to": "degraded", "reason": "GPU 1 is declared and not there"},
    ),
    Event(NOW - 5000, "hopper", "evicted", "note", "qwen2.5:32b evicted for mixtral:8x22b"),
    Event(NOW - 3600, "dora", "engine_up", "good", "ollama answers again", count=3, last_at=NOW - 3000),
    Event(NOW - 240, "pve52", "offline", "bad", "offline: no answer (timeout)", {"to": "offline"}),
)  # fmt: skip


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    assert isinstance(pilot.app, FleetApp)
    pilot.app.painter.paint_now()
    await pilot.pause()


def app_of(theme: str) -> FleetApp:
    service = FakeService()
    service.events.events = HAPPENED
    return FleetApp(service, Look(theme=theme), Clock())


def test_events(snap_compare) -> None:  # type: ignore[no-untyped-def]
    async def open_events(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        await pilot.press("j", "j")
        await settle(pilot)

    assert snap_compare(app_of(DARK), terminal_size=(120, 40), run_before=open_events)


def test_raw(snap_compare) -> None:  # type: ignore[no-untyped-def]
    async def find(pilot: Pilot[None]) -> None:
        await settle(pilot)
        assert isinstance(pilot.app, FleetApp)
        pilot.app.open_machine("ada", "raw")
        await settle(pilot)
        await pilot.press("slash", *"gpu", "enter", "n")
        await settle(pilot)

    assert snap_compare(app_of(LIGHT), terminal_size=(80, 24), run_before=find)
