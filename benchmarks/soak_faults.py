"""The faults of `soak.py`: what happens to machines, networks, files and engines, and how it is undone."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fleettui.demo.launcher import DemoFleet

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "ssh"))
from tcp_proxy import TcpProxy

LOCAL = "here"
"""This computer, `ssh: local`: the shells are the real ones."""

KEYS = (b"j", b"k", b"G", b"g", b"x", b"X", b"\r", b"]", b"\x1b", b"?", b"\x1b", b"r")
"""What an operator presses: about, into a machine's page and back, help, refresh."""

Step = Callable[[str], Awaitable[None]]


@dataclass
class Field:
    """Where faults happen."""

    demo: DemoFleet
    folder: Path
    """The machine files that the dashboard reads."""
    sources: dict[str, str]
    """Text of each machine's file as it should be."""
    proxies: dict[str, TcpProxy]
    """Machines that are reached through a network of ours."""
    press: Callable[[bytes], None]
    local_pids: Callable[[], list[int]]
    """The shells that run here for the machine with `ssh: local`."""

    async def command(self, line: str) -> None:
        """One command for the demo fleet."""
        await self.demo.command_async(line)

    def write(self, name: str, text: str) -> None:
        """Write a machine file as an editor does: aside, then renamed."""
        aside = self.folder / f".{name}.tmp"
        aside.write_text(text, encoding="utf-8")
        aside.replace(self.folder / f"{name}.yaml")

    def restore(self, name: str) -> None:
        """The machine's file as it should be."""
        self.write(name, self.sources[name])


@dataclass(frozen=True)
class Fault:
    """One kind of fault on one machine (or on all: `*`)."""

    name: str
    begin: Step
    end: Step
    seconds: tuple[float, float]
    weight: int = 4
    targets: str = "demo"
    """`demo`, `proxied`, `local` or `*`."""


def make_faults(field: Field) -> tuple[Fault, ...]:
    """All kinds."""
    demo, proxies = field.demo, field.proxies

    def tell(text: str) -> Step:
        return lambda name: field.command(text.format(name))

    async def nothing(name: str) -> None: ...

    def tell_all(text: str) -> Step:
        async def tell_each(name: str) -> None:
            for machine in set(field.sources) - {LOCAL}:
                await field.command(text.format(machine))

        return tell_each

    async def pause_everybody(name: str) -> None:
        os.kill(demo.pid, signal.SIGSTOP)

    async def resume_everybody(name: str) -> None:
        os.kill(demo.pid, signal.SIGCONT)

    async def forget(name: str) -> None:
        proxies[name].forget()

    async def reset(name: str) -> None:
        proxies[name].reset()

    async def cut(name: str) -> None:
        proxies[name].cut_after(700)

    async def slow_down(name: str) -> None:
        proxies[name].delay_s = 0.4

    async def speed_up(name: str) -> None:
        proxies[name].delay_s = 0.0

    async def darken(name: str) -> None:
        proxies[name].is_dark = True
        proxies[name].forget()

    async def lighten(name: str) -> None:
        proxies[name].is_dark = False
        proxies[name].reset()

    async def add_twin(name: str) -> None:
        text = field.sources[name].replace(f"name: {name}\n", f"name: {name}-twin\n")
        field.write(f"{name}-twin", text)

    async def remove_twin(name: str) -> None:
        (field.folder / f"{name}-twin.yaml").unlink()

    async def edit(name: str) -> None:
        field.write(name, field.sources[name].replace("tags: [", "tags: [edited, "))

    async def move_engine(name: str) -> None:
        lines = field.sources[name].splitlines(keepends=True)
        field.write(name, "".join("  port: 9\n" if line.startswith("  port: ") and "Ollama" in line else line
                                  for line in lines))  # fmt: skip

    async def spoil(name: str) -> None:
        field.write(name, field.sources[name] + "name: [\n")

    async def remove(name: str) -> None:
        (field.folder / f"{name}.yaml").unlink()

    async def restore(name: str) -> None:
        field.restore(name)

    async def kill_shells(name: str) -> None:
        for pid in field.local_pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    return (
        Fault("killed and restarted", tell("stop {}"), tell("start {}"), (0.3, 14), 8),
        Fault("frozen", tell("hold {}"), tell("release {}"), (3, 16), 8),
        Fault("engine down", tell("engine {} off"), tell("engine {} on"), (3, 15), 6),
        Fault("engine silent", tell("engine {} silent"), tell("engine {} on"), (6, 20), 4),
        Fault("forwarding refused", tell("forwarding {} off"), tell("forwarding {} on"), (4, 15), 3),
        Fault("connection half-open", forget, reset, (12, 20), 8, "proxied"),
        Fault("connection reset", reset, nothing, (1, 2), 6, "proxied"),
        Fault("cut inside a frame", cut, nothing, (2, 4), 6, "proxied"),
        Fault("slow link", slow_down, speed_up, (6, 15), 3, "proxied"),
        Fault("network gone", darken, lighten, (5, 18), 4, "proxied"),
        Fault("file added", add_twin, remove_twin, (5, 15), 6),
        Fault("file edited", edit, restore, (3, 6), 4),
        Fault("engine moved in the file", move_engine, restore, (4, 8), 4),
        Fault("file spoiled", spoil, restore, (3, 8), 3),
        Fault("file removed", remove, restore, (3, 10), 5),
        Fault("local shells killed", kill_shells, nothing, (1, 2), 3, "local"),
        Fault("all machines restarted", tell_all("stop {}"), tell_all("start {}"), (1, 6), 1, "*"),
        Fault("all machines frozen", pause_everybody, resume_everybody, (3, 9), 1, "*"),
    )


