"""The Route screen of the whole program: a lease in the real state file, a load on a simulated machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_dashboard_on_the_demo import Terminal

from fleettui.demo.launcher import DemoFleet


@pytest.fixture
def dashboard() -> Iterator[tuple[Terminal, Path]]:
    with DemoFleet(machines=4, seed=7) as fleet:
        terminal = Terminal(**fleet.environment)
        try:
            terminal.wait_for("4/4 up")
            yield terminal, Path(fleet.environment["FLEETTUI_STATE_DIR"])
        finally:
            terminal.close()


def test_a_model_is_routed_leased_and_begun_to_load(dashboard: tuple[Terminal, Path]) -> None:
    terminal, state = dashboard
    terminal.send("t70b\r")
    terminal.wait_for("Route  llama3.1:70b   2 eligible of 4")
    terminal.send("\r")
    terminal.wait_for("leased until")
    connection = sqlite3.connect(state / "state.db")
    try:
        leased = connection.execute("SELECT machine, model, kind FROM leases").fetchall()
    finally:
        connection.close()
    assert leased == [("ada", "llama3.1:70b", "resident")]
    terminal.send("jw")
    terminal.wait_for("load llama3.1:70b on bora?")
    terminal.wait_for("evicts qwen2.5:32b")
    terminal.send("\r")
    terminal.wait_for("loading llama3.1:70b on bora")
    terminal.send("\x1b")
    terminal.wait_for("bora goes on loading")
    terminal.send("q")
    assert terminal.wait_for_end() == 0
