"""Engines that no machine file names, on this machine: real ports, real processes, real answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from links import until
from sshd_rig import SshdRig, free_port

from engine_rig import EngineServer
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.unknown import Unknown
from fleettui.net.connector import Connector

FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.fixture
def vllm() -> Iterator[EngineServer]:
    server = EngineServer(
        {
            "/health": b"",
            "/v1/models": (FIXTURES / "engines/vllm_v1_models.json").read_bytes(),
            "/version": {"version": "0.32.0"},
        },
        0,
    )
    yield server
    server.close()


@pytest.fixture
def process(vllm: EngineServer) -> Iterator[subprocess.Popen[bytes]]:
    """What `ps` shows of such a server."""
    sleeping = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(120)", "vllm", "serve", "--port", str(vllm.port)]
    )
    yield sleeping
    sleeping.kill()
    sleeping.wait(5)


async def test_a_server_that_nobody_declared_is_polled_and_its_end_is_no_trouble(
    vllm: EngineServer, process: subprocess.Popen[bytes], sshd_rig: SshdRig, tmp_path: Path
) -> None:
    sshd = sshd_rig.start()
    folder = tmp_path / "machines"
    folder.mkdir()
    (folder / "ada.yaml").write_text(
        f"name: ada\nrole: gpu-host\nhardware: {{}}\nnetwork: {{hostname: {sshd.address}, "
        f"port: {free_port('127.0.0.1')}}}\nmodels: []\nssh: {{user: {sshd_rig.user}, port: {sshd.port}}}\n"
    )
    service = FleetService(FleetSettings(str(folder), 0.5), Connector(sshd_rig.settings()))
    await service.start()
    try:
        await until(lambda: any(item.port == vllm.port for item in service.snapshot.machines[0].found or ()))
        await until(
            lambda: any(
                not isinstance(one.loaded, Unknown) and one.port == vllm.port
                for one in service.snapshot.machines[0].engines
            )
        )
        ada = service.snapshot.machines[0]
        (found,) = [item for item in ada.found or () if item.port == vllm.port]
        assert (found.kind, found.is_loopback, found.is_polled) == ("vllm", True, True)
        assert [copy.name for copy in ada.loaded if copy.engine == "vllm"] == ["acme/tiny-llama"]
        assert "ollama" not in ada.sources
        assert not [reason for reason in ada.reasons if reason.code.startswith("engine")]
        assert ada.sockets is not None
        port = ada.sockets.find(vllm.port)
        assert port is not None
        assert port.connections == port.ours  # nobody but us
    finally:
        await service.stop()
