"""One server over a frozen demo fleet for all tests that change nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import SRC, Command, Served

from fleettui.demo.launcher import DemoFleet

CATALOG = str(Path(__file__).resolve().parents[2] / "catalog")


@pytest.fixture(scope="session")
def fleet() -> Iterator[DemoFleet]:
    with DemoFleet(machines=8, seed=7, is_frozen=True) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def served(fleet: DemoFleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("serve") / "stderr"
    with Served(log, fleet.environment, "--catalog", CATALOG) as served:
        served.json("/api/route", model="llama3.1:70b")  # answered when every machine has
        yield served


@pytest.fixture
def command(fleet: DemoFleet) -> Command:
    """`command(0, "status", "--json")`: the document that the command line prints, with that exit code."""

    def run(exit_code: int, *arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "fleettui", *arguments, "--catalog", CATALOG],
            env={**os.environ, **fleet.environment, "PYTHONPATH": SRC},
            cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == exit_code, done.stderr
        return json.loads(done.stdout)

    return run
