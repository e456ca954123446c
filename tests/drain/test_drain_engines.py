"""Drains of engines beside Ollama: as far as their calls and the operator's commands go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from arena import Arena, wait_until
from observer import Observer

from fleettui.demo.launcher import DemoFleet

ROUTED = "qwen2.5-coder-1.5b"
SERVED = "Qwen/Qwen3-8B"
BESIDE = ("gpu-12=router", "gpu-14=router", "gpu-13=swap", "gpu-19=swap", "gpu-18=vllm", "gpu-20=vllm")


@pytest.fixture(scope="module")
def mixed() -> Iterator[DemoFleet]:
    """Two routers, two llama-swaps, two vLLMs."""
    words = [word for one in BESIDE for word in ("--beside", one)]
    words += ["--at", "0", "--cards-each", "1"]
    with DemoFleet(machines=20, is_calm=True, speed=10, arguments=words) as running:
        yield running


def make(fleet: DemoFleet, folder: Path, *names: str) -> tuple[Arena, dict[str, int]]:
    """Machines of it, with the ports of their engines beside Ollama; asked often, as a closed port is only
    believed after some polls."""
    arena = Arena(fleet, folder / "arena", *names, settings={"FLEETTUI_INTERVAL_S": "1"})
    ports = {}
    for name in names:
        document = yaml.safe_load((arena.folder / "machines" / f"{name}.yaml").read_text())
        ports[name] = int(document["engines"][1]["port"])
    return arena, ports


def add_hooks(arena: Arena, name: str, service: str) -> None:
    """`start:` and `stop:` of its second engine."""
    path = arena.folder / "machines" / f"{name}.yaml"
    text = path.read_text()
    line = next(line for line in text.splitlines() if line.startswith(f"  - kind: {service}"))
    hooks = f"    stop: sudo -n systemctl stop {service}\n    start: sudo -n systemctl start {service}\n"
    path.write_text(text.replace(line + "\n", line + "\n" + hooks))


def status_of(port: int) -> str:
    rows = httpx.get(f"http://127.0.0.1:{port}/v1/models", headers={"X-Observer": "1"}).json()["data"]
    return next(str(row["status"]["value"]) for row in rows if row["id"] == ROUTED)


def test_a_routers_model_moves_once_it_is_idle(mixed: DemoFleet, tmp_path: Path) -> None:
    """The router would break off what is in work: it is waited for, whatever --idle-wait says."""
    arena, ports = make(mixed, tmp_path, "gpu-12", "gpu-14")
    here = f"http://127.0.0.1:{ports['gpu-12']}"
    httpx.post(f"{here}/models/load", json={"model": ROUTED})
    wait_until(lambda: status_of(ports["gpu-12"]) == "loaded", "it is loaded")
    answers: list[httpx.Response] = []

    def ask() -> None:
        asked = {"model": ROUTED, "max_tokens": 1500, "messages": []}
        answers.append(httpx.post(f"{here}/v1/chat/completions", json=asked, timeout=60))

    client = threading.Thread(target=ask)
    client.start()
    try:
        with Observer(mixed, [], [ROUTED], ports) as observer:
            drain = arena.drain("gpu-12")
            assert drain.wait() == 0, arena.told(drain)
        client.join(60)
        observer.assert_never_without()
        assert (answers[0].status_code, status_of(ports["gpu-12"])) == (200, "unloaded")
        assert status_of(ports["gpu-14"]) == "loaded"
    finally:
        arena.close()


def test_a_model_of_llama_swap_moves(mixed: DemoFleet, tmp_path: Path) -> None:
    arena, ports = make(mixed, tmp_path, "gpu-13", "gpu-19")
    running = {name: f"http://127.0.0.1:{port}/running" for name, port in ports.items()}
    httpx.get(f"http://127.0.0.1:{ports['gpu-13']}/upstream/{ROUTED}/health", timeout=30)
    try:
        drain = arena.drain("gpu-13")
        assert drain.wait() == 0, arena.told(drain)
        assert httpx.get(running["gpu-13"]).json() == {"running": []}
        models = [item["model"] for item in httpx.get(running["gpu-19"]).json()["running"]]
        assert models == [ROUTED]
    finally:
        arena.close()


def test_a_vllm_without_commands_stays_and_is_named(mixed: DemoFleet, tmp_path: Path) -> None:
    arena, ports = make(mixed, tmp_path, "gpu-18", "gpu-20")
    try:
        drain = arena.drain("gpu-18")
        assert drain.wait() == 1, arena.told(drain)
        assert "no `stop:` is configured" in drain.said, "the preview says so before anything happens"
        state, text = arena.state_of("gpu-18") or ("", "")
        assert (state, SERVED in text, "stop" in text) == ("blocked", True, True), text
        assert httpx.get(f"http://127.0.0.1:{ports['gpu-18']}/health").status_code == 200
    finally:
        arena.close()


@pytest.mark.timeout(600)
def test_a_vllm_is_stopped_and_started_by_the_operators_commands(mixed: DemoFleet, tmp_path: Path) -> None:
    arena, ports = make(mixed, tmp_path, "gpu-18", "gpu-20")
    add_hooks(arena, "gpu-18", "vllm")
    try:
        with Observer(mixed, [], [SERVED], ports) as observer:
            drain = arena.drain("gpu-18")
            assert drain.wait() == 0, arena.told(drain)
            with pytest.raises(httpx.ConnectError):
                httpx.get(f"http://127.0.0.1:{ports['gpu-18']}/health")
            calls = [row[0] for row in arena.rows("SELECT call FROM drain_journal")]
            assert any("systemctl stop vllm" in call for call in calls), arena.told(drain)
            back = arena.call("undrain", "gpu-18", "--return")
            assert back.process.returncode == 0, arena.told(back)
            wait_until(lambda: SERVED in observer.seen["gpu-18"].present, "it serves again")
        observer.assert_never_without()
    finally:
        arena.close()
