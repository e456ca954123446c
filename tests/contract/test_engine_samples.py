# ruff: noqa: E501 - one row for each sample
"""Captured answers of every engine, each with what it means; no file is left out.

`fixtures/engines`: normal answers, captured from the real servers or taken from their documentation.
`fixtures/servers`: odd ones, from public reports.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleettui.model.machine import EngineKind
from fleettui.model.readings import EngineReading, EngineTraits
from fleettui.model.unknown import Unknown
from fleettui.probes.engines import PROBES, ollama
from fleettui.probes.engines.answers import TextAnswer

FIXTURES = Path(__file__).parent.parent / "fixtures"
NOW = 1_796_047_392.0
SIZE = 5021827072
QWEN = "/models/gguf/Qwen3-8B-Q4_K_M.gguf"
BOTH = ["metrics off (start llama-server with --metrics)"] * 2


def body_of(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def answer(body: bytes, status: int = 200) -> TextAnswer:
    return TextAnswer(status, (), body, NOW)


def said(value: Any) -> Any:
    """The value; of an unknown one only that it is."""
    return None if isinstance(value, Unknown) else value


def read(
    kind: EngineKind, path: str, name: str, status: int = 200, previous: EngineReading | None = None
) -> EngineReading:
    reading = PROBES[kind].read_answers(7, {path: answer(body_of(name), status)}, previous)
    assert (reading.kind, reading.port) == (kind, 7)
    return reading


def describe(reading: EngineReading) -> dict[str, Any]:
    """The reading in a few words; what is not expected by name is not compared."""
    traits = reading.traits or EngineTraits()
    load = reading.load
    return {
        "state": reading.state,
        "error": reading.error,
        "version": said(reading.version),
        "loaded": None if isinstance(reading.loaded, Unknown) else [
            {
                "name": copy.name, "state": copy.state, "ctx": said(copy.context),
                "size": said(copy.size_bytes), "vram": said(copy.vram_bytes), "params": said(copy.parameter_size),
                "quant": said(copy.quantization), "pinned": copy.is_pinned, "gpu": said(copy.gpu_percent),
                "aliases": [] if copy.traits is None else list(copy.traits.aliases),
                "adapters": [] if copy.traits is None else list(copy.traits.adapters),
                "max": None if copy.traits is None else said(copy.traits.max_context),
            }
            for copy in reading.loaded
        ],
        "installed": None if isinstance(reading.installed, Unknown) else [m.name for m in reading.installed],
        "capabilities": None if isinstance(reading.installed, Unknown) else [
            [] if model.traits is None else list(model.traits.capabilities) for model in reading.installed
        ],
        "running": said(reading.running),
        "waiting": said(reading.waiting),
        "kv": said(reading.kv_percent),
        "why": [value.reason for value in (reading.running, reading.waiting) if isinstance(value, Unknown)],
        "sleeping": said(reading.is_sleeping),
        "in_flight": None if load is None else said(load.in_flight),
        "prompt_s": None if load is None else said(load.prompt_tokens_s),
        "generated_s": None if load is None else said(load.generated_tokens_s),
        "generated": None if load is None else said(load.generated_tokens),
        "key": traits.needs_key,
        "router": traits.is_router,
        "slots": said(traits.slots),
        "cache": said(traits.cache_tokens),
        "max_loaded": said(traits.max_loaded),
        "can_sleep": said(traits.can_sleep),
        "refused": list(traits.refused),
    }  # fmt: skip


Row = tuple[EngineKind, str, str, int, dict[str, Any]]
TINY = {"name": "tiny-a", "state": "loaded", "ctx": 1024, "max": 8192, "size": 2499072, "params": "624.77K"}

ROWS: list[Row] = [
    # -- vLLM, captured
    ("vllm", "/v1/models", "engines/vllm_v1_models.json", 200, {
        "state": "ok", "loaded": [{"name": "acme/tiny-llama", "ctx": 2048, "aliases": [], "adapters": []}],
        "installed": ["acme/tiny-llama"]}),
    ("vllm", "/version", "engines/vllm_version.json", 200, {"version": "0.32.0"}),
    ("vllm", "/load", "engines/vllm_load_busy.json", 200, {"in_flight": 3, "running": 3, "waiting": None}),
    ("vllm", "/load", "engines/vllm_load_idle.json", 200, {"in_flight": None, "running": None}),
    ("vllm", "/is_sleeping", "engines/vllm_is_sleeping.json", 200, {"sleeping": False, "can_sleep": True}),
    ("vllm", "/v1/models", "engines/vllm_error_unknown_model_404.json", 404, {"state": "down", "loaded": None}),
    ("vllm", "/metrics", "engines/vllm_metrics_busy.txt", 200, {
        "running": 3, "waiting": 0, "kv": 0.0733, "sleeping": False, "cache": 524288, "generated": 355}),
    ("vllm", "/metrics", "engines/vllm_metrics_idle_excerpt.txt", 200, {
        "running": 0, "waiting": 0, "kv": 0, "sleeping": False, "cache": 524288, "generated": 0}),
    # -- vLLM, odd
    ("vllm", "/metrics", "servers/01-vllm-metrics-renamed-old.txt", 200, {"running": 2, "waiting": 1, "kv": 37.5}),
    ("vllm", "/metrics", "servers/01-vllm-metrics-renamed-new.txt", 200, {"running": 2, "waiting": 1, "kv": 37.5}),
    ("vllm", "/metrics", "servers/03-vllm-metrics-empty-empty.txt", 200, {
        "state": "ok", "running": None, "waiting": None, "why": ["metrics not available (stats logging is off)"] * 2}),
    ("vllm", "/metrics", "servers/03-vllm-metrics-empty-process-only.txt", 200, {
        "state": "ok", "running": None, "waiting": None, "kv": None, "generated": None}),
    ("vllm", "/v1/models", "servers/05-vllm-models-lora-and-alias.json", 200, {
        "loaded": [{"name": "Qwen/Qwen3-0.6B", "ctx": 32768, "aliases": ["fast"], "adapters": ["sql-lora"]}],
        "installed": ["Qwen/Qwen3-0.6B"]}),
    ("vllm", "/v1/models", "servers/07-api-key-vllm.json", 401, {
        "state": "unauthorized", "key": True, "error": "API key needed", "loaded": None}),
    ("vllm", "/is_sleeping", "servers/08-vllm-sleep.json", 200, {"sleeping": True}),
    ("vllm", "/is_sleeping", "servers/08-vllm-sleep-prod.json", 404, {
        "state": "ok", "error": None, "sleeping": None, "refused": ["/is_sleeping"]}),
    ("vllm", "/health", "servers/09-startup-and-dead-engine-health.txt", 503, {
        "state": "down", "error": "dead or not ready yet (/health says 503)"}),
    ("vllm", "/v1/models", "servers/09-startup-and-dead-engine-models.json", 200, {
        "loaded": [{"name": "Qwen/Qwen3-0.6B", "ctx": 32768}]}),
    # -- llama.cpp, captured
    ("llamacpp", "/v1/models", "engines/llamacpp_v1_models_single.json", 200, {
        "state": "ok", "router": False, "loaded": [{
            "name": "tiny-random.gguf", "aliases": ["/models/tiny-random.gguf"], "ctx": 2048, "max": 8192,
            "size": 2499072, "quant": "all F32", "vram": None}]}),
    ("llamacpp", "/props", "engines/llamacpp_props.json", 200, {
        "version": "b0-unknown", "slots": 2, "sleeping": False, "can_sleep": True, "router": False}),
    ("llamacpp", "/metrics", "engines/llamacpp_metrics_busy.txt", 200, {
        "running": 1, "waiting": 0, "kv": None, "prompt_s": 4792.07, "generated_s": 0}),
    ("llamacpp", "/metrics", "engines/llamacpp_metrics_idle.txt", 200, {
        "running": 0, "waiting": 0, "generated_s": 987.445, "generated": 8}),
    ("llamacpp", "/slots", "engines/llamacpp_slots_busy.json", 200, {"running": 1, "waiting": None, "slots": 2}),
    ("llamacpp", "/slots", "engines/llamacpp_slots_idle.json", 200, {"running": 0, "slots": 2}),
    ("llamacpp", "/health", "engines/llamacpp_health_ok.json", 200, {"state": "ok", "error": None}),
    ("llamacpp", "/health", "engines/llamacpp_health_loading_503.json", 503, {
        "state": "loading", "error": None, "loaded": None, "running": None}),
    ("llamacpp", "/v1/models", "engines/llamacpp_router_models_unloaded.json", 200, {
        "state": "ok", "router": True, "loaded": [], "installed": ["tiny-a", "tiny-b"]}),
    ("llamacpp", "/v1/models", "engines/llamacpp_router_models_loading.json", 200, {
        "state": "ok", "loaded": [{"name": "tiny-a", "state": "loading", "ctx": None}]}),
    ("llamacpp", "/v1/models", "engines/llamacpp_router_models_loaded.json", 200, {
        "state": "ok", "router": True, "loaded": [TINY], "installed": ["tiny-a", "tiny-b"]}),
    ("llamacpp", "/v1/models", "engines/llamacpp_router_models_failed.json", 200, {
        "state": "ok", "error": "could not load broken: see its log", "loaded": [],
        "installed": ["broken", "tiny-a"]}),
    ("llamacpp", "/props", "engines/llamacpp_router_props.json", 200, {
        "router": True, "max_loaded": 2, "slots": None, "sleeping": None}),
    ("llamacpp", "/metrics", "engines/llamacpp_router_metrics_no_model_400.json", 400, {
        "state": "ok", "running": None, "waiting": None}),
    ("llamacpp", "/metrics?autoload=false&model=tiny-b", "engines/llamacpp_router_not_loaded_400.json", 400, {
        "running": None, "waiting": None}),
    ("llamacpp", "/v1/models", "engines/llamacpp_router_load_unknown_404.json", 404, {
        "state": "down", "error": "HTTP 404: File Not Found"}),
    # -- llama.cpp, odd
    ("llamacpp", "/props", "servers/07-api-key-llama.json", 401, {
        "state": "unauthorized", "key": True, "error": "API key needed"}),
    ("llamacpp", "/metrics", "servers/10-llama-metrics-501.json", 501, {
        "state": "ok", "running": None, "why": BOTH, "refused": ["/metrics"]}),
    ("llamacpp", "/slots", "servers/10-llama-metrics-501-slots.json", 501, {"state": "ok", "refused": ["/slots"]}),
    ("llamacpp", "/metrics", "servers/12-llama-metrics-names-new.txt", 200, {
        "running": 1, "waiting": 0, "generated_s": 56.2, "prompt_s": 812.4, "kv": None, "generated": 2810}),
    ("llamacpp", "/metrics", "servers/12-llama-metrics-names-old.txt", 200, {"running": 1, "waiting": 0, "kv": 34}),
    ("llamacpp", "/v1/models", "servers/13-llama-models-two-lists-current.json", 200, {
        "state": "ok", "installed": ["qwen3-8b"], "loaded": [{
            "name": "qwen3-8b", "state": "loaded", "ctx": 8192, "max": 40960, "size": SIZE, "params": "8.19B",
            "quant": "Q4_K - Medium", "aliases": []}]}),
    ("llamacpp", "/v1/models", "servers/13-llama-models-two-lists-loading.json", 200, {
        "state": "loading", "loaded": [{"name": "qwen3-8b", "state": "loading", "ctx": None, "max": None}]}),
    ("llamacpp", "/v1/models", "servers/13-llama-models-two-lists-path.json", 200, {
        "loaded": [{"name": "Qwen3-8B-Q4_K_M.gguf", "aliases": [QWEN], "ctx": 8192}]}),
    ("llamacpp", "/health", "servers/14-llama-loading-503.json", 503, {"state": "loading", "error": None}),
    ("llamacpp", "/health", "servers/14-llama-loading-503-ok.json", 200, {"state": "ok"}),
    ("llamacpp", "/metrics", "servers/16-router-polling-loads-models.json", 400, {"state": "ok", "running": None}),
    # -- LM Studio
    ("lmstudio", "/api/v0/models", "servers/20-lmstudio-models-v0.json", 200, {
        "state": "ok", "loaded": [{"name": "google/gemma-4-12b-qat", "ctx": 122880, "max": 262144, "quant": "Q4_0"}],
        "installed": ["google/gemma-4-12b-qat", "text-embedding-nomic-embed-text-v1.5"],
        "capabilities": [["vision", "tool_use"], ["embedding"]]}),
    ("lmstudio", "/api/v1/models", "servers/20-lmstudio-models-v1.json", 200, {
        "state": "ok", "loaded": [{"name": "google/gemma-4-12b-qat", "ctx": 122880, "max": 262144}],
        "installed": ["google/gemma-4-12b-qat", "text-embedding-nomic-embed-text-v1.5"],
        "capabilities": [[], ["embedding"]]}),
    ("lmstudio", "/api/v0/models", "servers/20-lmstudio-models-openai.json", 200, {
        "state": "not_an_engine", "loaded": None}),
    ("lmstudio", "/api/v0/models", "servers/19-lmstudio-200-for-unknown.json", 200, {
        "state": "ok", "loaded": None, "refused": ["/api/v0/models"]}),
    ("ollama", "/api/ps", "servers/19-lmstudio-200-for-unknown-ps.json", 200, {
        "state": "not_an_engine", "loaded": None,
        "error": "the port answers with LM Studio's error: Unexpected endpoint or method. (GET /api/ps)"}),
    # -- SGLang
    ("sglang", "/metrics", "servers/21-sglang-metrics-colon.txt", 200, {
        "running": 3, "waiting": 1, "kv": 42, "generated_s": 95.1}),
    ("sglang", "/metrics", "servers/21-sglang-metrics-underscore.txt", 200, {"running": 3, "waiting": 1, "kv": None}),
    ("sglang", "/metrics", "servers/21-sglang-metrics-off.json", 404, {
        "state": "ok", "running": None, "refused": ["/metrics"],
        "why": ["metrics off (start SGLang with --enable-metrics)"] * 2}),
    # -- Ollama
    ("ollama", "/api/ps", "engines/ollama_ps_partial_offload_docs.json", 200, {
        "loaded": [{"name": "gemma4", "state": "stopping", "gpu": 81, "ctx": 4096, "vram": 5333539264}]}),
    ("ollama", "/api/ps", "engines/ollama_ps_pinned_qwen35_64k.json", 200, {
        "loaded": [{"name": "acme-qwen3.8-27b-64k:latest", "pinned": True, "gpu": 100, "ctx": 65536}]}),
    ("ollama", "/api/ps", "engines/ollama_ps_qwen25coder_16k.json", 200, {
        "loaded": [{"name": "qwen2.5-coder:32b", "pinned": True, "ctx": 16384, "state": "loaded"}]}),
    ("ollama", "/api/ps", "engines/ollama_ps_no_context_length_2025-08.json", 200, {
        "loaded": [{"name": "gemma3:latest", "ctx": None, "gpu": 100}]}),
    ("ollama", "/api/tags", "engines/ollama_tags_docs.json", 200, {
        "installed": ["gemma4"], "capabilities": [[]]}),
    ("ollama", "/api/tags", "engines/ollama_tags_capabilities_0.32.9.json", 200, {
        "installed": ["qwen3.5:4b", "qwen3:4b-instruct-2507-q4_K_M"],
        "capabilities": [["completion", "tools", "thinking", "vision"], ["completion", "tools"]]}),
    ("ollama", "/api/version", "engines/ollama_version_docs.json", 200, {"version": "0.12.6"}),
    ("ollama", "/api/ps", "engines/ollama_error_busy_503.json", 503, {"state": "busy", "error": "busy (queue full)"}),
    ("ollama", "/api/ps", "engines/ollama_error_not_found_404.json", 404, {
        "state": "not_an_engine", "error": "HTTP 404: model 'no-such:latest' not found"}),
]  # fmt: skip

NOT_OF_A_POLL = {
    "engines/vllm_completion_aborted_by_sigterm.json",
    "engines/llamacpp_router_load_ok.json",
    "engines/llamacpp_router_inflight_killed_by_unload_500.txt",
    "engines/ollama_embed_preload.json",
    "engines/ollama_generate_load.json",
    "engines/ollama_generate_unload.json",
    "engines/ollama_error_embed_via_generate_400.json",
    "engines/ollama_show_gemma4_docs.json",
    "engines/ollama_show_llama8b_model_info_docs.json",
}
"""Answers to what loads, unloads or generates, and to POST /api/show; below."""


def compare(expected: Any, observed: Any, where: str) -> None:
    """Each key that is expected; lists item by item and of one length."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            compare(value, observed[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert observed is not None, where
        assert len(observed) == len(expected), f"{where}: {observed}"
        for number, (want, have) in enumerate(zip(expected, observed, strict=True)):
            compare(want, have, f"{where}[{number}]")
    else:
        assert observed == expected, where


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2])
def test_sample(row: Row) -> None:
    kind, path, name, status, expected = row
    compare(expected, describe(read(kind, path, name, status)), name)


