"""Engines as a drain calls them: fresh lists, loads, unloads. One file for each engine beside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from fleettui.decide.drain.sight import Cover, find_engine, holds_memory
from fleettui.decide.drain.sources import find_endpoint
from fleettui.fleet.drain.words import DrainFleet
from fleettui.fleet.engine_line import EngineAddress, EngineLine
from fleettui.fleet.warm_up import ASK_S
from fleettui.model.busy import find_busy_signs
from fleettui.model.drain import PlannedCopy, SourceCopy
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.route import RouteCandidate
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer
from fleettui.probes.engines import PROBES
from fleettui.probes.engines.answers import judge_status

Note = Callable[[str], None]
"""Hears how far a step is."""
Journal = Callable[[str], None]
"""Takes each remote call as it is made."""
LastLook = Callable[[str], Awaitable[None]]
"""Takes the call that unloads, last of all before it is made; raises what speaks against it by now."""


class StepError(Exception):
    """A step failed. The text says what, where and why."""


class BusyError(StepError):
    """Not while requests are in work there."""


class IdleUnknownError(BusyError):
    """Nobody can tell whether requests are in work there. The text says what is missing."""


@dataclass(frozen=True, slots=True)
class Landing:
    """A copy that was loaded on a target, as its engine lists it afterwards."""

    copy: LoadedModel
    listed: tuple[LoadedModel, ...]
    """All that is listed there then."""
    text: str
    """`39.6 GiB of VRAM, ctx 8192, 27 s`."""


class Loader(Protocol):
    """A load under way."""

    async def run(self, note: Note) -> Landing:
        """Have it loaded and see that it is there. Raises StepError."""

    def abort(self) -> None:
        """Give the load up, where the engine allows that."""


class CallLoad:
    """What a load by the calls of one engine knows."""

    def __init__(
        self, fleet: DrainFleet, target: RouteCandidate, journal: Journal, clock: Callable[[], float]
    ) -> None:
        self._fleet = fleet
        self._target = target
        self._journal = journal
        self._clock = clock


class Unloader(Protocol):
    """How copies of one kind of engine are let go."""

    kills_work: bool
    """Requests in work are broken off by it."""

    def refusal(self, machine: MachineSnapshot, copy: SourceCopy) -> str:
        """What is missing to unload it; empty: nothing."""

    async def unload(self, fleet: DrainFleet, copy: SourceCopy, last_look: LastLook) -> None:
        """Ask for it; that it is gone is seen later. Raises StepError."""


def address_of_copy(copy: SourceCopy) -> EngineAddress:
    """Its engine. Raises StepError for a process that belongs to none."""
    if copy.engine == "process":
        raise StepError(f"{copy.name} on {copy.machine} belongs to no engine that is asked")
    return EngineAddress(copy.machine, copy.engine, copy.port)


def address_of_cover(cover: Cover) -> EngineAddress:
    """Its engine."""
    return EngineAddress(cover.machine, cover.engine, cover.port)


async def list_now(fleet: DrainFleet, address: EngineAddress) -> tuple[LoadedModel, ...]:
    """What an engine holds, asked this moment. Raises StepError."""
    probe, line = PROBES[address.kind], EngineLine(fleet, address)
    paths = [item.path for item in probe.questions if item.is_vital or item.lists_copies]
    answers: dict[str, HttpAnswer] = {}
    try:
        for path in paths:
            answers[path] = await line.get(path, timeout_s=ASK_S)
    except HttpFailure as failure:
        raise StepError(f"{address.shown} does not answer: {failure.text}") from None
    known = find_engine(fleet.snapshot.find(address.machine), address.kind, address.port)
    reading: EngineReading = probe.read_answers(address.port, answers, known)
    if isinstance(reading.loaded, Unknown) or not reading.is_answering:
        why = reading.error or (
            reading.loaded.reason if isinstance(reading.loaded, Unknown) else reading.state
        )
        raise StepError(f"{address.shown}: what is loaded is not known: {why}")
    return tuple(filter(holds_memory, reading.loaded))


async def check_counted(fleet: DrainFleet, copy: SourceCopy) -> None:
    """Raises BusyError where its engine counts requests in work this moment, IdleUnknownError where it does
    not answer. One that counts nothing is judged by its connections, as polls see them."""
    probe, line = PROBES[address_of_copy(copy).kind], EngineLine(fleet, address_of_copy(copy))
    machine = fleet.snapshot.find(copy.machine)
    answers: dict[str, HttpAnswer] = {}
    for item in probe.questions:
        if item.is_vital or item.counts_load:
            try:
                answers[item.path] = await line.get(item.path, timeout_s=ASK_S)
            except HttpFailure as failure:
                where = f"{copy.name} on {copy.machine}"
                raise IdleUnknownError(f"{where}: whether it is idle is not known: {failure.text}") from None
    reading = probe.read_answers(copy.port, answers, find_engine(machine, copy.engine, copy.port))
    signs = () if machine is None else find_busy_signs(machine, reading, None, machine.last_seen or 0.0)
    counted = [sign.text for sign in signs if sign.code in ("running", "waiting")]
    if counted:
        raise BusyError(f"{copy.name} on {copy.machine}: {', '.join(counted)}")


async def post(line: EngineLine, path: str, body: Mapping[str, object], limit_s: float) -> HttpAnswer:
    """Send one request; an answer that is none of 200 is a failure. Raises StepError."""
    try:
        answer = await line.post(path, body, timeout_s=limit_s)
    except HttpFailure as failure:
        raise StepError(f"{line.address.shown}{path}: {failure.text}") from None
    if answer.status != 200:
        raise StepError(f"{line.address.shown}{path}: {said(answer)}")
    return answer


async def await_request(request: asyncio.Future[HttpAnswer], what: str) -> HttpAnswer:
    """The answer of a request that may be given up: its connection closes then. `what` begins the sentence
    of the StepError that is raised for that."""
    try:
        await asyncio.wait([request])
    finally:
        request.cancel()
    if request.cancelled():
        raise StepError(f"{what} was given up")
    return request.result()


def said(answer: HttpAnswer) -> str:
    """Why an answer is none, in the engine's words where it has some."""
    verdict = judge_status(answer.status, answer.headers, answer.body)
    return verdict.reason or verdict.error or f"HTTP {answer.status}"


