"""What is stored of models is read when somebody asks for it, also from within a transaction."""

from __future__ import annotations

from pathlib import Path

from builders import make_fleet, make_installed, make_snapshot
from fleettui.decide.model_need import SeenCopy
from fleettui.fleet.route_knowledge import knowledge_on_demand, load_knowledge
from fleettui.store.database import Store
from fleettui.store.load_rates import record_load_rate
from fleettui.store.measured_needs import record_measured_need

COPY = SeenCopy(6 << 30, 8192, where="ada")
FLEET = "/fleet"


def test_both_ways_know_the_same(tmp_path: Path) -> None:
    fleet = make_fleet(make_snapshot("ada", installed=[make_installed("qwen3:8b", digest="ab")]))
    with Store.open(str(tmp_path)) as store:
        assert knowledge_on_demand(store, str(tmp_path), FLEET, fleet).measured == {}
        record_measured_need(store, FLEET, "ab", COPY, 1000.0)
        record_load_rate(store, FLEET, "ada", 1e9, 1000.0)
        at_once = load_knowledge(store, FLEET, fleet, "qwen3:8b")
        known = knowledge_on_demand(store, str(tmp_path), FLEET, fleet)
        with store.transaction():
            assert known.measured["ab"] == at_once.measured["ab"] == (COPY,)
        assert known.measured.get("none", "?") == "?"
        assert dict(known.measured) == {"ab": (COPY,)}
        assert known.shapes.get("ab") is None
        assert known.load_rates == at_once.load_rates == {"ada": 1e9}
