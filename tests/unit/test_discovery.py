"""Engines that no machine file names: which ports are asked, how often, and what becomes of what answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from builders import NOW, make_engine, make_machine, make_snapshot
from fleettui.decide.discovery import MOST_PORTS, Suspect, find_suspects
from fleettui.fleet.discovery import AGAIN_S, MOST_PATHS, EngineDiscovery
from fleettui.fleet.record import MachineRecord
from fleettui.model.machine import EngineEndpoint, EngineKind, Machine
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.sockets import FoundEngine, ListeningPort, ServerProcess, SocketsReading
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer
from fleettui.probes.engines import PROBES
from fleettui.store.codec import decode_machine, encode
from fleettui.view.document import machine_document
from fleettui.view.machine_drift import found_text

USUAL = tuple((probe.kind, probe.default_port) for probe in PROBES.values())
VLLM = ServerProcess(10, 1, "python3 -m vllm.entrypoints.openai.api_server --model m --port 9001")


def listening(*ports: int) -> SocketsReading:
    return SocketsReading(tuple(ListeningPort(port, True) for port in sorted(ports)))


def suspects(
    ports: Collection[int], *servers: ServerProcess, known: Collection[int] = (11434,), **more: Any
) -> list[tuple[int, tuple[EngineKind, ...]]]:
    explained = more.get("explained", ())
    found = find_suspects(listening(*ports), servers, USUAL, known, explained, more.get("strange", ()))
    assert all(isinstance(item, Suspect) for item in found)
    return [(item.port, item.kinds) for item in found]


def test_a_port_of_a_command_line_and_the_usual_ones() -> None:
    assert suspects((22, 8000, 9001), VLLM) == [(9001, ("vllm",)), (8000, ("vllm",))]
    assert suspects((22, 8080)) == [(8080, ("llamacpp", "llamaswap"))]
    assert suspects((22, 443, 3000, 5432)) == []


@pytest.mark.parametrize(
    ("command", "port"),
    [
        ("vllm serve m --port=9001", 9001),
        ("/usr/bin/llama-server -m x.gguf --host 0.0.0.0 --port 9001", 9001),
        ("llama-swap --config c.yaml --listen :9001", 9001),
        ("llama-swap -listen 127.0.0.1:9001", 9001),
        ("sglang --port 9001 --model x", 9001),
        ("vllm serve --port 0", None),
        ("vllm serve --port 99999", None),
        ("vllm --export 9001", None),
    ],
)
def test_how_command_lines_name_their_port(command: str, port: int | None) -> None:
    asked = suspects((9001, 8000), ServerProcess(10, 1, command))
    assert (9001 in [item[0] for item in asked]) == (port is not None)


def test_what_an_engine_starts_itself_is_none() -> None:
    parent = ServerProcess(10, 1, "/usr/local/bin/ollama serve")
    runner = ServerProcess(11, 10, "/usr/lib/ollama/llama-server --model /m/blobs/sha256-0 --port 9001")
    assert suspects((9001, 11434), parent, runner, explained={"ollama"}) == []
    orphan = ServerProcess(11, 1, "/usr/local/bin/ollama runner --model x --port 9001")
    assert suspects((9001,), orphan, explained={"ollama"}) == []
    swap = ServerProcess(20, 1, "llama-swap --listen :8081")
    child = ServerProcess(21, 20, "llama-server --port 5800")
    assert suspects((5800, 8081), swap, child) == [(8081, ("llamaswap",))]


def test_a_server_whose_port_is_not_known_has_others_asked() -> None:
    """Ollama's port stands in its environment."""
    server = ServerProcess(10, 1, "/usr/local/bin/ollama serve")
    ports = (22, 80, 631, 3306, 5432, 6379, 9100, 11500, 18080)
    assert suspects(ports, server) == [(11500, ("ollama",)), (18080, ("ollama",))]
    assert suspects(ports, server, explained={"ollama"}) == []
    assert suspects((*ports, 11434), server, known=()) == [(11434, ("ollama",))]


def test_ports_below_1024_are_never_asked() -> None:
    assert suspects((80, 443), ServerProcess(10, 1, "vllm serve m --port 80")) == []


def test_a_port_that_answers_as_something_else_is_asked_what_it_is() -> None:
    assert suspects((9001,), strange={9001}) == [(9001, ())]


def test_never_more_than_a_few() -> None:
    server = ServerProcess(10, 1, "/usr/local/bin/ollama serve")
    assert len(suspects(range(20_000, 20_400), server)) == MOST_PORTS


def test_known_ports_are_not_asked_again() -> None:
    assert suspects((9001, 8000), VLLM, known=(9001, 8000)) == []


# -- asking ---------------------------------------------------------------------------------------


