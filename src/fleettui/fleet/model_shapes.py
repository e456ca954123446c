"""Asks engines what their models are made of: each digest once for the whole fleet and all runs.

One question at a time in the whole fleet, with a pause after each: an answer has megabytes. It loads nothing.
It is read in a thread, and kept in the state database.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fleettui.model.machine import EngineEndpoint
from fleettui.model.model_shape import ModelShape
from fleettui.model.record import dataclass
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.net.direct_http import post_direct
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer, Link
from fleettui.probes.engines.ollama_show import MAX_SHOW_BYTES, SHOW, parse_shape
from fleettui.store.database import Store, StoreError
from fleettui.store.model_shapes import load_shapes, save_shape

if TYPE_CHECKING:
    from fleettui.fleet.bus import SnapshotBus
    from fleettui.fleet.engine_record import EngineRecord
    from fleettui.fleet.poller import MachinePoller
    from fleettui.model.readings import EngineReading

SHOW_TIMEOUT_S = 60.0
PAUSE_S = 1.0
"""Between two questions."""
LOOK_S = 5.0
"""Between two looks for models that nobody knows yet."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShapePlace:
    """Where a model can be asked for."""

    machine: str
    hostname: str
    endpoint: EngineEndpoint
    model: str
    digest: str
    is_direct: bool
    """The engine is reached from here, not through SSH."""


class ShapeBook:
    """Shapes in memory and in the state database; reading and writing in a thread of its own."""

    def __init__(self, state_dir: str) -> None:
        self.shapes: dict[str, ModelShape] = {}
        """By digest: those that were looked up and found, or read."""
        self.error: str | None = None
        """Why nothing is kept; None while all is well."""
        self._state_dir = state_dir
        self._store: Store | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model shapes")

    async def look_up(self, digests: Collection[str]) -> None:
        """Read what other runs found out about these."""
        loop = asyncio.get_running_loop()
        self.shapes.update(await loop.run_in_executor(self._thread, self._load, digests))

    async def read(self, digest: str, answer: HttpAnswer, now: float) -> Maybe[ModelShape]:
        """Read an answer, and keep what it says."""
        loop = asyncio.get_running_loop()
        shape = await loop.run_in_executor(self._thread, self._read, digest, answer, now)
        if not isinstance(shape, Unknown):
            self.shapes[digest] = shape
        return shape

    async def give_back_memory(self) -> None:
        """What answers of megabytes took: glibc would keep 30 MB of it for this process."""
        await asyncio.get_running_loop().run_in_executor(self._thread, _trim_heap)

    async def close(self) -> None:
        """Close the database once the last write is done."""
        if self._store is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close_store)
        self._thread.shutdown(wait=False)

    # -- in the thread ------------------------------------------------------------------------------

    def _load(self, digests: Collection[str]) -> dict[str, ModelShape]:
        try:
            return load_shapes(self._opened(), digests)
        except StoreError as error:
            self._note(error)
            return {}

    def _read(self, digest: str, answer: HttpAnswer, now: float) -> Maybe[ModelShape]:
        shape = parse_shape(answer.status, answer.headers, answer.body)
        if not isinstance(shape, Unknown):
            try:
                save_shape(self._opened(), digest, shape, now)
                self.error = None
            except StoreError as error:
                self._note(error)
        return shape

    def _note(self, error: StoreError) -> None:
        if self.error is None:
            log.warning("shapes of models are not kept: %s", error)
        self.error = f"what models are made of is not kept, so each run asks for it: {error}"

    def _opened(self) -> Store:
        if self._store is None:
            self._store = Store.open(self._state_dir)
        return self._store

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


