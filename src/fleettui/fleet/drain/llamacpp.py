"""llama.cpp's router: load, unload once nothing is in work. A single llama-server has no such calls.

Source: tools/server/README.md of ggml-org/llama.cpp, "Using multiple models". A router ends requests in work
ten seconds after an unload, with an error.
"""

from __future__ import annotations

import asyncio
import json
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
    check_counted,
    endpoint_of,
    list_now,
    post,
)
from fleettui.fleet.drain.hooks import stop_by_hook
from fleettui.fleet.drain.words import DrainFleet
from fleettui.fleet.engine_line import EngineLine, address_of
from fleettui.fleet.warm_up import ASK_S, LOAD_LIMIT_S, NOTE_S
from fleettui.model.drain import SourceCopy
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.net.errors import HttpFailure
from fleettui.probes.engines.answers import as_dict, as_dicts, judge_answer
from fleettui.probes.engines.llamacpp import MODEL_METRICS, MODELS, parse_metrics

LOAD, UNLOAD = "/models/load", "/models/unload"
ASK_LIMIT_S = 30.0


class RouterLoad(CallLoad):
    """A load on a router: its answer comes at once, the list of models says how it went."""

    _is_given_up = False

    def abort(self) -> None:
        """What a router has begun it ends; nobody waits for it any more."""
        self._is_given_up = True

    async def run(self, note: Note) -> Landing:
        target, line = self._target, EngineLine(self._fleet, address_of(self._target))
        began_at = self._clock()
        body = {"model": target.model}
        self._journal(f"POST {line.address.shown}{LOAD} {json.dumps(body)}")
        await post(line, LOAD, body, ASK_LIMIT_S)
        while True:
            elapsed_s = self._clock() - began_at
            note(f"loading {target.model} on {target.machine}: {elapsed_s:.0f} s")
            if self._is_given_up:
                raise StepError(f"{target.model} on {target.machine}: the load was given up")
            status = await self._status(line)
            if status == "loaded":
                break
            if elapsed_s > LOAD_LIMIT_S:
                raise StepError(f"{target.model} on {target.machine}: still {status} after {elapsed_s:.0f} s")
            await asyncio.sleep(NOTE_S)
        listed = await list_now(self._fleet, line.address)
        copy = next((item for item in listed if item.name == target.model), None)
        if copy is None:
            raise StepError(f"{target.model} on {target.machine} was loaded and is gone again")
        return Landing(copy, listed, f"{self._clock() - began_at:.0f} s")

    async def _status(self, line: EngineLine) -> str:
        """`loading`, `loaded`. Raises StepError where it failed."""
        where = f"{self._target.model} on {self._target.machine}"
        try:
            answer = await line.get(MODELS, timeout_s=ASK_S)
        except HttpFailure as failure:
            raise StepError(f"{where}: {failure.text}") from None
        verdict = judge_answer(answer.status, answer.headers, answer.body)
        for row in as_dicts(as_dict(verdict.document).get("data")):
            if row.get("id") == self._target.model:
                status = as_dict(row.get("status"))
                if status.get("failed") is True:
                    raise StepError(
                        f"{where} could not be loaded (exit code {status.get('exit_code')}): see its log"
                    )
                return str(status.get("value"))
        raise StepError(f"{where}: {verdict.error or 'the router does not list it'}")


class RouterUnloader:
    """Only where the model's own metrics count no request; a single server by the operator's command."""

    kills_work = True

    def refusal(self, machine: MachineSnapshot, copy: SourceCopy) -> str:
        engine, endpoint = find_engine(machine, copy.engine, copy.port), endpoint_of(machine, copy)
        if engine is not None and engine.traits is not None and engine.traits.is_router:
            return ""
        if endpoint is not None and endpoint.stop:
            return ""
        return (
            f"a single llama-server has no unload call; missing: `stop:` of it in the file of {copy.machine}"
        )

    async def unload(self, fleet: DrainFleet, copy: SourceCopy, last_look: LastLook) -> None:
        machine = fleet.snapshot.find(copy.machine)
        engine = find_engine(machine, copy.engine, copy.port)
        if engine is None or engine.traits is None or not engine.traits.is_router:
            await check_counted(fleet, copy)
            await stop_by_hook(fleet, copy, last_look)
            return
        line = EngineLine(fleet, address_of_copy(copy))
        await _check_idle(line, copy)
        body = {"model": copy.name}
        await last_look(f"POST {line.address.shown}{UNLOAD} {json.dumps(body)}")
        await post(line, UNLOAD, body, ASK_LIMIT_S)


UNLOADER = RouterUnloader()


async def _check_idle(line: EngineLine, copy: SourceCopy) -> None:
    """Raises StepError while requests are in work, and where nobody can tell."""
    where = f"{copy.name} on {copy.machine}"
    try:
        answer = await line.get(MODEL_METRICS + quote(copy.name, safe=""), timeout_s=ASK_S)
    except HttpFailure as failure:
        raise IdleUnknownError(f"{where}: whether it is idle is not known: {failure.text}") from None
    if answer.status != 200:
        raise IdleUnknownError(
            f"{where}: whether it is idle is not known (no metrics: start it with --metrics)"
        )
    said = parse_metrics(answer.body)
    if isinstance(said.running, Unknown) or isinstance(said.waiting, Unknown):
        raise IdleUnknownError(f"{where}: its metrics count no requests, so whether it is idle is not known")
    if said.running + said.waiting:
        raise BusyError(f"{where}: {said.running} running, {said.waiting} waiting")