class Ports:
    """A link to a machine whose ports answer by a table."""

    address = "192.0.2.1:2222"

    def __init__(self, answers: dict[int, dict[str, Any]]) -> None:
        self.answers = answers
        self.asked: list[tuple[int, str]] = []

    async def get(self, port: int, path: str, **_: Any) -> HttpAnswer:
        self.asked.append((port, path))
        if port not in self.answers:
            raise HttpFailure("refused", "nothing listens")
        document = self.answers[port].get(path)
        if isinstance(document, HttpFailure):
            raise document
        if document is None:
            return HttpAnswer(404, (), b'{"detail":"Not Found"}', NOW)
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return HttpAnswer(200, (), body, NOW)


VLLM_ANSWERS = {"/v1/models": {"object": "list", "data": [{"id": "m", "owned_by": "vllm"}]}}


class Rig:
    """A record, its discovery and a clock."""

    def __init__(self, machine: Machine | None = None, answers: dict[int, dict[str, Any]] | None = None):
        made = machine or make_machine(engines=(EngineEndpoint("ollama", 11434),))
        self.record = MachineRecord(made)
        self.now = NOW
        self.discovery = EngineDiscovery(self.record, None, lambda: self.now)
        self.link = Ports(answers or {})

    def look(self, *ports: int, servers: Sequence[ServerProcess] = ()) -> list[tuple[int, str]]:
        self.record.facts.sockets = listening(*ports)
        self.record.facts.servers = tuple(servers)
        before = len(self.link.asked)
        if self.discovery.is_due():
            asyncio.run(self.discovery.look(self.link))  # type: ignore[arg-type]
        return self.link.asked[before:]

    def answer_declared(self, body: bytes = b'{"models":[]}', status: int = 200) -> None:
        for endpoint, engine in self.record.engines.items():
            engine.take("/api/ps", HttpAnswer(status, (), body, self.now), "tunnel", self.now)
            assert endpoint.kind == "ollama"

    def refuse_declared(self) -> None:
        for engine in self.record.engines.values():
            if engine.endpoint.kind == "ollama":
                engine.take("/api/ps", HttpFailure("refused", "nothing listens"), "tunnel", self.now)

    def freeze(self) -> MachineSnapshot:
        return self.record.freeze(self.now, 2.0)


def test_what_answers_is_found_and_shown_beside_an_engine_that_answers() -> None:
    rig = Rig(answers={8000: VLLM_ANSWERS})
    rig.answer_declared()
    assert rig.freeze().found is None
    assert rig.look(22, 8000) == [(8000, "/v1/models")]
    snapshot = rig.freeze()
    assert snapshot.found == (FoundEngine("vllm", 8000, True),)
    assert [engine.kind for engine in snapshot.engines] == ["ollama"]
    assert decode_machine(encode(snapshot)) == snapshot
    assert machine_document(snapshot, NOW)["found_engines"] == [
        {"kind": "vllm", "port": 8000, "loopback": True, "polled": False}
    ]
    assert found_text(snapshot.found[0]).startswith("vLLM answers on port 8000 of the loopback, the file")


def test_one_that_is_polled_takes_the_place_of_what_the_file_only_stands_for() -> None:
    rig = Rig(answers={8000: VLLM_ANSWERS})
    rig.refuse_declared()
    assert [reason.code for reason in judged_reasons(rig)] == ["engine_down"]
    rig.look(22, 8000)
    endpoint = EngineEndpoint("vllm", 8000)
    assert list(rig.record.engines)[1:] == [endpoint]
    rig.record.engines[endpoint].take("/health", HttpAnswer(200, (), b"", NOW), "tunnel", NOW)
    rig.refuse_declared()
    snapshot = rig.freeze()
    assert [(engine.kind, engine.port) for engine in snapshot.engines] == [("vllm", 8000)]
    assert snapshot.found == (FoundEngine("vllm", 8000, True, is_polled=True),)
    assert "ollama" not in snapshot.sources
    assert snapshot.sources["vllm"].state == "ok"
    assert [reason.code for reason in judged_reasons(rig)] == []
    declared = rig.record.engines[EngineEndpoint("ollama", 11434)]
    declared.take("/api/ps", HttpAnswer(200, (), b'{"models":[]}', rig.now), "tunnel", rig.now)
    assert [engine.kind for engine in rig.freeze().engines] == ["ollama", "vllm"]


def judged_reasons(rig: Rig) -> Any:
    rig.now += 11  # health is judged anew every ten seconds
    rig.record.facts.sources["cpu"].succeed(rig.now)
    rig.record.last_seen = rig.now
    rig.record.link_up("ada:22", rig.now)
    rig.record.gpu.sources["gpu"].succeed(rig.now)
    return [reason for reason in rig.freeze().reasons if reason.code.startswith("engine")]


