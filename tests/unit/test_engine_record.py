"""What the state of an engine's source says."""

from __future__ import annotations

import json

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
