"""The Ollama stand-in over HTTP: it behaves as Ollama does towards load, unload, expiry and eviction."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from fleettui.demo.launcher import DemoFleet

Until = Callable[[Callable[[], bool]], None]
PS_KEYS = ["name", "model", "size", "digest", "details", "expires_at", "size_vram", "context_length"]
DETAILS_KEYS = ["parent_model", "format", "family", "families", "parameter_size", "quantization_level"]


def client_of(fleet: DemoFleet, name: str) -> httpx.Client:
    port = next(machine["engine_port"] for machine in fleet.machines if machine["name"] == name)
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)


@pytest.fixture
def ada(fleet: DemoFleet) -> Iterator[httpx.Client]:
    with client_of(fleet, "ada") as client:
        yield client


@pytest.fixture
def cleo(fleet: DemoFleet) -> Iterator[httpx.Client]:
    with client_of(fleet, "cleo") as client:
        yield client


@pytest.fixture
def slow_bora(slow_fleet: DemoFleet) -> Iterator[httpx.Client]:
    with client_of(slow_fleet, "bora") as client:
        yield client


def loaded(client: httpx.Client) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in client.get("/api/ps").json()["models"]}


def generate(client: httpx.Client, model: str, **keys: Any) -> httpx.Response:
    return client.post("/api/generate", json={"model": model, **keys})


def test_it_is_ollama(ada: httpx.Client) -> None:
    assert ada.get("/").text == "Ollama is running"
    answer = ada.get("/api/version")
    assert answer.json() == {"version": "0.33.0"}
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.headers["date"].endswith(" GMT")
    unknown = ada.get("/metrics")
    assert (unknown.status_code, unknown.text) == (404, "404 page not found")


def test_ps_has_the_real_shape(ada: httpx.Client) -> None:
    generate(ada, "qwen3:8b", keep_alive="1h")
    text = ada.get("/api/ps").text
    assert text.startswith('{"models":[{"name":"')
    for entry in json.loads(text)["models"]:
        assert list(entry) == PS_KEYS
        assert list(entry["details"]) == DETAILS_KEYS
        assert re.fullmatch(
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", entry["expires_at"]
        )
        assert re.fullmatch("[0-9a-f]{64}", entry["digest"])


def test_tags_has_the_real_shape(ada: httpx.Client) -> None:
    entries = {entry["name"]: entry for entry in ada.get("/api/tags").json()["models"]}
    keys = ["name", "model", "modified_at", "size", "digest", "details", "capabilities"]
    assert list(entries["llama3.1:70b"]) == keys
    cloud = entries["deepseek-v3.2:cloud"]
    assert (cloud["remote_model"], cloud["remote_host"]) == ("deepseek-v3.2", "https://ollama.com:443")
    assert cloud["size"] < 1000
    assert cloud["details"]["families"] is None


def test_show(ada: httpx.Client) -> None:
    document = ada.post("/api/show", json={"model": "llama3.1:70b"}).json()
    assert document["model_info"]["llama.block_count"] == 80
    assert document["tensors"][0] == {
        "name": "token_embd.weight", "type": "Q4_K", "shape": [8192, 128256],
    }  # fmt: skip
    remote = ada.post("/api/show", json={"model": "deepseek-v3.2:cloud"}).json()
    assert remote["model_info"] is None


def test_preload_and_unload(ada: httpx.Client, until: Until) -> None:
    answer = generate(ada, "llama3.1:8b", keep_alive="10m").json()
    assert list(answer) == ["model", "created_at", "response", "done", "done_reason"]
    assert (answer["response"], answer["done"], answer["done_reason"]) == ("", True, "load")
    assert loaded(ada)["llama3.1:8b"]["size_vram"] > 5 << 30
    answer = generate(ada, "llama3.1:8b", keep_alive=0).json()
    assert answer["done_reason"] == "unload"
    until(lambda: "llama3.1:8b" not in loaded(ada))


def test_unload_of_what_is_not_loaded_is_fine(cleo: httpx.Client) -> None:
    assert generate(cleo, "gemma3:27b", keep_alive=0).json()["done_reason"] == "unload"


def test_chat_loads_and_answers(cleo: httpx.Client) -> None:
    answer = cleo.post("/api/chat", json={"model": "qwen2.5-coder:32b", "keep_alive": "1h"}).json()
    assert (answer["message"], answer["done_reason"]) == ({"role": "assistant", "content": ""}, "load")
    asked = {
        "model": "qwen2.5-coder:32b",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": False,
    }
    answer = cleo.post("/api/chat", json=asked).json()
    assert answer["message"]["content"].startswith("This answer")
    assert answer["done_reason"] == "stop"


def test_copy_expires(ada: httpx.Client, until: Until) -> None:
    generate(ada, "llama3.1:8b", keep_alive="3s")
    until(lambda: "llama3.1:8b" not in loaded(ada))


def test_copy_can_be_pinned(ada: httpx.Client, until: Until) -> None:
    generate(ada, "qwen3:8b", keep_alive=-1)
    assert loaded(ada)["qwen3:8b"]["expires_at"] > "2300"
    generate(ada, "qwen3:8b", keep_alive="1s")
    until(lambda: "qwen3:8b" not in loaded(ada))


def test_expiry_stands_while_nobody_asks(ada: httpx.Client) -> None:
    generate(ada, "qwen3:8b", keep_alive="1h")
    first = loaded(ada)["qwen3:8b"]["expires_at"]
    assert loaded(ada)["qwen3:8b"]["expires_at"] == first
    generate(ada, "qwen3:8b")
    assert loaded(ada)["qwen3:8b"]["expires_at"] > first


def test_other_context_reloads(ada: httpx.Client) -> None:
    generate(ada, "qwen3:8b", keep_alive="1h")
    before = loaded(ada)["qwen3:8b"]
    generate(ada, "qwen3:8b", keep_alive="1h", options={"num_ctx": 16384})
    after = loaded(ada)["qwen3:8b"]
    assert (before["context_length"], after["context_length"]) == (8192, 16384)
    assert after["size"] > before["size"]
    generate(ada, "qwen3:8b", keep_alive="1h")
    assert loaded(ada)["qwen3:8b"]["context_length"] == 8192


def test_eviction_takes_the_shortest_keep_alive(cleo: httpx.Client) -> None:
    generate(cleo, "gemma3:27b", keep_alive="2h")
    generate(cleo, "qwen2.5-coder:32b", keep_alive="1h")
    generate(cleo, "qwen3-coder:30b", keep_alive="3h")
    names = set(loaded(cleo))
    assert "qwen2.5-coder:32b" not in names
    assert {"gemma3:27b", "qwen3-coder:30b"} <= names


def test_embeddings(cleo: httpx.Client) -> None:
    answer = generate(cleo, "nomic-embed-text", prompt="hello")
    assert answer.status_code == 400
    assert answer.json() == {"error": '"nomic-embed-text" does not support generate'}
    preload = cleo.post("/api/embed", json={"model": "nomic-embed-text", "keep_alive": "1h"})
    assert preload.json() == {"model": "nomic-embed-text", "embeddings": []}
    assert "nomic-embed-text:latest" in loaded(cleo)
    answer = cleo.post("/api/embed", json={"model": "nomic-embed-text", "input": ["a", "b"]})
    assert [len(vector) for vector in answer.json()["embeddings"]] == [768, 768]
    assert generate(cleo, "nomic-embed-text", keep_alive=0).json()["done_reason"] == "unload"


def test_unknown_model_and_odd_requests(ada: httpx.Client) -> None:
    answer = generate(ada, "no-such:latest")
    assert (answer.status_code, answer.json()) == (404, {"error": "model 'no-such:latest' not found"})
    assert ada.post("/api/generate").status_code == 400
    assert ada.post("/api/generate", content=b"[1").status_code == 400
    assert generate(ada, "llama3.1:8b", keep_alive="soon").status_code == 400


def test_busy_server(fleet: DemoFleet, ada: httpx.Client) -> None:
    fleet.command("busy ada on")
    try:
        answer = generate(ada, "llama3.1:8b")
        assert answer.status_code == 503
        text = "server busy, please try again.  maximum pending requests exceeded"
        assert answer.json() == {"error": text}
        assert ada.get("/api/ps").status_code == 200
    finally:
        fleet.command("busy ada off")


def test_answer_is_streamed(cleo: httpx.Client) -> None:
    with cleo.stream("POST", "/api/generate", json={"model": "qwen2.5-coder:32b", "prompt": "hi"}) as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        lines = [json.loads(line) for line in answer.iter_lines()]
    assert "".join(line["response"] for line in lines).endswith("a real one.")
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1]["eval_count"] == len(lines) - 1


def test_closing_the_connection_aborts_the_load(
    slow_fleet: DemoFleet, slow_bora: httpx.Client, until: Until
) -> None:
    with pytest.raises(httpx.ReadTimeout):
        slow_bora.post("/api/generate", json={"model": "mistral-small:24b"}, timeout=0.5)
    until(lambda: slow_fleet.command("state bora")["loading"] == [])
    assert "mistral-small:24b" not in loaded(slow_bora)


def test_warm_requests_pass_a_load(slow_fleet: DemoFleet, slow_bora: httpx.Client, until: Until) -> None:
    slow_fleet.command("load bora phi4:14b 1h")
    until(lambda: bool(slow_fleet.command("state bora")["loading"] == ["phi4:14b"]))
    assert "phi4:14b" in loaded(slow_bora), "Ollama lists a copy while it loads"
    assert generate(slow_bora, "llama3.1:8b").json()["done_reason"] == "load"
    assert slow_fleet.command("state bora")["loading"] == ["phi4:14b"]
    slow_fleet.command("advance 30")
    assert slow_fleet.command("state bora")["loading"] == []


def test_one_connection_carries_many_requests(fleet: DemoFleet) -> None:
    """Two requests in one write, the second closing; then the end."""
    port = fleet.machines[0]["engine_port"]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        plain.sendall(
            b"GET /api/version HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nConnection: close\r\n\r\n"
        )
        data = b""
        while chunk := plain.recv(4096):
            data += chunk
    assert data.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert data.endswith(b"Ollama is running")


JUNK = (
    b"\x00\xff\r\n\r\n",
    b"GET\r\n\r\n",
    b"x" * 40_000,
    b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
)


@pytest.mark.parametrize("junk", JUNK, ids=["binary", "short", "endless", "length"])
def test_junk_is_refused(fleet: DemoFleet, junk: bytes) -> None:
    port = fleet.machines[0]["engine_port"]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        plain.sendall(junk)
        assert plain.recv(4096).startswith(b"HTTP/1.1 400 ")
