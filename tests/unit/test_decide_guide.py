"""The operator's guide: its client on our document and the strict rule pick the same machine."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, judged, make_card, make_copy, make_fleet, make_offline, make_pending, make_snapshot
from fleettui.decide.routing import decide_route
from fleettui.model.route import RouteQuery
from fleettui.model.snapshot import MachineSnapshot, SourceStatus
from fleettui.model.unknown import Unknown
from fleettui.model.vram import gib_of_mib
from fleettui.view.document import infrastructure_document

MODELS = ("llama3.1:70b", "qwen2.5:32b", "nomic-embed-text:latest")


def pick_machine_for(
    infrastructure: dict[str, Any], model: str, min_free_vram_gb: float = 0
) -> tuple[str, str]:
    """The guide's client: most free VRAM on one GPU among machines that are online with the model loaded."""
    suitable = []
    for machine in infrastructure["machines"]:
        if machine["status"] != "online" or model not in machine["loaded_models"]:
            continue
        gpus = machine["telemetry"].get("gpu", [])
        free = max((gpu["vram_free_gb"] for gpu in gpus), default=0)
        if free >= min_free_vram_gb:
            suitable.append((free, machine["name"], machine["network"]["hostname"]))
    if not suitable:
        raise LookupError(f"no machine has {model} loaded with {min_free_vram_gb} GB free")
    _, name, hostname = max(suitable, key=lambda item: item[0])
    return name, hostname


@st.composite
def machines(draw: st.DrawFn, name: str = "m") -> MachineSnapshot:
    """Any machine that is not taken out of routing."""
    kind = draw(st.sampled_from(["gpu", "gpu", "gpu", "cpu", "offline", "pending", "no_reading"]))
    if kind == "offline":
        return make_offline(name)
    if kind == "pending":
        return make_pending(name)
    models = draw(st.lists(st.sampled_from(MODELS), unique=True))
    states = draw(st.sampled_from(["loaded", "loaded", "loading", "stopping"]))
    copies = [
        make_copy(model, vram_gib=draw(st.sampled_from([0, 20, 39.6])), state=states) for model in models
    ]
    if kind == "cpu":
        return judged(make_snapshot(name, gpus=0, loaded=copies))
    count = draw(st.integers(1, 3))
    frees = [draw(st.integers(0, 24 * 1024)) for _ in range(count)]
    cards = [make_card(index, free_gib=free / 1024) for index, free in enumerate(frees)]
    snapshot = make_snapshot(name, gpus=count, cards=cards, loaded=copies)
    if kind == "no_reading":
        late = SourceStatus("late", since=NOW - 40)
        snapshot = replace(snapshot, gpu=None, sources={**snapshot.sources, "gpu": late})
    return judged(snapshot)


@st.composite
def fleets(draw: st.DrawFn) -> tuple[MachineSnapshot, ...]:
    return tuple(draw(machines(f"m{index}")) for index in range(draw(st.integers(0, 8))))


@given(fleets(), st.sampled_from(MODELS))
def test_the_guide_s_client_and_the_strict_rule_agree(fleet: tuple[MachineSnapshot, ...], model: str) -> None:
    snapshot = make_fleet(*fleet)
    document = json.loads(json.dumps(infrastructure_document(snapshot, NOW), allow_nan=False))
    decision = decide_route(snapshot, RouteQuery(model, require_loaded=True, takes_lease=False), NOW)
    if decision.chosen is None:
        with pytest.raises(LookupError):
            pick_machine_for(document, model)
    elif not gib_of_mib(decision.chosen.free_mib):
        # To the client a machine without a GPU reading has none, so 0.0 GB; to us it comes after a real 0.0.
        assert pick_machine_for(document, model)[0] in {item.machine for item in decision.candidates}
    else:
        assert pick_machine_for(document, model) == (decision.chosen.machine, decision.chosen.hostname)


@given(fleets(), st.sampled_from(MODELS), st.integers(1, 24))
def test_they_agree_on_a_minimum_of_whole_gibibytes_too(
    fleet: tuple[MachineSnapshot, ...], model: str, minimum: int
) -> None:
    def on_one_decimal(item: MachineSnapshot) -> bool:
        """Figures that one decimal rounds up across the minimum belong to the rounding, not to the rule."""
        cards = item.gpu.cards if item.gpu is not None else ()
        return not any(
            not isinstance(c.free_mib, Unknown) and c.free_mib < minimum * 1024 <= c.free_mib + 52
            for c in cards
        )

    snapshot = make_fleet(*(item for item in fleet if on_one_decimal(item)))
    document = infrastructure_document(snapshot, NOW)
    query = RouteQuery(model, require_loaded=True, takes_lease=False, min_free_vram_mib=minimum * 1024)
    decision = decide_route(snapshot, query, NOW)
    if decision.chosen is None:
        with pytest.raises(LookupError, match="loaded with"):
            pick_machine_for(document, model, minimum)
    else:
        assert pick_machine_for(document, model, minimum)[0] == decision.chosen.machine


@given(fleets(), st.sampled_from(MODELS), st.booleans(), st.randoms(use_true_random=False))
def test_order_does_not_depend_on_the_order_of_the_machines(
    fleet: tuple[MachineSnapshot, ...], model: str, is_strict: bool, shuffler: random.Random
) -> None:
    query = RouteQuery(model, require_loaded=is_strict, takes_lease=not is_strict)
    straight = decide_route(make_fleet(*fleet), query, NOW)
    shuffled = list(fleet)
    shuffler.shuffle(shuffled)
    again = decide_route(make_fleet(*shuffled), query, NOW)
    assert straight.candidates == again.candidates
    assert straight.rejected == again.rejected
    assert straight.exit_code == again.exit_code


@given(fleets(), st.sampled_from(MODELS), st.integers(0, 30 * 1024))
def test_invariants(fleet: tuple[MachineSnapshot, ...], model: str, minimum: int) -> None:
    query = RouteQuery(model, min_free_vram_mib=minimum)
    decision = decide_route(make_fleet(*fleet), query, NOW)
    eligible = [item.machine for item in decision.candidates]
    rejected = [item.machine for item in decision.rejected]
    assert sorted(eligible + rejected) == sorted(item.name for item in fleet)
    assert all(item.rejections for item in decision.rejected)
    assert (decision.chosen is None) == (decision.exit_code != 0) == (not eligible)
    if decision.chosen is not None:
        assert decision.chosen.machine not in rejected
        assert all(decision.chosen.tier <= item.tier for item in decision.candidates)
    more = decide_route(make_fleet(*fleet, make_offline("zz-dead")), query, NOW)
    assert more.chosen == decision.chosen
