"""Machines with an Ollama each that live in memory: what drains ask of them is answered at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders import digest_of, make_card, make_copy, make_engine, make_fleet, make_installed, make_snapshot
from fleettui.fleet.drain.desk import DrainDesk
from fleettui.model.readings import EngineTraits, LoadedModel
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.net.link import CommandAnswer, HttpAnswer

FOLDER = "/fleet"
MODEL = "qwen3:8b"
GIB = 6.0
POLL_S = 0.02


class Ollama:
    """What one machine has loaded, and what it is told to do."""

    def __init__(self, name: str, *loaded: str) -> None:
        self.name = name
        self.loaded: dict[str, LoadedModel] = {}
        self.sent: list[dict[str, Any]] = []
        """Bodies of all requests to generate."""
        self.before_answer: Callable[[dict[str, Any]], Any] | None = None
        """Hears each of them first; may wait, change things, or answer a status of its own."""
        self.keeps: set[str] = set()
        """Copies that an unload does not end."""
        self.installed = [MODEL]
        self.changes: dict[str, Any] = {}
        """Of its snapshot."""
        self.clock: Callable[[], float] = time.time
        for model in loaded:
            self.load(model)

    def load(self, model: str, **changes: Any) -> None:
        expires = {"expires_at": time.time() + 3600.0}
        self.loaded[model] = replace(make_copy(model, gib=GIB), **{**expires, **changes})

    def hold_answers(self) -> asyncio.Event:
        """Requests to generate are answered once the event is set, or never."""
        may_answer = asyncio.Event()

        async def wait(asked: dict[str, Any]) -> None:
            await may_answer.wait()

        self.before_answer = wait
        return may_answer

    def snapshot(self) -> MachineSnapshot:
        """As a poll of this moment has it."""
        now, installed = self.clock(), [make_installed(model, gib=GIB) for model in self.installed]
        engine = make_engine(loaded=list(self.loaded.values()), installed=installed)
        engine = replace(engine, traits=engine.traits or EngineTraits())
        cards = [make_card(0, free_gib=23.7 - GIB * len(self.loaded))]
        found = replace(make_snapshot(self.name, cards=cards, gpus=1), engines=(engine,))
        read = {name: replace(status, read_at=now) for name, status in found.sources.items()}
        return replace(found, **{"sources": read, "last_seen": now, **self.changes})

    async def get(self, port: int, path: str, **_: object) -> HttpAnswer:
        rows = [
            {
                "name": copy.name, "model": copy.name, "digest": digest_of(copy.name),
                "size": copy.size_bytes, "size_vram": copy.vram_bytes, "context_length": copy.context,
                "expires_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(copy.expires_at)),
            }
            for copy in self.loaded.values()
        ]  # fmt: skip
        return self._answer({"models": rows})

    async def post(self, port: int, path: str, body: bytes, **_: object) -> HttpAnswer:
        asked = json.loads(body)
        self.sent.append(asked)
        said = None if self.before_answer is None else self.before_answer(asked)
        if asyncio.iscoroutine(said):
            said = await said
        if said is not None:
            return self._answer({"error": f"status {said}"}, said)
        if asked.get("keep_alive") == 0:
            if asked["model"] not in self.keeps:
                self.loaded.pop(asked["model"], None)
        elif asked["model"] not in self.loaded:
            self.load(asked["model"])
        return self._answer({"done": True})

    @staticmethod
    def _answer(document: Any, status: int = 200) -> HttpAnswer:
        kind = (("content-type", "application/json"),)
        return HttpAnswer(status, kind, json.dumps(document).encode(), time.time())

    async def run_command(self, command: str) -> CommandAnswer | None:
        return CommandAnswer(0, None, b"", b"")

    def count_streams(self, port: int) -> int:
        return 0

    @property
    def unloads(self) -> list[str]:
        return [asked["model"] for asked in self.sent if asked.get("keep_alive") == 0]


class DrainService:
    """A service that polls these machines without end."""

    flags = None

    def __init__(self, *machines: Ollama, **changes: Any) -> None:
        """`changes`: of the fleet's snapshot."""
        self.machines = machines
        self._subscribers: list[Callable[[FleetSnapshot], None]] = []
        self._changes = changes
        self.snapshot = self._look()
        self._task = asyncio.ensure_future(self._poll())

    @property
    def pollers(self) -> Any:
        return tuple(
            type("Poller", (), {
                "record": type("Record", (), {"machine": machine.snapshot().machine})(),
                "open_link": machine,
                "is_settled": True,
            })()
            for machine in self.machines
        )  # fmt: skip

    def subscribe(self, subscriber: Callable[[FleetSnapshot], None]) -> Callable[[], None]:
        self._subscribers.append(subscriber)

        def leave() -> None:
            with suppress(ValueError):
                self._subscribers.remove(subscriber)

        return leave

    def poll_now(self, name: str | None = None) -> None: ...

    def _look(self) -> FleetSnapshot:
        fleet = make_fleet(
            *[machine.snapshot() for machine in self.machines], taken_at=self.machines[0].clock()
        )
        return replace(fleet, **self._changes)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            self.snapshot = self._look()
            for subscriber in tuple(self._subscribers):
                subscriber(self.snapshot)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


Desks = Callable[..., DrainDesk]
"""Makes a desk of these machines; `changes` by name: of the fleet's snapshot."""


@asynccontextmanager
async def open_desks(state_dir: Path) -> AsyncIterator[Desks]:
    """Each as in a process of its own: with its own service and its own connection to one state database."""
    made: list[DrainDesk] = []
    services: list[DrainService] = []

    def make(*machines: Ollama, **changes: Any) -> DrainDesk:
        services.append(DrainService(*machines, **changes))
        made.append(DrainDesk(services[-1], str(state_dir), FOLDER))
        return made[-1]

    yield make
    for desk in made:
        await desk.close()
    for service in services:
        await service.close()
