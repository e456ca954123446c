"""Fixtures of the tests against real OpenSSH."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from sshd_rig import SshdRig

from fleettui.net.connector import Connector


@pytest.fixture
def sshd_rig(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SshdRig]:
    """Real sshd processes on loopback addresses, one per machine; HOME and agent isolated."""
    worker = getattr(request.config, "workerinput", {}).get("workerid", "gw0")
    rig = SshdRig(tmp_path / "rig", int(worker.removeprefix("gw")))
    monkeypatch.setenv("HOME", str(rig.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    yield rig
    rig.close()


@pytest.fixture
async def connect(sshd_rig: SshdRig) -> AsyncIterator[Callable[..., Connector]]:
    """Makes connectors with the rig's settings."""
    connectors: list[Connector] = []

    def make(**changes: object) -> Connector:
        connectors.append(Connector(sshd_rig.settings(**changes)))
        return connectors[-1]

    yield make
    for connector in connectors:
        connector.close()
