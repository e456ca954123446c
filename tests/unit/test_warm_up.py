"""Loading a model because somebody asked for it: what is sent, what counts as done, what a failure says."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import digest_of, make_copy, make_fleet, make_installed, make_snapshot
from fleettui.fleet import engine_line
from fleettui.fleet.engine_line import EngineLine, address_of
from fleettui.fleet.lease_watch import LeaseWatch
from fleettui.fleet.warm_up import WarmedUp, WarmUpError, keep_measured, warm_up
from fleettui.model.lease import Lease
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import LoadedModel, ModelTraits
from fleettui.model.route import RouteCandidate
from fleettui.model.snapshot import DrainFlag, DrainState, FleetSnapshot
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer
from fleettui.store.database import Store
from fleettui.store.leases import load_leases, take_lease
from fleettui.store.load_rates import load_load_rates

MODEL = "qwen3:8b"
DONE = (200, {"model": MODEL, "response": "", "done": True, "done_reason": "load"})


class Engine:
    """A link to a machine whose engine answers what the test says; notes what it was sent."""

    def __init__(
        self, *answers: tuple[int, Any] | HttpFailure, context: int = 8192, name: str = MODEL
    ) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.is_asked, self.may_answer, self.has_answered = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.may_answer.set()
        self.resident = [{"name": name, "model": name, "digest": digest_of(name), "size": 6 << 30,
                          "size_vram": 6 << 30, "context_length": context}]  # fmt: skip

    async def post(self, port: int, path: str, body: bytes, *, timeout_s: float, **_: object) -> HttpAnswer:
        self.sent.append((path, json.loads(body)))
        self.is_asked.set()
        await self.may_answer.wait()
        answer = self.answers.pop(0)
        self.has_answered.set()
        if isinstance(answer, HttpFailure):
            raise answer
        return self._answer(*answer)

    async def get(self, port: int, path: str, *, timeout_s: float, **_: object) -> HttpAnswer:
        assert path == "/api/ps"
        return self._answer(200, {"models": self.resident})

    def _answer(self, status: int, document: Any) -> HttpAnswer:
        headers = (("content-type", "application/json"),)
        return HttpAnswer(status, headers, json.dumps(document).encode(), time.time())


class Service:
    """The part of a service that a warm-up sees: one machine that is polled when it is asked to be."""

    def __init__(self, engine: Engine, **installed: Any) -> None:
        self.engine = engine
        cold = make_snapshot("ada", installed=[make_installed(MODEL, gib=5.0, **installed)], age_s=0)
        self.snapshot = make_fleet(cold)
        machine = cold.machine
        record = type("Record", (), {"machine": machine})()
        self.pollers: Any = (type("Poller", (), {"record": record, "open_link": engine})(),)
        self._subscribers: list[Callable[[FleetSnapshot], None]] = []

    def subscribe(self, subscriber: Callable[[FleetSnapshot], None]) -> Callable[[], None]:
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def poll_now(self, name: str | None = None) -> None:
        """The cards say at once what they have."""
        (machine,) = self.snapshot.machines
        copy = make_copy(MODEL, gib=6, digest=digest_of(MODEL))
        loaded = make_snapshot("ada", loaded=[copy], machine=machine.machine)
        status = replace(loaded.sources["gpu"], read_at=time.time() + 1)
        self.snapshot = make_fleet(replace(loaded, sources={**loaded.sources, "gpu": status}))
        for subscriber in self._subscribers:
            subscriber(self.snapshot)


def candidate(**changes: Any) -> RouteCandidate:
    found = RouteCandidate(
        machine="ada", hostname="ada.lan", port=11434, url="http://ada.lan:11434", engine="ollama",
        tier=4, why="", model=MODEL, digest=digest_of(MODEL), eta_s=27.4,
    )  # fmt: skip
    return replace(found, **changes)


async def warm(service: Service, notes: list[str] | None = None, **changes: Any) -> WarmedUp:
    context = changes.pop("context", None)
    heard = [] if notes is None else notes
    return await warm_up(service, candidate(**changes), heard.append, context=context)


async def test_ollama_is_asked_for_nothing_and_the_copy_is_verified() -> None:
    engine, notes = Engine(DONE), []
    warmed = await warm(Service(engine), notes, context=8192)
    assert engine.sent == [("/api/generate", {"model": MODEL, "stream": False, "options": {"num_ctx": 8192}})]
    assert (warmed.machine, warmed.copy.name, warmed.copy.context) == ("ada", MODEL, 8192)
    assert warmed.text.startswith(f"{MODEL} is loaded on ada: 6.0 GiB of VRAM, ctx 8192, ")
    more = await warm(Service(Engine(DONE)), context=32768)
    assert "ctx 8192 of 32768" in more.text, "the model was made for no more"
    assert notes[0] == f"loading {MODEL} on ada: 0 of ~27 s"


async def test_a_model_that_only_embeds_is_loaded_by_embedding_nothing() -> None:
    refusal = (400, {"error": f'"{MODEL}" does not support generate'})
    told, untold = Engine(DONE), Engine(refusal, DONE)
    await warm(Service(told, traits=ModelTraits(capabilities=("embedding",))))
    await warm(Service(untold))
    assert told.sent == [("/api/embed", {"model": MODEL, "input": []})]
    assert [path for path, _ in untold.sent] == ["/api/generate", "/api/embed"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            (500, {"error": "model requires more system memory (40 GiB) than is available"}),
            "more system memory",
        ),
        ((404, {"error": f"model '{MODEL}' not found"}), "not found"),
        (HttpFailure("lost", "ada: connection lost"), "connection lost"),
    ],
)
async def test_what_the_engine_says_is_the_reason(answer: Any, text: str) -> None:
    with pytest.raises(WarmUpError, match=rf"^{MODEL} on ada was not loaded: .*{text}"):
        await warm(Service(Engine(answer)))


async def test_a_load_that_nobody_finds_afterwards_is_none() -> None:
    with pytest.raises(WarmUpError, match="gone again"):
        await warm(Service(Engine(DONE, name="llama3.1:8b")))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"engine": "vllm", "tier": 3},
            "is asleep or still loading: vLLM is ready by itself, or with the first",
        ),
        ({"engine": "llamaswap"}, "llama-swap loads with the first request"),
        ({"tier": 7}, "nothing is pulled"),
        ({"machine": "bora"}, "not declared any more"),
    ],
)
async def test_what_cannot_be_loaded_is_not_asked(changes: dict[str, Any], text: str) -> None:
    engine = Engine(DONE)
    with pytest.raises(WarmUpError, match=text):
        await warm(Service(engine), **changes)
    assert engine.sent == []


@pytest.mark.parametrize("state", ["running", "blocked", "drained"])
async def test_a_machine_that_was_taken_out_of_service_meanwhile_loads_nothing(state: DrainState) -> None:
    engine = Engine(DONE)
    service = Service(engine)
    (machine,) = service.snapshot.machines
    service.snapshot = make_fleet(replace(machine, drain=DrainFlag(state, "PSU swap", "mia", time.time())))
    with pytest.raises(WarmUpError, match=r'was not loaded: drain(ing|ed).* "PSU swap" by mia since'):
        await warm(service)
    assert engine.sent == []


async def test_who_stops_waiting_leaves_the_load_alone() -> None:
    engine = Engine(DONE)
    engine.may_answer.clear()
    waiting = asyncio.create_task(warm(Service(engine)))
    await engine.is_asked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    engine.may_answer.set()
    async with asyncio.timeout(10):
        await engine.has_answered.wait()


def test_the_rate_of_a_load_is_kept(tmp_path: Path) -> None:
    copy = LoadedModel(MODEL, "ollama", digest=digest_of(MODEL))
    with Store.open(str(tmp_path)) as store:
        keep_measured(store, "/fleet", WarmedUp("ada", copy, 5.0, 1.5e9), 1000.0)
        keep_measured(store, "/fleet", WarmedUp("bora", copy, 5.0), 1000.0)
        assert load_load_rates(store, "/fleet") == {"ada": 1.5e9}


def test_the_keeper_ends_leases_whose_effect_a_snapshot_shows(tmp_path: Path) -> None:
    now = time.time()
    cold = Lease("cold", "ada", 11434, "ollama", MODEL, "cold", now - 5, now + 60, vram_mib=6144)
    other = replace(cold, id="other", machine="bora")
    fleet = replace(make_fleet(make_snapshot("ada", loaded=[make_copy(MODEL)])), taken_at=now)
    (ada,) = fleet.machines
    read = {name: replace(status, read_at=now) for name, status in ada.sources.items()}
    fleet = replace(fleet, machines=(replace(ada, sources=read),), machines_dir="/fleet")
    with Store.open(str(tmp_path)) as store:
        for lease in (cold, other):
            take_lease(store, "/fleet", lambda *_, one=lease: one)
        LeaseWatch().look_at(store, fleet)
        assert [lease.id for lease in load_leases(store, "/fleet", now)] == ["other"]


async def test_the_key_of_an_engine_goes_to_no_other_on_that_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATE_KEY", "sk-gate")
    service = Service(Engine())
    (machine,) = service.snapshot.machines
    gate = EngineEndpoint("ollama", 11434, "http://gate.lan", "GATE_KEY")
    own = EngineEndpoint("ollama", 11434)
    declared = replace(machine.machine, engines=(gate, own))
    service.snapshot = make_fleet(replace(machine, machine=declared))
    sent: list[tuple[str, Any]] = []

    async def note(url: str, *, headers: Any, timeout_s: float) -> HttpAnswer:
        sent.append((url, headers))
        return HttpAnswer(200, (), b"", 0.0)

    monkeypatch.setattr(engine_line, "get_direct", note)
    monkeypatch.setattr(service.engine, "get", lambda port, path, *, headers, timeout_s: note(
        path, headers=headers, timeout_s=timeout_s))  # fmt: skip
    await EngineLine(service, address_of(candidate())).get("/api/ps", timeout_s=1)
    by_url = address_of(candidate(url="http://gate.lan", port=80))
    await EngineLine(service, by_url).get("/api/ps", timeout_s=1)
    assert sent == [
        ("/api/ps", ()),
        ("http://gate.lan/api/ps", (("Authorization", "Bearer sk-gate"),)),
    ]
