"""What a drain sends to engines and machines, and what it makes of their answers."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from builders import NOW, digest_of, make_copy, make_engine, make_fleet, make_snapshot
from fleettui.decide.drain.sight import Cover
from fleettui.fleet.drain import llamacpp, ollama, vllm
from fleettui.fleet.drain.clients import who_is_connected
from fleettui.fleet.drain.copy_work import Withdrawn
from fleettui.fleet.drain.engines import BusyError, LastLook, StepError, list_now, unloader_of
from fleettui.fleet.drain.hooks import start_by_hook, stop_by_hook
from fleettui.fleet.engine_line import EngineAddress, EngineLine
from fleettui.model.drain import SourceCopy
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import EngineTraits
from fleettui.model.route import RouteCandidate
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.link import CommandAnswer, HttpAnswer
from fleettui.probes.clean import hide_secrets
from fleettui.probes.socket_peers import ITSELF, PEERS_COMMAND, parse_peers

MODEL = "qwen3:8b"
COPY = SourceCopy("ada", "ollama", 11434, MODEL, digest_of(MODEL), expires_at=NOW + 1800)


def hears(calls: list[str]) -> LastLook:
    """Lets every call out that it writes down."""

    async def look(call: str) -> None:
        calls.append(call)

    return look


class Machine:
    """A service with one machine: notes what is sent, answers what the test says."""

    flags = None

    def __init__(self, snapshot: Any, **answers: Any) -> None:
        self.snapshot: FleetSnapshot = make_fleet(snapshot)
        self.answers = answers
        """Path -> (status, document), a list of them in turn, or bytes."""
        self.sent: list[tuple[str, Any]] = []
        self.commands: list[str] = []
        self.command_answer: CommandAnswer | None = CommandAnswer(0, None, b"", b"")
        record = type("Record", (), {"machine": snapshot.machine})()
        self.pollers: Any = (type("Poller", (), {"record": record, "open_link": self})(),)

    def subscribe(self, subscriber: Any) -> Any:
        return lambda: None

    def poll_now(self, name: str | None = None) -> None: ...

    async def post(self, port: int, path: str, body: bytes, *, timeout_s: float, **_: object) -> HttpAnswer:
        self.sent.append((f"POST {port}{path}", json.loads(body)))
        return self._answer(path)

    async def get(self, port: int, path: str, *, timeout_s: float, **_: object) -> HttpAnswer:
        self.sent.append((f"GET {port}{path}", None))
        return self._answer(path)

    def _answer(self, path: str) -> HttpAnswer:
        found = self.answers.get(path, (200, {}))
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        status, document = found if isinstance(found, tuple) else (200, found)
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return HttpAnswer(status, (("content-type", "application/json"),), body, time.time())

    async def run_command(self, command: str) -> CommandAnswer | None:
        self.commands.append(command)
        return self.command_answer

    def count_streams(self, port: int) -> int:
        return 1


def with_engine(kind: Any, port: int = 8000, **changes: Any) -> Any:
    """A machine with one engine of that kind and the commands of its file."""
    commands = {name: changes.pop(name) for name in ("start", "stop") if name in changes}
    engine = make_engine(kind=kind, port=port, **changes)
    snapshot = make_snapshot("ada", engines=[engine])
    endpoints = (EngineEndpoint(kind, port, **commands),)
    return replace(snapshot, machine=replace(snapshot.machine, engines=endpoints), engines=(engine,))


def test_a_copy_stays_as_long_as_it_would_have_at_the_source() -> None:
    assert ollama.keep_alive_for(COPY, NOW) == 1800
    assert ollama.keep_alive_for(replace(COPY, expires_at=NOW + 20), NOW) == 600
    assert ollama.keep_alive_for(replace(COPY, is_pinned=True), NOW) == -1


def test_only_what_nobody_announced_and_did_not_end_by_itself_has_vanished() -> None:
    pinned = make_copy("a", is_pinned=True)
    before = (pinned, make_copy("b"), make_copy("c", expires_at=NOW - 1), make_copy("d", state="stopping"))
    assert ollama.vanished(before, (), ("b",), NOW) == ("a",)
    assert ollama.vanished(before, before, (), NOW) == ()


async def test_an_unload_names_the_model_and_nothing_else() -> None:
    service, calls = Machine(make_snapshot("ada")), []
    await ollama.UNLOADER.unload(service, COPY, hears(calls))
    assert service.sent == [("POST 11434/api/generate", {"model": MODEL, "keep_alive": 0})]
    assert calls == ['POST ada:11434/api/generate {"model": "qwen3:8b", "keep_alive": 0}']
    service.answers = {"/api/generate": (404, {"error": "model not found"})}
    with pytest.raises(StepError, match="model not found"):
        await ollama.UNLOADER.unload(service, COPY, hears(calls))


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"is_pinned": True}, {"keep_alive": -1, "stream": False}),
        ({"expires_at": NOW + 7200}, {"keep_alive": 7200, "stream": False}),
        ({"expires_at": NOW + 60}, {"keep_alive": 1800, "stream": False}),
        (
            {"expires_at": NOW + 60, "context": 8192},
            {"keep_alive": 1800, "stream": False, "options": {"num_ctx": 8192}},
        ),
    ],
)
async def test_a_covering_copy_is_asked_to_stay_as_it_is(changes: dict[str, Any], wanted: Any) -> None:
    there = make_copy(MODEL, **changes)
    service = Machine(make_snapshot("bora", loaded=[there]))
    cover = Cover("bora", "ollama", 11434, there)
    assert await ollama.keep_longer(service, cover, COPY, 32768, NOW, lambda _: None)
    assert service.sent == [("POST 11434/api/generate", {"model": MODEL, **wanted})]


async def test_what_an_engine_holds_is_asked_this_moment() -> None:
    service = Machine(make_snapshot("ada"))
    service.answers = {"/api/ps": {"models": [{"name": MODEL, "digest": digest_of(MODEL)}]}}
    listed = await list_now(service, EngineAddress("ada", "ollama", 11434))
    assert [copy.name for copy in listed] == [MODEL]
    service.answers = {"/api/ps": (500, {"error": "broken"})}
    with pytest.raises(StepError, match="broken"):
        await list_now(service, EngineAddress("ada", "ollama", 11434))


async def test_a_line_without_a_url_never_takes_another_engine() -> None:
    service = Machine(make_snapshot("ada"))
    await EngineLine(service, EngineAddress("ada", "ollama", 11999)).get("/api/ps", timeout_s=1)
    assert service.sent == [("GET 11999/api/ps", None)]


ROUTER = EngineTraits(is_router=True)
LLAMA = replace(COPY, engine="llamacpp", port=8080)
IDLE = b"llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n"
OF_MODEL = "/metrics?autoload=false&model=qwen3%3A8b"


async def test_a_router_unloads_only_what_is_idle() -> None:
    service, calls = Machine(with_engine("llamacpp", 8080, traits=ROUTER)), []
    service.answers = {OF_MODEL: b"llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\n"}
    with pytest.raises(BusyError, match="1 running"):
        await llamacpp.UNLOADER.unload(service, LLAMA, hears(calls))
    service.answers = {OF_MODEL: (501, {"error": "off"})}
    with pytest.raises(BusyError, match="not known"):
        await llamacpp.UNLOADER.unload(service, LLAMA, hears(calls))
    assert calls == []
    service.answers = {OF_MODEL: IDLE}
    await llamacpp.UNLOADER.unload(service, LLAMA, hears(calls))
    assert calls == ['POST ada:8080/models/unload {"model": "qwen3:8b"}']


async def test_a_router_tells_in_its_list_how_a_load_went(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llamacpp, "NOTE_S", 0.0)
    service = Machine(with_engine("llamacpp", 8080, traits=ROUTER))
    target = RouteCandidate("ada", "ada.lan", 8080, "http://ada.lan:8080", "llamacpp", 4, "", MODEL)

    def rows(**status: Any) -> Any:
        return {"object": "list", "data": [{"id": MODEL, "owned_by": "llamacpp", "status": status}]}

    service.answers = {"/v1/models": [rows(value="loading"), rows(value="loaded")]}
    calls: list[str] = []
    landing = await llamacpp.RouterLoad(service, target, calls.append, time.time).run(lambda _: None)
    assert landing.copy.name == MODEL
    assert calls == ['POST ada:8080/models/load {"model": "qwen3:8b"}']
    service.answers = {"/v1/models": [rows(value="unloaded", failed=True, exit_code=1)]}
    with pytest.raises(StepError, match="exit code 1"):
        await llamacpp.RouterLoad(service, target, calls.append, time.time).run(lambda _: None)


VLLM = replace(COPY, engine="vllm", port=8000)
QUIET = b'vllm:num_requests_running{engine="0"} 0\nvllm:num_requests_waiting{engine="0"} 0\n'


async def test_a_vllm_is_stopped_by_the_operators_command_once_it_is_idle() -> None:
    command = "docker stop \"$NAME\"; echo 'qwen3:8b'"
    service, calls = Machine(with_engine("vllm", stop=command)), []
    service.answers = {"/metrics": QUIET.replace(b"} 0", b"} 2", 1)}
    with pytest.raises(BusyError, match="2 running"):
        await vllm.UNLOADER.unload(service, VLLM, hears(calls))
    assert service.commands == []
    service.answers = {"/metrics": QUIET}
    await vllm.UNLOADER.unload(service, VLLM, hears(calls))
    assert service.commands == [command], "as it stands in the file"
    assert calls == [f"ssh ada {command}"]
    service.command_answer = CommandAnswer(3, None, b"", b"no such \x1b[31mcontainer\n")
    with pytest.raises(StepError, match=r"exit code 3: no such .*container"):
        await vllm.UNLOADER.unload(service, VLLM, hears(calls))


async def test_what_is_called_off_while_its_engine_is_asked_whether_it_is_idle_is_not_stopped() -> None:
    async def refuse(call: str) -> None:
        assert service.sent == [("GET 8000/metrics", None)], "looked at last of all"
        raise Withdrawn("the drain was ended")

    service = Machine(with_engine("vllm", stop="docker stop it"))
    service.answers = {"/metrics": QUIET}
    with pytest.raises(Withdrawn):
        await vllm.UNLOADER.unload(service, VLLM, refuse)
    assert service.commands == []


async def test_without_a_command_a_vllm_sleeps_where_it_can() -> None:
    service = Machine(with_engine("vllm", traits=EngineTraits(can_sleep=True), is_sleeping=False))
    service.answers = {"/metrics": QUIET}
    (machine,) = service.snapshot.machines
    assert vllm.UNLOADER.refusal(machine, VLLM) == ""
    await vllm.UNLOADER.unload(service, VLLM, hears([]))
    assert service.sent[-1] == ("POST 8000/sleep?level=1", {})
    fixed = with_engine("vllm")
    assert "missing: `stop:`" in vllm.UNLOADER.refusal(fixed, VLLM)
    assert "missing: `stop:`" in unloader_of("sglang").refusal(fixed, replace(VLLM, engine="sglang"))
    assert "missing: `stop:`" in llamacpp.UNLOADER.refusal(with_engine("llamacpp", 8080), LLAMA)


async def test_commands_that_nobody_wrote_are_not_run() -> None:
    service = Machine(with_engine("vllm"))
    with pytest.raises(StepError, match="in the machine file"):
        await stop_by_hook(service, VLLM, hears([]))
    with pytest.raises(StepError, match="in the machine file"):
        await start_by_hook(service, VLLM, lambda _: None)
    assert service.commands == []


PEERS = (
    b"  sl  local_address rem_address   st\n"
    b"   0: 0100007F:2CAA 00000000:0000 0A 0:0 00:0 0\n"
    b"   1: 0100007F:2CAA 0100007F:C350 01 0:0 00:0 0\n"
    b"   2: 0A00000A:2CAA 0700000A:C350 01 0:0 00:0 0\n"
    b"   3: 0A00000A:2CAA 0700000A:C351 01 0:0 00:0 0\n"
    b"   4: 0A00000A:1F90 0900000A:C351 01 0:0 00:0 0\n"
    b"   5: 0000000000000000FFFF00000A00000A:2CAA 0000000000000000FFFF00000800000A:9C40 01 0:0 00:0 0\n"
    b"   6: 000080FE000000000000000001000000:2CAA B80D0120000000000000000002000000:9C40 01 0:0 00:0 0\n"
)


def test_who_is_connected_is_read_from_the_kernels_table() -> None:
    assert parse_peers(PEERS, 11434) == ("10.0.0.7", "10.0.0.8", "2001:db8::2", ITSELF)
    assert parse_peers(PEERS, 11434, ours=1) == ("10.0.0.7", "10.0.0.8", "2001:db8::2")
    assert parse_peers(PEERS, 8080) == ("10.0.0.9",)
    assert parse_peers(b"", 11434) == ()


async def test_who_loaded_a_model_again_is_named() -> None:
    service = Machine(make_snapshot("ada"))
    service.command_answer = CommandAnswer(0, None, PEERS, b"")
    assert await who_is_connected(service, COPY) == " from 10.0.0.7, 10.0.0.8, 2001:db8::2"
    assert service.commands == [PEERS_COMMAND]
    service.command_answer = CommandAnswer(127, None, b"", b"refused")
    assert await who_is_connected(service, COPY) == ""


@pytest.mark.parametrize(
    ("kind", "metrics"),
    [
        ("llamacpp", b"llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\n"),
        (
            "sglang",
            b'sglang:num_running_reqs{model="m"} 1.0\nsglang:num_queue_reqs{model="m"} 0.0\n',
        ),
    ],
)
async def test_a_command_stops_no_server_that_counts_requests_this_moment(kind: Any, metrics: bytes) -> None:
    """What the last poll saw is seconds old."""
    copy = SourceCopy("ada", kind, 8000, MODEL)
    service = Machine(with_engine(kind, stop="systemctl --user stop it", traits=EngineTraits()))
    service.answers = {"/v1/models": {"data": [{"id": MODEL}]}, "/metrics": metrics, "/slots": (501, {})}
    with pytest.raises(BusyError, match="1 running"):
        await unloader_of(kind).unload(service, copy, hears([]))
    assert service.commands == []
    service.answers["/metrics"] = metrics.replace(b" 1", b" 0", 1)
    await unloader_of(kind).unload(service, copy, hears([]))
    assert service.commands == ["systemctl --user stop it"]


async def test_no_secret_of_a_command_is_written_down() -> None:
    command = "docker run -e HF_TOKEN=hf_abc vllm --api-key sk-1 --port 8000"
    service, calls = Machine(with_engine("vllm", stop=command)), []
    service.command_answer = CommandAnswer(1, None, b"", b"Authorization: Bearer sk-1 refused")
    with pytest.raises(StepError) as failed:
        await stop_by_hook(service, SourceCopy("ada", "vllm", 8000, MODEL), hears(calls))
    assert calls == ["ssh ada docker run -e HF_TOKEN=… vllm --api-key … --port 8000"]
    assert service.commands == [command]
    assert "sk-1" not in str(failed.value)
    assert hide_secrets("git clone https://mia:pw@host/x --tokens --port 1") == (
        "git clone https://mia:…@host/x --tokens --port 1"
    )
