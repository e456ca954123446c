"""The demo's llama.cpp router, its llama-swap, and servers that are services of their machine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncssh
import httpx
import pytest
import yaml

from fleettui.demo.launcher import DemoFleet
from fleettui.fleet.oneshot import poll_fleet_once
from fleettui.fleet.service import FleetSettings
from fleettui.model.unknown import Unknown
from fleettui.probes.engines.llamacpp_models import parse_models
from fleettui.probes.engines.llamaswap import parse_running

Until = Callable[[Callable[[], bool]], None]
NAME = "qwen2.5-coder-1.5b"
BESIDE = ("ada=router", "bora=swap", "cleo=vllm")


@pytest.fixture(scope="module")
def routers() -> Iterator[DemoFleet]:
    """Three machines with an engine beside Ollama, twenty times as fast as life."""
    words = [word for one in BESIDE for word in ("--beside", one)]
    with DemoFleet(machines=3, is_calm=True, speed=20, arguments=["--at", "0", *words]) as running:
        yield running


def port_beside(fleet: DemoFleet, name: str) -> int:
    document = yaml.safe_load(Path(fleet.machines_dir, f"{name}.yaml").read_text())
    return int(document["engines"][1]["port"])


@pytest.fixture
def router(routers: DemoFleet) -> Iterator[httpx.Client]:
    routers.command("reset ada")
    with httpx.Client(base_url=f"http://127.0.0.1:{port_beside(routers, 'ada')}", timeout=30) as client:
        yield client


@pytest.fixture
def swap(routers: DemoFleet) -> Iterator[httpx.Client]:
    routers.command("reset bora")
    with httpx.Client(base_url=f"http://127.0.0.1:{port_beside(routers, 'bora')}", timeout=30) as client:
        yield client


def status_of(router: httpx.Client) -> dict[str, Any]:
    rows = router.get("/v1/models").json()["data"]
    return next(dict(row["status"]) for row in rows if row["id"] == NAME)


def used_mib(fleet: DemoFleet, name: str) -> int:
    return int(fleet.command(f"state {name}")["used_mib"][0])


def test_the_router_loads_and_unloads(routers: DemoFleet, router: httpx.Client, until: Until) -> None:
    before = used_mib(routers, "ada")
    assert router.get("/props").json()["role"] == "router"
    assert router.post("/models/load", json={"model": NAME}).json() == {"success": True}
    assert status_of(router)["value"] in ("loading", "loaded")
    until(lambda: bool(status_of(router)["value"] == "loaded"))
    assert used_mib(routers, "ada") == before + 2210
    listed = parse_models(router.get("/v1/models").json())
    assert listed is not None
    assert [(copy.name, copy.state, copy.context) for copy in listed.loaded] == [(NAME, "loaded", 8192)]
    metrics = router.get("/metrics", params={"model": NAME, "autoload": "false"})
    assert "llamacpp:requests_processing 0" in metrics.text
    assert router.post("/models/unload", json={"model": NAME}).json() == {"success": True}
    assert (status_of(router)["value"], used_mib(routers, "ada")) == ("unloaded", before)


def test_the_router_refuses(router: httpx.Client) -> None:
    assert router.post("/models/load", json={"model": "no-such"}).status_code == 404
    assert router.post("/models/unload", json={"model": NAME}).status_code == 400
    missing = router.get("/metrics").json()["error"]["message"]
    assert missing == "model name is missing from the request"
    answer = router.get("/slots", params={"model": NAME})
    assert answer.json()["error"]["message"] == "model is not loaded"


def test_a_routers_load_fails(routers: DemoFleet, router: httpx.Client, until: Until) -> None:
    routers.command(f"fault ada oom {NAME} 1")
    router.post("/models/load", json={"model": NAME})
    until(lambda: bool(status_of(router).get("failed")))
    assert (status_of(router)["value"], status_of(router)["exit_code"]) == ("unloaded", 1)
    router.post("/models/load", json={"model": NAME})
    until(lambda: bool(status_of(router)["value"] == "loaded"))


def test_the_router_kills_what_is_in_work_ten_seconds_after_an_unload(
    router: httpx.Client, until: Until
) -> None:
    answers: list[httpx.Response] = []

    def ask() -> None:
        asked = {"model": NAME, "max_tokens": 8000, "messages": []}
        answers.append(httpx.post(str(router.base_url) + "/v1/chat/completions", json=asked, timeout=30))

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: "requests_processing 1" in router.get("/metrics", params={"model": NAME}).text)
    router.post("/models/unload", json={"model": NAME})
    thread.join(20)
    assert (answers[0].status_code, answers[0].text) == (500, "proxy error: Failed to read connection")


def test_llama_swap_starts_with_a_request_and_unloads(swap: httpx.Client, until: Until) -> None:
    assert swap.get("/running").json() == {"running": []}
    assert swap.get(f"/upstream/{NAME}/health").status_code == 200
    copies = parse_running(swap.get("/running").json())
    assert copies is not None
    assert [(copy.name, copy.state) for copy in copies] == [(NAME, "loaded")]
    assert swap.post(f"/api/models/unload/{NAME}").text == "OK"
    until(lambda: bool(swap.get("/running").json() == {"running": []}))
    assert swap.post("/api/models/unload/no-such").status_code == 404
    asked = {"model": NAME, "max_tokens": 3, "messages": []}
    assert swap.post("/v1/chat/completions", json=asked).status_code == 200


async def run_on(fleet: DemoFleet, name: str, command: str) -> int | None:
    machine = next(item for item in fleet.machines if item["name"] == name)
    async with asyncssh.connect(
        "127.0.0.1", machine["ssh_port"], username=machine["user"], config=None, agent_path=None,
        client_keys=[str(fleet.directory / "client_key")], known_hosts=str(fleet.directory / "known_hosts"),
    ) as connection:  # fmt: skip
        return (await connection.run(command)).exit_status


def test_a_service_is_stopped_and_started_over_ssh(routers: DemoFleet, until: Until) -> None:
    url = f"http://127.0.0.1:{port_beside(routers, 'cleo')}/v1/models"
    before = used_mib(routers, "cleo")
    assert httpx.get(url).json()["data"][0]["id"] == "Qwen/Qwen3-8B"
    assert asyncio.run(run_on(routers, "cleo", "systemctl --user stop vllm")) == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
    assert used_mib(routers, "cleo") < before
    assert asyncio.run(run_on(routers, "cleo", "sudo -n systemctl start vllm")) == 0

    def answers() -> bool:
        try:
            return httpx.get(url).status_code == 200
        except httpx.HTTPError:
            return False

    until(answers)
    assert asyncio.run(run_on(routers, "cleo", "systemctl stop llamaswap")) == 5
    assert asyncio.run(run_on(routers, "cleo", "rm -r /")) == 127


def test_all_of_them_are_polled_live(routers: DemoFleet, router: httpx.Client, swap: httpx.Client) -> None:
    router.post("/models/load", json={"model": NAME})
    swap.get(f"/upstream/{NAME}/health")
    snapshot = poll_fleet_once(FleetSettings(routers.ready["machines_dir"], 2.0), 20.0)
    found = {machine.name: machine.engines[1] for machine in snapshot.machines}
    kinds = {name: engine.kind for name, engine in found.items()}
    assert kinds == {"ada": "llamacpp", "bora": "llamaswap", "cleo": "vllm"}
    for name in ("ada", "bora"):
        loaded = found[name].loaded
        assert not isinstance(loaded, Unknown), name
        assert [copy.name for copy in loaded] == [NAME]
