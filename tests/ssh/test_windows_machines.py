"""Machines with OpenSSH for Windows: asked by nvidia-smi alone, through the whole core; sh is never sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest
from sshd_rig import OllamaStandIn, SshdRig
from test_ssh_fleet import machine
from test_ssh_fleet import until as until_fleet

from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.net.connector import Connector

LIMIT_S = 15.0
VALUES = {
    "index": "0", "uuid": "GPU-000000a0-0000-4000-8000-0000000000a0", "name": "NVIDIA GeForce RTX 2080 SUPER",
    "driver_version": "591.86", "memory.total": "8192", "memory.used": "702", "memory.free": "7286",
    "utilization.gpu": "0", "temperature.gpu": "40", "power.draw": "38.92", "power.limit": "250.00",
    "fan.speed": "37", "pstate": "P8", "pci.bus_id": "00000000:0C:00.0", "persistence_mode": "[N/A]",
}  # fmt: skip
APPS = (
    "GPU-000000a0-0000-4000-8000-0000000000a0, 12444, C:\\Windows\\System32\\dwm.exe, [N/A]\r\n"
    "GPU-000000a0-0000-4000-8000-0000000000a0, 20372, C:\\Program Files\\NZXT CAM\\NZXT CAM.exe, [N/A]\r\n"
)
CMD_SAYS = (
    b"'%s' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n",
    "'%s' \u4e0d\u662f\u5185\u90e8\u6216\u5916\u90e8\u547d\u4ee4\r\n".encode("gbk"),
)
POWERSHELL_SAYS = (
    b'#< CLIXML\r\n<Objs Version="1.1.0.1"><Obj S="progress" RefId="0"></Obj></Objs>'
    b"%s : The term '%s' is not recognized as the name of a cmdlet, function, script file, or program.\r\n"
)
SYSTEM32 = "C:\\Windows\\System32\\nvidia-smi.exe"
NVSMI = "C:\\PROGRA~1\\NVIDIA~1\\NVSMI\\nvidia-smi.exe"


class WindowsMachine:
    """What stands behind the port: which commands came, and how they are answered."""

    def __init__(self) -> None:
        self.places = {"nvidia-smi.exe", SYSTEM32}
        self.shell = "cmd"
        self.commands: list[str] = []
        self.exit_code = 0
        self.ends: str | None = None
        """`lost`: the connection breaks in the middle of an answer; `KILL`: a signal ends nvidia-smi."""
        self.hangs = False
        self.running = 0
        self.most_running = 0
        self.gate = asyncio.Event()
        self.tasks = "nvidia-smi.exe   4242 Console\r\n"
        self.port = 0
        self.has_forwarding = True

    def answer(self, command: str) -> tuple[bytes, bytes, int]:
        place, _, rest = command.partition(" ")
        if command == "tasklist.exe":
            return f"Image Name  PID\r\nsshd.exe 12\r\n{self.tasks}".encode(), b"", 0
        if place not in self.places:
            name = place.encode()
            if self.shell == "cmd":
                return b"", CMD_SAYS[len(self.commands) % 2] % name, 1
            return b"", POWERSHELL_SAYS % (name, name), 1
        if rest.startswith("--query-gpu="):
            fields = rest.removeprefix("--query-gpu=").partition(" ")[0].split(",")
            unknown = [field for field in fields if field not in VALUES]
            if unknown:
                return f'Field "{unknown[0]}" is not a valid field to query.\r\n\r\n'.encode(), b"", 2
            return f"{', '.join(VALUES[field] for field in fields)}\r\n".encode(), b"", self.exit_code
        if rest.startswith("--query-compute-apps="):
            return APPS.encode(), b"", 0
        return b"", b"", 1


class Session(asyncssh.SSHServerSession[bytes]):
    def __init__(self, machine: WindowsMachine) -> None:
        self.machine = machine

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self.channel = chan

    def shell_requested(self) -> bool:
        self.machine.commands.append("(a shell)")
        return True

    def exec_requested(self, command: str) -> bool:
        self.machine.commands.append(command)
        self.command = command
        return True

    def session_started(self) -> None:
        self.task = asyncio.ensure_future(self.run())

    async def run(self) -> None:
        machine, channel = self.machine, self.channel
        stdout, stderr, code = machine.answer(self.command)
        machine.running += 1
        machine.most_running = max(machine.most_running, machine.running)
        if machine.hangs and "query" in self.command:
            await machine.gate.wait()
        machine.running -= 1
        if channel.is_closing():
            return
        if machine.ends == "lost" and stdout:
            channel.write(stdout[: len(stdout) // 2])
            await asyncio.sleep(0)
            channel.close()  # no exit status
            return
        channel.write(stdout)
        channel.write_stderr(stderr)
        if machine.ends is not None and "query" in self.command:
            channel.exit_with_signal(machine.ends)
        else:
            channel.exit(code)


class Login(asyncssh.SSHServer):
    def __init__(self, machine: WindowsMachine) -> None:
        self.machine = machine

    def begin_auth(self, username: str) -> bool:
        return False

    def session_requested(self) -> Session:
        return Session(self.machine)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        if not self.machine.has_forwarding:
            prohibited = asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED
            raise asyncssh.ChannelOpenError(prohibited, "administratively prohibited")
        return True


def write_files(rig: SshdRig, folder: Path, key: asyncssh.SSHKey, port: int, engine_port: int) -> None:
    """The host key as one that the user knows, and the machine file."""
    with rig.known_hosts.open("a") as file:
        line = key.export_public_key("openssh").decode().strip()
        file.write(f"[127.0.0.1]:{port} {line}\n")
    folder.mkdir(exist_ok=True)
    (folder / "win.yaml").write_text(
        "name: win\nrole: gpu-host\nhardware: {gpu: [{model: GeForce RTX 2080 SUPER, vram_gb: 8}]}\n"
        f"network: {{hostname: 127.0.0.1, port: {engine_port}}}\nmodels: []\n"
        f"ssh: {{user: {rig.user}, port: {port}}}\n"
    )


async def listen(windows: WindowsMachine, key: asyncssh.SSHKey) -> asyncssh.SSHAcceptor:
    """Serve on loopback as OpenSSH for Windows, under this key; `windows.port` is set."""
    server = await asyncssh.create_server(
        lambda: Login(windows),
        "127.0.0.1",
        0,
        server_host_keys=[key],
        server_version="OpenSSH_for_Windows_9.5",
        encoding=None,
    )
    windows.port = server.sockets[0].getsockname()[1]
    return server


@asynccontextmanager
async def serving(
    rig: SshdRig, folder: Path, ollama: OllamaStandIn, interval_s: float = 0.5, **changes: object
) -> AsyncIterator[tuple[WindowsMachine, FleetService]]:
    """A Windows machine on loopback and the fleet that polls it."""
    windows = WindowsMachine()
    for name, value in changes.items():
        setattr(windows, name, value)
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await listen(windows, key)
    write_files(rig, folder, key, windows.port, ollama.port)
    service = FleetService(FleetSettings(str(folder), interval_s), Connector(rig.settings()))
    await service.start()
    try:
        yield windows, service
    finally:
        await service.stop()
        windows.gate.set()
        server.close()


async def until(
    service: FleetService, condition: Callable[[MachineSnapshot], object], limit_s: float = LIMIT_S
) -> MachineSnapshot:
    def holds(fleet: FleetSnapshot) -> object:
        found = fleet.find("win")
        return found is not None and condition(found)

    return machine(await until_fleet(service, holds, limit_s), "win")


def has_cards(machine: MachineSnapshot) -> bool:
    return machine.gpu is not None and bool(machine.gpu.cards) and not machine.gpu.is_stale


@pytest.mark.parametrize("shell", ["cmd", "powershell"])
async def test_a_windows_machine_is_healthy_with_cards_and_engine(
    sshd_rig: SshdRig, tmp_path: Path, shell: str
) -> None:
    ollama = sshd_rig.ollama()
    async with serving(sshd_rig, tmp_path / "machines", ollama, shell=shell) as (windows, service):
        machine = await until(
            service,
            lambda m: has_cards(m) and m.engines and m.processes is not None and m.health == "healthy",
        )
        first_seen = machine.last_seen
        assert first_seen is not None
        await until(service, lambda m: (m.last_seen or 0) > first_seen)
        await until(service, lambda _: all(poller.is_settled for poller in service.pollers))
    assert machine.gpu is not None
    (card,) = machine.gpu.cards
    assert (card.total_mib, card.used_mib, card.name) == (8192, 702, "NVIDIA GeForce RTX 2080 SUPER")
    assert machine.processes is not None
    assert [(p.short_name, isinstance(p.used_mib, Unknown)) for p in machine.processes.processes] == [
        ("dwm.exe", True),
        ("NZXT CAM.exe", True),
    ]
    assert machine.engines[0].version == "0.12.3"
    for name in ("cpu", "memory", "disks", "net", "system"):
        assert (machine.sources[name].state, machine.sources[name].error) == (
            "unsupported",
            "not supported on Windows",
        )
    assert machine.reasons == ()
    assert windows.commands
    for command in windows.commands:
        assert command.startswith("nvidia-smi.exe "), command
        assert not set(command) & set("\"'`$&|;<>%^()"), "both shells run it unchanged"
        assert " sh" not in command


@pytest.mark.parametrize("shell", ["cmd", "powershell"])
@pytest.mark.parametrize("place", [SYSTEM32, NVSMI])
async def test_nvidia_smi_is_found_outside_path(
    sshd_rig: SshdRig, tmp_path: Path, shell: str, place: str
) -> None:
    ollama = sshd_rig.ollama()
    async with serving(sshd_rig, tmp_path / "machines", ollama, shell=shell, places={place}) as (
        windows,
        service,
    ):
        await until(service, has_cards)
        windows.commands.clear()
        await until(service, lambda _: len(windows.commands) >= 3)
        assert {command.partition(" ")[0] for command in windows.commands} == {place}, "what answered is kept"


@pytest.mark.parametrize("shell", ["cmd", "powershell"])
async def test_without_nvidia_smi_no_word_of_the_shell_is_shown(
    sshd_rig: SshdRig, tmp_path: Path, shell: str
) -> None:
    ollama = sshd_rig.ollama()
    async with serving(sshd_rig, tmp_path / "machines", ollama, shell=shell, places=set()) as (
        windows,
        service,
    ):
        machine = await until(service, lambda m: m.health == "unhealthy")
        await until(service, lambda m: m.engines)
        asked = len(windows.commands)
        await asyncio.sleep(1.5)
        assert len(windows.commands) == asked, "not looked for again on this connection"
    assert [reason.code for reason in machine.reasons] == ["gpu_no_tool"]
    assert machine.reasons[0].text == "no nvidia-smi found"
    assert machine.link.state == "up"


async def test_exit_code_255_with_good_rows_is_no_news(sshd_rig: SshdRig, tmp_path: Path) -> None:
    ollama = sshd_rig.ollama()
    async with serving(sshd_rig, tmp_path / "machines", ollama, exit_code=255) as (_, service):
        machine = await until(service, lambda m: has_cards(m) and m.engines and m.health == "healthy")
    assert machine.reasons == ()


async def test_part_of_an_answer_is_thrown_away(sshd_rig: SshdRig, tmp_path: Path) -> None:
    ollama = sshd_rig.ollama()
    async with serving(sshd_rig, tmp_path / "machines", ollama) as (windows, service):
        await until(service, has_cards)
        windows.ends, windows.tasks = "lost", ""
        windows.commands.clear()
        await until(service, lambda _: len(windows.commands) >= 3)
        machine = service.final_snapshot().find("win")
        assert machine is not None
        assert machine.gpu is not None
        assert [card.used_mib for card in machine.gpu.cards] == [702], "the last whole answer stands"
        assert not machine.gpu.warnings
        windows.ends = None
        await until(service, lambda m: has_cards(m) and m.sources["gpu"].state == "ok")


async def test_a_killed_nvidia_smi_is_said_so(sshd_rig: SshdRig, tmp_path: Path) -> None:
    ollama = sshd_rig.ollama()
    async with serving(sshd_rig, tmp_path / "machines", ollama) as (windows, service):
        await until(service, has_cards)
        windows.ends = "KILL"
        machine = await until(service, lambda m: m.sources["gpu"].state == "error")
    assert machine.sources["gpu"].error == "nvidia-smi was killed (SIGKILL)"


async def test_never_a_second_one_beside_one_that_hangs(sshd_rig: SshdRig, tmp_path: Path) -> None:
    ollama = sshd_rig.ollama()
    async with serving(sshd_rig, tmp_path / "machines", ollama) as (windows, service):
        (poller,) = service.pollers
        poller._loops._gpu_commands._limit_s = 0.5
        await until(service, has_cards)
        windows.hangs = True
        machine = await until(service, lambda m: m.sources["gpu"].state == "error")
        assert machine.sources["gpu"].error == "nvidia-smi did not answer within its time limit"
        await until(service, lambda m: m.engines)
        asked = len(windows.commands)
        await asyncio.sleep(1.5)
        assert (len(windows.commands), windows.most_running) == (asked, 1)
        assert machine.link.state == "up"
        # Another connection: the list of tasks tells that the old one still runs.
        poller._link_lost(poller_lost())
        machine = await until(service, lambda m: "still hangs" in (m.sources["gpu"].error or ""))
        assert windows.commands[asked:].count("tasklist.exe") >= 1
        assert not [command for command in windows.commands[asked:] if "query" in command]
        windows.hangs, windows.tasks = False, ""
        windows.gate.set()
        await until(service, lambda m: m.sources["gpu"].state == "ok")


def poller_lost() -> object:
    from fleettui.net.errors import LinkError

    return LinkError("lost", "closed by the machine")


async def test_where_forwarding_is_refused_still_no_shell_is_started(
    sshd_rig: SshdRig, tmp_path: Path
) -> None:
    ollama = sshd_rig.ollama()
    async with serving(sshd_rig, tmp_path / "machines", ollama, has_forwarding=False) as (windows, service):
        await until(service, lambda m: m.engines and has_cards(m))  # straight from here
        ollama.close()
        await until(service, lambda m: m.engines and m.engines[0].state == "down")
        await asyncio.sleep(1.0)
    assert not [command for command in windows.commands if not command.startswith("nvidia-smi.exe ")]
