"""The AMD part of the GPU loop under real shells: a stand-in for /sys, and for amd-smi and rocm-smi."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_runner import SHELLS, Loop, find_shell, write_tool

from fleettui.probes.amd_problems import split_tool
from fleettui.probes.amd_sysfs import parse_kinds, parse_sysfs, parse_tool_name, parse_unbound

SAMPLES = Path(__file__).parents[1] / "fixtures" / "amd"
GIB = 1 << 30


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return find_shell(str(request.param))


class Sys:
    """A /sys with AMD cards in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.add_other_things()

    def add_other_things(self) -> None:
        for name, vendor in (("card0", "0x10de"), ("renderD128", "0x10de")):
            device = self.root / "class/drm" / name / "device"
            device.mkdir(parents=True)
            (device / "vendor").write_text(f"{vendor}\n")
        (self.root / "class/drm/card0-DP-1").mkdir()

    def add_card(
        self, number: int, bus_id: str, *, status: str = "active", kind: int = 1, **files: str
    ) -> Path:
        device = self.root / "devices" / bus_id
        (device / "hwmon/hwmon7").mkdir(parents=True)
        (device / "power").mkdir()
        (device / "power/runtime_status").write_text(f"{status}\n")
        (device / "vendor").write_text("0x1002\n")
        (device / "class").write_text("0x030000\n")
        (device / "uevent").write_text(f"DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_SLOT_NAME={bus_id}\n")
        (device / "gpu_metrics").write_bytes(bytes([120, 0, kind, 3, 0, 255]))
        texts = {
            "mem_info_vram_total": str(16 * GIB),
            "mem_info_vram_used": str(3 * GIB),
            "gpu_busy_percent": "7",
            "hwmon/hwmon7/temp1_input": "41000",
            "hwmon/hwmon7/power1_average": "34000000",
        } | files
        for name, text in texts.items():
            (device / name).write_text(f"{text}\n")
        card = self.root / "class/drm" / f"card{number}"
        card.mkdir()
        (card / "device").symlink_to(device)
        drivers = self.root / "bus/pci/drivers/amdgpu"
        drivers.mkdir(parents=True, exist_ok=True)
        (drivers / bus_id).symlink_to(device)
        return device

    def add_unbound(self, bus_id: str, pci_class: str = "0x030000") -> None:
        device = self.root / "bus/pci/devices" / bus_id
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x1002\n")
        (device / "class").write_text(f"{pci_class}\n")


@pytest.fixture
def sys(tmp_path: Path) -> Sys:
    return Sys(tmp_path / "sys-1")


def start(shell: str, tmp_path: Path, *changes: tuple[str, str]) -> Loop:
    (tmp_path / "bin").mkdir(exist_ok=True)
    every = (("/sys/", f"{tmp_path}/sys-1/"), ("/opt/rocm", f"{tmp_path}/opt/rocm"), *changes)
    return Loop("gpu", shell, path=tmp_path / "bin", changes=every)


def test_cards_from_sysfs_without_a_process(shell: str, tmp_path: Path, sys: Sys) -> None:
    sys.add_card(1, "0000:83:00.0", mem_info_vram_used="0")
    sys.add_card(2, "0000:03:00.0", product_name="AMD Radeon PRO W7700")
    loop = start(shell, tmp_path)
    try:
        section = loop.ask("amd")["amd"]
        counts = []
        for _ in range(8):
            before = loop.forks()
            loop.ask("amd")
            counts.append(loop.forks() - before)
    finally:
        loop.close()
    assert section.exit_code == 0
    first, second = parse_sysfs(section.payload)
    assert (first.bus_id, first.name, first.total_mib, first.used_mib) == (
        "0000:03:00.0",
        "AMD Radeon PRO W7700",
        16384,
        3072,
    )
    assert (first.utilisation_percent, first.temperature_c, first.power_w) == (7, 41, 34.0)
    assert (second.bus_id, second.used_mib) == ("0000:83:00.0", 0)
    assert min(counts) == 0