class Chaos:
    """Begins faults and undoes them, several at once, never two on one machine."""

    def __init__(self, field: Field, seed: int, gap_s: float) -> None:
        self._field = field
        self._faults = make_faults(field)
        self._rng = random.Random(seed)
        self._gap_s = gap_s
        self._busy: set[str] = set()
        self._running: set[asyncio.Task[None]] = set()
        self.counts: Counter[str] = Counter()

    async def run(self, seconds: float) -> None:
        """Faults for so long, each kind once at first; returns when the last one is undone.

        What a first fault of a kind needs once (a library that is loaded, room for 14 logins at a time) is
        then there before memory is measured.
        """
        until = time.monotonic() + seconds
        first = sorted(self._faults, key=lambda fault: fault.targets != "*")
        while time.monotonic() < until - max(fault.seconds[1] for fault in self._faults):
            await asyncio.sleep(self._rng.uniform(0.3, 1.7) * self._gap_s)
            self._field.press(self._rng.choice(KEYS))
            fault = self._rng.choices(self._faults, [fault.weight for fault in self._faults])[0]
            fault = first.pop(0) if first else fault
            if fault.targets == "*":
                await self._finish()
                await self._suffer(fault, "*")
            elif (name := self._pick(fault)) is not None:
                task = asyncio.create_task(self._suffer(fault, name))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
        await self._finish()

    async def _finish(self) -> None:
        """Wait until every fault is undone."""
        if self._running:
            await asyncio.gather(*self._running)

    def _pick(self, fault: Fault) -> str | None:
        """A machine without a fault."""
        if fault.targets == "local":
            names = {LOCAL}
        elif fault.targets == "proxied":
            names = set(self._field.proxies)
        else:
            names = set(self._field.sources) - {LOCAL}
        free = sorted(names - self._busy)
        return self._rng.choice(free) if free else None

    async def _suffer(self, fault: Fault, name: str) -> None:
        self._busy.add(name)
        try:
            self.counts[fault.name] += 1
            await fault.begin(name)
            await asyncio.sleep(self._rng.uniform(*fault.seconds))
            await fault.end(name)
        finally:
            self._busy.discard(name)


async def new_proxy(port: int) -> TcpProxy:
    """A network of ours in front of a port here."""
    return await TcpProxy(("127.0.0.1", port)).start()


def make_machine_files(demo: DemoFleet, folder: Path, proxies: dict[str, TcpProxy]) -> dict[str, str]:
    """Copies the demo's files, some of them with the proxy's port; adds this computer. Text by name.

    `bora` stays out: the demo switches it off by a schedule of its own.
    """
    folder.mkdir()
    sources: dict[str, str] = {}
    for machine in demo.machines:
        name = machine["name"]
        if name == "bora":
            continue
        text = (demo.machines_dir / f"{name}.yaml").read_text(encoding="utf-8")
        if name in proxies:
            text = text.replace(f"  port: {machine['ssh_port']}\n", f"  port: {proxies[name].port}\n")
        sources[name] = text
    engine = demo.machines[0]["engine_port"]
    sources[LOCAL] = (
        f"name: {LOCAL}\nrole: cpu-host\nhardware: {{gpu: []}}\n"
        f"network: {{hostname: 127.0.0.1, port: {engine}}}\nmodels: []\ntags: [here]\nssh: local\n"
    )
    for name, text in sources.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return sources
