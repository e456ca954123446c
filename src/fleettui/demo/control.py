"""Commands for tests and benchmarks: one line in, one JSON value out."""

from __future__ import annotations

import asyncio
from typing import Any

from fleettui.demo import disturbances
from fleettui.demo.engine_requests import keep_alive_seconds
from fleettui.demo.engine_texts import find_model, loaded_models
from fleettui.demo.scheduler import Request
from fleettui.demo.server import DemoMachine, DemoServer

HELP = (
    "stop M | start M | hold M | release M | advance SECONDS | load M MODEL [KEEP_ALIVE] [NUM_CTX] | "
    "unload M MODEL | ask M MODEL SECONDS | busy M on|off | forwarding M on|off | "
    f"engine M on|off|silent|dead | {disturbances.HELP} | state [M] | quit"
)


class CommandError(Exception):
    """The command cannot be carried out; the text says why."""


async def run_command(server: DemoServer, line: str, stop: asyncio.Event) -> dict[str, Any]:
    """Carries out one line."""
    words = line.split()
    try:
        if not words:
            raise CommandError(f"empty command; there are: {HELP}")
        answer = await _run(server, words[0], words[1:], stop)
        await asyncio.sleep(
            0
        )  # a connection is closed in the loop's next turn; who reads the answer finds it so
        return {"ok": True} | answer
    except (CommandError, ValueError, IndexError, TypeError) as error:
        return {"ok": False, "error": str(error) or f"usage: {HELP}"}


async def _run(server: DemoServer, verb: str, words: list[str], stop: asyncio.Event) -> dict[str, Any]:
    if verb == "quit":
        stop.set()
        return {}
    if verb == "advance":
        server.clock.advance(float(words[0]))
        server.simulation.at(server.clock.now())
        await server.follow_schedule()
        return {"now": server.clock.now()}
    if verb == "state" and not words:
        server.simulation.at(server.clock.now())
        return {"now": server.clock.now(), "machines": [_state(server, m) for m in server.machines.values()]}
    if not words or words[0] not in server.machines:
        raise CommandError(f"no machine named {words[0] if words else '?'}; commands: {HELP}")
    machine = server.machines[words[0]]
    machine.simulated.advance_to(server.clock.now())
    if verb in disturbances.VERBS:
        return await disturbances.disturb(machine, verb, words[1:]) | _state(server, machine)
    await _run_on_machine(server, machine, verb, words[1:])
    return _state(server, machine)


async def _run_on_machine(server: DemoServer, machine: DemoMachine, verb: str, words: list[str]) -> None:
    if verb == "stop":
        machine.is_held_away = True
        machine.go_away()
    elif verb in ("start", "release"):
        machine.is_held_away = False
        await machine.come_up()
    elif verb == "hold":
        machine.fall_silent()
    elif verb == "busy":
        machine.simulated.is_busy_forced = words[0] == "on"
    elif verb == "forwarding":
        machine.ssh.refuses_forwarding = words[0] != "on"
    elif verb == "engine":
        await _switch_engine(machine, words[0])
    elif verb in ("load", "unload", "ask"):
        _act_on_model(machine, verb, words)
    elif verb != "state":
        raise CommandError(f"no command {verb}; there are: {HELP}")


async def _switch_engine(machine: DemoMachine, to: str) -> None:
    """Of a machine that is up: its engine listens, refuses connections, keeps them and says nothing, or
    has died with all its copies."""
    if machine.presence != "up" or to not in ("on", "off", "silent", "dead"):
        raise CommandError(f"{machine.name} is {machine.presence}; usage: engine M on|off|silent|dead")
    machine.engine.close(is_silent=to == "silent")
    if to == "dead":
        machine.simulated.scheduler.lose_everything(machine.simulated.now)
    if to == "on":
        await machine.engine.open()


def _act_on_model(machine: DemoMachine, verb: str, words: list[str]) -> None:
    simulated = machine.simulated
    model = find_model(simulated, words[0])
    if model is None:
        raise CommandError(f"{machine.name} has no {words[0]}; it has {', '.join(simulated.plan.installed)}")
    if verb == "unload":
        simulated.scheduler.expire(model, simulated.now)
        return
    if verb == "ask":
        request = Request(model, work_s=float(words[1]))
    else:
        keep_alive = keep_alive_seconds(words[1]) if len(words) > 1 else None
        request = Request(model, int(words[2]) if len(words) > 2 else None, keep_alive)
    simulated.scheduler.submit(request, simulated.now)


def _state(server: DemoServer, machine: DemoMachine) -> dict[str, Any]:
    simulated = machine.simulated
    return {
        "name": machine.name,
        "presence": machine.presence,
        "ssh_connections": len(machine.ssh.connections),
        "engine_connections": len(machine.engine.connections),
        "loaded": loaded_models(simulated, server.clock.wall_at)["models"],
        "loading": [
            runner.model.name for runner in simulated.scheduler.runners.values() if not runner.is_ready
        ],
        "active": sum(len(runner.active) for runner in simulated.scheduler.runners.values()),
        "used_mib": simulated.used_mib_by_card(),
    }
