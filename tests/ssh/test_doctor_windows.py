"""`machines doctor` on machines with OpenSSH for Windows: nvidia-smi.exe alone, one at a time, never sh."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncssh
import pytest
from doctor_runs import Found, examine
from sshd_rig import SshdRig
from test_windows_machines import SYSTEM32, WindowsMachine, listen

from fleettui.model.machine import DeclaredGpu, EngineEndpoint, Machine, SshSettings

SKIPPED = ["shell", "persistence", "clock", "journal", "disk"]


@asynccontextmanager
async def listening(rig: SshdRig, windows: WindowsMachine) -> AsyncIterator[None]:
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await listen(windows, key)
    with rig.known_hosts.open("a") as file:
        file.write(f"[127.0.0.1]:{windows.port} {key.export_public_key().decode().strip()}\n")
    try:
        yield
    finally:
        windows.gate.set()
        server.close()


async def check(
    rig: SshdRig,
    windows: WindowsMachine,
    *declared: str,
    engine_port: int = 1,
    deadline_s: float | None = None,
) -> Found:
    async with listening(rig, windows):
        machine = Machine(
            "win",
            "gpu-host",
            "127.0.0.1",
            engine_port,
            gpus=tuple(DeclaredGpu(model, 8.0) for model in declared) or None,
            engines=(EngineEndpoint("ollama", engine_port),),
            ssh=SshSettings(port=windows.port, user=rig.user),
        )
        (found,) = await examine(rig.settings(), machine, deadline_s=deadline_s)
    for command in windows.commands:
        assert command == "tasklist.exe" or command.partition(" ")[0].endswith("nvidia-smi.exe"), command
    return found


def idle(**changes: object) -> WindowsMachine:
    """A machine on which no nvidia-smi runs."""
    windows = WindowsMachine()
    windows.tasks = ""
    for name, value in changes.items():
        setattr(windows, name, value)
    return windows


@pytest.mark.parametrize("shell", ["cmd", "powershell"])
async def test_tool_driver_and_engine_are_checked_the_rest_is_not_supported(
    sshd_rig: SshdRig, shell: str
) -> None:
    ollama = sshd_rig.ollama("0.0.0.0")
    windows = idle(shell=shell)
    found = await check(sshd_rig, windows, "GeForce RTX 2080 SUPER", engine_port=ollama.port)
    assert found.checkup.verdict == "pass", found.checkup
    assert found["authentication"].evidence.endswith("OpenSSH_for_Windows_9.5")
    assert found.skipped_for("not supported on Windows") == SKIPPED
    assert found["gpu_tool"].evidence.startswith("nvidia-smi.exe in ")
    assert found["driver"].evidence == "591.86, 1 GPU: NVIDIA GeForce RTX 2080 SUPER"
    assert found.states()["engine"] == "pass"


async def test_it_is_found_outside_path_and_cards_are_counted(sshd_rig: SshdRig) -> None:
    found = await check(sshd_rig, idle(places={SYSTEM32}), "RTX 2080 SUPER", "RTX 2080 SUPER")
    assert found["gpu_tool"].evidence.startswith(f"{SYSTEM32} in ")
    assert (found["driver"].state, found["driver"].evidence) == (
        "warn",
        "591.86, 1 GPU: NVIDIA GeForce RTX 2080 SUPER; the file declares 2",
    )
    assert "device manager" in (found["driver"].hint or "")


async def test_no_nvidia_smi_at_all(sshd_rig: SshdRig) -> None:
    found = await check(sshd_rig, idle(places=set()), "RTX 2080 SUPER")
    assert (found["gpu_tool"].state, found["gpu_tool"].hint) == (
        "fail",
        "install the NVIDIA driver for Windows; it puts nvidia-smi.exe into System32",
    )
    assert found.skipped_for("needs GPU tool") == ["driver"]
    assert (await check(sshd_rig, idle(places=set())))["gpu_tool"].state == "skip"


async def test_one_that_hangs_costs_its_limit_and_is_the_only_one(sshd_rig: SshdRig) -> None:
    windows = idle(hangs=True)
    found = await check(sshd_rig, windows, "RTX 2080 SUPER")
    assert (found["gpu_tool"].state, found["gpu_tool"].evidence) == (
        "fail",
        "nvidia-smi.exe did not answer within 3 s",
    )
    assert windows.most_running == 1
    assert sum("query" in command for command in windows.commands) == 1


async def test_beside_one_that_runs_already_none_is_started(sshd_rig: SshdRig) -> None:
    windows = WindowsMachine()
    found = await check(sshd_rig, windows, "RTX 2080 SUPER")
    assert found["gpu_tool"].state == "warn"
    assert found["gpu_tool"].evidence.startswith("an nvidia-smi.exe runs there and does not end")
    assert found["driver"].state == "skip"
    assert set(windows.commands) == {"tasklist.exe"}


async def test_refused_forwarding_starts_no_shell(sshd_rig: SshdRig) -> None:
    windows = idle(has_forwarding=False)
    found = await check(sshd_rig, windows, "RTX 2080 SUPER")
    assert found["forwarding"].state == "warn"
    assert found.states()["engine"] == "fail"
