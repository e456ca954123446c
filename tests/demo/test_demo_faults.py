"""What a test can make go wrong on the demo fleet, as its clients see it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from fleettui.demo.launcher import DemoError, DemoFleet

Until = Callable[[Callable[[], bool]], None]
SMALL = "llama3.1:8b"


@pytest.fixture(scope="module")
def faulty() -> Iterator[DemoFleet]:
    """Four machines without clients of their own, fifty times as fast as life."""
    with DemoFleet(machines=4, is_calm=True, speed=50, arguments=["--at", "0"]) as running:
        yield running


@pytest.fixture
def bora(faulty: DemoFleet) -> Iterator[httpx.Client]:
    faulty.command("reset bora")
    with client_of(faulty, "bora") as client:
        yield client


def client_of(fleet: DemoFleet, name: str) -> httpx.Client:
    port = next(machine["engine_port"] for machine in fleet.machines if machine["name"] == name)
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)


def loaded(client: httpx.Client) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in client.get("/api/ps").json()["models"]}


def load(client: httpx.Client, model: str = SMALL, keep_alive: object = -1) -> httpx.Response:
    return client.post("/api/generate", json={"model": model, "keep_alive": keep_alive, "stream": False})


def test_out_of_memory_once(faulty: DemoFleet, bora: httpx.Client) -> None:
    faulty.command(f"fault bora oom {SMALL} 1")
    answer = load(bora)
    text = "llama runner process has terminated: cudaMalloc failed: out of memory"
    assert (answer.status_code, answer.json()) == (500, {"error": text})
    assert loaded(bora) == {}
    assert load(bora).json()["done_reason"] == "load"


def test_a_stalled_load_ends_with_the_engines_own_limit(
    faulty: DemoFleet, bora: httpx.Client, until: Until
) -> None:
    faulty.command("fault bora stall")
    answers: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: answers.append(load(bora)))
    thread.start()
    with client_of(faulty, "bora") as other:
        until(lambda: SMALL in loaded(other))
        assert faulty.command("state bora")["loading"] == [SMALL]
        faulty.command("advance 300")
    thread.join(20)
    assert answers[0].status_code == 500
    assert "timed out waiting for llama runner to start" in answers[0].json()["error"]


def test_a_load_lands_partly_in_main_memory(faulty: DemoFleet, bora: httpx.Client) -> None:
    faulty.command(f"fault bora cpu {SMALL}")
    load(bora)
    copy = loaded(bora)[SMALL]
    assert copy["size_vram"] == pytest.approx(copy["size"] / 2, rel=0.01)


def test_a_load_gets_less_context(faulty: DemoFleet, bora: httpx.Client) -> None:
    load(bora)
    whole = loaded(bora)[SMALL]["context_length"]
    faulty.command("reset bora")
    faulty.command(f"fault bora context {SMALL}")
    load(bora)
    assert loaded(bora)[SMALL]["context_length"] == whole // 2


def test_a_load_takes_another_copy_away_although_there_is_room(faulty: DemoFleet, bora: httpx.Client) -> None:
    load(bora, "phi4:14b")
    faulty.command(f"fault bora evict {SMALL}")
    load(bora)
    assert set(loaded(bora)) == {SMALL}


def test_a_copy_hangs_after_its_unload(faulty: DemoFleet, bora: httpx.Client) -> None:
    load(bora)
    faulty.command(f"fault bora hang {SMALL}")
    assert load(bora, keep_alive=0).json()["done_reason"] == "unload"
    faulty.command("advance 60")
    assert SMALL in loaded(bora)


def test_the_engine_dies_with_its_copies_and_comes_back(faulty: DemoFleet, bora: httpx.Client) -> None:
    load(bora)
    faulty.command("engine bora dead")
    with pytest.raises(httpx.ConnectError):
        bora.get("/api/ps")
    faulty.command("engine bora on")
    assert loaded(bora) == {}
    history = faulty.command("history bora")["history"]
    assert [(item["model"], item["is_resident"]) for item in history] == [(SMALL, True), (SMALL, False)]


def test_a_machine_that_crashed_boots_anew_and_empty(faulty: DemoFleet, bora: httpx.Client) -> None:
    load(bora)
    assert faulty.command("crash bora")["presence"] == "away"
    with pytest.raises(httpx.ConnectError):
        bora.get("/api/ps")
    assert faulty.command("start bora")["presence"] == "up"
    assert loaded(bora) == {}
    assert faulty.command("reboot bora")["presence"] == "up"


def test_a_client_wants_its_model_back(faulty: DemoFleet, bora: httpx.Client, until: Until) -> None:
    faulty.command(f"cling bora {SMALL} 1")
    until(lambda: SMALL in loaded(bora))
    load(bora, keep_alive=0)
    until(lambda: SMALL not in loaded(bora))
    faulty.command("advance 30")
    assert loaded(bora) == {}


def test_a_slow_generation_outlives_its_unload(faulty: DemoFleet, bora: httpx.Client, until: Until) -> None:
    load(bora)
    faulty.command("pace bora 1")
    asked = {"model": SMALL, "prompt": "hello", "options": {"num_predict": 4000}}
    with bora.stream("POST", "/api/generate", json=asked) as answer:
        lines = answer.iter_lines()
        assert not json.loads(next(lines))["done"]
        with client_of(faulty, "bora") as other:
            load(other, keep_alive=0)
            assert SMALL in loaded(other)
        faulty.command("hurry bora")
        rest = [json.loads(line) for line in lines]
    assert (rest[-1]["done"], rest[-1]["eval_count"]) == (True, 4000)
    until(lambda: SMALL not in loaded(bora))


def test_files_come_over_the_network(faulty: DemoFleet, bora: httpx.Client) -> None:
    assert load(bora, "qwen3:8b").status_code == 404
    with bora.stream("POST", "/api/pull", json={"model": "qwen3:8b"}) as answer:
        lines = [json.loads(line) for line in answer.iter_lines()]
    assert lines[0] == {"status": "pulling manifest"}
    assert lines[-1] == {"status": "success"}
    done = [line["completed"] for line in lines if "completed" in line]
    assert done == sorted(done)
    assert done[-1] == lines[1]["total"] > 4 << 30
    assert load(bora, "qwen3:8b").status_code == 200
    assert bora.request("DELETE", "/api/delete", json={"model": "qwen3:8b"}).status_code == 200
    assert "qwen3:8b" not in {item["name"] for item in bora.get("/api/tags").json()["models"]}


def test_a_download_breaks_off(faulty: DemoFleet, bora: httpx.Client) -> None:
    faulty.command("fault bora pull qwen3:8b")
    answer = bora.post("/api/pull", json={"model": "qwen3:8b", "stream": False})
    assert (answer.status_code, answer.json()) == (500, {"error": "max retries exceeded: unexpected EOF"})
    unknown = bora.post("/api/pull", json={"model": "no-such", "stream": False})
    assert unknown.json() == {"error": "pull model manifest: file does not exist"}
    assert load(bora, "qwen3:8b").status_code == 404


def test_files_are_put_on_a_disk_by_command(faulty: DemoFleet, bora: httpx.Client) -> None:
    faulty.command("install bora phi3:mini")
    assert load(bora, "phi3:mini").status_code == 200
    faulty.command("remove bora phi3:mini")
    assert load(bora, "phi3:mini", 0).status_code == 404


SENSELESS = (
    "fault bora fire", "fault bora oom no-such", "cling bora no-such", "pace bora", "service bora vllm on",
)  # fmt: skip


@pytest.mark.parametrize("line", SENSELESS)
def test_what_makes_no_sense_is_refused(faulty: DemoFleet, line: str) -> None:
    with pytest.raises(DemoError):
        faulty.command(line)
