"""Pictures of the Pending panel: a changed key where there is little room, a new one where there is much."""

from __future__ import annotations

from test_pending_panel import ADA, GINA, KIOSK, LAB, FakeTrust
from textual.pilot import Pilot
from tui_fleet import Clock, FakeService, fleet

from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.themes import DARK, LIGHT


def app_of(theme: str) -> FleetApp:
    service, trust = FakeService(fleet((ADA, GINA, KIOSK, LAB))), FakeTrust()
    trust.route = ("bastion.example.net:22", "192.0.2.60:22")
    service.trust = trust  # type: ignore[assignment]
    return FleetApp(service, Look(theme=theme), Clock())


async def settle(pilot: Pilot[None], *keys: str) -> None:
    for key in ("", *keys):
        if key:
            await pilot.press(key)
        await pilot.pause()
        assert isinstance(pilot.app, FleetApp)
        pilot.app.painter.paint_now()
        await pilot.pause()


def test_changed_key(snap_compare) -> None:  # type: ignore[no-untyped-def]
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot, "a")

    assert snap_compare(app_of(DARK), terminal_size=(80, 24), run_before=before)


def test_question(snap_compare) -> None:  # type: ignore[no-untyped-def]
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot, "a", "j", "a")

    assert snap_compare(app_of(LIGHT), terminal_size=(160, 45), run_before=before)
