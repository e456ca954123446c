"""Engines beside Ollama as services of their machine: stopped and started, by command or over SSH."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from fleettui.demo.engine_server import EngineServer
from fleettui.demo.machine import SimulatedMachine

START_S = 12.0
"""Simulated seconds from the start of a service until it listens."""
COMMAND = re.compile(r"\bsystemctl (?:--user )?(start|stop) (vllm|llamacpp|llamaswap)(?:\.service)?\b")
"""What the simulated machine's shell understands."""
_starting: set[asyncio.Task[None]] = set()


async def switch_service(
    sides: Sequence[EngineServer], machine: SimulatedMachine, kind: str, *, is_on: bool
) -> None:
    """Starts or stops the engine of that kind. ValueError: there is none."""
    for served, server in zip(machine.served, sides, strict=True):
        if served.plan.kind != kind:
            continue
        if served.is_up and not is_on:
            server.close()
            served.lose_everything()
        starts = is_on and not served.is_up
        served.is_up = is_on
        machine.take_sides_memory()
        if starts:
            task = asyncio.get_running_loop().create_task(_listen_later(server))
            _starting.add(task)
            task.add_done_callback(_starting.discard)
        return
    raise ValueError(f"{machine.plan.name} has no service {kind}")


async def _listen_later(server: EngineServer) -> None:
    """It listens once its model is loaded."""
    clock = server.clock
    due = clock.now() + (0.0 if clock.is_frozen else START_S)
    while clock.now() < due:
        await clock.wait_until(due)
    await server.open()


async def run_command(sides: Sequence[EngineServer], machine: SimulatedMachine, command: str) -> int | None:
    """Exit code of a command that names a service; None: it names none."""
    found = COMMAND.search(command)
    if found is None:
        return None
    try:
        await switch_service(sides, machine, found[2], is_on=found[1] == "start")
    except ValueError:
        return 5
    return 0