def test_no_sample_is_left_out() -> None:
    files = {
        f"{folder}/{path.name}" for folder in ("engines", "servers") for path in (FIXTURES / folder).iterdir()
    }
    assert files == {row[2] for row in ROWS} | NOT_OF_A_POLL


@pytest.mark.parametrize("kind", PROBES)
@pytest.mark.parametrize("name", sorted(NOT_OF_A_POLL))
def test_answers_to_other_requests_are_no_reading(kind: EngineKind, name: str) -> None:
    """Whatever path they come under: nothing loaded, nothing counted, and never idle."""
    status = int(name.rpartition("_")[2][:3]) if name.rpartition("_")[2][:3].isdigit() else 200
    for question in PROBES[kind].questions:
        reading = PROBES[kind].read_answers(7, {question.path: answer(body_of(name), status)})
        if question.is_vital and question.path != "/health":
            assert reading.state != "ok", (question.path, reading)
        assert not said(reading.loaded)
        assert said(reading.running) is None
        assert said(reading.waiting) is None


@pytest.mark.parametrize(("name", "longest"), [("gemma4_docs", 131072), ("llama8b_model_info_docs", 8192)])
def test_longest_context_of_show(name: str, longest: int) -> None:
    assert ollama.parse_show(200, (), body_of(f"engines/ollama_show_{name}.json")) == longest


