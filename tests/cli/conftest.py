"""A demo fleet for the command line tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runner import Cli

from fleettui.demo.launcher import DemoFleet


@pytest.fixture
def cli() -> Cli:
    """The command without any fleet."""
    return Cli()


@pytest.fixture(scope="session")
def demo_fleet() -> Iterator[DemoFleet]:
    """Eight simulated machines whose time stands still."""
    with DemoFleet(machines=8, seed=7, is_frozen=True) as fleet:
        yield fleet


@pytest.fixture
def demo_cli(demo_fleet: DemoFleet) -> Cli:
    """The command on the demo fleet."""
    return Cli(demo_fleet.environment)


@pytest.fixture
def machines_dir(tmp_path: Path) -> Path:
    """An empty folder of machine files."""
    folder = tmp_path / "machines"
    folder.mkdir()
    return folder
