"""The real llama.cpp server of the tests: starts, answers, logs its allocations, can be busy, ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from real_llamacpp import Gguf, LlamaOptions, need_llamacpp, serve_llamacpp, write_gguf


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_random_model_is_served_and_the_allocator_is_heard(tmp_path: Path) -> None:
    need_llamacpp()
    path = write_gguf(tmp_path / "tiny.gguf", Gguf("gemma3", blocks=6, window=512))
    options = LlamaOptions(context=8192, parallel=2, cache_k="q8_0", cache_v="q8_0", api_key="sk-test")
    with serve_llamacpp(path, options) as server:
        status, body = server.ask("/v1/models")
        assert (status, json.loads(body)["data"][0]["meta"]["n_ctx"]) == (200, 4096)
        # 1 of 6 layers sees everything, 5 a window: two caches.
        wait_for(lambda: server.log.count("llama_kv_cache: size =") == 2)
        assert server.ask("/props")[0] == 200
        with server.busy():
            slots = json.loads(server.ask("/slots")[1])
            assert [slot["is_processing"] for slot in slots].count(True) == 1
        wait_for(lambda: b"llamacpp:requests_processing 0" in server.ask("/metrics")[1])
    assert not psutil.pid_exists(server.process.pid)


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    need_llamacpp()
    path = tmp_path / "none.gguf"
    path.write_bytes(b"GGUF")
    with pytest.raises(RuntimeError, match=r"none\.gguf"), serve_llamacpp(path):
        pass
