"""What the operator decides in the dashboard, against real sshd: approving a key, a shell on a machine."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest
from sshd_rig import SshdRig, SshdServer
from textual.pilot import Pilot
from trust_fleet import TrustFleet, assert_no_login, is_up, logins, until

from fleettui.fleet.service import FleetService
from fleettui.fleet.shell import ShellCommand
from fleettui.fleet.trust_words import TrustError
from fleettui.tui.app import FleetApp
from fleettui.tui.screens.pending.screen import PendingScreen
from fleettui.tui.widgets.cell_block import CellBlock
from little_terminal import LittleTerminal


@pytest.fixture
def fleet(sshd_rig: SshdRig, tmp_path: Path) -> TrustFleet:
    folder = tmp_path / "machines"
    folder.mkdir()
    return TrustFleet(sshd_rig, folder, tmp_path / "state")


@asynccontextmanager
async def dashboard(service: FleetService) -> AsyncIterator[tuple[FleetApp, Pilot[None]]]:
    app = FleetApp(service)
    async with app.run_test(size=(100, 40)) as pilot:
        yield app, pilot


async def press(app: FleetApp, pilot: Pilot[None], *keys: str) -> str:
    """Press keys and wait for what they started; what the panel says then."""
    await pilot.pause()
    app.painter.paint_now()
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
    await app.workers.wait_for_complete()
    app.painter.paint_now()
    await pilot.pause()
    return " ".join(app.screen.query_one("#said", CellBlock).text.split())


# Approving


async def test_approved_in_the_panel_is_polled_at_once_with_one_login(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    async with fleet.service() as service, dashboard(service) as (app, pilot):
        await until(service, lambda m: m.link.offer is not None and m.link.offer.expires_at)
        await press(app, pilot, "a")
        assert isinstance(app.screen, PendingScreen)
        assert app.screen.machine is not None
        assert_no_login(server)
        said = await press(app, pilot, "a", "enter")
        assert f"ada is approved with ED25519 {server.fingerprint()}" in said
        await until(service, is_up)
        await press(app, pilot)
        assert app.screen.machine is None
    assert logins(server) == 1


async def test_a_key_that_changed_since_it_was_shown_is_not_approved(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    async with fleet.service() as service, dashboard(service) as (app, pilot):
        await until(service, lambda m: m.link.offer is not None and m.link.offer.expires_at)
        seen = server.fingerprint()
        await press(app, pilot, "a", "a")
        server.write_host_keys(server.key_number + 1)
        server.restart()
        assert isinstance(app.screen, PendingScreen)
        app.screen.action_confirm()
        said = await press(app, pilot)
        assert "shows another key" in said
        assert seen in said
        assert server.fingerprint() in said
        await until(service, lambda m: m.trust == "pending" and m.link.offer.fingerprint != seen)  # type: ignore[union-attr]
    assert_no_login(server)


async def test_a_changed_key_is_approved_by_its_machines_name(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=True)
    fleet.write("ada", server)
    async with fleet.service() as service, dashboard(service) as (app, pilot):
        await until(service, is_up)
        server.write_host_keys(server.key_number + 1)
        server.restart()
        await until(service, lambda m: m.trust == "key_changed")
        await press(app, pilot, "a", "a", "enter")
        assert logins(server) == 0
        await press(app, pilot, *"ada", "enter")
        await until(service, is_up)
    assert logins(server) == 1


async def test_rejected_and_taken_back(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=True)
    fleet.write("ada", server)
    async with fleet.service() as service, dashboard(service) as (app, pilot):
        await until(service, is_up)
        assert service.trust is not None
        await service.trust.reject("ada")
        await until(service, lambda m: m.trust == "rejected")
        said = await press(app, pilot, "a", "r")
        assert f"shows ED25519 {server.fingerprint()}" in said
        await press(app, pilot, "a", "enter")
        await until(service, is_up)


# A shell


def ssh_run(
    command: ShellCommand, *words: str, known_hosts: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a prepared ssh without a terminal. ssh takes its home from the account, whatever $HOME says."""
    more = ("-o", f"UserKnownHostsFile={known_hosts}") if known_hosts is not None else ()
    argv = (*command.argv[:2], *more, *command.argv[2:], *words)
    return subprocess.run(
        argv, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30
    )


def other_key(server: SshdServer) -> None:
    server.write_host_keys(server.key_number + 1)
    server.restart()