def test_what_a_file_names_is_never_replaced() -> None:
    machine = make_machine(
        engines=(EngineEndpoint("ollama", 11434),), document={"name": "ada", "engines": [{"kind": "ollama"}]}
    )
    rig = Rig(machine, {8000: VLLM_ANSWERS})
    rig.refuse_declared()
    rig.look(8000)
    assert list(rig.record.engines) == [EngineEndpoint("ollama", 11434)]
    assert rig.freeze().found == (FoundEngine("vllm", 8000, True),)
    assert [engine.state for engine in rig.freeze().engines] == ["down"]


def test_an_ollama_that_was_there_is_missed_all_the_same() -> None:
    rig = Rig(answers={8000: VLLM_ANSWERS})
    rig.answer_declared()
    rig.refuse_declared()
    rig.look(8000)
    assert [(engine.kind, engine.state) for engine in rig.freeze().engines] == [("ollama", "down")]


def test_nothing_is_adopted_before_the_declared_one_was_asked() -> None:
    rig = Rig(answers={8000: VLLM_ANSWERS})
    rig.look(8000)
    assert list(rig.record.engines) == [EngineEndpoint("ollama", 11434)]
    rig.refuse_declared()
    assert rig.look(8000) == []
    assert EngineEndpoint("vllm", 8000) in rig.record.engines


def test_the_port_of_the_file_may_be_another_engines() -> None:
    machine = make_machine(engines=(EngineEndpoint("ollama", 9001),))
    rig = Rig(machine, {9001: VLLM_ANSWERS})
    rig.answer_declared(b'{"detail":"Not Found"}', 404)
    rig.look(9001)
    assert [(item.kind, item.port, item.is_polled) for item in rig.freeze().found or ()] == [
        ("vllm", 9001, True)
    ]


def test_a_port_is_asked_once_and_again_after_ten_minutes() -> None:
    rig = Rig(answers={8000: {"/": b"<html>"}})
    assert len(rig.look(8000)) == MOST_PATHS
    assert rig.look(8000) == []
    rig.now += AGAIN_S - 1
    assert rig.look(8000) == []
    rig.now += 2
    assert len(rig.look(8000)) == MOST_PATHS


def test_a_port_that_was_closed_in_between_is_asked_again() -> None:
    rig = Rig(answers={8000: {}})
    assert rig.look(8000)
    assert rig.look() == []
    assert rig.look(8000)


def test_few_ports_in_ten_minutes_however_they_come_and_go() -> None:
    rig = Rig()
    server = ServerProcess(10, 1, "/usr/local/bin/ollama serve")
    ports = range(20_000, 20_040)
    asked = {port for _ in range(6) for port, _ in rig.look(*ports, servers=[server])}
    assert len(asked) == MOST_PORTS


def test_a_port_that_speaks_no_http_is_asked_one_thing() -> None:
    rig = Rig(answers={8000: dict.fromkeys(("/v1/models", "/"), HttpFailure("protocol", "no HTTP"))})
    assert len(rig.look(8000)) == 1


def test_where_forwarding_is_forbidden_nothing_more_is_asked() -> None:
    forbidden = {"/v1/models": HttpFailure("forbidden", "no")}
    rig = Rig(answers={8000: forbidden, 8080: forbidden})
    assert len(rig.look(8000, 8080)) == 1
    assert rig.freeze().found == ()


def test_sshs_own_port_is_not_asked() -> None:
    rig = Rig()
    server = ServerProcess(10, 1, "/usr/local/bin/ollama serve")
    assert {port for port, _ in rig.look(2222, 2300, servers=[server])} == {2300}


@pytest.mark.parametrize(
    "answers",
    [
        {"/v1/models": {"object": "list", "data": []}},
        {"/v1/models": {"data": [{"id": "gpt-4o", "owned_by": "openai"}]}},
        {"/": b"<html>Open WebUI</html>", "/health": {"status": True}},
        dict.fromkeys(("/", "/api/ps", "/v1/models", "/metrics", "/props", "/running"), b"OK"),
    ],
    ids=["an empty list", "a proxy's list", "a web page", "OK to everything"],
)
def test_a_status_alone_makes_nobody_an_engine(answers: dict[str, Any]) -> None:
    rig = Rig(answers={8000: answers})
    rig.look(8000)
    assert rig.freeze().found == ()


def test_what_is_gone_is_forgotten() -> None:
    rig = Rig(answers={8000: VLLM_ANSWERS})
    rig.refuse_declared()
    rig.look(8000)
    assert len(rig.record.engines) == 2
    rig.look(22)
    assert list(rig.record.engines) == [EngineEndpoint("ollama", 11434)]
    snapshot = rig.freeze()
    assert snapshot.found == ()
    assert set(snapshot.sources) & {"vllm"} == set()
    assert [engine.state for engine in snapshot.engines] == ["down"]


def test_nobody_looked_is_null() -> None:
    assert machine_document(make_snapshot(engines=(make_engine(),)), NOW)["found_engines"] is None