def endpoint_of(machine: MachineSnapshot | None, copy: SourceCopy) -> EngineEndpoint | None:
    """What the machine file declares of the copy's engine."""
    return find_endpoint(machine, copy.engine, copy.port)


def unloader_of(kind: str) -> Unloader:
    """Raises StepError where nobody can unload there."""
    from fleettui.fleet.drain import llamacpp, llamaswap, ollama, vllm

    found: Mapping[str, Unloader] = {
        "ollama": ollama.UNLOADER,
        "llamacpp": llamacpp.UNLOADER,
        "llamaswap": llamaswap.UNLOADER,
        "vllm": vllm.UNLOADER,
        "sglang": vllm.BY_HOOK,
        "lmstudio": vllm.BY_HOOK,
    }
    if kind not in found:
        raise StepError("it belongs to no engine that is asked")
    return found[kind]


def loader_of(
    fleet: DrainFleet, line: PlannedCopy, context: int | None, journal: Journal, clock: Callable[[], float]
) -> Loader:
    """What loads the copy of a line on its target. Raises StepError where nobody can."""
    from fleettui.fleet.drain import llamacpp, llamaswap, ollama

    if line.target is None:
        raise StepError(f"{line.copy.name} has no target")
    if line.target.engine == "ollama":
        return ollama.OllamaLoad(fleet, line, line.target, context, journal, clock)
    if line.target.engine == "llamacpp":
        return llamacpp.RouterLoad(fleet, line.target, journal, clock)
    if line.target.engine == "llamaswap":
        return llamaswap.SwapLoad(fleet, line.target, journal, clock)
    title = ENGINE_TITLES[line.target.engine]
    raise StepError(
        f"{line.copy.name} cannot be loaded on {line.target.machine}: {title} loads when it starts"
    )