def test_longest_context_of_tags() -> None:
    installed = read("ollama", "/api/tags", "engines/ollama_tags_capabilities_0.32.9.json").installed
    assert not isinstance(installed, Unknown)
    assert [model.traits and model.traits.max_context for model in installed] == [262144, 262144]


# -- whose answer it is ------------------------------------------------------------------------------

SIGNS: list[tuple[str, str, int, EngineKind | None]] = [
    ("/v1/models", "engines/vllm_v1_models.json", 200, "vllm"),
    ("/v1/models", "servers/05-vllm-models-lora-and-alias.json", 200, "vllm"),
    ("/metrics", "engines/vllm_metrics_busy.txt", 200, "vllm"),
    ("/metrics", "servers/01-vllm-metrics-renamed-old.txt", 200, "vllm"),
    ("/v1/models", "engines/llamacpp_v1_models_single.json", 200, "llamacpp"),
    ("/v1/models", "engines/llamacpp_router_models_unloaded.json", 200, "llamacpp"),
    ("/v1/models", "engines/llamacpp_health_loading_503.json", 503, "llamacpp"),
    ("/props", "engines/llamacpp_props.json", 200, "llamacpp"),
    ("/props", "engines/llamacpp_router_props.json", 200, "llamacpp"),
    ("/metrics", "engines/llamacpp_metrics_idle.txt", 200, "llamacpp"),
    ("/v1/models", "servers/20-lmstudio-models-openai.json", 200, "lmstudio"),
    ("/api/v0/models", "servers/20-lmstudio-models-v0.json", 200, "lmstudio"),
    ("/props", "servers/19-lmstudio-200-for-unknown.json", 200, "lmstudio"),
    ("/metrics", "servers/19-lmstudio-200-for-unknown.json", 200, "lmstudio"),
    ("/api/ps", "servers/19-lmstudio-200-for-unknown-ps.json", 200, "lmstudio"),
    ("/metrics", "servers/21-sglang-metrics-colon.txt", 200, "sglang"),
    ("/api/ps", "engines/ollama_ps_qwen25coder_16k.json", 200, "ollama"),
    ("/", "samples/ollama/25-busy-or-hanging-root.txt", 200, "ollama"),
    # what anybody may say
    ("/metrics", "servers/03-vllm-metrics-empty-empty.txt", 200, None),
    ("/metrics", "servers/03-vllm-metrics-empty-process-only.txt", 200, None),
    ("/metrics", "servers/21-sglang-metrics-off.json", 404, None),
    ("/v1/models", "servers/07-api-key-vllm.json", 401, None),
    ("/api/ps", "samples/ollama/11-ps-404-old-server.txt", 404, None),
    ("/api/ps", "samples/ollama/10-ps-empty-empty.json", 200, None),
    ("/props", "servers/07-api-key-llama.json", 401, None),
    ("/health", "servers/14-llama-loading-503-ok.json", 200, None),
    ("/health", "servers/09-startup-and-dead-engine-health.txt", 503, None),
    ("/version", "engines/vllm_version.json", 200, None),
]


