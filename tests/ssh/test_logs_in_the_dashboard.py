"""The Logs tab on a real sshd: read once, followed, and nothing stays on the machine when it is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from doctor_runs import put_tool
from links import until
from sshd_rig import SshdRig
from test_logs_over_ssh import JOURNAL, asked
from test_ssh_fleet import machine, running, write_machine_file
from test_ssh_fleet import until as until_snapshot
from textual.pilot import Pilot

from fleettui.tui.app import FleetApp
from fleettui.tui.screens.machine.logs import LogsPane
from fleettui.tui.screens.machine.screen import MachineScreen
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.view.cells import text_of


async def settled(pilot: Pilot[None], condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    """Let the app work until the condition holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "not within time"
        await pilot.pause(0.05)


def lines_of(pane: LogsPane) -> list[str]:
    return [text_of(line.cells) for line in pane.view.lines]


async def test_read_followed_and_left(sshd_rig: SshdRig, tmp_path: Path) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", JOURNAL)
    write_machine_file(tmp_path / "machines", "ada", server, sshd_rig.user)
    async with running(sshd_rig, tmp_path / "machines") as service:
        await until_snapshot(service, lambda s: machine(s).cpu is not None, what="connected")
        loops = len(server.remote_processes())
        app = FleetApp(service)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            assert asked(server) == [], "nothing is asked before somebody looks"
            await pilot.press("l")
            await pilot.pause()
            assert isinstance(app.screen, MachineScreen)
            pane = app.screen.pane
            assert isinstance(pane, LogsPane)
            await settled(pilot, lambda: pane.reader.state == "read" and pane.view.lines)
            assert "GPU driver" in lines_of(pane)[0]
            assert "NVRM: Xid" in lines_of(pane)[1]
            await until(lambda: len(server.remote_processes()) <= loops)

            before = len(asked(server))
            await pilot.press("r")
            await settled(pilot, lambda: len(asked(server)) > before and pane.reader.state == "read")

            await pilot.press("f")
            await settled(pilot, lambda: "tick" in "".join(lines_of(pane)[-1:]))
            assert "following" in pane.query_one("#log-title", CellBlock).text
            count = len(pane.view.lines)
            await settled(pilot, lambda: len(pane.view.lines) > count + 3)
            assert pane.view.cursor == len(pane.view.lines) - 1, "the newest at the bottom"

            await pilot.press("tab")  # another tab
            await until(lambda: len(server.remote_processes()) <= loops)
            await pilot.press("shift+tab")
            await settled(pilot, lambda: pane.reader.state == "following" and pane.view.lines)

            await pilot.press("5")  # another screen
            await until(lambda: len(server.remote_processes()) <= loops)
            await pilot.press("1")
            await settled(pilot, lambda: pane.reader.state == "following" and pane.view.lines)

            await pilot.press("escape")
            await until(lambda: len(server.remote_processes()) <= loops)
        seq = machine(service.snapshot).seq
        await until_snapshot(service, lambda s: machine(s).seq > seq + 2, what="polling goes on")
    assert server.log_text().count("Accepted publickey") == 1


async def test_nothing_is_asked_of_a_machine_that_is_not_approved(sshd_rig: SshdRig, tmp_path: Path) -> None:
    server = sshd_rig.start(is_trusted=False)
    put_tool(server, "journalctl", JOURNAL)
    write_machine_file(tmp_path / "machines", "ada", server, sshd_rig.user)
    async with running(sshd_rig, tmp_path / "machines") as service:
        await until_snapshot(service, lambda s: machine(s).link.state == "failed", what="refused")
        app = FleetApp(service)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            await pilot.press("l")
            await pilot.pause()
            await pilot.press("r", "f", "f")
            await pilot.pause()
            assert isinstance(app.screen, MachineScreen)
            pane = app.screen.pane
            assert isinstance(pane, LogsPane)
            said = pane.query_one("#log-said", CellBlock).text
            assert "no log" in said or "not connected" in said
            assert pane.view.lines == []
    assert asked(server) == []
    assert "Accepted publickey" not in server.log_text()


async def test_after_a_connection_that_broke_it_goes_on(sshd_rig: SshdRig, tmp_path: Path) -> None:
    server = sshd_rig.start()
    put_tool(server, "journalctl", JOURNAL)
    write_machine_file(tmp_path / "machines", "ada", server, sshd_rig.user)
    async with running(sshd_rig, tmp_path / "machines") as service:
        await until_snapshot(service, lambda s: machine(s).cpu is not None, what="connected")
        app = FleetApp(service)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            await pilot.press("l", "f")
            await pilot.pause()
            assert isinstance(app.screen, MachineScreen)
            pane = app.screen.pane
            assert isinstance(pane, LogsPane)
            await settled(pilot, lambda: "tick" in "".join(lines_of(pane)[-1:]))
            readings = pane.reader.reading
            server.drop_connections()
            await settled(pilot, lambda: pane.reader.problem)
            service.poll_now()
            await settled(pilot, lambda: pane.reader.reading > readings and pane.reader.state == "following")
            await settled(pilot, lambda: "tick" in "".join(lines_of(pane)[-1:]))
            await settled(pilot, lambda: pane.query_one("#log-said", CellBlock).text == "")
