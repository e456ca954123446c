"""Settings of an Ollama that were read earlier count where a short poll did not read them."""

from __future__ import annotations

from dataclasses import replace

from builders import NOW, make_card, make_fleet, make_installed, make_machine, make_snapshot
from fleettui.decide.ollama_use import find_ollama_use, with_last_settings
from fleettui.decide.routing import decide_route
from fleettui.model.ollama_settings import OllamaSettings
from fleettui.model.readings import SystemReading
from fleettui.model.route import RouteQuery
from fleettui.model.snapshot import MachineSnapshot

SET = OllamaSettings(context=8192, parallel=4)
BIG = [make_card(0, free_gib=80, total_gib=80)]


def polled(name: str = "ada") -> MachineSnapshot:
    return replace(make_snapshot(name, cards=BIG, installed=[make_installed()]), system=None)


def stored(name: str = "ada") -> MachineSnapshot:
    return replace(polled(name), system=SystemReading(ollama=SET))


def test_they_are_taken_over() -> None:
    assert find_ollama_use(polled(), 11434).use.context != 8192
    fleet = with_last_settings(make_fleet(polled(), polled("bora")), make_fleet(stored()))
    first, other = fleet.machines
    use = find_ollama_use(first, 11434)
    assert (use.use.context, use.use.parallel, use.context_basis) == (8192, 4, "OLLAMA_CONTEXT_LENGTH")
    assert other.system is None, "nothing was stored of it"
    assert decide_route(fleet, RouteQuery("llama3.1:70b"), NOW).chosen is not None


def test_what_was_read_now_wins_and_another_address_is_another_server() -> None:
    new = replace(polled(), system=SystemReading(ollama=OllamaSettings(context=4096)))
    (kept,) = with_last_settings(make_fleet(new), make_fleet(stored())).machines
    assert find_ollama_use(kept, 11434).use.context == 4096
    moved = replace(polled(), machine=replace(make_machine("ada"), hostname="elsewhere.lan"))
    (left,) = with_last_settings(make_fleet(moved), make_fleet(stored())).machines
    assert left.system is None
