# ruff: noqa: E501 - answers as engines give them
"""Engines over several polls: what is asked when, what stays, what is forgotten; metrics; names of models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleettui.config.machine_schema import DEFAULT_PORTS
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.machine import EngineKind
from fleettui.model.readings import EngineReading, ModelTraits
from fleettui.model.unknown import Unknown
from fleettui.net.http1 import AnswerReader
from fleettui.probes.engines import PROBES, draft, llamacpp, llamaswap, metrics, model_lists, vllm
from fleettui.probes.engines.answers import TextAnswer

FIXTURES = Path(__file__).parent.parent / "fixtures"
KINDS = list(PROBES)


def sample(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def answer(body: bytes | object, status: int = 200) -> TextAnswer:
    return TextAnswer(status, (), body if isinstance(body, bytes) else json.dumps(body).encode(), 1000.0)


NOT_FOUND = answer({"detail": "Not Found"}, 404)
NO_METRICS = answer(sample("servers/10-llama-metrics-501.json"), 501)
VLLM_MODELS = answer(sample("engines/vllm_v1_models.json"))
LLAMA_MODELS = answer(sample("engines/llamacpp_v1_models_single.json"))
LLAMA_PROPS = answer(sample("engines/llamacpp_props.json"))
ROUTER_MODELS = answer(sample("engines/llamacpp_router_models_loaded.json"))
HEALTHY = answer(b"")


def read(kind: EngineKind, previous: EngineReading | None = None, **answers: TextAnswer) -> EngineReading:
    """Answers by the last part of their path: `models=…` is that to `/v1/models`."""
    paths = {question.path.rpartition("/")[2]: question.path for question in PROBES[kind].questions}
    found = {paths[name]: value for name, value in answers.items()}
    return PROBES[kind].read_answers(7, found, previous)


def asked(kind: EngineKind, reading: EngineReading | None) -> set[str]:
    return {question.path for question in PROBES[kind].questions if question.may_ask(reading)}


def needs_key(reading: EngineReading) -> bool:
    return reading.traits is not None and reading.traits.needs_key


def states(reading: EngineReading) -> list[str]:
    assert not isinstance(reading.loaded, Unknown)
    return [copy.state for copy in reading.loaded]


# -- the registry ------------------------------------------------------------------------------------


def test_the_registry_agrees_with_the_rest() -> None:
    assert {kind: probe.default_port for kind, probe in PROBES.items()} == DEFAULT_PORTS
    assert {kind: probe.label for kind, probe in PROBES.items()} == ENGINE_TITLES
    assert all(kind == probe.kind for kind, probe in PROBES.items())


@pytest.mark.parametrize("kind", KINDS)
def test_questions_load_wake_and_start_nothing(kind: EngineKind) -> None:
    probe = PROBES[kind]
    paths = [question.path for question in probe.questions]
    assert len(paths) == len(set(paths))
    assert any(question.is_vital and not question.every_s for question in probe.questions)
    never = (
        "/generate",
        "/chat",
        "/embed",
        "/completion",
        "/load_",
        "/unload",
        "/upstream",
        "/sleep",
        "/wake",
    )
    for path in (*paths, *probe.sign_paths):
        assert path.startswith("/")
        assert not any(word in path for word in never), path
    if kind == "sglang":  # there a look at /health is a request, and the other holds keys
        assert not {"/health", "/health_generate", "/get_server_info", "/server_info"} & set(paths)
    if kind == "llamacpp":
        assert "/slots" not in probe.sign_paths
        assert "/metrics" not in probe.sign_paths


@pytest.mark.parametrize("kind", KINDS)
def test_no_answer_is_down_and_nothing_is_known_to_be_idle(kind: EngineKind) -> None:
    reading = PROBES[kind].read_failure(7, "connection refused")
    assert (reading.state, reading.error) == ("down", "connection refused")
    assert isinstance(reading.loaded, Unknown)
    assert isinstance(reading.running, Unknown)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ollama"])
def test_the_same_answers_give_the_same_object(kind: EngineKind) -> None:
    """Whoever compares readings finds at once that nothing changed."""
    body: Any = {
        "llamaswap": {"running": [{"model": "m", "state": "ready"}]},
        "lmstudio": json.loads(sample("servers/20-lmstudio-models-v0.json")),
        "vllm": json.loads(VLLM_MODELS.body), "llamacpp": json.loads(LLAMA_MODELS.body),
        "sglang": json.loads(VLLM_MODELS.body.replace(b'"vllm"', b'"sglang"')),
    }[kind]  # fmt: skip
    vital = next(
        question.path
        for question in PROBES[kind].questions
        if (question.is_vital or question.lists_copies) and question.path != "/health"
    )
    found = {vital: answer(body)}
    first = PROBES[kind].read_answers(7, found)
    assert states(first) == ["loaded"]
    assert PROBES[kind].read_answers(7, found, first) is first


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_answers_in_any_pieces_give_the_same_reading(kind: EngineKind, data: st.DataObject) -> None:
    names = {
        "ollama": "samples/ollama/06-ps-date-formats.json", "vllm": "engines/vllm_metrics_idle_excerpt.txt",
        "llamacpp": "engines/llamacpp_router_models_loaded.json", "llamaswap": "engines/vllm_v1_models.json",
        "lmstudio": "servers/20-lmstudio-models-v0.json", "sglang": "servers/21-sglang-metrics-colon.txt",
    }  # fmt: skip
    body = sample(names[kind])
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:100], body[100:]))
    stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reader = AnswerReader()
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        reader.receive_data(stream[start:stop])
    assert reader.is_complete
    for question in PROBES[kind].questions:
        whole = PROBES[kind].read_answers(7, {question.path: answer(body)})
        assert PROBES[kind].read_answers(7, {question.path: answer(reader.body)}) == whole


# -- vLLM --------------------------------------------------------------------------------------------


def test_vllm_dead_engine_is_down_though_it_lists_models() -> None:
    dead = answer(b"", 503)
    reading = read("vllm", health=dead, models=VLLM_MODELS)
    assert (reading.state, isinstance(reading.loaded, Unknown)) == ("down", True)
    assert read("vllm", reading, models=VLLM_MODELS).state == "down"
    again = read("vllm", reading, health=HEALTHY, models=VLLM_MODELS)
    assert (again.state, again.error, states(again)) == ("ok", None, ["loaded"])


def test_vllm_after_a_lost_connection_is_up_with_its_first_answer() -> None:
    down = PROBES["vllm"].read_failure(7, "refused", read("vllm", health=HEALTHY, models=VLLM_MODELS))
    assert (down.state, isinstance(down.loaded, Unknown), isinstance(down.installed, Unknown)) == (
        "down",
        True,
        False,
    )
    assert states(read("vllm", down, models=VLLM_MODELS)) == ["loaded"]


def test_vllm_with_a_key_is_up_and_tells_its_load() -> None:
    reading = read(
        "vllm", health=HEALTHY, models=answer({"error": "Unauthorized"}, 401),
        metrics=answer(sample("engines/vllm_metrics_busy.txt")),
    )  # fmt: skip
    assert (reading.state, needs_key(reading), reading.running, reading.waiting) == (
        "unauthorized",
        True,
        3,
        0,
    )
    later = read("vllm", reading, health=HEALTHY)
    assert (later.state, later.error) == ("unauthorized", "API key needed")
    assert later is reading
    opened = read("vllm", later, models=VLLM_MODELS)
    assert (opened.state, needs_key(opened), opened.running) == ("ok", False, 3)


def test_vllm_asleep_and_awake_again() -> None:
    reading = read("vllm", models=VLLM_MODELS, is_sleeping=answer({"is_sleeping": True}))
    assert states(reading) == ["sleeping"]
    assert states(read("vllm", reading, is_sleeping=answer({"is_sleeping": False}))) == ["loaded"]


def test_vllm_sleep_state_of_the_metrics_counts_where_nothing_better_is() -> None:
    asleep = sample("engines/vllm_metrics_idle_excerpt.txt").replace(b'"awake"} 1.0', b'"awake"} 0.0')
    reading = read("vllm", models=VLLM_MODELS, metrics=answer(asleep), is_sleeping=NOT_FOUND)
    assert states(reading) == ["sleeping"]
    assert "/is_sleeping" not in asked("vllm", reading)
    # /is_sleeping is newer than metrics, which lag some seconds.
    reading = read("vllm", models=VLLM_MODELS, is_sleeping=answer({"is_sleeping": False}))
    assert states(read("vllm", reading, metrics=answer(asleep))) == ["loaded"]


def test_vllm_load_of_0_is_idle_only_where_requests_are_counted() -> None:
    zero, three = answer({"server_load": 0}), answer({"server_load": 3})
    reading = read("vllm", load=zero)
    assert isinstance(reading.running, Unknown)
    reading = read("vllm", reading, load=three)
    assert (reading.running, reading.load and reading.load.in_flight) == (3, 3)
    reading = read("vllm", reading, load=zero)
    assert (reading.running, reading.waiting, reading.load and reading.load.in_flight) == (0, 0, 0)
    away = PROBES["vllm"].read_failure(7, "refused", reading)
    assert isinstance(read("vllm", away, load=zero).running, Unknown)


@pytest.mark.parametrize(
    ("running", "waiting", "load", "expected"),
    [(2, 1, 3, (2, 1)), (0, 0, 3, (3, 0)), (2, 1, 5, (4, 1)), (0, 4, 3, (3, None)), (2, 1, 0, (0, 0))],
)
def test_vllm_load_is_newer_than_the_metrics(
    running: int, waiting: int, load: int, expected: tuple[int, int | None]
) -> None:
    text = f'vllm:num_requests_running{{engine="0"}} {running}\nvllm:num_requests_waiting{{engine="0"}} {waiting}\n'
    reading = read("vllm", read("vllm", load=answer({"server_load": 1})), metrics=answer(text.encode()))
    reading = read("vllm", reading, load=answer({"server_load": load}))
    known = [None if isinstance(value, Unknown) else value for value in (reading.running, reading.waiting)]
    assert tuple(known) == expected


def test_vllm_engines_of_one_server_are_added_up() -> None:
    text = b"".join(
        b'vllm:num_requests_running{engine="%d",model_name="m"} %d\n'
        b'vllm:num_requests_waiting{engine="%d",model_name="m"} 1\n'
        b'vllm:kv_cache_usage_perc{engine="%d",model_name="m"} 0.%d\n'
        b'vllm:engine_sleep_state{engine="%d",model_name="m",sleep_state="awake"} 1.0\n'
        b'vllm:cache_config_info{engine="%d",block_size="16",num_gpu_blocks="1000"} 1.0\n'
        % (number, number + 1, number, number, number + 2, number, number)
        for number in range(2)
    )
    said = vllm.parse_metrics(text + b'vllm:gpu_cache_usage_perc{engine="0"} 0.9\n')
    assert (said.running, said.waiting, said.kv_percent, said.is_sleeping, said.cache_tokens) == (
        3,
        2,
        30,
        False,
        32000,
    )


def test_what_an_engine_refused_is_asked_again_after_it_was_away() -> None:
    reading = read("vllm", models=VLLM_MODELS, load=NOT_FOUND, is_sleeping=NOT_FOUND, metrics=NOT_FOUND)
    assert asked("vllm", reading) == {"/health", "/v1/models", "/version"}
    assert asked("vllm", PROBES["vllm"].read_failure(7, "refused", reading)) == asked("vllm", None)


# -- llama.cpp ---------------------------------------------------------------------------------------


def test_llamacpp_sleeping_is_left_alone() -> None:
    awake = read("llamacpp", models=LLAMA_MODELS, props=LLAMA_PROPS)
    assert asked("llamacpp", awake) == {"/v1/models", "/metrics", "/props"}
    asleep = answer(LLAMA_PROPS.body.replace(b'"is_sleeping": false', b'"is_sleeping": true'))
    reading = read("llamacpp", awake, props=asleep)
    assert (states(reading), reading.running, reading.waiting) == (["sleeping"], 0, 0)
    assert asked("llamacpp", reading) == {"/v1/models", "/props"}
    assert llamacpp.busy_paths(reading) == ()
    assert states(read("llamacpp", reading, models=LLAMA_MODELS)) == ["sleeping"]
    woken = read("llamacpp", reading, props=LLAMA_PROPS)
    assert (states(woken), isinstance(woken.running, Unknown)) == (["loaded"], True)


def test_llamacpp_without_figures_of_its_model_sleeps_or_loads() -> None:
    bare = answer(sample("servers/13-llama-models-two-lists-loading.json"))
    asleep = answer(LLAMA_PROPS.body.replace(b'"is_sleeping": false', b'"is_sleeping": true'))
    reading = read("llamacpp", read("llamacpp", models=LLAMA_MODELS, props=asleep), models=bare)
    assert (reading.state, states(reading)) == ("ok", ["sleeping"])


def test_llamacpp_of_another_build_is_asked_for_metrics_again() -> None:
    reading = read("llamacpp", models=LLAMA_MODELS, props=LLAMA_PROPS, metrics=NO_METRICS)
    assert "/metrics" not in asked("llamacpp", read("llamacpp", reading, props=LLAMA_PROPS))
    other = answer(LLAMA_PROPS.body.replace(b"b0-unknown", b"b7000-abc"))
    assert "/metrics" in asked("llamacpp", read("llamacpp", reading, props=other))


def test_llamacpp_slots_are_looked_at_where_that_keeps_nobody_awake() -> None:
    """A look at /slots resets the idle timer; builds without `is_sleeping` have none."""
    old_build = answer(
        {key: value for key, value in json.loads(LLAMA_PROPS.body).items() if key != "is_sleeping"}
    )
    for props, polled, on_demand in ((LLAMA_PROPS, False, True), (old_build, True, False)):
        reading = read("llamacpp", models=LLAMA_MODELS, props=props)
        assert "/slots" not in asked("llamacpp", reading)
        assert llamacpp.busy_paths(reading) == ()
        reading = read("llamacpp", reading, metrics=NO_METRICS)
        assert "/metrics" not in asked("llamacpp", reading)
        assert ("/slots" in asked("llamacpp", reading)) is polled
        assert (llamacpp.busy_paths(reading) == ("/slots",)) is on_demand
        busy = read("llamacpp", reading, slots=answer(sample("engines/llamacpp_slots_busy.json")))
        assert busy.running == 1
        off = read("llamacpp", reading, slots=answer(sample("servers/10-llama-metrics-501-slots.json"), 501))
        assert "/slots" not in asked("llamacpp", off)
        assert llamacpp.busy_paths(off) == ()


def test_llamacpp_loading_until_its_list_says_otherwise() -> None:
    busy = answer(sample("engines/llamacpp_health_loading_503.json"), 503)
    reading = read("llamacpp", models=busy, health=busy)
    assert (reading.state, reading.error, reading.is_answering) == ("loading", None, True)
    assert "/metrics" not in asked("llamacpp", reading)
    assert "/health" in asked("llamacpp", reading)
    half = read("llamacpp", reading, models=answer(sample("servers/13-llama-models-two-lists-loading.json")))
    assert (half.state, states(half)) == ("loading", ["loading"])
    ready = read(
        "llamacpp", half, models=LLAMA_MODELS, health=answer(sample("engines/llamacpp_health_ok.json"))
    )
    assert (ready.state, states(ready)) == ("ok", ["loaded"])
    assert "/health" not in asked("llamacpp", ready)


def test_llamacpp_router_is_asked_for_its_list_alone() -> None:
    """Ten polls: no question names a model, but when somebody wants to know who is busy, then a loaded one."""
    reading: EngineReading | None = None
    for _ in range(10):
        for path in sorted(asked("llamacpp", reading)):
            assert path in ("/v1/models", "/health", "/props"), path
        reading = read(
            "llamacpp",
            reading,
            models=ROUTER_MODELS,
            props=answer(sample("engines/llamacpp_router_props.json")),
        )
    assert reading is not None
    assert llamacpp.busy_paths(reading) == ("/metrics?autoload=false&model=tiny-a",)
    for name in ("unloaded", "loading"):
        other = read("llamacpp", models=answer(sample(f"engines/llamacpp_router_models_{name}.json")))
        assert llamacpp.busy_paths(other) == ()
    asleep = ROUTER_MODELS.body.replace(b'"value": "loaded"', b'"value": "sleeping"')
    reading = read("llamacpp", models=answer(asleep))
    assert (states(reading), llamacpp.busy_paths(reading)) == (["sleeping"], ())


def test_llamacpp_router_adds_up_its_loaded_models() -> None:
    reading = read("llamacpp", models=ROUTER_MODELS)
    one, other = (f"/metrics?autoload=false&model={name}" for name in ("a", "b"))
    busy, idle = (answer(sample(f"engines/llamacpp_metrics_{name}.txt")) for name in ("busy", "idle"))
    both = PROBES["llamacpp"].read_answers(7, {one: busy, other: idle}, reading)
    assert (both.running, both.waiting) == (1, 0)
    assert isinstance(draft.without_load(both, "not asked").running, Unknown)
    half = PROBES["llamacpp"].read_answers(7, {one: busy, other: NO_METRICS}, reading)
    assert isinstance(half.running, Unknown)


def test_llamacpp_names_of_a_router_are_quoted() -> None:
    rows = [
        {"id": name, "owned_by": "llamacpp", "status": {"value": "loaded"}}
        for name in ("ggml-org/gemma-3-4b-it-GGUF:Q4_K_M", "a b&autoload=true#", "x" * 300)
    ]
    reading = read("llamacpp", models=answer({"data": rows}))
    assert [path.rpartition("=")[2] for path in llamacpp.busy_paths(reading)] == [
        "ggml-org%2Fgemma-3-4b-it-GGUF%3AQ4_K_M", "a%20b%26autoload%3Dtrue%23",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("/models/a.gguf", "a.gguf"), ("../m/a.gguf", "a.gguf"), ("C:\\models\\a.gguf", "a.gguf"),
        ("qwen3-8b", "qwen3-8b"), ("org/model", "org/model"), ("/", "/"),
    ],
)  # fmt: skip
def test_llamacpp_id_may_be_a_path(name: str, short: str) -> None:
    reading = read("llamacpp", models=answer({"data": [{"id": name, "owned_by": "llamacpp"}]}))
    assert not isinstance(reading.loaded, Unknown)
    (copy,) = reading.loaded
    assert (copy.name, copy.names) == (short, None if name == short else ((name,), ()))


# -- llama-swap --------------------------------------------------------------------------------------

# Shapes: handleRunning and handleListModels of mostlygeek/llama-swap, internal/server/api.go; its own tests.
SWAP_RUNNING = answer({"running": [
    {"model": "m1", "state": "ready", "cmd": "llama-server --api-key s3cret", "proxy": "http://localhost:9999",
     "ttl": 300, "name": "Model One", "description": "the first model"},
    {"model": "m2", "state": "starting", "cmd": "", "proxy": "", "ttl": 0, "name": "", "description": ""},
    {"model": "m3", "state": "stopping"}, {"model": "m4", "state": "stopped"},
]})  # fmt: skip
SWAP_MODELS = answer({"object": "list", "data": [
    {"id": "gpt-4o", "object": "model", "owned_by": "llama-swap", "meta": {"llamaswap": {"type": "alias", "modelID": "m1"}}},
    {"id": "m1", "object": "model", "owned_by": "llama-swap", "status": {"value": "loaded"},
     "meta": {"llamaswap": {"type": "model", "aliases": ["gpt-4o", "big"]}, "n_ctx": 8192}},
    {"id": "m2", "object": "model", "owned_by": "llama-swap"},
    {"id": "far/m9", "object": "model", "owned_by": "llama-swap", "meta": {"llamaswap": {"type": "peer", "peerID": "far"}}},
    {"id": "auto", "object": "model", "owned_by": "llama-swap", "meta": {"llamaswap": {"type": "selector", "targets": ["m1"]}}},
]})  # fmt: skip


def test_llamaswap() -> None:
    reading = read(
        "llamaswap",
        running=SWAP_RUNNING,
        models=SWAP_MODELS,
        version=answer({"version": "211", "commit": "ab"}),
    )
    assert (reading.state, reading.version, states(reading)) == (
        "ok",
        "211",
        ["loaded", "loading", "stopping"],
    )
    assert not isinstance(reading.loaded, Unknown)
    assert not isinstance(reading.installed, Unknown)
    assert reading.loaded[0].traits == ModelTraits(("gpt-4o", "big"))
    assert [(model.name, model.remote_host) for model in reading.installed] == [
        ("m1", None),
        ("m2", None),
        ("far/m9", "far"),
    ]
    assert "s3cret" not in repr(reading)
    assert isinstance(reading.running, Unknown)
    again = read("llamaswap", reading, running=SWAP_RUNNING)
    assert again is reading


@pytest.mark.parametrize("body", [{}, {"running": None}, [], {"models": []}, {"error": "x"}])
def test_llamaswap_other_json_is_not_nothing_running(body: object) -> None:
    reading = read("llamaswap", running=answer(body))
    assert (reading.state, isinstance(reading.loaded, Unknown)) == ("not_an_engine", True)
    assert llamaswap.recognise("/running", answer(body)) is None


# -- LM Studio, SGLang, Ollama -----------------------------------------------------------------------


def test_lmstudio_falls_back_to_its_other_list() -> None:
    refusal = answer({"error": "Unexpected endpoint or method. (GET /api/v0/models)"})
    probe = PROBES["lmstudio"]
    assert asked("lmstudio", None) == {"/api/v0/models"}
    reading = probe.read_answers(7, {"/api/v0/models": refusal})
    assert asked("lmstudio", reading) == {"/api/v1/models"}
    found = probe.read_answers(
        7, {"/api/v1/models": answer(sample("servers/20-lmstudio-models-v1.json"))}, reading
    )
    assert states(found) == ["loaded"]
    old = probe.read_answers(7, {"/api/v1/models": refusal}, reading)
    assert (old.state, old.error) == ("ok", None)
    assert isinstance(old.loaded, Unknown)
    assert "too old" in old.loaded.reason


def test_sglang_ranks_tell_of_the_same_requests_and_servers_do_not() -> None:
    lines = [
        'sglang:num_running_reqs{dp_rank="0",tp_rank="0",priority=""} 3', 'sglang:num_running_reqs{dp_rank="0",tp_rank="1",priority=""} 3',
        'sglang:num_running_reqs{dp_rank="0",tp_rank="0",priority="1"} 2', 'sglang:num_running_reqs{dp_rank="1",tp_rank="0",priority=""} 1',
        'sglang:num_queue_reqs{dp_rank="0"} 40.0', 'sglang:token_usage{dp_rank="0"} 0.2', 'sglang:token_usage{dp_rank="1"} 0.7',
    ]  # fmt: skip
    said = read("sglang", metrics=answer("\n".join(lines).encode()))
    assert (said.running, said.waiting, said.kv_percent) == (4, 40, 70)


@pytest.mark.parametrize(
    "body",
    [
        {"status": "ok"},
        {"object": "list", "data": []},
        {"models": "x"},
        {"models": ["a"]},
        {"models": 3},
        [],
        "x",
        1,
    ],
)
def test_ollama_other_json_is_not_nothing_loaded(body: object) -> None:
    for path in ("/api/ps", "/api/tags"):
        reading = PROBES["ollama"].read_answers(7, {path: answer(body)})
        assert isinstance(reading.loaded if path == "/api/ps" else reading.installed, Unknown)


def test_ollama_cloud_entry_is_never_resident() -> None:
    items = [
        {"name": "deepseek-v3.2:cloud", "size": 339, "remote_host": "https://ollama.com:443"},
        {"name": "a:1"},
    ]
    reading = read("ollama", ps=answer({"models": items}))
    assert not isinstance(reading.loaded, Unknown)
    assert [copy.name for copy in reading.loaded] == ["a:1"]
    assert isinstance(reading.loaded[0].gpu_percent, Unknown), "no size_vram is not 0 on the GPU"


@pytest.mark.parametrize(
    "when", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T01:00:00.5+01:00", "", None]
)
def test_ollama_expiry_that_was_never_set_is_not_stopping(when: object) -> None:
    reading = read("ollama", ps=answer({"models": [{"name": "a:1", "expires_at": when}]}))
    assert states(reading) == ["loaded"]
    assert not isinstance(reading.loaded, Unknown)
    assert isinstance(reading.loaded[0].expires_at, Unknown)
    assert not reading.loaded[0].is_pinned


# -- metrics -----------------------------------------------------------------------------------------

LINES: list[tuple[str, list[float]]] = [
    ("x_a 1", [1]), ("x_a 1.5e1\r", [15]), ('x_a{l="v"} 2 1796000877000', [2]), ("x_a\t3", [3]), ("x_a  .5", [0.5]),
    ("x_a NaN", []), ("x_a +Inf", []), ("x_a -1", []), ("x_a 1_0", []), ("x_a 0x10", []), ("x_a ٣", []), ("x_a", []),
    ("x_ab 1", []), (" x_a 1", []), ("# HELP x_a 1", []), ('x_a{l="v} 2', []), ("x_a{ 2", []), ("x_a 1 2 3", []),
    ('x_a{l="} 9",m="\\"} 8"} 4', [4]), ("x_a 1e999", []), ("x_a 1e99999", []), ("x_a{} 5", [5]),
]  # fmt: skip


@pytest.mark.parametrize(("line", "values"), LINES)
def test_metrics_line(line: str, values: list[float]) -> None:
    text = f"# TYPE x_a gauge\n{line}\ny 1\n".encode()
    assert [item.value for item in metrics.scan_metrics(text, ("x_a", "x_abc")).get("x_a", ())] == values


@example({"a": 'q"\\\n}{,= x'})
@given(st.dictionaries(st.sampled_from(["a", "b_2", "model_name"]), st.text(max_size=12), max_size=3))
def test_metrics_labels_come_back(labels: dict[str, str]) -> None:
    if any("\r" in value for value in labels.values()):
        return
    written = ",".join(
        '{}="{}"'.format(name, value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\""))
        for name, value in labels.items()
    )
    (found,) = metrics.scan_metrics(f"x{{{written}}} 7\n".encode("utf-8", "replace"), ("x",))["x"]
    assert found.value == 7
    assert found.labels == {name: value.encode("utf-8", "replace").decode() for name, value in labels.items()}


def test_metrics_of_any_length_are_bounded() -> None:
    line = b'x{l="%d"} 1\n'
    text = b"".join(line % number for number in range(metrics.MAX_SERIES + 50))
    assert len(metrics.scan_metrics(text, ("x",))["x"]) == metrics.MAX_SERIES
    assert metrics.scan_metrics(b"y 1\n" * (metrics.MAX_METRICS_BYTES // 4) + b"x 1\n", ("x",)) == {}
    assert metrics.scan_metrics(b"x{" + b"a" * metrics.MAX_LINE_BYTES + b"} 1\n", ("x",)) == {}


@pytest.mark.parametrize("read_one", [metrics.as_count, metrics.as_percent, metrics.as_rate])
def test_no_sample_is_no_number(read_one: Callable[[float | None, Unknown], object]) -> None:
    assert read_one(None, Unknown("why")) == Unknown("why")
    assert metrics.as_count(1.5, Unknown("why")) == Unknown("why")
    assert metrics.as_count(1e30, Unknown("why")) == Unknown("why")
    assert metrics.as_percent(1.01, Unknown("why")) == Unknown("why")


# -- lists of models ---------------------------------------------------------------------------------


def test_a_list_of_ollama_with_models_of_users_is_ollamas() -> None:
    rows = [{"id": "a", "owned_by": "library"}, {"id": "b", "owned_by": "mannix"}]
    assert model_lists.find_owner(rows) == "ollama"
    assert model_lists.find_owner([*rows, {"id": "c", "owned_by": "vllm"}]) is None
    assert model_lists.find_owner([{"id": "c", "owned_by": "x"}]) is None


def test_served_names_of_one_model() -> None:
    rows = [
        {"id": "main", "root": "/w/a"}, {"id": "second", "root": "/w/a"}, {"id": "lora1", "root": "/l/1", "parent": "second"},
        {"id": "lora2", "root": "/l/2", "parent": "/w/a"}, {"id": "lora3", "parent": "elsewhere"},
    ]  # fmt: skip
    (copy,) = model_lists.read_served("vllm", rows)
    assert (copy.name, copy.names) == ("main", (("second",), ("lora1", "lora2", "lora3")))
    assert isinstance(copy.context, Unknown)
    two = model_lists.read_served(
        "sglang", [{"id": "a", "max_model_len": 5}, {"id": "b"}, {"id": "c", "parent": "z"}]
    )
    assert [(copy.name, copy.names) for copy in two] == [("a", None), ("b", None)]
