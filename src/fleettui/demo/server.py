"""All machines of the demo fleet in one process: their ports, their coming and going, their folder."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import asyncssh

from fleettui.demo.clock import DemoClock
from fleettui.demo.engine_server import EngineServer
from fleettui.demo.machine import SimulatedMachine
from fleettui.demo.machine_files import FleetFolder, machine_file
from fleettui.demo.routed_api import side_api
from fleettui.demo.simulation import DEFAULT_MACHINES, DEFAULT_SEED, Simulation
from fleettui.demo.ssh_server import MachineSsh

DEFAULT_START_S = 40.0
"""Simulated seconds before the first picture, so that the fleet is at work in it."""
HOUSEKEEPING_S = 1.0
Presence = Literal["up", "away", "silent"]


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """What a demo fleet is to be."""

    directory: Path
    machines: int = DEFAULT_MACHINES
    seed: int = DEFAULT_SEED
    speed: float = 1.0
    is_frozen: bool = False
    """Time stands; only the `advance` command moves it. Loads that are asked for take no time."""
    is_calm: bool = False
    """No clients of its own and no machine that goes away: only what is asked from outside happens."""
    start_s: float = DEFAULT_START_S
    cards_each: int | None = None
    pending: frozenset[str] = frozenset()
    """Machines whose host key nobody has accepted yet."""
    no_forwarding: frozenset[str] = frozenset()
    """Machines whose SSH server refuses direct-tcpip."""
    silent: frozenset[str] = frozenset()
    """Machines that accept connections and never answer."""
    beside: tuple[tuple[str, str], ...] = ()
    """Machines with an engine more, by its key in fleet_plan.SIDES."""


class DemoMachine:
    """One machine with its ports: SSH, Ollama, engines beside it."""

    def __init__(self, simulated: SimulatedMachine, clock: DemoClock, client_key: asyncssh.SSHKey, seed: int):
        self.simulated = simulated
        self.engine = EngineServer(simulated, clock)
        self.sides = [
            EngineServer(simulated, clock, side_api(simulated, served, clock)) for served in simulated.served
        ]
        for served, side in zip(simulated.served, self.sides, strict=True):
            served.port = side.port.number
        self.ssh = MachineSsh(simulated, self.engine, self.sides, clock, client_key, seed)
        self.presence: Presence = "away"
        self.is_held_away = False
        """Stopped by a command: the schedule leaves it alone."""

    @property
    def name(self) -> str:
        return self.simulated.plan.name

    @property
    def _engines(self) -> tuple[EngineServer, ...]:
        return (self.engine, *self.sides)

    async def come_up(self) -> None:
        """Listens, on the same ports as ever."""
        if self.presence == "up":
            return
        was_silent, self.presence = self.presence == "silent", "up"
        await self.engine.open()
        for served, side in zip(self.simulated.served, self.sides, strict=True):
            if served.is_up:
                await side.open()
        await self.ssh.open()
        if was_silent:
            for engine in self._engines:
                engine.resume()
            self.ssh.resume()

    def go_away(self) -> None:
        """Refuses connections and drops those it has."""
        self.ssh.close()
        for engine in self._engines:
            engine.close()
        self.presence = "away"

    async def lose_power(self, is_back: bool = False) -> None:
        """Ends with all that it held; `is_back`: and is up again, empty."""
        self.go_away()
        self.simulated.lose_power()
        if is_back:
            await self.come_up()

    def fall_silent(self) -> None:
        """Keeps connections, accepts new ones, and says nothing."""
        if self.presence == "up":
            self.ssh.close(is_silent=True)
            for engine in self._engines:
                engine.close(is_silent=True)
            self.presence = "silent"

    def shut_down(self) -> None:
        """Leaves for good."""
        self.ssh.close(keep_port=False)
        self.ssh.port.release()
        for engine in self._engines:
            engine.close(keep_port=False)
            engine.port.release()
        self.presence = "away"


class DemoServer:
    """The fleet: `start`, `stop`, and the folder that clients use."""

    def __init__(self, settings: DemoSettings):
        self.settings = settings
        self.folder = FleetFolder(settings.directory)
        self.clock = DemoClock(settings.speed, settings.is_frozen, settings.start_s)
        self.simulation = Simulation(
            settings.machines,
            settings.seed,
            cards_each=settings.cards_each,
            beside=settings.beside,
            has_traffic=not settings.is_calm,
            is_instant=settings.is_frozen,
        )
        key = asyncssh.generate_private_key("ssh-ed25519", comment="fleettui demo")
        self._private_key = key.export_private_key()
        self.machines = {
            name: DemoMachine(machine, self.clock, key, settings.seed)
            for name, machine in self.simulation.machines.items()
        }
        self._housekeeping: asyncio.Task[None] | None = None
        self._started = time.monotonic()

    async def start(self) -> None:
        """Opens all ports and writes the folder."""
        _allow_many_files()
        unknown = (self.settings.pending | self.settings.no_forwarding | self.settings.silent) - set(
            self.machines
        )
        if unknown:
            raise ValueError(f"no machine named {', '.join(sorted(unknown))} in this fleet")
        self.folder.create(self._private_key)
        self.simulation.at(self.clock.now())
        known_hosts = []
        for name, machine in self.machines.items():
            machine.ssh.refuses_forwarding |= name in self.settings.no_forwarding
            fingerprint = None
            if name not in self.settings.pending:
                fingerprint = machine.ssh.host_key.get_fingerprint()
                public = machine.ssh.host_key.export_public_key().decode().split(" ")
                known_hosts.append(f"[127.0.0.1]:{machine.ssh.port.number} {public[0]} {public[1].strip()}\n")
            text = machine_file(
                machine.simulated.plan,
                machine.ssh.port.number,
                machine.engine.port.number,
                self.folder.client_key,
                fingerprint,
                [(served.plan.kind, served.port) for served in machine.simulated.served],
            )
            (self.folder.machines / f"{name}.yaml").write_text(text, encoding="utf-8")
            await machine.come_up()
            if name in self.settings.silent:
                machine.fall_silent()
        self.folder.known_hosts.write_text("".join(known_hosts))
        await self.follow_schedule()
        self._housekeeping = asyncio.create_task(self._keep_house())

    async def stop(self) -> None:
        """Closes everything."""
        if self._housekeeping is not None:
            self._housekeeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._housekeeping
        for machine in self.machines.values():
            machine.shut_down()

    async def follow_schedule(self) -> None:
        """Machines go away and come back as planned."""
        if self.settings.is_calm:
            return
        for name, machine in self.machines.items():
            if machine.is_held_away or machine.presence == "silent":
                continue
            if self.simulation.is_away(name):
                if machine.presence == "up":
                    machine.go_away()
            else:
                await machine.come_up()

    async def _keep_house(self) -> None:
        """Time goes on although nobody asks, and the schedule is kept."""
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            self.simulation.at(self.clock.now())
            await self.follow_schedule()

    def ready_document(self) -> dict[str, Any]:
        """What the process says on stdout once everything listens."""
        return {
            "ready": True,
            "directory": str(self.folder.root),
            "machines_dir": str(self.folder.machines),
            "state_dir": str(self.folder.state),
            "client_key": str(self.folder.client_key),
            "known_hosts": str(self.folder.known_hosts),
            "environment": self.folder.environment(),
            "machines": [
                {
                    "name": machine.name,
                    "user": machine.simulated.plan.user,
                    "ssh_port": machine.ssh.port.number,
                    "engine_port": machine.engine.port.number,
                    "host_key": machine.ssh.host_key.get_fingerprint(),
                }
                for machine in self.machines.values()
            ],
            "took_s": round(time.monotonic() - self._started, 3),
        }


def _allow_many_files() -> None:
    """300 machines need some 1,500 descriptors with their connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
