"""Fixtures of the tests against real OpenSSH."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sshd_rig import SshdRig


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
