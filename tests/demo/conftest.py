"""Demo fleets for the tests of this folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from fleettui.demo.launcher import DemoFleet

LIMIT_S = 20.0


@pytest.fixture(scope="module")
def fleet() -> Iterator[DemoFleet]:
    """The default machines without clients of their own, twenty times as fast as life."""
    with DemoFleet(is_calm=True, speed=20, arguments=["--at", "0", "--no-forwarding", "dora"]) as running:
        yield running


@pytest.fixture(scope="module")
def slow_fleet() -> Iterator[DemoFleet]:
    """The same at the pace of life: a load lasts seconds."""
    with DemoFleet(machines=2, is_calm=True, arguments=["--at", "0"]) as running:
        yield running


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Waits for a condition; fails when it does not come true."""

    def wait(is_met: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not is_met():
            assert time.monotonic() < deadline, "the condition never came true"
            time.sleep(0.02)

    return wait