def test_a_machine_without_amd_says_so_and_starts_no_tool(shell: str, tmp_path: Path, sys: Sys) -> None:
    write_tool(tmp_path / "bin", "amd-smi", f"echo >>{tmp_path}/started; echo '[]'")
    loop = start(shell, tmp_path)
    try:
        section = loop.ask("amd")["amd"]
    finally:
        loop.close()
    assert (section.exit_code, section.payload) == (127, b"tool amd-smi\n")
    assert (parse_sysfs(section.payload), parse_tool_name(section.payload)) == ((), "amd-smi")
    assert not (tmp_path / "started").exists()


def test_a_card_without_a_driver_and_one_given_away(shell: str, tmp_path: Path, sys: Sys) -> None:
    sys.add_unbound("0000:05:00.0")
    sys.add_unbound("0000:05:00.1", "0x040300")  # its sound
    device = sys.root / "bus/pci/devices/0000:06:00.0"
    sys.add_unbound("0000:06:00.0")
    (device / "driver").mkdir()  # vfio-pci: it belongs to a virtual machine
    loop = start(shell, tmp_path)
    try:
        section = loop.ask("amd")["amd"]
    finally:
        loop.close()
    assert section.exit_code == 6
    assert parse_unbound(section.payload) == ("0000:05:00.0",)


def test_kinds_tell_processors_from_cards(shell: str, tmp_path: Path, sys: Sys) -> None:
    sys.add_card(1, "0000:03:00.0", kind=1)
    sys.add_card(2, "0000:c4:00.0", kind=3)
    loop = start(shell, tmp_path)
    try:
        kinds = parse_kinds(loop.ask("amd-kind")["amd-kind"].payload)
    finally:
        loop.close()
    assert kinds == {(0, 3, 0, 0): False, (0, 0xC4, 0, 0): True}


@pytest.mark.parametrize("place", ["bin", "opt/rocm/bin", "opt/rocm-6.4.1/bin"])
def test_the_tool_is_found_also_outside_path(shell: str, tmp_path: Path, sys: Sys, place: str) -> None:
    sys.add_card(1, "0000:03:00.0")
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    write_tool(
        tmp_path / place,
        "amd-smi",
        f'case "$*" in "static --json") cat {SAMPLES}/smi-static-navi23.json;; '
        f'"list --json") cat {SAMPLES}/smi-list-rocm7.json;; '
        f'"metric --json") cat {SAMPLES}/smi-metric-rocm7.json;; '
        "*) exit 9;; esac",
    )
    loop = start(shell, tmp_path)
    try:
        answer = loop.ask("amd-static", "amd-list", "amd-metric")
    finally:
        loop.close()
    for name, file in (
        ("amd-static", "smi-static-navi23.json"),
        ("amd-list", "smi-list-rocm7.json"),
        ("amd-metric", "smi-metric-rocm7.json"),
    ):
        assert answer[name].exit_code == 0
        tool, text = split_tool(answer[name].payload)
        assert (tool, text.rstrip()) == ("amd-smi", (SAMPLES / file).read_bytes().rstrip())


def test_rocm_smi_is_asked_where_there_is_no_amd_smi(shell: str, tmp_path: Path, sys: Sys) -> None:
    sys.add_card(1, "0000:03:00.0")
    write_tool(tmp_path / "bin", "rocm-smi", 'echo "$@"')
    loop = start(shell, tmp_path)
    try:
        answer = loop.ask("amd-static", "amd-list", "amd-metric", "amd-process")
    finally:
        loop.close()
    assert answer["amd-list"].exit_code == 127, "rocm-smi has no list"
    for name, words in (
        (
            "amd-static",
            "--showproductname --showbus --showuniqueid --showdriverversion --showmaxpower --json",
        ),
        ("amd-metric", "--showmeminfo vram gtt --showuse --showtemp --showpower --showfan --json"),
        ("amd-process", "--showpids --json"),
    ):
        assert split_tool(answer[name].payload) == ("rocm-smi", words.encode())


