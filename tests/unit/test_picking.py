"""What the picker says when there is nothing to pick."""

from __future__ import annotations

from builders import NOW, make_fleet, make_offline, make_pending, make_snapshot
from fleettui.decide.routing import decide_route
from fleettui.decide.serving import list_serving
from fleettui.model.route import RouteQuery
from fleettui.view.picking import failure_lines
from fleettui.view.route_text import route_lines


def test_nobody_answered() -> None:
    lines = failure_lines(list_serving(make_fleet(make_offline(), make_pending()), NOW))
    assert lines[0].startswith(" - pve52  offline: no answer on port 22 (timeout)")
    assert lines[-1] == "error: no machine gave usable data; check the network"


def test_nobody_was_approved() -> None:
    lines = failure_lines(list_serving(make_fleet(make_pending()), NOW))
    assert lines[-1] == "error: no machine is approved; see: fleettui machines list --pending"


def test_with_a_model_it_says_what_route_says() -> None:
    decision = decide_route(make_fleet(make_snapshot("ada")), RouteQuery("llama3.1:8c"), NOW)
    assert failure_lines(decision) == route_lines(decision)
