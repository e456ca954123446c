"""An engine that loads its model: a note, no outage, and a copy that routing reaches last of the resident."""

from __future__ import annotations

from dataclasses import replace

from builders import NOW, make_copy, make_engine, make_snapshot
from fleettui.decide.engine_reasons import engine_reasons
from fleettui.decide.events import events_between
from fleettui.decide.routing import decide_route
from fleettui.model.route import RouteQuery
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Unknown


def with_engine(state: str, copy_state: str | None) -> MachineSnapshot:
    loaded = [make_copy("m", engine="vllm", state=copy_state)] if copy_state else []
    engine = make_engine(kind="vllm", port=8000, loaded=loaded, state=state)
    return make_snapshot(engines=(engine,))


def test_it_is_a_note() -> None:
    (reason,) = engine_reasons(with_engine("loading", "loading"), NOW)
    assert (reason.severity, reason.code, reason.text) == (
        "note", "engine_loading", "vLLM on port 8000 is loading its model",
    )  # fmt: skip


def test_it_is_not_down() -> None:
    ready, loading = with_engine("ok", "loaded"), with_engine("loading", "loading")
    assert [event.kind for event in events_between(ready, loading, NOW)] == []
    down = make_snapshot(engines=(make_engine(kind="vllm", port=8000, state="down", loaded=[]),))
    assert [event.kind for event in events_between(down, loading, NOW)][:1] == ["engine_up"]


def test_its_copy_comes_behind_one_that_is_ready() -> None:
    fleet = FleetSnapshot(1, NOW, 2.0, (with_engine("loading", "loading"),), (), "/etc/fleet")
    outcome = decide_route(fleet, RouteQuery("m"), NOW)
    assert [(item.machine, item.tier) for item in outcome.candidates] == [("ada", 3)]
    assert outcome.candidates[0].reason.startswith("loading")


def test_without_any_list_nobody_is_sent_there() -> None:
    engine = make_engine(
        kind="vllm", port=8000, state="loading", loaded=[], installed=[],
    )  # fmt: skip
    unknown = Unknown("loading the model")
    snapshot = make_snapshot(engines=(replace(engine, loaded=unknown, installed=unknown),))
    outcome = decide_route(FleetSnapshot(1, NOW, 2.0, (snapshot,), (), "/etc/fleet"), RouteQuery("m"), NOW)
    assert outcome.candidates == ()
    assert "vLLM on port 8000 is loading its model" in str(outcome.rejected)
