"""A running FleetService for the commands that stay: polls, and stores snapshots for `--route`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from fleettui.cli.folders import Folders
from fleettui.decide.health import silence_limit_s
from fleettui.fleet.pace import new_gathering_loop

if TYPE_CHECKING:
    from fleettui.fleet.service import FleetService
    from fleettui.net.connector import Connector

END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def run_serving(work: Coroutine[Any, Any, int]) -> int:
    """Run a program that keeps polling; its event loop gathers the answers of many machines.

    A kill or a closed terminal ends it in order, as Ctrl+C does: the screen is given back, connections and
    the state file are closed. The exit code is then the shell's, 128 and the signal's number.
    """
    with asyncio.Runner(loop_factory=new_gathering_loop) as runner:
        return runner.run(_until_signalled(work))


async def _until_signalled(work: Coroutine[Any, Any, int]) -> int:
    task = asyncio.ensure_future(work)
    came: list[int] = []

    def end(number: int) -> None:
        came.append(number)
        task.cancel()

    for number in END_SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            asyncio.get_running_loop().add_signal_handler(number, end, number)
    try:
        exit_code = await task
    except asyncio.CancelledError:
        if not came:
            raise
        exit_code = 0
    return 128 + came[0] if came else exit_code


def make_service(folders: Folders, writer: str, history_minutes: float | None = None) -> FleetService:
    """The service over the folder's machines, not started; `writer` names who stores its snapshots.
    `history_minutes`: keep samples for graphs that long."""
    from fleettui.fleet.keeper import SnapshotKeeper
    from fleettui.fleet.service import FleetService, FleetSettings

    settings = FleetSettings(
        folders.machines_dir,
        folders.interval_s,
        state_dir=folders.state_dir,
        history_minutes=history_minutes,
        catalog_dir=folders.catalog_dir,
        asks_shapes=True,
    )
    return FleetService(settings, make_connector(folders), SnapshotKeeper(folders.state_dir, writer))


def make_connector(folders: Folders) -> Connector:
    """Connections that are kept."""
    from fleettui.net.connector import Connector
    from fleettui.net.settings import ConnectorSettings

    # Keepalives go by the same rule as the silence of the fact channel: 3 intervals, 6 s at least.
    return Connector(ConnectorSettings.from_environment(silence_s=silence_limit_s(folders.interval_s)))
