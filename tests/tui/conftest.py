"""The snapshot plugin finds its folder by a variable, which the isolation of tests takes away."""

from __future__ import annotations

import os

import pytest
from idle import use_it

VARIABLE = "TEXTUAL_SNAPSHOT_TEMPDIR"
_kept: dict[str, str] = {}


def pytest_collection_finish() -> None:
    """After the plugin has started and before any fixture has run."""
    if VARIABLE in os.environ:
        _kept[VARIABLE] = os.environ[VARIABLE]


@pytest.fixture(autouse=True)
def _snapshot_folder(home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _kept.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def quick_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of many keys: none is waited for longer than it takes."""
    use_it(monkeypatch)
