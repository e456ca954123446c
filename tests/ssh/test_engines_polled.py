"""Polling of engines through a real sshd: periods, conditions, what takes an engine down, keys, restarts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from links import open_link, until
from sshd_rig import SshdRig, free_port

from engine_rig import NOT_FOUND, EngineServer, Polled, machine_of
from fleettui.fleet import engine_feed, model_shapes
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.machine import EngineKind
from fleettui.model.unknown import Unknown
from fleettui.net.connector import Connector
from fleettui.net.link import Link

FIXTURES = Path(__file__).parent.parent / "fixtures"
SECRET = "sk-" + "5ec4e7" * 4


def sample(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def sample_json(name: str) -> Any:
    return json.loads(sample(name))


def vllm() -> dict[str, Any]:
    return {
        "/health": b"",
        "/v1/models": sample("engines/vllm_v1_models.json"),
        "/metrics": sample("engines/vllm_metrics_busy.txt"),
        "/load": sample("engines/vllm_load_idle.json"),
        "/version": {"version": "0.32.0"},
    }


def llamacpp() -> dict[str, Any]:
    return {
        "/v1/models": sample("engines/llamacpp_v1_models_single.json"),
        "/health": {"status": "ok"},
        "/props": sample("engines/llamacpp_props.json"),
        "/metrics": sample("engines/llamacpp_metrics_busy.txt"),
    }


SERVED: dict[EngineKind, Callable[[], dict[str, Any]]] = {
    "ollama": lambda: {
        "/api/ps": sample("engines/ollama_ps_qwen25coder_16k.json"),
        "/api/tags": sample("engines/ollama_tags_docs.json"),
        "/api/version": {"version": "0.33.0"},
    },
    "vllm": vllm,
    "llamacpp": llamacpp,
    "llamaswap": lambda: {
        "/running": {"running": [{"model": "qwen3-8b", "state": "ready"}]},
        "/v1/models": {"object": "list", "data": [{"id": "qwen3-8b", "owned_by": "llama-swap"}]},
    },
    "lmstudio": lambda: {"/api/v0/models": sample("servers/20-lmstudio-models-v0.json")},
    "sglang": lambda: {
        "/v1/models": sample("engines/vllm_v1_models.json").replace(b'"vllm"', b'"sglang"'),
        "/metrics": sample("servers/21-sglang-metrics-colon.txt"),
    },
}


@pytest.fixture
def engine() -> Iterator[Callable[[dict[str, Any]], EngineServer]]:
    """Starts engines; closed at the end."""
    started: list[EngineServer] = []

    def start(answers: dict[str, Any], port: int = 0) -> EngineServer:
        started.append(EngineServer(answers, port))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
async def link(sshd_rig: SshdRig, connect: Callable[..., Connector]) -> AsyncIterator[Link]:
    server = sshd_rig.start()
    sshd_rig.trust(server)
    opened, _ = await open_link(connect(), sshd_rig.machine(server))
    yield opened
    await opened.close()


Start = Callable[..., EngineServer]


async def test_each_question_has_its_own_period(engine: Start, link: Link) -> None:
    server = engine(vllm())
    poll = Polled(machine_of("vllm", server.port), link)
    await poll.tick(1000.0)
    everything = {"/health", "/load", "/v1/models", "/metrics", "/is_sleeping", "/version"}
    assert sorted(server.asked()) == sorted(everything)
    before = server.connections
    for now in (1002.0, 1004.0, 1006.0, 1008.0):
        await poll.tick(now)
    assert server.asked() == ["/health", "/load"] * 4
    await poll.tick(1010.0)
    assert server.asked() == ["/health", "/load", "/v1/models", "/metrics"]  # /is_sleeping said 404
    for now in range(1012, 1060, 2):
        await poll.tick(float(now))
    assert "/version" not in server.asked()
    await poll.tick(1060.0)
    assert server.asked().count("/version") == 1
    assert server.connections == before  # all one after the other on the kept channel
    reading = poll.reading
    assert (reading.state, reading.version, poll.engine.source.state) == ("ok", "0.32.0", "ok")
    assert not isinstance(reading.loaded, Unknown)
    assert [copy.name for copy in reading.loaded] == ["acme/tiny-llama"]
    assert (reading.running, reading.waiting) == (3, 0)
    poll.close()


async def test_a_slow_answer_costs_its_own_part_and_delays_nobody(
    engine: Start, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_feed, "SLOW_TIMEOUT_S", 0.6)
    server = engine(vllm())
    poll = Polled(machine_of("vllm", server.port), link)
    await poll.tick(1000.0)
    assert poll.reading.running == 3
    server.hangs.add("/metrics")
    server.asked()
    poll.start(1010.0)  # /metrics hangs on the kept channel, behind the others
    await poll.until(lambda: len(server.requests) == 4)
    poll.start(1012.0)
    await poll.until(lambda: [path for path, _ in server.requests].count("/health") == 2)
    assert poll.feed.is_waiting
    await poll.until(lambda: not poll.feed.is_waiting)
    assert [(path, failure.kind) for path, failure in poll.failures] == [("/metrics", "timeout")]
    assert (poll.reading.state, poll.engine.source.state) == ("ok", "ok")
    assert isinstance(poll.reading.running, Unknown)
    assert "/metrics" in poll.reading.running.reason
    assert not isinstance(poll.reading.loaded, Unknown)
    server.hangs.clear()
    await poll.tick(1020.0)
    assert poll.reading.running == 3
    poll.close()


async def test_a_vital_answer_that_is_late_is_down_only_the_third_time(
    engine: Start, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_feed, "TICK_TIMEOUT_S", 0.15)
    server = engine(vllm())
    poll = Polled(machine_of("vllm", server.port), link)
    await poll.tick(1000.0)
    server.hangs.add("/health")
    assert [(await poll.tick(now)).state for now in (1002.0, 1004.0, 1006.0)] == ["ok", "ok", "down"]
    assert poll.engine.source.state == "error"
    assert isinstance(poll.reading.loaded, Unknown)
    server.asked()
    await poll.tick(1020.0)
    assert server.asked() == ["/health"]  # of an engine that is down only whether it is back
    server.hangs.clear()
    await poll.tick(1022.0)
    assert (await poll.tick(1024.0)).state == "ok"
    assert not isinstance(poll.reading.loaded, Unknown)
    poll.close()


async def test_a_dead_engine_that_still_lists_models_is_down(engine: Start, link: Link) -> None:
    server = engine(vllm())
    poll = Polled(machine_of("vllm", server.port), link)
    await poll.tick(1000.0)
    server.answers["/health"] = (503, b"")
    for now in (1002.0, 1010.0, 1012.0):
        assert (await poll.tick(now)).state == "down"
        assert isinstance(poll.reading.loaded, Unknown)
    poll.close()


async def test_an_engine_that_starts_anew_is_asked_everything_again(engine: Start, link: Link) -> None:
    server = engine({**vllm(), "/load": (404, NOT_FOUND)})
    poll = Polled(machine_of("vllm", server.port), link)
    await poll.tick(1000.0)
    server.close()
    assert (await poll.tick(1002.0)).state == "down"
    assert poll.engine.source.state == "error"
    again = engine(
        {**vllm(), "/v1/models": (500, b"starting"), "/version": {"version": "0.33.1"}}, server.port
    )
    await poll.tick(1004.0)
    assert again.asked() == ["/health"]
    await poll.tick(1006.0)
    assert {"/load", "/v1/models", "/version", "/metrics", "/is_sleeping"} < set(again.asked())
    assert (poll.reading.state, poll.reading.version) == ("ok", "0.33.1")
    assert isinstance(poll.reading.loaded, Unknown)
    again.answers["/v1/models"] = vllm()["/v1/models"]
    await poll.tick(1008.0)  # what it holds is not known: the list is asked at once, not after 10 s
    assert "/v1/models" in again.asked()
    assert not isinstance(poll.reading.loaded, Unknown)
    poll.close()


async def test_another_server_on_the_port_is_named_and_stays_so(engine: Start, link: Link) -> None:
    server = engine({**SERVED["ollama"](), "/v1/models": {"data": [{"id": "m", "owned_by": "library"}]}})
    poll = Polled(machine_of("vllm", server.port), link)
    for now in (1000.0, 1002.0, 1010.0, 1012.0):
        await poll.tick(now)
        assert (poll.reading.state, poll.reading.error) == ("not_an_engine", "Ollama answers there")
    poll.close()


def router(states: dict[str, str]) -> dict[str, Any]:
    def metrics_of(name: str) -> Callable[[dict[str, str]], Any]:
        return lambda _: b"llamacpp:requests_processing 1\nllamacpp:requests_deferred 2\n"

    rows = [
        {"id": name, "owned_by": "llamacpp", "status": {"value": state}} for name, state in states.items()
    ]
    return {
        "/v1/models": {"object": "list", "data": rows},
        "/health": {"status": "ok"},
        "/props": sample("engines/llamacpp_router_props.json"),
        **{f"/metrics?autoload=false&model={name}": metrics_of(name) for name in states},
    }


async def test_a_router_is_asked_of_what_it_has_loaded_and_of_nothing_else(engine: Start, link: Link) -> None:
    states = {"warm": "loaded", "hot": "loaded", "cold": "unloaded", "asleep": "sleeping", "soon": "loading"}
    server = engine(router(states))
    poll = Polled(machine_of("llamacpp", server.port), link)
    for tick in range(10):
        await poll.tick(1000.0 + 2 * tick)
    assert {path for path in server.asked() if "model=" in path or path in ("/metrics", "/slots")} == set()
    poll.feeds.want_busy(True)
    await poll.tick(1022.0)
    assert {path for path in server.asked() if "model=" in path} == {
        "/metrics?autoload=false&model=warm",
        "/metrics?autoload=false&model=hot",
    }
    assert (poll.reading.running, poll.reading.waiting) == (2, 4)
    server.answers["/v1/models"] = router({**states, "hot": "unloaded"})["/v1/models"]
    await poll.tick(1024.0)
    server.asked()
    await poll.tick(1026.0)
    assert "/metrics?autoload=false&model=hot" not in server.asked()
    assert (poll.reading.running, poll.reading.waiting) == (1, 2)
    poll.feeds.want_busy(False)
    assert isinstance(poll.reading.running, Unknown)
    await poll.tick(1028.0)
    assert not any("model=" in path for path in server.asked())
    poll.close()


# -- ways ---------------------------------------------------------------------------------------------


@pytest.fixture
async def closed_link(sshd_rig: SshdRig, connect: Callable[..., Connector]) -> AsyncIterator[Link]:
    """A machine that forwards nothing."""
    server = sshd_rig.start(options={"AllowTcpForwarding": "no"})
    sshd_rig.trust(server)
    opened, _ = await open_link(connect(), sshd_rig.machine(server))
    yield opened
    await opened.close()


@pytest.mark.parametrize("kind", ["vllm", "llamacpp", "sglang"])
async def test_by_the_machines_own_curl_only_the_lines_come_that_are_read(
    kind: EngineKind, engine: Start, link: Link, closed_link: Link
) -> None:
    """The engine listens on 127.0.0.1 alone, the machine's name is another address: no other way is left."""
    answers = SERVED[kind]()
    answers["/metrics"] = answers["/metrics"] + b"vllm:other 1\n" * 5000
    server = engine(answers)
    through, remote = (Polled(machine_of(kind, server.port, "127.0.0.9"), one) for one in (link, closed_link))
    sizes: list[int] = []
    take = remote.engine.take

    def measure(path: str, answer: Any, way: Any, now: float) -> bool:
        if path == "/metrics":
            sizes.append(len(answer.body))
        return take(path, answer, way, now)

    remote.engine.take = measure  # type: ignore[method-assign]
    for poll in (through, remote):
        for now in (1000.0, 1002.0):
            await poll.tick(now)
    assert (through.reading.path, remote.reading.path) == ("tunnel", "remote")
    for name in ("state", "loaded", "running", "waiting", "kv_percent", "load", "version"):
        assert getattr(remote.reading, name) == getattr(through.reading, name), name
    assert sizes
    assert max(sizes) < 8000
    through.close()
    remote.close()


