"""Loads a model on a machine because somebody asked for exactly that, and verifies that it is there.

Ollama loads by a request that asks for nothing (docs/api.md, "Load a model") and answers when it is done.
It gives the load up when the connection closes: waiting is part of loading.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Protocol

from fleettui.decide.filters import flag_rejections
from fleettui.decide.measured_load import load_rate, measure_need, vram_taken_mib
from fleettui.decide.model_need import SeenCopy
from fleettui.fleet.bus import Subscriber
from fleettui.fleet.engine_line import EngineLine, LineFleet, address_of
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.names import canonical_name
from fleettui.model.readings import LoadedModel
from fleettui.model.record import dataclass
from fleettui.model.route import RouteCandidate
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer
from fleettui.probes.engines.answers import judge_status
from fleettui.probes.engines.ollama import PS, parse_ps
from fleettui.store.database import Store
from fleettui.store.load_rates import record_load_rate
from fleettui.store.measured_needs import record_measured_need

LOAD_LIMIT_S = 1800.0
"""Ollama itself gives up a load that makes no progress for five minutes."""
ASK_S = 10.0
NOTE_S = 1.0
FRESH_S = 6.0
"""How long a new reading of the cards is waited for: what the load took is worth no more."""

GENERATE, EMBED = "/api/generate", "/api/embed"
KeepAlive = str | int | None
"""`10m`, seconds, -1 for ever; None: as the server is set up."""
_RELOADED, _INSTALLED = 3, 6
"""Highest tiers of a resident model and of one on the disk."""

_unwatched: set[asyncio.Future[HttpAnswer]] = set()
"""Requests under way: one that nobody waits for any more goes on with the connection."""


class WarmUpError(Exception):
    """Nothing was loaded, or not what was asked for. The text says what failed, where and why."""


class WarmFleet(LineFleet, Protocol):
    """What is needed of a running service."""

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Hear of each new snapshot."""

    def poll_now(self, name: str | None = None) -> None:
        """Ask a machine at once."""


@dataclass(frozen=True, slots=True)
class WarmedUp:
    """A load that was verified."""

    machine: str
    copy: LoadedModel
    """As the engine lists it."""
    took_s: float
    bytes_s: float | None = None
    """How fast it was read; None where its size is not known."""
    need: SeenCopy | None = None
    """What it took of the cards; None where that could not be told from other changes."""
    asked_context: int | None = None
    """Tokens; the engine takes no more than the model was made for."""
    listed: tuple[LoadedModel, ...] = ()
    """All that the engine lists then."""
    before: MachineSnapshot | None = None
    """The machine when the load began."""
    after: MachineSnapshot | None = None
    """With cards that were read after it; None where that took too long."""

    @property
    def text(self) -> str:
        """`llama3.1:70b is loaded on ada: 39.6 GiB of VRAM, ctx 32768, 27 s`."""
        copy = self.copy
        words = []
        if not isinstance(copy.vram_bytes, Unknown):
            words.append(f"{copy.vram_bytes / (1 << 30):.1f} GiB of VRAM")
        percent = copy.gpu_percent
        if not isinstance(percent, Unknown) and percent < 100:
            words.append(f"only {percent} % of it on the GPU")
        if not isinstance(copy.context, Unknown):
            is_less = self.asked_context is not None and copy.context < self.asked_context
            words.append(f"ctx {copy.context}{f' of {self.asked_context}' if is_less else ''}")
        return f"{copy.name} is loaded on {self.machine}: {', '.join([*words, f'{self.took_s:.0f} s'])}"


async def warm_up(
    fleet: WarmFleet,
    candidate: RouteCandidate,
    note: Callable[[str], None],
    *,
    context: int | None = None,
    keep_alive: KeepAlive = None,
    clock: Callable[[], float] = time.time,
) -> WarmedUp:
    """Have the model loaded there; `note` hears once a second how far it is. Raises WarmUpError.

    Cancelled it leaves the load alone: that goes on as long as the service keeps its connection. A machine
    that was taken out of service since it was chosen loads nothing.
    """
    snapshot = fleet.snapshot.find(candidate.machine)
    flags = [] if snapshot is None else flag_rejections(snapshot, clock())
    if flags:
        why = "; ".join(flag.text for flag in flags)
        raise WarmUpError(f"{candidate.model} on {candidate.machine} was not loaded: {why}")
    return await ModelLoad(fleet, candidate, context, keep_alive, clock).run(note)


