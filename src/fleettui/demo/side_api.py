"""Answers of the engines beside Ollama, in the shapes of vLLM 0.32 and of llama.cpp's server of 2026."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from fleettui.demo.clock import DemoClock
from fleettui.demo.machine import SimulatedMachine
from fleettui.demo.replies import TEXT_TYPE, Answer, Reply, json_reply
from fleettui.demo.served_model import TOKENS_S, ServedModel, model_path

CREATED = 1_790_000_000
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class SideApi:
    """One server; `answer` is called for each request."""

    def __init__(self, machine: SimulatedMachine, served: ServedModel, clock: DemoClock):
        self.machine = machine
        self.served = served
        self.clock = clock

    def answer(self, method: str, path: str, body: bytes) -> Reply | Awaitable[Answer]:
        """Nothing but GETs: clients of the simulation need no HTTP."""
        self.machine.advance_to(self.clock.now())
        return self.read(path.partition("?")[0]) if method in ("GET", "HEAD") else self._not_found()

    def read(self, path: str) -> Reply:
        """The answers to GET."""
        if self.served.plan.kind == "vllm":
            return self._read_vllm(path)
        return self._read_llamacpp(path)

    def _not_found(self) -> Reply:
        if self.served.plan.kind == "vllm":
            return json_reply({"detail": "Not Found"}, 404)
        error = {"code": 404, "message": "File Not Found", "type": "not_found_error"}
        return json_reply({"error": error}, 404)

    def _read_vllm(self, path: str) -> Reply:
        plan = self.served.plan
        if path == "/health":
            return Reply(b"", 200, TEXT_TYPE)
        if path == "/version":
            return json_reply({"version": plan.version})
        if path == "/load":
            return json_reply({"server_load": self.served.running + self.served.waiting})
        if path == "/metrics":
            return Reply(vllm_metrics(self.served).encode(), 200, METRICS_TYPE)
        if path == "/v1/models":
            card = {
                "id": plan.model, "object": "model", "created": CREATED, "owned_by": "vllm",
                "root": plan.model, "parent": None, "max_model_len": plan.context, "permission": [],
            }  # fmt: skip
            return json_reply({"object": "list", "data": [card]})
        return self._not_found()

    def _read_llamacpp(self, path: str) -> Reply:
        plan = self.served.plan
        if path in ("/health", "/v1/health"):
            return json_reply({"status": "ok"})
        if path == "/props":
            return json_reply(llama_props(self.served))
        if path == "/metrics":
            return Reply(llama_metrics(self.served).encode(), 200, METRICS_TYPE)
        if path == "/slots":
            slots = [
                {"id": at, "n_ctx": plan.context, "speculative": False,
                 "is_processing": at < self.served.running}
                for at in range(plan.slots)
            ]  # fmt: skip
            return json_reply(slots)
        if path in ("/models", "/v1/models"):
            return json_reply(llama_models(self.served))
        return self._not_found()


def vllm_metrics(served: ServedModel) -> str:
    """The gauges and counters of `/metrics`; the real one has histograms of 50 KB besides."""
    labels = f'engine="0",model_name="{served.plan.model}"'
    tokens = served.plan.context * served.plan.slots // 8
    rows: list[tuple[str, str, str, float]] = [
        ("num_requests_running", "gauge", "", served.running),
        ("num_requests_waiting", "gauge", "", served.waiting),
        ("engine_sleep_state", "gauge", ',sleep_state="awake"', 1),
        ("engine_sleep_state", "gauge", ',sleep_state="weights_offloaded"', 0),
        ("engine_sleep_state", "gauge", ',sleep_state="discard_all"', 0),
        ("kv_cache_usage_perc", "gauge", "", served.kv_share),
        ("prompt_tokens_total", "counter", "", served.prompt_tokens),
        ("generation_tokens_total", "counter", "", int(served.generated_tokens)),
    ]
    lines, seen = [], set()
    for name, kind, more, value in rows:
        if name not in seen:
            seen.add(name)
            lines += [f"# HELP vllm:{name} Simulated.", f"# TYPE vllm:{name} {kind}"]
        lines.append(f"vllm:{name}{{{labels}{more}}} {float(value)}")
    lines += [
        "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig",
        "# TYPE vllm:cache_config_info gauge",
        f'vllm:cache_config_info{{block_size="16",cache_dtype="auto",engine="0",'
        f'kv_cache_size_tokens="{tokens}",num_gpu_blocks="{tokens // 16}"}} 1.0',
    ]
    return "".join(f"{line}\n" for line in lines)


def llama_metrics(served: ServedModel) -> str:
    """`/metrics` of a server that was started with --metrics."""
    rows: list[tuple[str, str, float]] = [
        ("prompt_tokens_total", "counter", served.prompt_tokens),
        ("tokens_predicted_total", "counter", int(served.generated_tokens)),
        ("prompt_tokens_seconds", "gauge", 412.7 if served.running else 0),
        ("predicted_tokens_seconds", "gauge", TOKENS_S if served.running else 0),
        ("requests_processing", "gauge", served.running),
        ("requests_deferred", "gauge", served.waiting),
    ]
    return "".join(
        f"# HELP llamacpp:{name} Simulated.\n# TYPE llamacpp:{name} {kind}\nllamacpp:{name} {value:g}\n"
        for name, kind, value in rows
    )


def llama_props(served: ServedModel) -> dict[str, Any]:
    """`/props`."""
    plan = served.plan
    return {
        "default_generation_settings": {"n_ctx": plan.context, "params": {"n_predict": -1}},
        "total_slots": plan.slots,
        "model_alias": plan.model,
        "model_path": model_path(plan),
        "modalities": {"vision": False, "audio": False},
        "endpoint_slots": True,
        "endpoint_props": False,
        "endpoint_metrics": True,
        "build_info": plan.version,
        "is_sleeping": False,
    }


def llama_models(served: ServedModel) -> dict[str, Any]:
    """`/v1/models`: Ollama's list and OpenAI's, one model in each."""
    plan = served.plan
    ollama = {
        "name": plan.model, "model": plan.model, "modified_at": "", "size": "", "digest": "",
        "type": "model", "capabilities": ["completion"], "details": {"format": "gguf"},
    }  # fmt: skip
    meta = {
        "vocab_type": 2, "n_vocab": 151936, "n_ctx": plan.context, "n_ctx_train": 32768, "n_embd": 1536,
        "n_params": 1543714304, "size": 986048512, "ftype": "Q4_K - Medium",
    }  # fmt: skip
    row = {
        "id": plan.model, "aliases": [plan.model], "tags": [], "object": "model", "created": CREATED,
        "owned_by": "llamacpp", "meta": meta,
    }  # fmt: skip
    return {"models": [ollama], "object": "list", "data": [row]}
