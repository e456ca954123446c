"""The doctor's GPU checks over the real GPU loop; stand-ins for /sys, amd-smi, rocm-smi and nvidia-smi."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from loop_runner import Loop, write_tool
from test_loops_amd import GIB, SAMPLES, Sys, start

from fleettui.fleet.doctor.check import Outcome
from fleettui.fleet.doctor.context import NoAnswer
from fleettui.fleet.doctor.gpu import GPU_CHECKS
from fleettui.fleet.doctor.gpu_answer import AmdAnswer, GpuAnswer
from fleettui.model.machine import DeclaredGpu, Machine
from fleettui.probes.doctor import Account
from fleettui.probes.frames import Frame

OPEN = Machine("mia", "gpu-host", "mia.lan")
NVIDIA_ROW = {
    "index": "0", "uuid": "GPU-1", "name": "NVIDIA GeForce RTX 3090", "driver_version": "580.95.05",
    "memory.total": "24576", "memory.used": "2", "memory.free": "24252", "pci.bus_id": "00000000:01:00.0",
}  # fmt: skip


class Asked:
    """What the checks need of their context, in front of one shell loop."""

    is_windows = False
    account: Account | None = None

    def __init__(self, loop: Loop, machine: Machine) -> None:
        self.loop, self.machine = loop, machine
        self.gpu: GpuAnswer | None = None
        self.amd: AmdAnswer | None = None

    async def ask(self, kind: str, *sections: str, limit_s: float = 3.0) -> Frame:
        assert kind == "gpu"
        self.loop.send(*sections)
        try:
            return self.loop.receive(limit_s)
        except AssertionError:
            raise NoAnswer("", "", is_late=True) from None

    async def check(self) -> tuple[Outcome, Outcome]:
        tool, driver, _ = GPU_CHECKS
        return await tool.run(self), await driver.run(self)  # type: ignore[arg-type]

    async def persistence(self) -> Outcome:
        return await GPU_CHECKS[2].run(self)  # type: ignore[arg-type]


@pytest.fixture
def sys(tmp_path: Path) -> Sys:
    return Sys(tmp_path / "sys-1")


@pytest.fixture
def loop(tmp_path: Path, sys: Sys) -> Iterator[Loop]:
    made = start("/bin/sh", tmp_path)
    yield made
    made.close()


def put_sample(folder: Path, tool: str, sample: str, exit_code: int = 0) -> None:
    write_tool(folder / "bin", tool, f"cat {shlex.quote(str(SAMPLES / sample))}; exit {exit_code}")


def put_nvidia(folder: Path) -> None:
    fields = " ".join(f"{name}) v='{value}';;" for name, value in NVIDIA_ROW.items())
    write_tool(
        folder / "bin",
        "nvidia-smi",
        "case $1 in --query-gpu=*) ;; *) exit 1;; esac; row=; IFS=,; for f in ${1#*=}; do case $f in "
        f'{fields} *) v=\'[N/A]\';; esac; row="$row, $v"; done; echo "${{row#, }}"',
    )


async def test_cards_tool_and_names(tmp_path: Path, sys: Sys, loop: Loop) -> None:
    sys.add_card(1, "0000:0b:00.0", mem_info_vram_total=str(8 * GIB))
    put_sample(tmp_path, "amd-smi", "smi-static-navi23.json")
    asked = Asked(loop, OPEN)
    tool, driver = await asked.check()
    assert (tool.state, tool.hint) == ("pass", None)
    assert tool.evidence.startswith(f"{tmp_path}/bin/amd-smi in ")
    assert (driver.state, driver.evidence) == (
        "pass",
        "amdgpu 7.0.0-3-pve, 1 GPU: Navi 23 [Radeon RX 6600/6600 XT",
    )
    assert (await asked.persistence()).evidence == "NVIDIA only"


async def test_without_a_tool_the_kernel_is_enough(tmp_path: Path, sys: Sys, loop: Loop) -> None:
    sys.add_card(1, "0000:03:00.0")
    tool, driver = await Asked(loop, OPEN).check()
    assert (tool.state, driver.state) == ("warn", "pass")
    assert "neither amd-smi nor rocm-smi" in tool.evidence


async def test_no_permission_is_a_warning_and_the_driver_is_told(
    tmp_path: Path, sys: Sys, loop: Loop
) -> None:
    sys.add_card(1, "0000:03:00.0")
    put_sample(tmp_path, "amd-smi", "smi-no-permission.txt", 1)
    tool, driver = await Asked(loop, OPEN).check()
    assert (tool.state, driver.state) == ("warn", "pass")
    assert "no permission for /dev/kfd" in tool.evidence
    assert "groups render and video" in (tool.hint or "")


async def test_a_card_without_a_driver(tmp_path: Path, sys: Sys, loop: Loop) -> None:
    sys.add_unbound("0000:05:00.0")
    put_sample(tmp_path, "rocm-smi", "rocm-driver-not-loaded.txt", 2)
    _, driver = await Asked(loop, OPEN).check()
    assert (driver.state, driver.evidence) == ("fail", "amdgpu driver not loaded (0000:05:00.0)")
    assert "modprobe amdgpu" in (driver.hint or "")


async def test_a_tool_that_hangs_costs_its_limit(tmp_path: Path, sys: Sys, loop: Loop) -> None:
    sys.add_card(1, "0000:03:00.0")
    write_tool(tmp_path / "bin", "amd-smi", "exec sleep 60")
    began = time.monotonic()
    tool, driver = await Asked(loop, OPEN).check()
    assert time.monotonic() - began >= 3.0
    assert (tool.state, driver.state) == ("fail", "pass")
    assert tool.evidence.endswith("amd-smi did not answer within 3 s and was ended")


async def test_sleeping_cards_are_left_asleep(tmp_path: Path, sys: Sys, loop: Loop) -> None:
    sys.add_card(1, "0000:03:00.0", status="suspended")
    write_tool(tmp_path / "bin", "amd-smi", f"echo >{tmp_path}/called")
    tool, _ = await Asked(loop, OPEN).check()
    assert (tool.state, tool.evidence) == ("pass", f"{tmp_path}/bin/amd-smi, not called: a card sleeps")
    assert not (tmp_path / "called").exists()


async def test_both_vendors_are_told(tmp_path: Path, sys: Sys, loop: Loop) -> None:
    sys.add_card(1, "0000:03:00.0", product_name="AMD Radeon PRO W7700")
    put_nvidia(tmp_path)
    machine = Machine("mix", "gpu-host", "mix.lan", gpus=(DeclaredGpu("RTX 3090", 24.0),) * 2)
    tool, driver = await Asked(loop, machine).check()
    assert "bin/nvidia-smi in " in tool.evidence
    assert "neither amd-smi nor rocm-smi" in tool.evidence
    assert tool.state == "warn"
    assert (driver.state, driver.evidence) == (
        "pass",
        "580.95.05, 1 GPU: NVIDIA GeForce RTX 3090; amdgpu, 1 GPU: AMD Radeon PRO W7700",
    )


async def test_graphics_of_the_processor_beside_nvidia_is_no_card(
    tmp_path: Path, sys: Sys, loop: Loop
) -> None:
    sys.add_card(1, "0000:c4:00.0", kind=3, mem_info_vram_total=str(512 << 20))
    put_nvidia(tmp_path)
    tool, driver = await Asked(loop, OPEN).check()
    assert tool.evidence.startswith(f"{tmp_path}/bin/nvidia-smi in ")
    assert "amd" not in tool.evidence.removeprefix(str(tmp_path))
    assert driver.evidence == "580.95.05, 1 GPU: NVIDIA GeForce RTX 3090"


async def test_a_declared_nvidia_card_is_missed_beside_amd(tmp_path: Path, sys: Sys, loop: Loop) -> None:
    sys.add_card(1, "0000:03:00.0")
    declared = (DeclaredGpu("RTX 3090", 24.0), DeclaredGpu("Radeon RX 7900 XT", 20.0))
    tool, _ = await Asked(loop, Machine("mix", "gpu-host", "mix.lan", gpus=declared)).check()
    assert tool.state == "fail"
    assert tool.evidence.startswith("no nvidia-smi in PATH and the usual places; the file declares 2 GPUs; ")
