"""Ollama: load without a prompt, verify, unload by `keep_alive: 0`, pull, keep a covering copy longer.

Source: docs/api.md and server/routes.go of ollama/ollama. The reply to an unload comes before it: requests in
work end first. A request that names a context makes Ollama load the copy anew, so none is named unless the
operator wants one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from fleettui.decide.drain.sight import Cover
from fleettui.decide.measured_load import vram_taken_mib
from fleettui.fleet.drain.engines import (
    Journal,
    Landing,
    LastLook,
    Note,
    StepError,
    address_of_copy,
    address_of_cover,
    await_request,
    post,
)
from fleettui.fleet.drain.words import DrainFleet
from fleettui.fleet.engine_line import EngineLine, address_of
from fleettui.fleet.warm_up import EMBED, GENERATE, LOAD_LIMIT_S, ModelLoad, WarmedUp, WarmUpError
from fleettui.model.drain import PlannedCopy, SourceCopy
from fleettui.model.gpu_users import engine_kind_of
from fleettui.model.readings import LoadedModel, ModelTraits
from fleettui.model.record import replace
from fleettui.model.route import TIER_PULL, RouteCandidate
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import NOT_READ, Unknown, known_or
from fleettui.net.link import HttpAnswer

PULL = "/api/pull"
PULL_LIMIT_S = 6 * 3600.0
ASK_LIMIT_S = 30.0
SHORTEST_KEEP_S = 600
"""A copy that was moved must not end before anybody was sent to it."""
LOOKS, LOOK_S = 3, 1.0
"""More looks at the cards, before it is believed that a copy does not lie there."""
ROSE_SHARE = 0.8
"""Of what the engine says lies on the cards; less of it there means that it does not."""
_MIB = 1 << 20


def keep_alive_for(copy: SourceCopy, now: float) -> int:
    """As long as at the source: -1 where it is pinned, else what remains there, ten minutes at least."""
    if copy.is_pinned:
        return -1
    remaining = 0.0 if isinstance(copy.expires_at, Unknown) else copy.expires_at - now
    return max(SHORTEST_KEEP_S, round(remaining))


class OllamaLoad:
    """A load on an Ollama, pulled first where the operator allowed that."""

    def __init__(
        self,
        fleet: DrainFleet,
        line: PlannedCopy,
        target: RouteCandidate,
        context: int | None,
        journal: Journal,
        clock: Callable[[], float],
    ) -> None:
        self._fleet = fleet
        self._line = line
        self._target = target
        self._journal = journal
        self._clock = clock
        self._context = context
        self._load: ModelLoad | None = None
        self._pulling: asyncio.Future[HttpAnswer] | None = None
        self.warmed: WarmedUp | None = None
        """What it told, once it is there."""

    def abort(self) -> None:
        if self._pulling is not None:
            self._pulling.cancel()
        if self._load is not None:
            self._load.abort()

    async def run(self, note: Note) -> Landing:
        target = self._target
        if target.tier >= TIER_PULL:
            await self._pull(note)
            target = replace(target, tier=TIER_PULL - 1)
        keep_alive = keep_alive_for(self._line.copy, self._clock())
        self._load = ModelLoad(self._fleet, target, self._context, keep_alive, self._clock, self._journal)
        try:
            warmed = self.warmed = await self._load.run(note)
        except WarmUpError as error:
            raise StepError(str(error)) from None
        for _ in range(LOOKS):  # what the cards told may have been asked before the load was done
            if not _missing_vram(warmed):
                break
            await asyncio.sleep(LOOK_S)
            warmed = replace(warmed, after=await self._load.look_again(self._clock()))
        missing = _missing_vram(warmed)
        if missing:
            raise StepError(missing)
        return Landing(warmed.copy, warmed.listed, warmed.text.partition(": ")[2])

    async def _pull(self, note: Note) -> None:
        line = EngineLine(self._fleet, address_of(self._target))
        body = {"model": self._target.model, "stream": False}
        note(f"pulling {self._target.model} on {self._target.machine}")
        self._journal(f"POST {line.address.shown}{PULL} {_json(body)}")
        self._pulling = asyncio.ensure_future(post(line, PULL, body, PULL_LIMIT_S))
        await await_request(self._pulling, f"{self._target.model} on {self._target.machine}: the pull")


def _missing_vram(warmed: WarmedUp) -> str:
    """Why the cards do not bear out what the engine lists; empty: they do, or nobody can tell."""
    before, after, vram = warmed.before, warmed.after, warmed.copy.vram_bytes
    if before is None or after is None or isinstance(vram, Unknown) or not vram:
        return ""
    if after.gpu is None or any(card.is_unified for card in after.gpu.cards):
        return ""
    gone, net = _bytes_only_in(before, after), _net_taken(before, after)
    if gone is None or net is None:
        return ""
    taken = sum(vram_taken_mib(before, after).values()) * _MIB
    there = max(net + gone, taken, _new_runners(before, after)) / vram  # what others free is not missing
    if there >= ROSE_SHARE:
        return ""
    return (
        f"{warmed.copy.name} is listed on {warmed.machine} with {vram / (1 << 30):.1f} GiB of VRAM, but its "
        f"cards hold only {max(0.0, there) * vram / (1 << 30):.1f} GiB more than before"
    )


def _new_runners(before: MachineSnapshot, after: MachineSnapshot) -> int:
    """Bytes of Ollama's processes that were not there before, as far as they are told. Memory of one that
    ended just before comes back meanwhile, and hides in sums what a new one takes."""
    if before.processes is None or after.processes is None:
        return 0
    known = {process.pid for process in before.processes.processes}
    new = [item for item in after.processes.processes if item.pid not in known]
    return sum([known_or(item.used_mib, 0) for item in new if engine_kind_of(item) == "ollama"]) * _MIB


def _net_taken(before: MachineSnapshot, after: MachineSnapshot) -> int | None:
    """Bytes that are less free than before, over all cards; None where a card does not tell."""
    then = {card.index: card.free_mib for card in (() if before.gpu is None else before.gpu.cards)}
    total = 0
    for card in () if after.gpu is None else after.gpu.cards:
        old = then.get(card.index, Unknown())
        if isinstance(old, Unknown) or isinstance(card.free_mib, Unknown):
            return None
        total += old - card.free_mib
    return total * _MIB


def _bytes_only_in(before: MachineSnapshot, after: MachineSnapshot) -> int | None:
    """VRAM of copies that are gone since; None where one does not tell."""
    left = {(copy.engine, copy.name) for copy in after.loaded}
    gone = [copy.vram_bytes for copy in before.loaded if (copy.engine, copy.name) not in left]
    if any(isinstance(vram, Unknown) for vram in gone):
        return None
    return sum(known_or(vram, 0) for vram in gone)


class OllamaUnloader:
    """`keep_alive: 0` without a prompt; works for models that only embed too."""

    kills_work = False

    def refusal(self, machine: MachineSnapshot, copy: SourceCopy) -> str:
        return ""

    async def unload(self, fleet: DrainFleet, copy: SourceCopy, last_look: LastLook) -> None:
        await unload_model(EngineLine(fleet, address_of_copy(copy)), copy.name, last_look)


UNLOADER = OllamaUnloader()


async def unload_model(line: EngineLine, name: str, last_look: LastLook) -> None:
    """Ask an Ollama to let a copy go once nobody is at work there. Raises StepError."""
    body = {"model": name, "keep_alive": 0}
    await last_look(f"POST {line.address.shown}{GENERATE} {_json(body)}")
    await post(line, GENERATE, body, ASK_LIMIT_S)


async def probe(line: EngineLine, name: str, context: int | None, journal: Journal) -> None:
    """Have one token generated; a model that only embeds embeds a word. `context`: tokens that it was loaded
    with, where they were named. Raises StepError."""
    options = {"num_predict": 1} | ({} if context is None else {"num_ctx": context})
    body: dict[str, object] = {"model": name, "prompt": "Hi", "stream": False, "options": options}
    journal(f"POST {line.address.shown}{GENERATE} {_json(body)}")
    try:
        await post(line, GENERATE, body, LOAD_LIMIT_S)
    except StepError as error:
        if "does not support generate" not in str(error):
            raise
        body = {"model": name, "input": "Hi"}
        journal(f"POST {line.address.shown}{EMBED} {_json(body)}")
        await post(line, EMBED, body, LOAD_LIMIT_S)


async def keep_longer(
    fleet: DrainFleet,
    cover: Cover,
    copy: SourceCopy,
    default_context: int | None,
    now: float,
    journal: Journal,
) -> bool:
    """Give a covering copy at least the time that the drained one has left; True where that was asked.

    It is asked whatever time it has: an Ollama lists a copy from the first moment of its load on, and answers
    this only once the copy is there.
    A copy whose context is not the server's own default is asked for with that context, so that it stays.
    Raises StepError.
    """
    there, wanted = cover.copy, keep_alive_for(copy, now)
    if cover.engine != "ollama":
        return False
    left = 0.0 if isinstance(there.expires_at, Unknown) else there.expires_at - now
    wanted = -1 if there.is_pinned or wanted < 0 else max(wanted, math.ceil(left))
    line = EngineLine(fleet, address_of_cover(cover))
    traits = _traits_of(fleet, cover)
    body: dict[str, object] = {"model": there.name, "keep_alive": wanted, "stream": False}
    longest = NOT_READ if traits is None else traits.max_context
    if not isinstance(there.context, Unknown) and there.context not in (default_context, longest):
        body["options"] = {"num_ctx": there.context}
    abilities = () if traits is None else traits.capabilities
    if "embedding" not in abilities or "completion" in abilities:
        journal(f"POST {line.address.shown}{GENERATE} {_json(body)}")
        try:
            await post(line, GENERATE, body, LOAD_LIMIT_S)
            return True
        except StepError as error:
            if "does not support generate" not in str(error):
                raise
    del body["stream"]
    body["input"] = []
    journal(f"POST {line.address.shown}{EMBED} {_json(body)}")
    await post(line, EMBED, body, LOAD_LIMIT_S)
    return True


def _traits_of(fleet: DrainFleet, cover: Cover) -> ModelTraits | None:
    machine = fleet.snapshot.find(cover.machine)
    for model in () if machine is None else machine.installed:
        if model.name == cover.copy.name and model.engine == cover.engine:
            return model.traits
    return None


def vanished(
    before: tuple[LoadedModel, ...], after: tuple[LoadedModel, ...], announced: tuple[str, ...], now: float
) -> tuple[str, ...]:
    """Copies that a load made go without a word in the preview: not those that ended by their own keep_alive
    meanwhile."""
    left = {copy.name for copy in after}
    gone = [copy for copy in before if copy.name not in left and copy.name not in announced]
    return tuple([copy.name for copy in gone if not _has_ended(copy, now)])


def _has_ended(copy: LoadedModel, now: float) -> bool:
    if copy.state == "stopping":
        return True
    return not copy.is_pinned and not isinstance(copy.expires_at, Unknown) and copy.expires_at <= now


def _json(body: object) -> str:
    import json

    return json.dumps(body)
