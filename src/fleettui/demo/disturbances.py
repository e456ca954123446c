"""Commands that make things go wrong: faults of loads, deaths, clients that hold on to a model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fleettui.demo.hardware import GIB
from fleettui.demo.load_faults import ANY_MODEL, FAULT_KINDS
from fleettui.demo.machine import TOKENS_S, Clinging, SimulatedMachine
from fleettui.demo.models import CATALOG, ModelSpec, full_name
from fleettui.demo.routed_models import RoutedModels
from fleettui.demo.scheduler import LOAD_BYTES_S
from fleettui.demo.server import DemoMachine
from fleettui.demo.services import switch_service

HELP = (
    f"fault M none|{'|'.join(FAULT_KINDS)} [MODEL|*] [TIMES] | crash M | reboot M | "
    "service M vllm|llamacpp|llamaswap on|off | cling M MODEL [TIMES [GAP_S]] | pace M TOKENS_S | "
    "disk M GIB_S | hurry M | install M MODEL | remove M MODEL | reset M | history M"
)
VERBS = (
    "fault",
    "crash",
    "reboot",
    "service",
    "cling",
    "pace",
    "disk",
    "hurry",
    "install",
    "remove",
    "reset",
    "history",
)


async def disturb(machine: DemoMachine, verb: str, words: list[str]) -> dict[str, Any]:
    """Carries out one of VERBS; what the answer says beside the machine's state. ValueError: why not."""
    simulated = machine.simulated
    if verb == "fault":
        _set_fault(simulated, *words)
    elif verb in ("crash", "reboot"):
        machine.is_held_away = verb == "crash"
        await machine.lose_power(is_back=verb == "reboot")
    elif verb == "service":
        await switch_service(machine.sides, simulated, words[0], is_on=words[1] == "on")
    elif verb == "cling":
        client = Clinging(*(int(word) for word in words[1:]))
        simulated.clinging[_model(words[0]).name] = client
    elif verb == "pace":
        simulated.tokens_s = float(words[0])
    elif verb == "disk":
        simulated.scheduler.load_bytes_s = float(words[0]) * GIB
    elif verb == "hurry":
        simulated.scheduler.hurry(simulated.now)
    elif verb in ("install", "remove"):
        simulated.install(_model(words[0]), is_there=verb == "install")
    elif verb == "reset":
        await _reset(machine)
    return {"history": [asdict(item) for item in simulated.scheduler.history]} if verb == "history" else {}


def _set_fault(simulated: SimulatedMachine, kind: str, model: str = ANY_MODEL, times: str = "-1") -> None:
    routed = [served for served in simulated.served if isinstance(served, RoutedModels)]
    engines = [simulated.scheduler.faults, *(served.faults for served in routed)]
    if kind == "none":
        for faults in engines:
            faults.clear()
        return
    if kind not in FAULT_KINDS:
        raise ValueError(f"no fault {kind}; there are: {', '.join(FAULT_KINDS)}")
    is_routed = any(model in served.models for served in routed)
    name = model if model == ANY_MODEL or is_routed else _model(model).name
    for faults in engines:
        faults.add(name, kind, int(times))


async def _reset(machine: DemoMachine) -> None:
    """Up, empty, without faults, with the files that it began with."""
    simulated = machine.simulated
    machine.is_held_away = False
    machine.go_away()
    _set_fault(simulated, "none")
    simulated.clinging.clear()
    simulated.scheduler.lose_everything(simulated.now)
    simulated.scheduler.history.clear()
    for served in simulated.served:
        served.is_up = True
        served.lose_everything()
    simulated.take_sides_memory()
    simulated.plan = simulated.first_plan
    simulated.tokens_s, simulated.is_busy_forced = TOKENS_S, False
    simulated.scheduler.load_bytes_s = LOAD_BYTES_S
    await machine.come_up()


def _model(name: str) -> ModelSpec:
    model = CATALOG.get(full_name(name))
    if model is None:
        raise ValueError(f"no model {name} in the simulated registry")
    return model
