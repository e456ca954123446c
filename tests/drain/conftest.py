"""Fleets to drain, fast and without clients of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from arena import Arena, MakeArena

from fleettui.demo.launcher import DemoFleet

sys.path.append(str(Path(__file__).resolve().parents[1] / "cli"))
"""Has a terminal for tests."""


@pytest.fixture(scope="session")
def fleet() -> Iterator[DemoFleet]:
    """Machines gpu-09 to gpu-38 with one card each, ten times as fast as life."""
    with DemoFleet(
        machines=38, is_calm=True, speed=10, arguments=["--at", "0", "--cards-each", "1"]
    ) as running:
        yield running


@pytest.fixture
def make_arena(fleet: DemoFleet, tmp_path: Path) -> Iterator[MakeArena]:
    """Some machines of the fleet, by their numbers, in a folder of their own."""
    made: list[Arena] = []

    def make(*numbers: int) -> Arena:
        names = [f"gpu-{number:02d}" for number in numbers]
        made.append(Arena(fleet, tmp_path / str(len(made)), *names))
        return made[-1]

    yield make
    for arena in made:
        arena.close()
