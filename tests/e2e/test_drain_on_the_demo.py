"""Drains as an operator meets them: the screen of the whole program, and the page that a newcomer replays."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_dashboard_on_the_demo import SRC, Terminal

from fleettui.demo.launcher import DemoFleet

MODEL = "llama3.1:8b"
LIMIT_S = 60.0
PAGE = Path(__file__).resolve().parents[2] / "docs" / "drain.md"


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


def test_the_page_on_draining_can_be_replayed() -> None:
    """Its commands for spark, in their order, on the fleet that it has a newcomer start."""
    text = PAGE.read_text(encoding="utf-8").partition("\n## When it does not end as drained")[0]
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line.removeprefix("fleettui ") for block in blocks for line in block.splitlines()]
    assert lines[0] == "demo --serve-only --calm"
    said: dict[str, str] = {}
    with DemoFleet(is_calm=True) as fleet:
        environment = {**os.environ, "PYTHONPATH": SRC, **fleet.environment}
        for line in [line for line in lines if "spark" in line]:
            words = shlex.split(line) + ["--yes"] * ("--reason" in line)  # nobody is there to type
            done = subprocess.run(
                [sys.executable, "-m", "fleettui", *words], env=environment, cwd="/", check=False, text=True,
                capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S,
            )  # fmt: skip
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            said[line] = done.stdout
    looked, drained, told, again, back = said.values()
    assert " COVERED      gpt-oss:120b  also on dora (same digest)\n" in looked
    assert drained == "spark: drained\n"
    assert " COVERED      gpt-oss:120b  -> dora  gone\n" in told
    assert " safe to reboot; when it is back: fleettui undrain spark\n" in told
    assert "safe to reboot" in again
    assert back.startswith("spark: ")