def test_without_a_tool_there_is_no_payload(shell: str, tmp_path: Path, sys: Sys) -> None:
    sys.add_card(1, "0000:03:00.0")
    loop = start(shell, tmp_path)
    try:
        answer = loop.ask("amd-static", "amd-process", "amd-ps")
    finally:
        loop.close()
    assert {name: (s.exit_code, s.payload) for name, s in answer.items()} == {
        "amd-static": (127, b""),
        "amd-process": (127, b""),
        "amd-ps": (0, b""),
    }


def test_owners_of_the_processes(shell: str, tmp_path: Path, sys: Sys) -> None:
    sys.add_card(1, "0000:03:00.0")
    loop = start(shell, tmp_path)
    pid = loop.process.pid
    listing = f'[{{"gpu": 0, "process_list": [{{"process_info": {{\n "pid": {pid},\n "name": "x"}}}}]}}]'
    write_tool(tmp_path / "bin", "amd-smi", f"cat <<'X'\n{listing}\nX")
    try:
        answer = loop.ask("amd-process", "amd-ps")
    finally:
        loop.close()
    assert answer["amd-ps"].payload.split()[0] == str(pid).encode()


def test_a_sleeping_card_is_not_woken(shell: str, tmp_path: Path, sys: Sys) -> None:
    device = sys.add_card(1, "0000:03:00.0", status="suspended")
    (device / "mem_info_vram_used").unlink()
    write_tool(tmp_path / "bin", "amd-smi", f"echo >>{tmp_path}/started; echo '[]'")
    loop = start(shell, tmp_path)
    try:
        answer = loop.ask("amd", "amd-kind", "amd-static", "amd-metric", "amd-process")
    finally:
        loop.close()
    (card,) = parse_sysfs(answer["amd"].payload)
    assert card.is_asleep
    assert b"vram" not in answer["amd"].payload
    assert {answer[name].exit_code for name in ("amd-kind", "amd-static", "amd-metric", "amd-process")} == {
        76
    }
    assert not (tmp_path / "started").exists()


def test_a_hanging_tool_costs_its_limit_and_is_not_started_again_in_the_request(
    shell: str, tmp_path: Path, sys: Sys
) -> None:
    sys.add_card(1, "0000:03:00.0")
    write_tool(tmp_path / "bin", "amd-smi", f"echo >>{tmp_path}/started; exec sleep 1000")
    loop = start(shell, tmp_path, ("${T:+$T 15}", "${T:+$T 1}"), ("timeout -k 2", "timeout -k 1"))
    try:
        answer = loop.ask("amd", "amd-static", "amd-metric")
    finally:
        loop.close()
    assert answer["amd"].exit_code == 0
    assert (answer["amd-static"].exit_code, answer["amd-metric"].exit_code) == (124, 124)
    assert len((tmp_path / "started").read_text().splitlines()) == 1


@pytest.mark.parametrize("comm", ["python3", "amd-smi"])
def test_no_second_tool_beside_one_that_hangs(shell: str, tmp_path: Path, sys: Sys, comm: str) -> None:
    sys.add_card(1, "0000:03:00.0")
    proc = tmp_path / "proc"
    folder = proc / "935"
    folder.mkdir(parents=True)
    (folder / "comm").write_text(f"{comm}\n")
    (folder / "cmdline").write_bytes(b"python3\0/opt/rocm/bin/amd-smi\0metric\0--json\0")
    (folder / "stat").write_text(f"935 ({comm}) D 1 {' '.join(['0'] * 17)} 100 0 0\n")
    (folder / "environ").write_bytes(b"A=1\0FLEETTUI_LOOP=gpu\0")
    (proc / "uptime").write_text("5000.00 9000.00\n")
    write_tool(tmp_path / "bin", "amd-smi", f"echo >>{tmp_path}/started; echo '[]'")
    loop = start(shell, tmp_path, ("/proc/", f"{proc}/"))
    try:
        section = loop.ask("amd-static")["amd-static"]
        assert section.exit_code == 75
        assert split_tool(section.payload) == ("amd-smi", b"hung 935 D")
        assert not (tmp_path / "started").exists()
        (folder / "stat").unlink()
        assert loop.ask("amd-static")["amd-static"].exit_code == 0
    finally:
        loop.process.kill()  # this loop cannot see its group in the false /proc
        loop.close()
