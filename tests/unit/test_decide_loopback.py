"""An answer that takes no connection from elsewhere is given all the same, with what makes it work."""

from __future__ import annotations

from dataclasses import replace

from builders import NOW, make_copy, make_fleet, make_machine, make_snapshot
from fleettui.decide.routing import decide_route, reject_unreachable
from fleettui.model.machine import EngineEndpoint
from fleettui.model.route import RouteQuery, RouteWarning
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.sockets import ListeningPort, SocketsReading

MODEL = "llama3.1:70b"


def bound_to_loopback(name: str = "ada", *, is_loopback: bool = True) -> MachineSnapshot:
    sockets = SocketsReading((ListeningPort(11434, is_loopback),))
    return make_snapshot(name, loaded=[make_copy(MODEL)], sockets=sockets)


def warnings_about(snapshot: MachineSnapshot, *others: MachineSnapshot) -> list[RouteWarning]:
    return list(decide_route(make_fleet(snapshot, *others), RouteQuery(MODEL), NOW).warnings)


def test_the_line_that_makes_it_work_is_told() -> None:
    (warning,) = warnings_about(bound_to_loopback())
    assert warning.code == "loopback"
    assert warning.text == (
        "ollama on ada listens on its loopback alone: ada.lan:11434 takes no connection from elsewhere; "
        "ssh -N -L 11434:localhost:11434 ada.lan makes it localhost:11434 here"
    )


def test_nothing_is_told_of_what_is_open_not_chosen_local_or_not_known() -> None:
    assert warnings_about(bound_to_loopback(is_loopback=False)) == []
    assert warnings_about(bound_to_loopback("aaa", is_loopback=False), bound_to_loopback("zoe")) == []
    assert warnings_about(replace(bound_to_loopback(), sockets=None)) == []
    here = replace(bound_to_loopback(), machine=make_machine(hostname="127.0.0.1"))
    assert warnings_about(here) == []
    gateway = EngineEndpoint("ollama", 11434, url="http://gateway.lan:11434")
    assert warnings_about(replace(bound_to_loopback(), machine=make_machine(engines=(gateway,)))) == []


def test_it_goes_with_the_machine_that_was_tried_in_vain() -> None:
    fleet = make_fleet(bound_to_loopback("ada"), bound_to_loopback("bora", is_loopback=False))
    decision = decide_route(fleet, RouteQuery(MODEL), NOW)
    assert [warning.code for warning in decision.warnings] == ["loopback"]
    assert reject_unreachable(decision, {"ada": "connection refused"}).warnings == ()