async def test_ssh_verifies_the_key_that_was_approved_here(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False, host_keys=("ed25519", "ecdsa"))
    fleet.write("ada", server, identity=str(fleet.rig.identity))
    key = server.fingerprint("ecdsa")
    assert fleet.run("machines", "approve", "ada", "--fingerprint", key).returncode == 0
    async with fleet.service() as service:
        await until(service, is_up)
        assert service.shells is not None
        with await service.shells.prepare("ada") as command:
            done = ssh_run(command, "echo", "reached")
            assert done.stdout == "reached\n", done.stderr
            other_key(server)
            done = ssh_run(command, "echo", "reached")
            assert (done.returncode, done.stdout) == (255, "")
            assert "Host key verification failed" in done.stderr
        assert command.folder is not None
        assert not await asyncio.to_thread(os.path.exists, command.folder)
        await until(service, lambda m: m.trust == "key_changed")
        with pytest.raises(TrustError, match="CHANGED and is not approved"):
            await service.shells.prepare("ada")


async def test_between_two_polls_a_changed_key_is_noticed_before_ssh_starts(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    path = fleet.write("ada", server, host_key=server.fingerprint())
    async with fleet.service() as service:
        await until(service, is_up)
        service.set_paused(True)
        assert path.exists()
        server.write_host_keys(server.key_number + 1)
        server.kill()
        server.start()
        assert service.shells is not None
        with pytest.raises(TrustError, match="another key than the approved"):
            await service.shells.prepare("ada")


async def test_ssh_goes_by_known_hosts_where_that_is_the_approval(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=True)
    fleet.write("ada", server, identity=str(fleet.rig.identity))
    async with fleet.service() as service:
        await until(service, is_up)
        assert service.shells is not None
        with await service.shells.prepare("ada") as command:
            assert command.folder is None
            done = ssh_run(command, "echo", "reached", known_hosts=fleet.rig.known_hosts)
            assert done.stdout == "reached\n", done.stderr
            other_key(server)
            done = ssh_run(command, "echo", "reached", known_hosts=fleet.rig.known_hosts)
            assert (done.returncode, done.stdout) == (255, "")


async def test_nobody_gets_a_shell_on_a_machine_that_is_not_approved(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    async with fleet.service() as service:
        assert service.shells is not None
        with pytest.raises(TrustError, match="its host key is not approved"):
            await service.shells.prepare("ada")
        await until(service, lambda m: m.link.offer is not None and m.link.offer.expires_at)
        with pytest.raises(TrustError, match="its host key is not approved"):
            await service.shells.prepare("ada")
        with pytest.raises(TrustError, match="not declared"):
            await service.shells.prepare("bora")
    assert_no_login(server)


async def test_a_jump_host_is_verified_as_strictly(fleet: TrustFleet) -> None:
    """Even where the operator's configuration asks for less."""
    rig = fleet.rig
    jump, server = rig.start(is_trusted=True), rig.start(is_trusted=False)
    rig.ssh_config.write_text(
        f"Host {jump.address}\n StrictHostKeyChecking no\n"
        f"Host *\n UserKnownHostsFile {rig.known_hosts}\n IdentityFile {rig.identity}\n User {rig.user}\n"
    )
    fleet.write("ada", server, jump=jump.where)
    assert fleet.run("machines", "approve", "ada", "--fingerprint", server.fingerprint()).returncode == 0
    async with fleet.service() as service:
        await until(service, is_up)
        assert service.shells is not None
        with await service.shells.prepare("ada") as command:
            done = ssh_run(command, "echo", "reached")
            assert done.stdout == "reached\n", done.stderr
            rig.known_hosts.write_text("")
            done = ssh_run(command, "echo", "reached")
            assert (done.returncode, done.stdout) == (255, "")
            assert rig.known_hosts.read_text() == "", "nothing is written to known_hosts"


async def test_a_jump_host_that_ssh_does_not_know_is_told(fleet: TrustFleet) -> None:
    """Approved here, so the machine is polled; ssh goes by known_hosts, and might accept another key."""
    rig = fleet.rig
    jump, server = rig.start(is_trusted=False), rig.start(is_trusted=True)
    fleet.write("edge", jump, identity=str(rig.identity))
    fleet.write("ada", server, jump=jump.where)
    assert fleet.run("machines", "approve", "edge", "--fingerprint", jump.fingerprint()).returncode == 0
    async with fleet.service() as service:
        await until(service, is_up)
        assert service.shells is not None
        with pytest.raises(TrustError, match="once with ssh"):
            await service.shells.prepare("ada")
        rig.trust(jump)
        service.poll_now()  # looks at the files now
        with await service.shells.prepare("ada") as command:
            assert "-F" in command.argv


async def test_this_computer_gets_its_own_shell(fleet: TrustFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/zsh")
    (fleet.folder / "here.yaml").write_text(
        "name: here\nrole: x\nhardware: {}\nnetwork: {hostname: localhost}\n"
        "models: []\nengines: []\nssh: local\n"
    )
    async with fleet.service() as service:
        assert service.shells is not None
        with await service.shells.prepare("here") as command:
            assert command.argv == ("/bin/zsh",)


class Terminal:
    """The dashboard on a pseudo terminal."""

    def __init__(self, fleet: TrustFleet) -> None:
        self._main, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fleettui", "--interval", "0.5"],
            env={**fleet.environment, "TERM": "xterm-256color"},
            stdin=child, stdout=child, stderr=child, start_new_session=True,
        )  # fmt: skip
        os.close(child)
        self.screen = LittleTerminal(100, 30)

    def send(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def wait_for(self, text: str, *, is_dashboard: bool, timeout_s: float = 40.0) -> None:
        """Read until the text is seen, on the dashboard's screen or on the shell's."""
        deadline = time.monotonic() + timeout_s
        while text not in self.screen.text or self.screen.is_alternate != is_dashboard:
            assert time.monotonic() < deadline, f"{text!r} is not seen:\n{self.screen.text}"
            self.read(0.2)

    def read(self, timeout_s: float) -> None:
        """Take what is written in that time."""
        if select.select([self._main], [], [], timeout_s)[0]:
            try:
                self.screen.feed(os.read(self._main, 65536))
            except OSError:
                raise AssertionError(f"ended:\n{self.screen.text}") from None

    def wait_for_end(self, timeout_s: float = 20.0) -> int:
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < deadline:
            with suppress(AssertionError):
                self.read(0.1)
        return self.process.wait(1)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self._main)


@pytest.fixture
def terminal(fleet: TrustFleet) -> Iterator[tuple[Terminal, SshdServer]]:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server, identity=str(fleet.rig.identity))
    assert fleet.run("machines", "approve", "ada", "--fingerprint", server.fingerprint()).returncode == 0
    terminal = Terminal(fleet)
    yield terminal, server
    terminal.close()


def stored_at(fleet: TrustFleet) -> float:
    """When the dashboard stored its last snapshot."""
    connection = sqlite3.connect(fleet.state / "state.db")
    try:
        return float(connection.execute("SELECT max(taken_at) FROM fleet_snapshots").fetchone()[0] or 0.0)
    finally:
        connection.close()


def test_s_opens_a_shell_polling_goes_on_and_leaving_it_comes_back(
    fleet: TrustFleet, terminal: tuple[Terminal, SshdServer]
) -> None:
    screen, server = terminal
    screen.wait_for("1/1 up", is_dashboard=True)
    screen.send("s")
    screen.wait_for("leave the shell to come back", is_dashboard=False)
    screen.send("echo here-$((40 + 2))\r")
    screen.wait_for("here-42", is_dashboard=False)
    before, deadline = stored_at(fleet), time.monotonic() + 20
    while stored_at(fleet) <= before:
        assert time.monotonic() < deadline, "the fleet is polled while the shell is open"
        screen.read(0.1)
    screen.send("sleep 30\r")
    screen.wait_for("sleep 30", is_dashboard=False)
    screen.send("\x03")  # for the far shell, not for us
    screen.send("echo again-$((40 + 3))\r")
    screen.wait_for("again-43", is_dashboard=False)
    assert "1/1 up" not in screen.screen.text, "nothing is painted over the shell"
    screen.send("exit\r")
    for text in ("1/1 up", "ada", "RTX 4090", "q quit"):
        screen.wait_for(text, is_dashboard=True)
    assert "here-42" not in screen.screen.text
    screen.send("q")
    assert screen.wait_for_end() == 0
    assert logins(server) == 2


def test_what_ssh_said_stays_until_enter(fleet: TrustFleet, terminal: tuple[Terminal, SshdServer]) -> None:
    screen, server = terminal
    screen.wait_for("1/1 up", is_dashboard=True)
    (server.folder / "authorized_keys").write_text("")
    screen.send("s")
    screen.wait_for("Permission denied", is_dashboard=False)
    screen.wait_for("Enter comes back to fleettui", is_dashboard=False)
    screen.send("\r")
    screen.wait_for("1/1 up", is_dashboard=True)
    screen.send("q")
    assert screen.wait_for_end() == 0


def test_a_kill_while_the_shell_is_open_ends_both(terminal: tuple[Terminal, SshdServer]) -> None:
    screen, _ = terminal
    screen.wait_for("1/1 up", is_dashboard=True)
    screen.send("s")
    screen.wait_for("leave the shell to come back", is_dashboard=False)
    screen.send("echo here-$((40 + 2))\r")
    screen.wait_for("here-42", is_dashboard=False)
    children = psutil.Process(screen.process.pid).children(recursive=True)
    assert [child.name() for child in children] == ["ssh"]
    screen.process.terminate()
    assert screen.wait_for_end() == 143
    assert not psutil.wait_procs(children, timeout=10)[1]
