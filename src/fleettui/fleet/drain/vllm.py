"""vLLM: it loads when it starts. Stopped by the operator's command, or put to sleep where it can sleep.

Source: docs.vllm.ai "Sleep Mode": `/sleep`, `/is_sleeping` in development mode, with `--enable-sleep-mode`.
Both break off what is in work, so only an idle server is stopped.
"""

from __future__ import annotations

from fleettui.decide.drain.sight import find_engine
from fleettui.fleet.drain.engines import (
    BusyError,
    IdleUnknownError,
    Journal,
    LastLook,
    address_of_copy,
    check_counted,
    endpoint_of,
    post,
)
from fleettui.fleet.drain.hooks import start_by_hook, stop_by_hook
from fleettui.fleet.drain.words import DrainFleet
from fleettui.fleet.engine_line import EngineLine
from fleettui.fleet.warm_up import ASK_S
from fleettui.model.drain import SourceCopy
from fleettui.model.readings import EngineReading
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.net.errors import HttpFailure
from fleettui.probes.engines.vllm import METRICS, parse_metrics

SLEEP, WAKE_UP = "/sleep?level=1", "/wake_up"
SLEEP_LIMIT_S = 120.0


class HookUnloader:
    """By the command of the machine file; `sleeps`: without one an idle vLLM is put to sleep."""

    kills_work = True

    def __init__(self, *, sleeps: bool) -> None:
        self._sleeps = sleeps

    def refusal(self, machine: MachineSnapshot, copy: SourceCopy) -> str:
        endpoint = endpoint_of(machine, copy)
        if endpoint is not None and endpoint.stop:
            return ""
        if self._sleeps and can_sleep(find_engine(machine, copy.engine, copy.port)):
            return ""
        return (
            f"{copy.engine} on port {copy.port} has no call that unloads; missing: `stop:` of that engine in "
            f"the machine file of {copy.machine}"
        )

    async def unload(self, fleet: DrainFleet, copy: SourceCopy, last_look: LastLook) -> None:
        line = EngineLine(fleet, address_of_copy(copy))
        if copy.engine == "vllm":
            await _check_idle(line, copy)
        else:
            await check_counted(fleet, copy)
        endpoint = endpoint_of(fleet.snapshot.find(copy.machine), copy)
        if endpoint is not None and endpoint.stop:
            await stop_by_hook(fleet, copy, last_look)
            return
        await last_look(f"POST {line.address.shown}{SLEEP}")
        await post(line, SLEEP, {}, SLEEP_LIMIT_S)


async def bring_back(fleet: DrainFleet, copy: SourceCopy, journal: Journal) -> None:
    """Wake it up where it sleeps, else start it by the operator's command. Raises StepError."""
    engine = find_engine(fleet.snapshot.find(copy.machine), copy.engine, copy.port)
    if copy.engine == "vllm" and engine is not None and engine.is_sleeping is True:
        line = EngineLine(fleet, address_of_copy(copy))
        journal(f"POST {line.address.shown}{WAKE_UP}")
        await post(line, WAKE_UP, {}, SLEEP_LIMIT_S)
        return
    await start_by_hook(fleet, copy, journal)


def can_bring_back(machine: MachineSnapshot | None, copy: SourceCopy) -> bool:
    """It has a command that starts it, or sleeps."""
    endpoint, engine = endpoint_of(machine, copy), find_engine(machine, copy.engine, copy.port)
    if endpoint is not None and endpoint.start:
        return True
    return copy.engine == "vllm" and engine is not None and engine.is_sleeping is True


def can_sleep(engine: EngineReading | None) -> bool:
    """It says whether it sleeps, which it does where it can."""
    return engine is not None and engine.traits is not None and engine.traits.can_sleep is True


async def _check_idle(line: EngineLine, copy: SourceCopy) -> None:
    """Raises StepError while requests are in work, and where nobody can tell."""
    where = f"{copy.name} on {copy.machine}"
    try:
        answer = await line.get(METRICS, timeout_s=ASK_S)
    except HttpFailure as failure:
        raise IdleUnknownError(f"{where}: whether it is idle is not known: {failure.text}") from None
    said = parse_metrics(answer.body)
    if answer.status != 200 or isinstance(said.running, Unknown) or isinstance(said.waiting, Unknown):
        raise IdleUnknownError(f"{where}: its metrics count no requests, so whether it is idle is not known")
    if said.running + said.waiting:
        raise BusyError(f"{where}: {said.running} running, {said.waiting} waiting")


UNLOADER = HookUnloader(sleeps=True)
BY_HOOK = HookUnloader(sleeps=False)
