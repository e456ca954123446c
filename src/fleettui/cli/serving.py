"""A running FleetService for the commands that stay: polls, and stores snapshots for `--route`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from fleettui.cli.folders import Folders
from fleettui.fleet.keeper import SnapshotKeeper
from fleettui.fleet.pace import new_gathering_loop
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.net.connector import Connector


def run_serving(work: Coroutine[Any, Any, int]) -> int:
    """Run a program that keeps polling; its event loop gathers the answers of many machines."""
    with asyncio.Runner(loop_factory=new_gathering_loop) as runner:
        return runner.run(work)


def make_service(folders: Folders, writer: str) -> FleetService:
    """The service over the folder's machines, not started; `writer` names who stores its snapshots."""
    settings = FleetSettings(folders.machines_dir, folders.interval_s)
    keeper = SnapshotKeeper(folders.state_dir, writer)
    return FleetService(settings, Connector(), keeper)
