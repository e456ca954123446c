"""llama-swap: stops the server of one model. Requests in work are broken off, so only an idle one is stopped.

Source: internal/server/api.go of mostlygeek/llama-swap.
"""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from fleettui.decide.drain.sight import find_engine
from fleettui.fleet.drain.engines import (
    BusyError,
    CallLoad,
    IdleUnknownError,
    Landing,
    LastLook,
    Note,
    StepError,
    address_of_copy,
    await_request,
    list_now,
    post,
    said,
)
from fleettui.fleet.drain.words import DrainFleet
from fleettui.fleet.engine_line import EngineLine, address_of
from fleettui.fleet.warm_up import LOAD_LIMIT_S
from fleettui.model.busy import count_others
from fleettui.model.drain import SourceCopy
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer

UNLOAD = "/api/models/unload/"
UPSTREAM = "/upstream/"
ASK_LIMIT_S = 60.0


class SwapLoad(CallLoad):
    """A question to the model's own server, which starts it."""

    _request: asyncio.Future[HttpAnswer] | None = None

    def abort(self) -> None:
        if self._request is not None:
            self._request.cancel()

    async def run(self, note: Note) -> Landing:
        target, line = self._target, EngineLine(self._fleet, address_of(self._target))
        began_at = self._clock()
        note(f"starting {target.model} on {target.machine}")
        path = f"{UPSTREAM}{quote(target.model, safe='')}/health"
        self._journal(f"GET {line.address.shown}{path}")
        self._request = asyncio.ensure_future(line.get(path, timeout_s=LOAD_LIMIT_S))
        try:
            answer = await await_request(self._request, f"{target.model} on {target.machine}: the start")
        except HttpFailure as failure:
            raise StepError(f"{target.model} on {target.machine} was not started: {failure.text}") from None
        if answer.status != 200:
            raise StepError(f"{target.model} on {target.machine} was not started: {said(answer)}")
        listed = await list_now(self._fleet, line.address)
        copy = next((item for item in listed if item.name == target.model and item.state == "loaded"), None)
        if copy is None:
            raise StepError(f"{target.model} on {target.machine} was started and is gone again")
        return Landing(copy, listed, f"{self._clock() - began_at:.0f} s")


class SwapUnloader:
    """Only where nobody else is connected to its port: it counts no requests."""

    kills_work = True

    def refusal(self, machine: MachineSnapshot, copy: SourceCopy) -> str:
        return ""

    async def unload(self, fleet: DrainFleet, copy: SourceCopy, last_look: LastLook) -> None:
        machine = fleet.snapshot.find(copy.machine)
        engine = find_engine(machine, copy.engine, copy.port)
        others = (
            Unknown()
            if machine is None or engine is None
            else count_others(machine, engine, machine.last_seen or 0)
        )
        if isinstance(others, Unknown):
            raise IdleUnknownError(
                f"{copy.name} on {copy.machine}: who is connected is not known, so neither whether it is idle"
            )
        if others:
            raise BusyError(f"{copy.name} on {copy.machine}: {others} connections to its port")
        line = EngineLine(fleet, address_of_copy(copy))
        path = UNLOAD + quote(copy.name, safe="")
        await last_look(f"POST {line.address.shown}{path}")
        await post(line, path, {}, ASK_LIMIT_S)


UNLOADER = SwapUnloader()