# -- keys ---------------------------------------------------------------------------------------------


def guarded(answers: dict[str, Any], *open_paths: str) -> dict[str, Any]:
    """Only with the key; who has none is told what was sent, as some proxies do."""

    def guard(answer: Any) -> Callable[[dict[str, str]], Any]:
        def judge(headers: dict[str, str]) -> Any:
            sent = headers.get("authorization", "")
            return answer if sent == f"Bearer {SECRET}" else (401, {"error": f"Unauthorized: {sent!r}"})

        return judge

    return {path: answer if path in open_paths else guard(answer) for path, answer in answers.items()}


@pytest.mark.parametrize("kind", list(SERVED))
async def test_a_key_is_sent_with_every_question(
    kind: EngineKind, engine: Start, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = engine(guarded(SERVED[kind]()))
    monkeypatch.setenv("ENGINE_KEY", SECRET)
    poll = Polled(machine_of(kind, server.port, api_key_env="ENGINE_KEY"), link)
    direct = Polled(
        machine_of(kind, server.port, url=f"http://127.0.0.1:{server.port}", api_key_env="ENGINE_KEY"), link
    )
    for now in (1000.0, 1002.0):
        await poll.tick(now)
        await direct.tick(now)
    assert (poll.reading.state, direct.reading.state, direct.reading.path) == ("ok", "ok", "direct")
    assert not isinstance(poll.reading.loaded, Unknown)
    assert all(headers.get("authorization") == f"Bearer {SECRET}" for _, headers in server.requests)
    assert SECRET not in repr((poll.engine, poll.engine.key, poll.reading, vars(poll.engine)))
    poll.close()
    direct.close()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "ada.yaml: engines[0].api_key_env: the environment variable ENGINE_KEY is not set"),
        ("", "ada.yaml: engines[0].api_key_env: the environment variable ENGINE_KEY is not set"),
        ("two words",
         "ada.yaml: engines[0].api_key_env: what ENGINE_KEY holds is no key (a blank, or no ASCII), not sent"),  # noqa: E501
        ("sk-wrong", "the API key in ENGINE_KEY is refused (engines[].api_key_env)"),
    ],
)  # fmt: skip
async def test_a_key_that_is_missing_or_wrong_is_named(
    value: str | None, says: str, engine: Start, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv("ENGINE_KEY", value)
    server = engine(guarded(vllm(), "/health", "/metrics", "/load", "/version"))
    poll = Polled(machine_of("vllm", server.port, api_key_env="ENGINE_KEY"), link)
    for now in (1000.0, 1002.0):
        await poll.tick(now)
    assert (poll.reading.state, poll.reading.error) == ("unauthorized", says)
    assert poll.reading.running == 3  # what it counts is open
    free = engine(vllm())  # a key that is not wanted is no trouble; that it is missing is said all the same
    loose = Polled(machine_of("vllm", free.port, api_key_env="ENGINE_KEY"), link)
    for now in (1000.0, 1002.0):
        await loose.tick(now)
    assert (loose.reading.state, loose.reading.error) == ("ok", says if value != "sk-wrong" else None)
    poll.close()
    loose.close()


async def test_the_machines_own_curl_gets_no_key(
    engine: Start, closed_link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINE_KEY", SECRET)
    server = engine(vllm())
    poll = Polled(machine_of("vllm", server.port, "127.0.0.9", api_key_env="ENGINE_KEY"), closed_link)
    await poll.tick(1000.0)
    assert poll.reading.state == "down"
    assert "never given the key of engines[].api_key_env" in str(poll.reading.error)
    assert server.asked() == []
    poll.close()


def write_machine(folder: Path, address: str, ssh: str, engines: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "ada.yaml").write_text(
        f"name: ada\nrole: gpu-host\nhardware: {{}}\nnetwork: {{hostname: {address}}}\nmodels: []\n"
        f"ssh: {ssh}\nengines: [{engines}]\n"
    )


def test_a_key_stands_nowhere(engine: Start, tmp_path: Path) -> None:
    """Every command that asks engines, with the key refused and repeated by the engine."""
    refusing = engine(guarded(vllm(), "/health"))
    taking = engine(guarded(llamacpp()))
    refusing.answers["/v1/models"] = (401, {"error": f"wrong key: {SECRET}"})
    refusing.answers["/metrics"] = (500, f"proxy error, headers were: Bearer {SECRET}".encode())
    folder, state = tmp_path / "machines", tmp_path / "state"
    write_machine(
        folder, "127.0.0.1", "local",
        f"{{kind: vllm, port: {refusing.port}, api_key_env: ENGINE_KEY}}, "
        f"{{kind: llamacpp, port: {taking.port}, api_key_env: ENGINE_KEY}}",
    )  # fmt: skip
    environment = {**os.environ, "ENGINE_KEY": SECRET, "XDG_STATE_HOME": str(state), "HOME": str(tmp_path)}
    fleettui = [sys.executable, "-m", "fleettui", "--machines", str(folder), "--state-dir", str(state)]
    watch = subprocess.Popen(
        [*fleettui, "status", "--watch", "--json", "--interval", "0.5"], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert watch.stdout is not None
    said = "".join(watch.stdout.readline() for _ in range(4))
    watch.terminate()
    said += "".join(watch.communicate(timeout=20))
    for command in (
        ["status"],
        ["status", "--json"],
        ["machines", "doctor", "--json"],
        ["--route", "tiny-random.gguf", "--max-age", "0"],
        ["route", "acme/tiny-llama", "--json", "--max-age", "0"],
        ["machines", "list", "--json"],
        ["events"],
    ):
        run = subprocess.run(
            [*fleettui, *command], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert "Traceback" not in run.stderr
        assert run.returncode != 2, run.stderr
        said += run.stdout + run.stderr
    assert "the API key in ENGINE_KEY is refused" in said
    assert taking.requests
    assert all(headers.get("authorization") == f"Bearer {SECRET}" for _, headers in taking.requests)
    assert SECRET not in said
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in kept if state in path.parents and path.stat().st_size > 4096]
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []


async def test_what_a_model_is_made_of_is_asked_with_the_key_too(
    engine: Start, sshd_rig: SshdRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINE_KEY", SECRET)
    monkeypatch.setattr(model_shapes, "LOOK_S", 0.05)
    shown = {"model_info": {"general.architecture": "llama"}}
    server = engine(guarded({**SERVED["ollama"](), "/api/show": shown}))
    sshd, folder = sshd_rig.start(), tmp_path / "machines"
    write_machine(
        folder, sshd.address, f"{{user: {sshd_rig.user}, port: {sshd.port}}}",
        f"{{kind: ollama, port: {server.port}, api_key_env: ENGINE_KEY}}",
    )  # fmt: skip
    settings = FleetSettings(str(folder), 0.5, state_dir=str(tmp_path / "state"), asks_shapes=True)
    service = FleetService(settings, Connector(sshd_rig.settings()))
    await service.start()
    try:
        await until(lambda: any(path == "/api/show" for path, _ in server.requests))
        assert all(headers.get("authorization") == f"Bearer {SECRET}" for _, headers in server.requests)
    finally:
        await service.stop()


# -- a whole machine ----------------------------------------------------------------------------------


async def test_a_machine_with_all_six_engines(engine: Start, sshd_rig: SshdRig, tmp_path: Path) -> None:
    servers = {kind: engine(answers()) for kind, answers in SERVED.items()}
    away = free_port("127.0.0.1")
    sshd = sshd_rig.start()
    listed = ", ".join(f"{{kind: {kind}, port: {server.port}}}" for kind, server in servers.items())
    folder = tmp_path / "machines"
    write_machine(
        folder,
        sshd.address,
        f"{{user: {sshd_rig.user}, port: {sshd.port}}}",
        f"{listed}, {{kind: vllm, port: {away}}}",
    )
    service = FleetService(FleetSettings(str(folder), 0.5), Connector(sshd_rig.settings()))
    await service.start()
    try:
        await until(lambda: len(service.snapshot.machines[0].engines) == 7)
        await until(
            lambda: all(
                not isinstance(one.loaded, Unknown)
                for one in service.snapshot.machines[0].engines
                if one.port != away
            )
        )
        await until(lambda: service.snapshot.machines[0].health == "degraded")
        ada = service.snapshot.machines[0]
        assert {copy.engine: copy.name for copy in ada.loaded} == {
            "ollama": "qwen2.5-coder:32b",
            "vllm": "acme/tiny-llama",
            "llamacpp": "tiny-random.gguf",
            "llamaswap": "qwen3-8b",
            "lmstudio": "google/gemma-4-12b-qat",
            "sglang": "acme/tiny-llama",
        }
        assert [reason.code for reason in ada.reasons if reason.code.startswith("engine")] == ["engine_down"]
        assert {name: ada.sources[name].state for name in (*SERVED, f"vllm:{away}")} == {
            **dict.fromkeys(SERVED, "ok"),
            f"vllm:{away}": "error",
        }
    finally:
        await service.stop()