def refusal_of(candidate: RouteCandidate) -> str | None:
    """Why nobody can be asked to load it there; None: it can be tried."""
    what = f"{candidate.model} on {candidate.machine}"
    if candidate.engine == "ollama":
        is_there = candidate.tier <= _INSTALLED
        return None if is_there else f"{what} is not installed, and nothing is pulled from here"
    label = ENGINE_TITLES[candidate.engine]
    if candidate.is_resident:
        return f"{what} is asleep or still loading: {label} is ready by itself, or with the first request"
    return f"{what} cannot be loaded from here: {label} loads with the first request, or when it is started"


def keep_measured(store: Store, machines_dir: str, warmed: WarmedUp, now: float) -> None:
    """Keep what the load told of the machine and of the model. Raises StoreError."""
    if warmed.bytes_s is not None:
        record_load_rate(store, machines_dir, warmed.machine, warmed.bytes_s, now)
    if warmed.need is not None and not isinstance(warmed.copy.digest, Unknown):
        record_measured_need(store, machines_dir, warmed.copy.digest, warmed.need, now)


class ModelLoad:
    """One load, from the request to the copy in the engine's list."""

    def __init__(
        self,
        fleet: WarmFleet,
        candidate: RouteCandidate,
        context: int | None = None,
        keep_alive: KeepAlive = None,
        clock: Callable[[], float] = time.time,
        note_call: Callable[[str], None] | None = None,
    ) -> None:
        """`note_call` hears of each request before it goes out: `POST bora:11434/api/generate {…}`."""
        self._note_call = note_call
        self._fleet = fleet
        self._candidate = candidate
        self._context = context
        self._keep_alive = keep_alive
        self._clock = clock
        self._what = f"{candidate.model} on {candidate.machine}"
        self._line = EngineLine(fleet, address_of(candidate))
        self._request: asyncio.Future[HttpAnswer] | None = None

    def abort(self) -> None:
        """Give the load up: the engine ends it with the connection."""
        if self._request is not None:
            self._request.cancel()

    async def run(self, note: Callable[[str], None]) -> WarmedUp:
        """Have it loaded and see that it is there. Raises WarmUpError; cancelled it leaves the load alone."""
        refusal = refusal_of(self._candidate)
        if refusal is not None:
            raise WarmUpError(refusal)
        before = self._machine()
        started_at = self._clock()
        request = self._request = asyncio.ensure_future(self._ask_to_load(before))
        _unwatched.add(request)
        request.add_done_callback(_forget)
        while not request.done():
            note(self._progress(before, self._clock() - started_at))
            await asyncio.wait([request], timeout=NOTE_S)
        if request.cancelled():
            raise WarmUpError(f"{self._what} was not loaded: the load was given up")
        try:
            answer = request.result()
        except HttpFailure as failure:
            raise WarmUpError(f"{self._what} was not loaded: {failure.text}") from None
        took_s = self._clock() - started_at
        if answer.status != 200:
            raise WarmUpError(f"{self._what} was not loaded: {_said(answer)}")
        copy, listed = await self._verify()
        after = await self.look_again(answer.received_at)
        need = None if after is None else measure_need(before, after, copy)
        rate = self._rate(before, copy, took_s)
        return WarmedUp(
            self._candidate.machine, copy, took_s, rate, need, self._context, listed, before, after
        )

    def _machine(self) -> MachineSnapshot:
        snapshot = self._fleet.snapshot.find(self._candidate.machine)
        if snapshot is None:
            raise WarmUpError(f"{self._candidate.machine} is not declared any more")
        return snapshot

    async def _ask_to_load(self, before: MachineSnapshot) -> HttpAnswer:
        """Models that only embed refuse to generate; those whose abilities are not told are tried."""
        abilities = self._abilities(before)
        if "embedding" in abilities and "completion" not in abilities:
            return await self._post(EMBED)
        answer = await self._post(GENERATE)
        if answer.status == 400 and "does not support generate" in _said(answer):
            return await self._post(EMBED)
        return answer

    async def _post(self, path: str) -> HttpAnswer:
        body: dict[str, object] = {"model": self._candidate.model, "stream": False}
        if path == EMBED:
            body = {"model": self._candidate.model, "input": []}
        if self._keep_alive is not None:
            body["keep_alive"] = self._keep_alive
        if self._context is not None:
            body["options"] = {"num_ctx": self._context}
        if self._note_call is not None:
            self._note_call(f"POST {self._line.address.shown}{path} {json.dumps(body)}")
        return await self._line.post(path, body, timeout_s=LOAD_LIMIT_S)

    def _abilities(self, snapshot: MachineSnapshot) -> tuple[str, ...]:
        for model in snapshot.installed:
            if model.digest == self._candidate.digest and model.traits is not None:
                return model.traits.capabilities
        return ()

    async def _verify(self) -> tuple[LoadedModel, tuple[LoadedModel, ...]]:
        """The copy as `/api/ps` has it, and all that is listed there. Raises WarmUpError."""
        try:
            answer = await self._line.get(PS, timeout_s=ASK_S)
        except HttpFailure as failure:
            raise WarmUpError(f"{self._what} cannot be verified: {failure.text}") from None
        listed = parse_ps(answer.status, answer.headers, answer.body, answer.received_at)
        if isinstance(listed.loaded, Unknown):
            raise WarmUpError(f"{self._what} cannot be verified: {listed.error or listed.loaded.reason}")
        for copy in listed.loaded:
            if self._is_it(copy):
                return copy, listed.loaded
        raise WarmUpError(f"{self._what} was loaded and is gone again: something else needed the room")

    def _is_it(self, copy: LoadedModel) -> bool:
        """By its weights where both are known, else by its name."""
        wanted = self._candidate.digest
        if not isinstance(wanted, Unknown) and not isinstance(copy.digest, Unknown):
            return copy.digest == wanted
        return canonical_name(copy.name) == canonical_name(self._candidate.model)

    async def look_again(self, since: float) -> MachineSnapshot | None:
        """The machine once its cards were read after that moment; None where that takes too long."""
        has_news = asyncio.Event()
        unsubscribe = self._fleet.subscribe(lambda _: has_news.set())
        try:
            async with asyncio.timeout(FRESH_S):
                self._fleet.poll_now(self._candidate.machine)
                while True:
                    snapshot = self._machine()
                    gpu = snapshot.sources.get("gpu")
                    is_read = gpu is not None and gpu.read_at is not None and gpu.read_at > since
                    if is_read and any(map(self._is_it, snapshot.loaded)):
                        return snapshot
                    has_news.clear()
                    await has_news.wait()
        except TimeoutError:
            return None
        finally:
            unsubscribe()

    def _rate(self, before: MachineSnapshot, copy: LoadedModel, took_s: float) -> float | None:
        if self._candidate.tier <= _RELOADED:
            return None  # out of the page cache, which says nothing of the disk
        sizes = [model.size_bytes for model in before.installed if model.digest == copy.digest]
        return load_rate(sizes[0] if sizes else copy.size_bytes, took_s)

    def _progress(self, before: MachineSnapshot, elapsed_s: float) -> str:
        eta_s = self._candidate.eta_s
        of = "" if isinstance(eta_s, Unknown) else f" of ~{eta_s:.0f} s"
        taken = sum(vram_taken_mib(before, self._machine()).values())
        more = f", {taken / 1024:.1f} GiB of VRAM so far" if taken else ""
        return f"loading {self._what}: {elapsed_s:.0f}{of or ' s'}{more}"


def _said(answer: HttpAnswer) -> str:
    verdict = judge_status(answer.status, answer.headers, answer.body)
    return verdict.reason or verdict.error or f"HTTP {answer.status}"


def _forget(request: asyncio.Future[HttpAnswer]) -> None:
    _unwatched.discard(request)
    if not request.cancelled():
        request.exception()  # told to whoever waits, if anybody does