@pytest.mark.parametrize(("path", "name", "status", "kind"), SIGNS)
def test_engines_are_told_apart_by_what_they_say(
    path: str, name: str, status: int, kind: EngineKind | None
) -> None:
    claims = [probe.kind for probe in PROBES.values() if probe.recognise(path, answer(body_of(name), status))]
    assert claims == ([] if kind is None else [kind])


@pytest.mark.parametrize(
    "path", ["/", "/v1/models", "/metrics", "/props", "/running", "/api/ps", "/api/v0/models"]
)
@pytest.mark.parametrize("status", [200, 204, 400, 401, 403, 404, 405, 500, 501, 503])
@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"null", b'{"object":"list","data":[]}', b"<html>", b"OK"]
)
def test_no_engine_is_recognised_by_the_status_alone(path: str, status: int, body: bytes) -> None:
    assert [probe.kind for probe in PROBES.values() if probe.recognise(path, answer(body, status))] == []


@pytest.mark.parametrize(
    ("kind", "name", "title"),
    [
        ("vllm", "engines/llamacpp_v1_models_single.json", "llama.cpp"),
        ("sglang", "engines/vllm_v1_models.json", "vLLM"),
        ("llamacpp", "engines/vllm_v1_models.json", "vLLM"),
        ("vllm", "servers/20-lmstudio-models-openai.json", "LM Studio"),
    ],
)
def test_another_engine_at_the_port_is_named(kind: EngineKind, name: str, title: str) -> None:
    reading = read(kind, "/v1/models", name)
    assert (reading.state, reading.error) == ("not_an_engine", f"{title} answers there")
    assert isinstance(reading.loaded, Unknown)
