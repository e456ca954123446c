"""The demo's vLLM and llama.cpp: the shapes of real ones, polled live, at work."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from fleettui.demo.clock import DemoClock
from fleettui.demo.fleet_plan import SideEngine
from fleettui.demo.launcher import DemoFleet
from fleettui.demo.served_model import ServedModel
from fleettui.demo.side_api import SideApi
from fleettui.demo.simulation import Simulation
from fleettui.fleet.oneshot import poll_fleet_once
from fleettui.fleet.service import FleetSettings
from fleettui.model.unknown import Unknown
from fleettui.probes.engines import PROBES, metrics

ENGINES = Path(__file__).parent.parent / "fixtures" / "engines"


def api_of(name: str) -> SideApi:
    simulation = Simulation()
    simulation.advance(120)
    machine = simulation.machines[name]
    clock = DemoClock(1.0, True, 120.0)
    return SideApi(machine, machine.served[0], clock)


def test_answers_have_the_shapes_of_real_ones() -> None:
    vllm, llama = api_of("dora"), api_of("app-host")
    for api, path, sample in (
        (vllm, "/v1/models", "vllm_v1_models.json"),
        (vllm, "/version", "vllm_version.json"),
        (vllm, "/load", "vllm_load_idle.json"),
        (llama, "/v1/models", "llamacpp_v1_models_single.json"),
        (llama, "/props", "llamacpp_props.json"),
        (llama, "/health", "llamacpp_health_ok.json"),
        (llama, "/slots", "llamacpp_slots_idle.json"),
    ):
        real, ours = json.loads((ENGINES / sample).read_bytes()), json.loads(api.read(path).body)
        real, ours = (part["data"][0] if "data" in part else part for part in (real, ours))
        real, ours = (part[0] if isinstance(part, list) else part for part in (real, ours))
        assert set(ours) <= set(real), path
        assert {type(real[key]) for key in ours} == {type(ours[key]) for key in ours}, path
    for api, sample in ((vllm, "vllm_metrics_busy.txt"), (llama, "llamacpp_metrics_busy.txt")):
        names = next(q.line_starts for q in PROBES[api.served.plan.kind].questions if q.path == "/metrics")
        ours = metrics.scan_metrics(api.read("/metrics").body, names)
        real = metrics.scan_metrics((ENGINES / sample).read_bytes(), names)
        assert set(ours) == set(real)
    assert (vllm.read("/is_sleeping").status, llama.read("/is_sleeping").status) == (404, 404)


def test_requests_come_wait_and_go() -> None:
    plan = SideEngine("llamacpp", "m", 4096, 2, 1.0, 3.0, "b1")
    served = ServedModel(plan, Random(1), 1)
    seen = set()
    for now in range(200):
        served.step(float(now), 1.0, True)
        seen.add((served.running, served.waiting > 0))
    assert {(0, False), (2, True)} <= seen | {(0, False)}
    assert max(running for running, _ in seen) == 2
    tokens = served.generated_tokens
    for now in range(200, 600):
        served.step(float(now), 1.0, False)
    assert (served.running, served.waiting) == (0, 0)
    assert served.generated_tokens > tokens


def test_both_are_polled_live(fleet: DemoFleet) -> None:
    """dora forwards nothing here: its vLLM is asked straight."""
    settings = FleetSettings(fleet.ready["machines_dir"], 2.0, only=("dora", "app-host"))
    snapshot = poll_fleet_once(settings, 20.0)
    found = {
        (machine.name, engine.kind): engine for machine in snapshot.machines for engine in machine.engines
    }
    for key, model, context in (
        (("dora", "vllm"), "Qwen/Qwen3-8B", 32768),
        (("app-host", "llamacpp"), "qwen2.5-coder-1.5b", 8192),
    ):
        engine = found[key]
        assert (engine.state, engine.error) == ("ok", None)
        assert not isinstance(engine.loaded, Unknown)
        assert [(copy.name, copy.context) for copy in engine.loaded] == [(model, context)]
        assert (engine.running, engine.waiting) == (0, 0)
    assert found["dora", "vllm"].path == "direct"
    assert found["dora", "vllm"].version == "0.32.0"
