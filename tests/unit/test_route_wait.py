"""Waiting for a machine: what is answered when whoever stored the fleet falls silent meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from builders import NOW, make_fleet, make_installed, make_offline, make_snapshot
from fleettui.cli import route_wait
from fleettui.cli.folders import Folders
from fleettui.decide.routing import decide_route
from fleettui.fleet.leasing import LeasedRoute
from fleettui.model.route import RouteQuery
from fleettui.model.snapshot import FleetSnapshot

QUERY = RouteQuery("llama3.1:70b", tags=("nosuch",))
FOLDERS = Folders("/nowhere/machines", "/nowhere/state")


class FallsSilent:
    """What is stored is fresh for one look; from then on machines are asked that never answer."""

    def __init__(self, *_: object, **__: object) -> None:
        self.is_settled = True
        self.is_stored_fresh = True
        self.snapshot = make_fleet(make_snapshot(installed=[make_installed()]))

    def subscribe(self, subscriber: Callable[[FleetSnapshot], None]) -> None:
        self._tell = subscriber

    async def start(self) -> None:
        self._tell(self.snapshot)

    async def stop(self) -> None: ...


def wait(source: FallsSilent, monkeypatch: pytest.MonkeyPatch) -> LeasedRoute:
    monkeypatch.setattr(route_wait, "LatestFleet", lambda *_, **__: source)

    def decide(fleet: FleetSnapshot) -> LeasedRoute:
        found = LeasedRoute(decide_route(fleet, QUERY, NOW))
        source.is_settled = False
        source.snapshot = make_fleet(make_offline())
        return found

    until = time.time() + 0.6
    return asyncio.run(route_wait._wait(FOLDERS, QUERY, decide, until, is_quiet=True, follows=True))


def test_the_last_answer_that_had_data_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    found = wait(FallsSilent(), monkeypatch)
    assert (found.decision.exit_code, found.decision.rejected[0].codes) == (1, ("selector",))


def test_without_any_answer_so_far_what_is_there_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    source = FallsSilent()
    source.is_settled, source.snapshot = False, make_fleet(make_offline())
    assert wait(source, monkeypatch).decision.exit_code == 4
