"""The Drain screen of the whole program: a model is really moved, and moved back, while nobody looks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from test_dashboard_on_the_demo import Terminal

from fleettui.demo.launcher import DemoFleet

MODEL = "llama3.1:8b"
LIMIT_S = 60.0


@pytest.fixture
def fleet() -> Iterator[DemoFleet]:
    """Without clients of its own, ten times as fast as life; ada serves one model, bora has its files."""
    with DemoFleet(machines=4, seed=7, is_calm=True, speed=10) as running:
        for machine in running.machines:
            running.command(f"reset {machine['name']}")
        for name in ("ada", "bora"):
            running.command(f"install {name} {MODEL}")
        running.command(f"load ada {MODEL} -1")
        yield running


def loaded(fleet: DemoFleet, name: str) -> list[str]:
    """What its Ollama lists, apart from what still loads."""
    state = fleet.command(f"state {name}")
    return [item["name"] for item in state["loaded"] if item["name"] not in state["loading"]]


def wait_for_copy(fleet: DemoFleet, name: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while loaded(fleet, name) != [MODEL]:
        assert time.monotonic() < deadline, json.dumps(fleet.command(f"state {name}"))
        time.sleep(0.1)


def test_a_machine_is_emptied_and_comes_back(fleet: DemoFleet) -> None:
    wait_for_copy(fleet, "ada")
    terminal = Terminal(**fleet.environment, FLEETTUI_INTERVAL_S="0.5")
    try:
        terminal.wait_for("4/4 up")
        terminal.wait_for(MODEL)
        terminal.send("d")
        terminal.wait_for("to bora (1)")
        terminal.wait_for("MOVE")
        assert loaded(fleet, "ada") == [MODEL], "looking changes nothing"
        terminal.send("\r")
        terminal.wait_for("why drain ada?")
        terminal.send("PSU swap\r")
        terminal.wait_for("takes no requests from now on; 1 copy moved")
        terminal.send("\r")
        terminal.wait_for("this dashboard works on it")
        terminal.send("\x1b")
        terminal.wait_for('drained "PSU swap"', LIMIT_S)
        assert (loaded(fleet, "ada"), loaded(fleet, "bora")) == ([], [MODEL])
        terminal.send("d")
        terminal.wait_for("ada is empty: safe to reboot")
        terminal.send("v")
        terminal.wait_for("/api/generate")
        terminal.send("D")
        terminal.wait_for("type return to move it back")
        terminal.send("return\r")
        terminal.wait_for("ada takes requests again")
        wait_for_copy(fleet, "ada")
        terminal.send("q")
        assert terminal.wait_for_end() == 0
    finally:
        terminal.close()
