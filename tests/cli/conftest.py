"""A demo fleet for the command line tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runner import SRC, Cli

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


@pytest.fixture
def fleet_cli(demo_fleet: DemoFleet, tmp_path: Path) -> Cli:
    """The command on the demo fleet, with a state of its own."""
    return Cli({**demo_fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path / "state")})


@pytest.fixture
def watching(fleet_cli: Cli) -> Iterator[subprocess.Popen[str]]:
    """A running `status --watch --json` that stores snapshots."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fleettui", "status", "--watch", "--json", "--interval", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, **fleet_cli.environment, "PYTHONPATH": SRC},
    )  # fmt: skip
    yield process
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