class ShapeAsker:
    """Finds models that nobody knows yet, and asks for them."""

    def __init__(
        self,
        book: ShapeBook,
        bus: SnapshotBus,
        pollers: Mapping[str, MachinePoller],
        clock: Callable[[], float],
    ) -> None:
        self.book = book
        self.failures: dict[tuple[str, str], str] = {}
        """(digest, machine) -> why it did not say; not asked again in this run."""
        self._bus = bus
        self._pollers = pollers
        self._clock = clock
        self._looked_up: set[str] = set()
        self._known_lists: dict[tuple[str, int], object] = {}
        """Installed models of an engine of which every shape is known: the very list."""
        self._contexts: dict[str, int] = {}
        """By digest; every engine's record has this very object."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to ask, now and then, in the running event loop."""
        self._task = asyncio.create_task(self._run(), name="model shapes")

    async def close(self) -> None:
        """Stop asking; the book is closed too."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=3.0)
        await self.book.close()

    async def ask_for(self, digests: Collection[str]) -> None:
        """Ask for these only, at each machine that has them until one says it."""
        await self._look_up(digests)
        while place := next((at for at in self._places(self._bus.latest) if at.digest in digests), None):
            await self._ask(place)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._share_contexts()
            try:
                while place := await self._next_place():
                    await self._ask(place)
                    await asyncio.sleep(PAUSE_S)
            except Exception:
                # A defect of ours on one model must not end the asking for the others.
                log.exception("shapes of models cannot be asked")

    async def _next_place(self) -> ShapePlace | None:
        fleet = self._bus.latest
        await self._look_up({place.digest for place in self._places(fleet)})
        places = list(self._places(fleet))
        loaded = {copy.digest for machine in fleet.machines for copy in machine.loaded}
        return next((place for place in places if place.digest in loaded), places[0] if places else None)

    def _note_context(self, digest: str) -> None:
        """Copies of these weights are shown with their longest context from now on."""
        shape = self.book.shapes.get(digest)
        if shape is None or isinstance(shape.max_context, Unknown):
            return
        self._contexts[digest] = shape.max_context
        for engine in self._engine_records():
            reading = engine.reading
            loaded = () if reading is None or isinstance(reading.loaded, Unknown) else reading.loaded
            if any(copy.digest == digest for copy in loaded):
                engine.note_longest_contexts(self._contexts)

    def _share_contexts(self) -> None:
        """Records of new machines get them too."""
        for engine in self._engine_records():
            if engine.longest_contexts is not self._contexts:
                engine.note_longest_contexts(self._contexts)

    def _engine_records(self) -> Iterator[EngineRecord]:
        for poller in self._pollers.values():
            yield from poller.record.engines.values()

    async def _look_up(self, digests: Collection[str]) -> None:
        new = [digest for digest in digests if digest not in self._looked_up]
        if not new:
            return
        self._looked_up.update(new)
        await self.book.look_up(new)
        for digest in new:
            self._note_context(digest)

    def _places(self, fleet: FleetSnapshot) -> Iterator[ShapePlace]:
        """Where a model may be asked for now whose shape is not known."""
        for machine in fleet.machines:
            for engine in machine.engines:
                if engine.kind == "ollama" and not isinstance(engine.installed, Unknown):
                    yield from self._places_at(machine, engine)

    def _places_at(self, machine: MachineSnapshot, engine: EngineReading) -> Iterator[ShapePlace]:
        installed, key = engine.installed, (machine.name, engine.port)
        if isinstance(installed, Unknown) or self._known_lists.get(key) is installed:
            return
        endpoint = _endpoint_of(machine, engine)
        missing = False
        for model in installed:
            digest = model.digest
            if isinstance(digest, Unknown) or model.remote_host is not None or digest in self.book.shapes:
                continue
            if (digest, machine.name) in self.failures:
                continue
            missing = True
            can_ask = engine.state == "ok" and engine.path != "remote" and self._link_of(machine.name)
            if can_ask:
                is_direct = engine.path == "direct" or endpoint.url is not None
                hostname = machine.machine.hostname
                yield ShapePlace(machine.name, hostname, endpoint, model.name, digest, is_direct)
        if not missing:
            self._known_lists[key] = installed

    async def _ask(self, place: ShapePlace) -> None:
        key = (place.digest, place.machine)
        self.failures[key] = "asked, no answer yet"
        try:
            answer = await self._post(place)
            shape = await self.book.read(place.digest, answer, self._clock())
            del answer
            await self.book.give_back_memory()
        except HttpFailure as failure:
            shape = Unknown(failure.text)
        if isinstance(shape, Unknown):
            self.failures[key] = shape.reason
            log.info("%s does not say what %s is made of: %s", place.machine, place.model, shape.reason)
            return
        del self.failures[key]
        self._note_context(place.digest)

    def _link_of(self, machine: str) -> Link | None:
        """The open connection; None where there is none, or nobody is to be asked."""
        poller = self._pollers.get(machine)
        return None if poller is None or poller.is_paused else poller.open_link

    async def _post(self, place: ShapePlace) -> HttpAnswer:
        body = json.dumps({"model": place.model, "verbose": True}).encode()
        poller, link = self._pollers.get(place.machine), self._link_of(place.machine)
        engine = None if poller is None else poller.record.engines.get(place.endpoint)
        if link is None or engine is None:
            raise HttpFailure("lost", f"{place.machine}: the connection ended")
        headers, limit_s = engine.key.headers, SHOW_TIMEOUT_S
        if place.is_direct:
            url = f"{_base_url(place)}{SHOW}"
            answer = await post_direct(
                url, body, headers=headers, timeout_s=limit_s, max_body_bytes=MAX_SHOW_BYTES
            )
        else:
            answer = await link.post(
                place.endpoint.port, SHOW, body,
                headers=headers, timeout_s=limit_s, max_body_bytes=MAX_SHOW_BYTES,
            )  # fmt: skip
        return engine.key.strip(answer)


def make_shape_asker(
    state_dir: str | None, bus: SnapshotBus, pollers: Mapping[str, MachinePoller], clock: Callable[[], float]
) -> ShapeAsker | None:
    """The asker of a service; None where there is no state database that could keep what it learns."""
    return None if state_dir is None else ShapeAsker(ShapeBook(state_dir), bus, pollers, clock)


def _trim_heap() -> None:
    """Only glibc has it; others need it less."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _endpoint_of(machine: MachineSnapshot, engine: EngineReading) -> EngineEndpoint:
    """What the machine file declares; nothing more is known of an engine that was found."""
    wanted = (engine.kind, engine.port)
    declared = (item for item in machine.machine.engines if (item.kind, item.port) == wanted)
    return next(declared, EngineEndpoint(*wanted))


def _base_url(place: ShapePlace) -> str:
    if place.endpoint.url is not None:
        return place.endpoint.url.rstrip("/")
    host = f"[{place.hostname}]" if ":" in place.hostname else place.hostname
    return f"http://{host}:{place.endpoint.port}"
