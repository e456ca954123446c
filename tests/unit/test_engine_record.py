"""What the state of an engine's source says."""

from __future__ import annotations

import json

from fleettui.decide.stall import STALL_S, stall_text
from fleettui.fleet.engine_record import EngineRecord
from fleettui.model.machine import EngineEndpoint
from fleettui.net.link import HttpAnswer
from fleettui.probes.engines.answers import LLAMACPP_LOADING


def test_an_engine_that_loads_its_model_answers() -> None:
    endpoint = EngineEndpoint("llamacpp", 8080)
    record = EngineRecord(endpoint, [endpoint])
    body = json.dumps({"error": {"message": LLAMACPP_LOADING, "code": 503}}).encode()
    record.take(record.probe.vital_paths[0], HttpAnswer(503, (), body, 100.0), "tunnel", 100.0)
    assert record.reading is not None
    assert record.reading.state == "loading"
    assert (record.source.state, record.source.error) == ("ok", None)


def metrics(running: int, waiting: int, at: float) -> HttpAnswer:
    rows = [("num_running_reqs", running), ("num_queue_reqs", waiting)]
    lines = [
        f'# TYPE sglang:{name} gauge\nsglang:{name}{{model_name="m",tp_rank="0"}} {value}'
        for name, value in rows
    ]
    return HttpAnswer(200, (), "\n".join([*lines, ""]).encode(), at)


def test_a_queue_that_nothing_is_taken_from_is_told_after_several_polls() -> None:
    endpoint = EngineEndpoint("sglang", 30000)
    record = EngineRecord(endpoint, [endpoint])
    models = {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "sglang"}]}
    record.take("/v1/models", HttpAnswer(200, (), json.dumps(models).encode(), 99.0), "tunnel", 99.0)

    def text_at(now: float) -> str:
        assert record.reading is not None
        return stall_text(record.reading, now)

    record.take("/metrics", metrics(3, 40, 100.0), "tunnel", 100.0)
    assert record.reading is not None
    assert record.reading.stalled_since is None
    for now, waiting in ((102.0, 40), (104.0, 40), (106.0, 41)):
        record.take("/metrics", metrics(0, waiting, now), "tunnel", now)
    assert record.reading.stalled_since == 102.0
    assert text_at(110.0) == ""
    assert text_at(102.0 + STALL_S) == "0 running with 41 queued for 20 s: stuck?"
    record.take("/metrics", metrics(1, 40, 130.0), "tunnel", 130.0)
    assert text_at(131.0) == ""
    record.take("/metrics", metrics(0, 40, 132.0), "tunnel", 132.0)
    assert text_at(133.0) == "", "it begins anew"
    record.take("/metrics", metrics(0, 0, 140.0), "tunnel", 140.0)
    assert text_at(200.0) == "", "an empty queue is no trouble"
