"""Profiles: what sections of machines say, rounded as a person counts; what is not told stays unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_runner import SHELLS, Loop, find_shell

from fleettui.model.profile import Profile, ProfileCpu, ProfileDisk, ProfileGap, ProfileGpu
from fleettui.model.unknown import Unknown
from fleettui.probes.frames import Section
from fleettui.probes.lscpu import parse_cores
from fleettui.probes.profile import (
    FACTS_SECTIONS,
    make_profile,
    parse_capability,
    parse_cards,
    profile_section,
)

SAMPLES = Path(__file__).parents[1] / "fixtures" / "samples"
ADA = b"0, NVIDIA RTX 4000 Ada Generation, 20475, 8.9, 570.124.06\n"
MEMORY = b"MemTotal: 65780384 kB\nMemFree: 1 kB\nMemAvailable: 9 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"
CPUINFO = b"".join(b"processor\t: %d\nmodel name\t: AMD Ryzen 7 7700X\n" % number for number in range(16))
LSCPU = b"CPU(s):   16\nThread(s) per core:  2\nCore(s) per socket:  8\nSocket(s):  1\n"
DRIVES = (
    b'{"blockdevices": [{"name":"nvme0n1","size":256060514304,"rota":false},'
    b'{"name":"sda","size":"4000787030016","rota":"1"},'
    b'{"name":"loop0","size":4096,"rota":false}, {"name":"ram0","size":4096,"rota":false},'
    b'{"name":"zram0","size":8589934592,"rota":false}, {"name":"sr0","size":1073741312,"rota":true},'
    b'{"name":"fd0","size":4096,"rota":true}, {"name":"sdb","size":0,"rota":true}]}'
)
FACTS = {
    "mem": Section(0, MEMORY),
    "cpu": Section(0, CPUINFO),
    "cores": Section(0, LSCPU),
    "drives": Section(0, DRIVES),
}


def test_the_worked_example() -> None:
    found, gaps = make_profile("pve-ada", parse_cards(ADA), FACTS, 1000.0)
    assert gaps == ()
    assert found == Profile(
        "pve-ada",
        ProfileCpu("AMD Ryzen 7 7700X", 8, 16),
        63,
        65780384,
        (ProfileDisk("nvme0n1", 256, False), ProfileDisk("sda", 4001, True)),
        (ProfileGpu(0, "NVIDIA RTX 4000 Ada Generation", 20, 20475, (8, 9), "570.124.06"),),
        1000.0,
    )


@pytest.mark.parametrize(
    ("mib", "gb"), [(20475, 20), (24564, 24), (81559, 80), (15360, 15), (512, 1), (511, 0), (49140, 48)]
)
def test_sizes_of_cards_are_rounded_to_the_nearest_whole_gib(mib: int, gb: int) -> None:
    answer = parse_cards(f"0, X, {mib}, 8.9, 1\n".encode())
    assert not isinstance(answer.gpus, Unknown)
    assert (answer.gpus[0].memory_gb, answer.gpus[0].memory_mib) == (gb, mib)


@pytest.mark.parametrize(
    ("kb", "gb"), [(65780384, 63), (131886540, 126), (524287, 0), (524288, 1), (1572864, 2)]
)
def test_memory_is_rounded_to_the_nearest_whole_gib(kb: int, gb: int) -> None:
    found, _ = make_profile("a", None, {"mem": Section(0, b"MemTotal: %d kB\n" % kb)}, 0)
    assert (found.memory_gb, found.memory_kb) == (gb, kb)


def test_an_old_driver_is_asked_again_without_capabilities() -> None:
    sample = (SAMPLES / "nvidia-smi" / "15-compute-cap-not-valid.txt").read_bytes()
    assert profile_section() == "gpu:index:name:memory.total:compute_cap:driver_version"
    first = parse_cards(sample, 2)
    assert first.refused == ("compute_cap",)
    assert profile_section(first.refused) == "gpu:index:name:memory.total:driver_version"
    again = parse_cards(b"0, Tesla K80, 11441, 470.42.01\n", 0, first.refused)
    assert not isinstance(again.gpus, Unknown)
    (card,) = again.gpus
    assert (card.memory_gb, card.driver) == (11, "470.42.01")
    assert card.compute_cap == Unknown("the driver does not tell compute capabilities")


def test_capabilities_are_pairs() -> None:
    pairs = [parse_capability(text) for text in ("8.9", "8.10", "12.0")]
    assert pairs == sorted(pairs, key=str) == [(12, 0), (8, 10), (8, 9)] or pairs == [
        (8, 9),
        (8, 10),
        (12, 0),
    ]
    assert (8, 9) < (8, 10) < (12, 0)
    assert all(isinstance(parse_capability(text), Unknown) for text in ("", "8", "8.x", "[N/A]", "-8.9"))


@pytest.mark.parametrize(
    ("payload", "exit_code"),
    [(b"", 127), (b"No devices were found\n", 6)],
)
def test_a_machine_without_nvidia_has_no_gpus(payload: bytes, exit_code: int) -> None:
    assert parse_cards(payload, exit_code).gpus == ()


def test_a_driver_that_fails_tells_nothing_of_cards() -> None:
    for name, code in (("09-driver-library-mismatch", 18), ("10-driver-not-running", 9)):
        answer = parse_cards((SAMPLES / "nvidia-smi" / f"{name}.txt").read_bytes(), code)
        assert isinstance(answer.gpus, Unknown)
        found, gaps = make_profile("a", answer, FACTS, 0)
        assert found.gpus == answer.gpus
        assert gaps == (ProfileGap("gpus", answer.gpus.reason),)


def test_unified_memory_is_the_machine_s() -> None:
    answer = parse_cards(b"0, NVIDIA GB10, [N/A], 12.1, 580.95.05\n")
    found, _ = make_profile("spark", answer, FACTS, 0)
    assert not isinstance(found.gpus, Unknown)
    assert found.gpus == (
        ProfileGpu(0, "NVIDIA GB10", 63, 65780384 // 1024, (12, 1), "580.95.05", is_unified=True),
    )


def test_what_was_not_read_is_a_gap_and_never_a_number() -> None:
    found, gaps = make_profile("a", None, {}, 0)
    assert [gap.part for gap in gaps] == ["gpus", "memory", "cpu", "disks"]
    values = (found.memory_gb, found.memory_kb, found.cpu.cores, found.cpu.threads, found.disks, found.gpus)
    assert all(isinstance(value, Unknown) for value in values)


def test_disks_of_an_old_lsblk() -> None:
    pairs = b'NAME="sda" TYPE="disk" SIZE="240057409536" ROTA="0" MODEL="X"\n'
    facts = {"drives": Section(1, b"lsblk: invalid option -- J"), "blocks": Section(0, pairs)}
    assert make_profile("a", None, facts, 0)[0].disks == (ProfileDisk("sda", 240, False),)


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        (LSCPU.decode(), 8),
        ("Core(s) per socket: 32\nSocket(s): 2\n", 64),
        # A block for each kind of core (DGX Spark), and clusters instead of sockets.
        ("Core(s) per socket: 10\nSocket(s): 1\nModel name: B\nCore(s) per socket: 10\nSocket(s): 1\n", 20),
        ("Core(s) per cluster: 4\nSocket(s): -\nCluster(s): 2\n", 8),
        ("physical id: 0\ncore id: 0\nphysical id: 0\ncore id: 0\nphysical id: 1\ncore id: 0\n", 2),
    ],
)
def test_cores(text: str, cores: int) -> None:
    assert parse_cores(text.encode()) == cores


@pytest.mark.parametrize(
    "text", ["", "Kern(e) pro Socket: 8\nSockel: 1\n", "Core(s) per socket: -\nSocket(s): 1"]
)
def test_cores_that_nobody_tells(text: str) -> None:
    assert isinstance(parse_cores(text.encode()), Unknown)


@pytest.mark.parametrize("shell", SHELLS)
def test_real_shells_answer_every_section(shell: str) -> None:
    loop = Loop("facts", find_shell(shell))
    try:
        answers = loop.ask(*FACTS_SECTIONS, "blocks")
    finally:
        loop.close()
    found, gaps = make_profile("here", parse_cards(b"", 127), answers, 0)
    assert gaps == ()
    assert not isinstance(found.cpu.cores, Unknown)
    total = Path("/proc/meminfo").read_text().split()[1]
    assert found.memory_kb == int(total)
